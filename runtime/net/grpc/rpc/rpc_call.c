/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/net/grpc/rpc/rpc_call.h"

/* A call from its begin to its end, in batches:
 *
 *   closed     from the begin to the end: says whether it was cancelled
 *   received   the next message, or none: the client has no more
 *   sent       an answer, with the status if it is the last
 *
 * `received` and `sent` take turns, with the owner's thinking between them, so
 * two counts are enough: one of `closed`, one that goes round. A watch has one
 * message, and is the owner's again after each answer. */

enum { kLookNs = 1000000000 }; /* idle calls are looked for so often */

static int64_t now_of(const weir_rpc_grpc *s) {
  return s->host->now_ns(s->base.env);
}

static void drop(weir_rpc_call *c) {
  weir_rpc_grpc *s = c->server;
  if (atomic_fetch_sub(&c->refs, 1) != 1) return;
  if (c->prev != NULL)
    c->prev->next = c->next;
  else
    s->calls = c->next;
  if (c->next != NULL) c->next->prev = c->prev;
  s->call_count--;
  if (c->in != NULL) grpc_byte_buffer_destroy(c->in);
  if (c->out != NULL) grpc_byte_buffer_destroy(c->out);
  grpc_call_unref(c->call);
  s->host->free(s->base.env, c->joined);
  s->host->free(s->base.env, c);
}

static void start(weir_rpc_call *c, const grpc_op *ops, size_t count,
                  weir_grpc_tag *tag) {
  if (weir_grpc_start(c->call, ops, count, tag)) return;
  /* Cannot be, by gRPC's rules; then it comes back as if it had failed. */
  grpc_call_cancel(c->call, NULL);
  (void)weir_grpc_start(c->call, NULL, 0, tag);
}

/* ---- Messages */

static void receive(weir_rpc_call *c) {
  grpc_op op = {.op = GRPC_OP_RECV_MESSAGE};
  op.data.recv_message.recv_message = &c->in;
  c->idle_until_ns = now_of(c->server) + c->server->base.options.idle_ns;
  start(c, &op, 1, &c->received);
}

static void forget_message(weir_rpc_call *c) {
  if (c->in != NULL) grpc_byte_buffer_destroy(c->in);
  c->server->host->free(c->server->base.env, c->joined);
  c->in = NULL;
  c->joined = NULL;
}

/* The message in one piece. false: there is no memory for it. */
static bool join(weir_rpc_call *c, weir_bytes *out) {
  const grpc_slice_buffer *slices = &c->in->data.raw.slice_buffer;
  *out = (weir_bytes){NULL, slices->length};
  if (slices->count == 1) out->data = GRPC_SLICE_START_PTR(slices->slices[0]);
  if (slices->count <= 1) return true;
  c->joined = c->server->host->alloc(c->server->base.env, slices->length);
  if (c->joined == NULL) return false;
  uint8_t *to = c->joined;
  out->data = to;
  for (size_t i = 0; i < slices->count; i++) {
    size_t size = GRPC_SLICE_LENGTH(slices->slices[i]);
    memcpy(to, GRPC_SLICE_START_PTR(slices->slices[i]), size);
    to += size;
  }
  return true;
}

static void answer(weir_rpc_call *c, weir_status status, const char *text) {
  const weir_rpc_reply reply = {.status = status, .text = text};
  weir_rpc_call_reply(&c->server->base, c, &reply);
}

/* The client has no more messages: the end of a stream. A last answer without a
 * message is the status alone. */
static void on_last(weir_rpc_call *c) {
  if (atomic_load(&c->gone))
    drop(c);
  else if (c->stream)
    answer(c, WEIR_OK, NULL);
  else
    answer(c, WEIR_INVALID_ARGUMENT, "the call has no message");
}

static void on_received(void *self, bool ok) {
  weir_rpc_call *c = self;
  weir_rpc_grpc *s = c->server;
  weir_rpc_message m = {
      .call = c, .method = c->method, .deadline_ns = c->deadline_ns};
  c->idle_until_ns = INT64_MAX;
  if (s->releasing) {
    drop(c);
    return;
  }
  if (!ok || c->in == NULL) {
    on_last(c);
    return;
  }
  s->events++;
  if (!join(c, &m.bytes)) {
    s->wanted = c->in->data.raw.slice_buffer.length;
    answer(c, WEIR_RESOURCE_EXHAUSTED, "out of memory");
    return;
  }
  s->base.handler.on_message(s->base.handler.self, &m);
}

/* ---- Answers */

/* The owner has the watch again, also when the client has left: it answers. */
static void watch_on(weir_rpc_call *c) {
  weir_rpc_grpc *s = c->server;
  const weir_rpc_message m = {.call = c,
                              .method = c->method,
                              .deadline_ns = c->deadline_ns,
                              .again = true};
  c->leaving = false;
  s->events++;
  if (s->releasing)
    answer(c, WEIR_UNAVAILABLE, "the server stops");
  else
    s->base.handler.on_message(s->base.handler.self, &m);
}

static void on_sent(void *self, bool ok) {
  weir_rpc_call *c = self;
  /* Sees all that the answering thread wrote. */
  (void)atomic_load_explicit(&c->refs, memory_order_acquire);
  if (c->out != NULL) grpc_byte_buffer_destroy(c->out);
  c->out = NULL;
  forget_message(c);
  if (c->watch && !c->over)
    watch_on(c);
  else if (ok && !c->over && !atomic_load(&c->gone))
    receive(c);
  else
    drop(c);
}

