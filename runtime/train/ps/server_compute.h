/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_TRAIN_PS_SERVER_COMPUTE_H_
#define WEIR_TRAIN_PS_SERVER_COMPUTE_H_

#include "runtime/train/ps/server_host_internal.h"

/* Calls of the machine: updates and restores. */

void weir_ps_host_compute_init(weir_ps_host *h);
void weir_ps_host_apply(void *self, uint64_t ticket, const weir_ps_message *m);
void weir_ps_host_add(void *self, uint64_t ticket, const weir_ps_message *m);
void weir_ps_host_finish(void *self, uint64_t ticket, uint64_t step);
/* Takes h->seed, if one came along. */
void weir_ps_host_restore(void *self, uint64_t ticket, uint64_t generation);
/* Once no work is under way. */
void weir_ps_host_drop_seeds(weir_ps_host *h);

#endif
