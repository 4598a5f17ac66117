/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/dist/predict/watchers.h"

#include "runtime/net/rpc/services.h"

/* A call is ours or its answer is on its way, in turn. News that come while an
 * answer is on its way wait for the call to come again, so that a client who
 * reads slowly holds one answer and no more. */

/* Ends |it|; the answer goes nowhere if the client has left. */
static void let_go(weir_predict_watchers *w, weir_predict_watcher *it) {
  const weir_rpc_reply reply = {.status = WEIR_UNAVAILABLE,
                                .text = "W7078: the server stops"};
  weir_rpc_call *call = it->call;
  *it = (weir_predict_watcher){.call = NULL};
  w->count--;
  w->rpc->vt->reply(w->rpc, call, &reply);
}

/* Tells |it|, which is ours, the state, unless it knows. */
static void tell(weir_predict_watchers *w, weir_predict_watcher *it) {
  weir_strbuf answer;
  weir_error err = WEIR_ERROR_INIT;
  if (it->told && (it->unknown || it->serving == !w->stopping)) return;
  weir_strbuf_init(&answer, w->alloc);
  weir_rpc_health_state state = it->unknown   ? WEIR_RPC_SERVICE_UNKNOWN
                                : w->stopping ? WEIR_RPC_NOT_SERVING
                                              : WEIR_RPC_SERVING;
  it->serving = !w->stopping;
  it->told = true;
  if (weir_rpc_health_tell(state, &answer, &err) == WEIR_OK) {
    const weir_bytes piece = {(const uint8_t *)weir_strbuf_view(&answer).data,
                              answer.size};
    const weir_rpc_reply reply = {.pieces = &piece, .count = 1};
    it->ours = false;
    w->rpc->vt->reply(w->rpc, it->call, &reply);
  } else { /* a watcher who would not be told is better off without */
    let_go(w, it);
  }
  weir_strbuf_release(&answer);
}

static weir_predict_watcher *find(weir_predict_watchers *w,
                                  const weir_rpc_call *call) {
  for (uint32_t i = 0; i < WEIR_PREDICT_WATCHERS; i++)
    if (w->items[i].call == call) return &w->items[i];
  return NULL;
}

weir_status weir_predict_watchers_message(weir_predict_watchers *w,
                                          const weir_rpc_message *m,
                                          weir_error *err) {
  bool known = true;
  weir_predict_watcher *it = find(w, m->again ? m->call : NULL);
  if (it == NULL)
    return weir_fail(err, WEIR_W7077, NULL,
                     "%d clients watch the server's health, more may not",
                     WEIR_PREDICT_WATCHERS);
  if (!m->again) {
    WEIR_TRY(weir_rpc_health_known(m->bytes, &known, err));
    *it = (weir_predict_watcher){.call = m->call, .unknown = !known};
    w->count++;
  }
  it->ours = true;
  tell(w, it);
  return WEIR_OK;
}

void weir_predict_watchers_look(weir_predict_watchers *w) {
  for (uint32_t i = 0; w->count > 0 && i < WEIR_PREDICT_WATCHERS; i++) {
    weir_predict_watcher *it = &w->items[i];
    if (it->call != NULL && it->ours && w->rpc->vt->gone(w->rpc, it->call))
      let_go(w, it);
  }
}

void weir_predict_watchers_stop(weir_predict_watchers *w) {
  w->stopping = true;
  for (uint32_t i = 0; i < WEIR_PREDICT_WATCHERS; i++)
    if (w->items[i].call != NULL && w->items[i].ours) tell(w, &w->items[i]);
}

void weir_predict_watchers_end(weir_predict_watchers *w) {
  for (uint32_t i = 0; i < WEIR_PREDICT_WATCHERS; i++)
    if (w->items[i].call != NULL && w->items[i].ours) let_go(w, &w->items[i]);
}
