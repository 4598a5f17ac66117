/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_DIST_PREDICT_SERVICE_CALLS_H_
#define WEIR_DIST_PREDICT_SERVICE_CALLS_H_

#include "runtime/dist/predict/service_internal.h"

/* Messages as they come, on the thread that polls. */

extern const weir_rpc_method weir_predict_methods[];
extern const uint32_t weir_predict_method_count;

/* weir_rpc_handler.on_message; |self| is the service. */
void weir_predict_on_message(void *self, const weir_rpc_message *message);

/* Ends |call| with |err|'s message; |status|: instead of its own. */
void weir_predict_refuse(weir_predict_service *s, weir_rpc_call *call,
                         weir_status status, const weir_error *err);

#endif
