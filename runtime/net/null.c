/* SPDX-License-Identifier: Apache-2.0
 *
 * The null transport: it has no peers. To write a transport, copy this file,
 * rename, and replace bodies. */
#include "runtime/net/null.h"

#include "runtime/base/vec.h"
#include "runtime/net/transport.h"

typedef struct null_transport {
  weir_transport base; /* first: the vtable finds it */
  weir_connection last;
  WEIR_VEC(weir_connection) closing; /* to be reported by the next poll */
} null_transport;

static void null_release(weir_transport *t) {
  null_transport *null = (null_transport *)t;
  const weir_allocator *alloc = t->env->alloc;
  weir_vec_free(alloc, &null->closing);
  weir_free(alloc, null);
}

static weir_status null_connect(weir_transport *t, weir_sv address,
                                weir_connection *out_connection,
                                weir_error *err) {
  (void)address;
  null_transport *null = (null_transport *)t;
  *out_connection = 0;
  if (!weir_vec_push(t->env->alloc, &null->closing, null->last + 1))
    return weir_fail_memory(err, sizeof null->last);
  *out_connection = ++null->last;
  return WEIR_OK;
}

static weir_status null_listen(weir_transport *t, weir_sv address,
                               char out_bound[WEIR_NET_ADDRESS_BYTES],
                               weir_error *err) {
  (void)t;
  out_bound[0] = '\0';
  return weir_fail(err, WEIR_W7002, NULL, "%.*s: nobody can reach this task",
                   WEIR_SV(address));
}

static weir_status null_send(weir_transport *t, weir_connection c,
                             const weir_net_piece *pieces, size_t count,
                             weir_error *err) {
  (void)t, (void)pieces, (void)count;
  return weir_fail(err, WEIR_W7001, NULL, "connection %llu is not established",
                   (unsigned long long)c);
}

static void null_close(weir_transport *t, weir_connection c) {
  null_transport *null = (null_transport *)t;
  for (size_t i = 0; i < null->closing.count; i++)
    if (null->closing.items[i] == c) null->closing.items[i] = 0;
}

static weir_status null_poll(weir_transport *t, int64_t deadline_ns,
                             weir_error *err) {
  (void)deadline_ns, (void)err;
  null_transport *null = (null_transport *)t;
  for (size_t i = 0; i < null->closing.count; i++)
    if (null->closing.items[i] != 0)
      t->handler.on_closed(t->handler.self, null->closing.items[i],
                           WEIR_CLOSED_UNREACHABLE, WEIR_SV_LIT("no network"));
  null->closing.count = 0;
  return WEIR_OK;
}

static void null_wake(weir_transport *t) {
  (void)t;
}

static const weir_transport_vtable kNull = {
    .release = null_release,
    .connect = null_connect,
    .listen = null_listen,
    .send = null_send,
    .close = null_close,
    .poll = null_poll,
    .wake = null_wake,
};

weir_status weir_transport_null_create(const weir_env *env,
                                       const weir_transport_handler *handler,
                                       const weir_transport_options *options,
                                       weir_transport **out_transport,
                                       weir_error *err) {
  *out_transport = NULL;
  null_transport *null = weir_alloc_array(env->alloc, 1, sizeof *null);
  if (null == NULL) return weir_fail_memory(err, sizeof *null);
  weir_transport_init(&null->base, &kNull, env, handler, options);
  *out_transport = &null->base;
  return WEIR_OK;
}
