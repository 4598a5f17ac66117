/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_TRAIN_PS_SERVER_COMPUTE_H_
#define WEIR_TRAIN_PS_SERVER_COMPUTE_H_

#include "runtime/train/ps/server_host_internal.h"

/* Calls of the machine: updates and restores. */

void weir_ps_host_compute_init(weir_ps_host *h);
void weir_ps_host_apply(void *self, uint64_t ticket, const weir_ps_message *m);
void weir_ps_host_add(void *self, uint64_t ticket, const weir_ps_message *m);
void weir_ps_host_finish(void *self, uint64_t ticket, uint64_t step);
/* Begins work with |buffer|, which is the thread's until it is told of. */
void weir_ps_host_compute(weir_ps_host *h, weir_ps_compute_kind kind,
                          uint64_t ticket, weir_ps_buffer *buffer);
/* Takes h->seed, if one came along. */
void weir_ps_host_restore(void *self, uint64_t ticket, uint64_t generation);
/* Once no work is under way. */
void weir_ps_host_drop_seeds(weir_ps_host *h);

#endif
