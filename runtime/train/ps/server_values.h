/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_TRAIN_PS_SERVER_VALUES_H_
#define WEIR_TRAIN_PS_SERVER_VALUES_H_

#include "runtime/train/ps/server_host_internal.h"

/* Values on their way in and out of a server. Control thread. */

/* Sends |m| with the current values of |count| variables, places among what is
 * held (NULL: all, and what a summary watches). */
void weir_ps_host_send_values(weir_ps_host *h, weir_ps_task to,
                              const weir_ps_message *m, const uint32_t *places,
                              uint32_t count);
/* A reference to the value at a place among what is held, of the current
 * version; an own one only while |h->unsettled| is false. Errors: W6001. */
weir_status weir_ps_host_value(weir_ps_host *h, uint32_t place,
                               weir_tensor **out, weir_error *err);
/* A buffer for a push. Errors: W6001. */
weir_status weir_ps_host_take(weir_ps_host *h, weir_ps_buffer **out,
                              weir_error *err);
void weir_ps_host_give(weir_ps_host *h, weir_ps_buffer *buffer);
/* |next| becomes current. */
void weir_ps_host_swap(weir_ps_host *h, uint64_t version);
void weir_ps_host_values_release(weir_ps_host *h);

#endif
