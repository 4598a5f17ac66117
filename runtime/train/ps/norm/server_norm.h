/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_TRAIN_PS_SERVER_NORM_H_
#define WEIR_TRAIN_PS_SERVER_NORM_H_

#include "runtime/train/ps/server_host_internal.h"

/* The norm of a step: calls of the machine, and NORM messages. Control thread.
 * A share that comes is kept under the conditions under which the machine
 * counts it, so what the machine has heard of is there. */

weir_status weir_ps_norm_init(weir_ps_host *h, weir_error *err);
void weir_ps_norm_release(weir_ps_host *h);

/* The call `norm`: computes the own share from the step's last push. */
void weir_ps_host_norm(void *self, uint64_t ticket, uint64_t step);
/* On the thread that computes. Errors: the program's, W6001. */
weir_status weir_ps_norm_work(weir_ps_host *h, weir_ps_buffer *b,
                              weir_error *err);
/* It is computed, and counts. */
void weir_ps_norm_own(weir_ps_host *h);
/* The norm that the update reads, of all shares. */
void weir_ps_norm_set(weir_ps_host *h);

/* Sends |m|, a NORM, with the own share. */
void weir_ps_norm_send(weir_ps_host *h, weir_ps_task to,
                       const weir_ps_message *m);
/* Memory for a share of server |from|. Errors: W6001, W7011. */
weir_status weir_ps_norm_receive(weir_ps_host *h, uint32_t from,
                                 weir_ps_place *out, weir_error *err);
/* Whether |data| was such memory, which is gone then. */
bool weir_ps_norm_unreceived(weir_ps_host *h, const void *data);
/* A NORM has come, with |m->data|, which is gone then. False: it lacks a share
 * that server |from| has. */
bool weir_ps_norm_message(weir_ps_host *h, uint32_t from, weir_ps_message *m);

#endif
