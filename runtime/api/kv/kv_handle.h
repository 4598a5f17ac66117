/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_API_KV_HANDLE_H_
#define WEIR_API_KV_HANDLE_H_

#include "runtime/api/kv/kv_internal.h"

/* Handles of ops under way. */

/* With room for |shares|, for one caller. Errors: W6001. */
weir_status weir_kv_handle_create(weir_kv *kv, uint32_t shares,
                                  weir_kv_handle **out_handle, weir_error *err);
/* Control thread: the calls of the machine. */
void weir_kv_handle_send(void *self, uint32_t server, const weir_kv_message *m,
                         weir_kv_op *op);
void weir_kv_handle_done(void *self, weir_kv_op *op);
/* Where the answer to |m| goes. Errors: W7011, W6001. */
weir_status weir_kv_handle_place(weir_kv *kv, uint32_t server,
                                 const weir_kv_message *m, weir_ps_place *out,
                                 weir_error *err);

#endif