void weir_rpc_call_reply(weir_rpc_server *base, weir_rpc_call *c,
                         const weir_rpc_reply *reply) {
  grpc_op ops[3] = {{.op = GRPC_OP_SEND_INITIAL_METADATA}};
  size_t count = c->begun ? 0 : 1;
  grpc_slice text = grpc_empty_slice();
  (void)base;
  c->begun = true;
  if (reply->status == WEIR_OK && (reply->count > 0 || !c->stream)) {
    c->out = grpc_raw_byte_buffer_create(NULL, 0);
    for (size_t i = 0; i < reply->count; i++)
      if (reply->pieces[i].size > 0)
        grpc_slice_buffer_add(
            &c->out->data.raw.slice_buffer,
            grpc_slice_from_copied_buffer((const char *)reply->pieces[i].data,
                                          reply->pieces[i].size));
    ops[count] = (grpc_op){.op = GRPC_OP_SEND_MESSAGE};
    ops[count++].data.send_message.send_message = c->out;
  }
  c->over =
      reply->status != WEIR_OK || !(c->stream || c->watch) || reply->count == 0;
  c->leaving = c->watch && !c->over;
  if (c->over) {
    if (reply->status != WEIR_OK && reply->text != NULL)
      text = grpc_slice_from_copied_string(reply->text);
    ops[count] = (grpc_op){.op = GRPC_OP_SEND_STATUS_FROM_SERVER};
    ops[count].data.send_status_from_server.status =
        (grpc_status_code)reply->status;
    ops[count++].data.send_status_from_server.status_details = &text;
  }
  /* For the thread that polls; the call may be gone once the batch began. */
  atomic_fetch_add_explicit(&c->refs, 0, memory_order_release);
  start(c, ops, count, &c->sent);
  grpc_slice_unref(text);
}

/* ---- Begin and end */

static void on_closed(void *self, bool ok) {
  weir_rpc_call *c = self;
  (void)ok;
  atomic_store(&c->gone, true);
  if (c->watch) c->server->events++; /* the owner looks who has left */
  drop(c);
}

static void link_call(weir_rpc_grpc *s, weir_rpc_call *c) {
  c->next = s->calls;
  if (s->calls != NULL) s->calls->prev = c;
  s->calls = c;
  s->call_count++;
}

/* On the env's clock. */
static int64_t deadline_of(const weir_rpc_grpc *s, gpr_timespec deadline) {
  enum { kYear = 366 * 86400 };
  gpr_timespec left = gpr_time_sub(deadline, gpr_now(deadline.clock_type));
  if (gpr_time_cmp(deadline, gpr_inf_future(deadline.clock_type)) == 0 ||
      left.tv_sec > kYear)
    return INT64_MAX;
  return now_of(s) + left.tv_sec * 1000000000 + left.tv_nsec;
}

static uint32_t find_method(const weir_rpc_options *o, weir_sv path) {
  uint32_t i = 0;
  while (i < o->method_count && !weir_sv_is(path, o->methods[i].path)) i++;
  return i;
}

void weir_rpc_call_begin(weir_rpc_grpc *s, grpc_call *call, weir_sv path,
                         gpr_timespec deadline) {
  const weir_rpc_options *o = &s->base.options;
  weir_rpc_call *c = s->host->alloc(s->base.env, sizeof *c);
  if (c == NULL || s->releasing) {
    s->wanted = sizeof *c;
    s->host->free(s->base.env, c);
    grpc_call_unref(call); /* cuts it */
    return;
  }
  memset(c, 0, sizeof *c);
  c->server = s;
  c->call = call;
  c->method = find_method(o, path);
  c->stream = c->method < o->method_count && o->methods[c->method].stream;
  c->watch = c->method < o->method_count && o->methods[c->method].watch;
  c->received = (weir_grpc_tag){on_received, c};
  c->sent = (weir_grpc_tag){on_sent, c};
  c->closed = (weir_grpc_tag){on_closed, c};
  c->deadline_ns = deadline_of(s, deadline);
  c->idle_until_ns = INT64_MAX;
  atomic_store(&c->refs, 2);
  link_call(s, c);
  grpc_op op = {.op = GRPC_OP_RECV_CLOSE_ON_SERVER};
  op.data.recv_close_on_server.cancelled = &c->cancelled;
  start(c, &op, 1, &c->closed);
  if (c->method == o->method_count)
    answer(c, WEIR_UNIMPLEMENTED, "no such method");
  else if (s->call_count > o->max_calls)
    answer(c, WEIR_RESOURCE_EXHAUSTED, "too many calls are open");
  else
    receive(c);
}

void weir_rpc_call_expire(weir_rpc_grpc *s) {
  int64_t now = now_of(s);
  if (now < s->look_ns) return;
  s->look_ns = now + kLookNs;
  for (weir_rpc_call *c = s->calls; c != NULL; c = c->next)
    if (c->idle_until_ns <= now)
      (void)grpc_call_cancel_with_status(
          c->call, GRPC_STATUS_DEADLINE_EXCEEDED,
          "the next message has not come in time", NULL);
}
