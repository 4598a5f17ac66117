/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_TRAIN_PS_CHIEF_NET_H_
#define WEIR_TRAIN_PS_CHIEF_NET_H_

#include "runtime/train/ps/chief_internal.h"

/* The chief's control thread: the coordinator between the net and the loop. */

/* What the net and the coordinator call. */
weir_ps_net_events weir_chief_events(weir_chief *c);
weir_ps_coordinator_calls weir_chief_calls(weir_chief *c);
/* Has the control thread do |ask|; waits until it has begun. Loop's thread. */
void weir_chief_tell(weir_chief *c, weir_chief_ask ask, uint64_t number);

#endif
