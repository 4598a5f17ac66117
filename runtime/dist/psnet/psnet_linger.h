/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_DIST_PSNET_LINGER_H_
#define WEIR_DIST_PSNET_LINGER_H_

#include "runtime/dist/psnet/psnet_internal.h"

/* Waits until the messages that were sent so far have left, to peers that are
 * up; at most as long as a silent peer lives. Not on a thread of the net, whose
 * threads still run. */
void weir_ps_linger(weir_ps_net *net);

#endif
