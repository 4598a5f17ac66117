/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_DIST_RPC_FAKE_H_
#define TESTS_DIST_RPC_FAKE_H_

#include <pthread.h>
#include <time.h>

#include "runtime/base/strbuf.h"
#include "runtime/net/rpc/rpc_server.h"
#include "tests/check.h"

/* A server of calls whose clients are functions of the test. */

typedef struct fake_call {
  struct fake_call *next;
  weir_rpc_message message;
  atomic_bool gone;
  bool done;
  weir_status status; /* of the answer */
  char text[1024];
  weir_strbuf answer;
} fake_call;

typedef struct fake_rpc {
  weir_rpc_server base; /* first */
  weir_rpc_maker maker;
  const weir_env *env;
  pthread_mutex_t lock;
  pthread_cond_t changed;
  fake_call *first, **end;
  bool woken, released;
} fake_rpc;

static inline fake_rpc *fake_of(weir_rpc_server *s) {
  return (fake_rpc *)s;
}

static inline weir_status fake_listen(weir_rpc_server *s, weir_sv address,
                                      char *out_bound, weir_error *err) {
  (void)s;
  if (weir_sv_is(address, "taken"))
    return weir_fail(err, WEIR_W7002, NULL, "taken: another listens there");
  memcpy(out_bound, address.data, address.size);
  out_bound[address.size] = '\0';
  return WEIR_OK;
}

static inline weir_status fake_poll(weir_rpc_server *s, int64_t deadline_ns,
                                    weir_error *err) {
  fake_rpc *f = fake_of(s);
  const weir_clock *clock = f->env->clock;
  (void)err;
  pthread_mutex_lock(&f->lock);
  while (f->first == NULL && !f->woken &&
         clock->now_ns(clock->self) < deadline_ns) {
    struct timespec t; /* a millisecond, or until something comes */
    clock_gettime(CLOCK_REALTIME, &t);
    t.tv_nsec += 1000000;
    if (t.tv_nsec >= 1000000000) t.tv_sec++, t.tv_nsec -= 1000000000;
    pthread_cond_timedwait(&f->changed, &f->lock, &t);
  }
  fake_call *list = f->first;
  f->first = NULL;
  f->end = &f->first;
  f->woken = false;
  pthread_mutex_unlock(&f->lock);
  for (fake_call *next; list != NULL; list = next) {
    next = list->next;
    s->handler.on_message(s->handler.self, &list->message);
  }
  return WEIR_OK;
}

static inline void fake_wake(weir_rpc_server *s) {
  fake_rpc *f = fake_of(s);
  pthread_mutex_lock(&f->lock);
  f->woken = true;
  pthread_cond_broadcast(&f->changed);
  pthread_mutex_unlock(&f->lock);
}

static inline void fake_reply(weir_rpc_server *s, weir_rpc_call *call,
                              const weir_rpc_reply *reply) {
  fake_rpc *f = fake_of(s);
  fake_call *c = (fake_call *)call;
  pthread_mutex_lock(&f->lock);
  assert_false(c->done);
  c->status = reply->status;
  if (reply->text != NULL) snprintf(c->text, sizeof c->text, "%s", reply->text);
  for (size_t i = 0; i < reply->count; i++)
    weir_strbuf_append(&c->answer, (const char *)reply->pieces[i].data,
                       reply->pieces[i].size);
  c->done = true;
  pthread_cond_broadcast(&f->changed);
  pthread_mutex_unlock(&f->lock);
}

static inline bool fake_gone(weir_rpc_server *s, const weir_rpc_call *call) {
  (void)s;
  return atomic_load(&((fake_call *)(uintptr_t)call)->gone);
}

static inline void fake_release(weir_rpc_server *s) {
  fake_of(s)->released = true;
}

static inline weir_status fake_create(void *self,
                                      const weir_rpc_handler *handler,
                                      const weir_rpc_options *options,
                                      weir_rpc_server **out_server,
                                      weir_error *err) {
  static const weir_rpc_vtable kFake = {.release = fake_release,
                                        .listen = fake_listen,
                                        .poll = fake_poll,
                                        .wake = fake_wake,
                                        .reply = fake_reply,
                                        .gone = fake_gone};
  fake_rpc *f = self;
  (void)err;
  f->base = (weir_rpc_server){&kFake, f->env, *handler, *options};
  *out_server = &f->base;
  return WEIR_OK;
}

static inline void fake_init(fake_rpc *f, const weir_env *env) {
  *f = (fake_rpc){.env = env, .maker = {f, fake_create}};
  pthread_mutex_init(&f->lock, NULL);
  pthread_cond_init(&f->changed, NULL);
  f->end = &f->first;
}

/* Sends |bytes|, which |c| borrows until its answer, to method |method|. */
static inline void fake_send(fake_rpc *f, fake_call *c, uint32_t method,
                             weir_bytes bytes) {
  c->next = NULL;
  c->done = false;
  c->text[0] = '\0';
  c->message.call = (weir_rpc_call *)c;
  c->message.method = method;
  c->message.bytes = bytes;
  if (c->message.deadline_ns == 0) c->message.deadline_ns = INT64_MAX;
  weir_strbuf_init(&c->answer, weir_allocator_system());
  pthread_mutex_lock(&f->lock);
  *f->end = c;
  f->end = &c->next;
  pthread_cond_broadcast(&f->changed);
  pthread_mutex_unlock(&f->lock);
}

/* Waits for the answer, whose bytes are |c|'s to release. */
static inline void fake_wait(fake_rpc *f, fake_call *c) {
  pthread_mutex_lock(&f->lock);
  while (!c->done) pthread_cond_wait(&f->changed, &f->lock);
  pthread_mutex_unlock(&f->lock);
}

#endif
