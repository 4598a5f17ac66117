/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/env_system.h"
#include "runtime/dist/node/node.h"
#include "runtime/net/local.h"
#include "tests/check.h"

typedef struct world {
  weir_counted_allocator counted;
  weir_env env;
  weir_net_hub *hub;
  weir_node *node;
  weir_transport *control, *bulk;
  weir_error err;
  atomic_int steps, bulk_steps, frames, failures;
  atomic_int ran, told;
  pthread_t control_thread; /* set by its first step */
  int64_t deadline_ns;
} world;

static int64_t now(const world *w) {
  return w->env.clock->now_ns(w->env.clock->self);
}

static int64_t control_step(void *self, int64_t now_ns) {
  world *w = self;
  assert(now_ns > 0);
  w->control_thread = pthread_self();
  atomic_fetch_add(&w->steps, 1);
  return w->deadline_ns == 0 ? INT64_MAX : now_ns + w->deadline_ns;
}

static int64_t bulk_step(void *self, int64_t now_ns) {
  world *w = self;
  (void)now_ns;
  atomic_fetch_add(&w->bulk_steps, 1);
  return INT64_MAX;
}

static bool failed(void *self, weir_net_class cls, const weir_error *err) {
  world *w = self;
  (void)cls, (void)err;
  assert(cls == WEIR_NET_CONTROL && strcmp(err->id, "W6001") == 0);
  w->counted.fail_at = 0; /* memory is there again */
  atomic_fetch_add(&w->failures, 1);
  return true;
}

static void on_connected(void *self, weir_connection c, weir_sv peer,
                         bool incoming) {
  (void)self, (void)c, (void)peer, (void)incoming;
}

static void on_closed(void *self, weir_connection c, weir_close_reason why,
                      weir_sv text) {
  (void)self, (void)c, (void)why, (void)text;
}

static void on_frame(void *self, weir_connection c, weir_net_frame *frame) {
  (void)c, (void)frame;
  atomic_fetch_add(&((world *)self)->frames, 1);
}

static weir_status make(world *w, weir_net_class cls, weir_transport **out) {
  weir_transport_handler handler = {w, on_connected, on_frame, on_closed};
  weir_transport_options options = {.cls = cls};
  return weir_transport_local_create(w->hub, &handler, &options, out, &w->err);
}

static world *open_world(void) {
  world *w = calloc(1, sizeof *w);
  weir_counted_allocator_init(&w->counted, NULL);
  w->env = *weir_env_system();
  w->env.alloc = &w->counted.base;
  assert_ok(weir_net_hub_create(&w->env, &w->hub, &w->err), &w->err);
  assert_ok(make(w, WEIR_NET_CONTROL, &w->control), &w->err);
  assert_ok(make(w, WEIR_NET_BULK, &w->bulk), &w->err);
  weir_node_machine machine = {w, {control_step, bulk_step}, failed};
  assert_ok(weir_node_create(&w->env, w->control, w->bulk, &machine, &w->node,
                             &w->err),
            &w->err);
  return w;
}

static void close_world(world *w) {
  weir_node_release(w->node);
  weir_net_hub_release(w->hub);
  assert_int_equal(atomic_load(&w->counted.live_blocks), 0);
  free(w);
}

static void run_one(void *self, bool runs) {
  world *w = self;
  atomic_fetch_add(runs ? &w->ran : &w->told, 1);
}

/* ---- Posts */

enum { POSTERS = 4, EACH = 2000 };

typedef struct poster {
  world *w;
  weir_net_class cls;
  weir_node_call calls[EACH];
  struct numbered {
    struct poster *of;
    int number;
  } numbers[EACH];
  int next; /* touched on the node's thread alone, then after its end */
  int ran, told;
  bool order;
} poster;

static void run_numbered(void *self, bool runs) {
  struct numbered *n = self;
  poster *p = n->of;
  if (runs && n->number != p->next++) p->order = false;
  if (runs) p->ran++;
  if (runs && p->cls == WEIR_NET_CONTROL &&
      !pthread_equal(pthread_self(), p->w->control_thread))
    p->order = false;
}

static void *post_all(void *self) {
  poster *p = self;
  for (int i = 0; i < EACH; i++) {
    p->numbers[i] = (struct numbered){p, i};
    p->calls[i] = (weir_node_call){run_numbered, &p->numbers[i], NULL};
    weir_node_post(p->w->node, p->cls, &p->calls[i]);
  }
  return NULL;
}

/* Posts of each thread run once, in order, on the right thread. */
static void posts(void **state) {
  (void)state;
  world *w = open_world();
  poster *posters = calloc(POSTERS, sizeof *posters);
  pthread_t threads[POSTERS];
  assert_ok(weir_node_start(w->node, &w->err), &w->err);
  for (int i = 0; i < POSTERS; i++) {
    posters[i].w = w;
    posters[i].cls = i % 2 == 0 ? WEIR_NET_CONTROL : WEIR_NET_BULK;
    posters[i].order = true;
    pthread_create(&threads[i], NULL, post_all, &posters[i]);
  }
  for (int i = 0; i < POSTERS; i++) pthread_join(threads[i], NULL);
  weir_node_stop(w->node); /* earlier posts run */
  weir_node_join(w->node);
  for (int i = 0; i < POSTERS; i++) {
    assert_int_equal(posters[i].ran, EACH);
    assert_true(posters[i].order);
  }
  weir_node_call late = {run_one, w, NULL};
  weir_node_post(w->node, WEIR_NET_CONTROL, &late);
  assert_int_equal(atomic_load(&w->told), 1); /* at once */
  assert_true(atomic_load(&w->steps) > 0 && atomic_load(&w->bulk_steps) > 0);
  free(posters);
  close_world(w);
}

typedef struct racer {
  world *w;
  weir_node_call calls[200];
} racer;

static void *race(void *self) {
  racer *r = self;
  for (int i = 0; i < 200; i++) {
    r->calls[i] = (weir_node_call){run_one, r->w, NULL};
    weir_node_post(r->w->node, i % 2 ? WEIR_NET_CONTROL : WEIR_NET_BULK,
                   &r->calls[i]);
  }
  return NULL;
}

/* ---- Callers in place of the thread */

typedef struct guest {
  world *w;
  pthread_t thread;
  int stood_in, posted, ran; /* |ran|: by the lane's thread of the moment */
  atomic_int under_way;
  weir_node_call call, answer;
} guest;

static atomic_int inside; /* threads in the control lane: one at most */

static void answer_came(void *self, bool runs) {
  guest *g = self;
  if (!runs || atomic_fetch_add(&inside, 1) != 0) abort();
  g->ran++;
  atomic_fetch_sub(&inside, 1);
  atomic_store(&g->under_way, 0);
}

/* The call is answered by a post, as by a frame that comes later. */
static void ask(void *self, bool runs) {
  guest *g = self;
  if (!runs || atomic_fetch_add(&inside, 1) != 0) abort();
  g->ran++;
  g->answer = (weir_node_call){answer_came, g, NULL};
  weir_node_post(g->w->node, WEIR_NET_CONTROL, &g->answer);
  atomic_fetch_sub(&inside, 1);
}

static weir_node_over answered(void *self) {
  guest *g = self;
  if (atomic_load(&g->under_way) != 0) return WEIR_NODE_GOES_ON;
  return g->ran % 3 == 0 ? WEIR_NODE_OVER_BUSY : WEIR_NODE_OVER;
}

static void *ask_often(void *self) {
  guest *g = self;
  for (int i = 0; i < EACH; i++) {
    atomic_store(&g->under_way, 1);
    g->call = (weir_node_call){ask, g, NULL};
    if (weir_node_stand_in(g->w->node, WEIR_NET_CONTROL, &g->call, answered,
                           g)) {
      if (atomic_load(&g->under_way) != 0) abort();
      g->stood_in++;
      continue;
    }
    g->posted++;
    weir_node_post(g->w->node, WEIR_NET_CONTROL, &g->call);
    while (atomic_load(&g->under_way) != 0) sched_yield();
    weir_node_offer(g->w->node, WEIR_NET_CONTROL);
  }
  return NULL;
}

/* One caller stands in for all calls but the first and those behind a rest;
 * several take turns, and no call is lost or made by two threads at once. */
static void callers_stand_in(void **state) {
  (void)state;
  for (int count = 1; count <= 3; count++) {
    world *w = open_world();
    guest *guests = calloc(3, sizeof *guests);
    assert_ok(weir_node_start(w->node, &w->err), &w->err);
    for (int i = 0; i < count; i++) {
      guests[i].w = w;
      pthread_create(&guests[i].thread, NULL, ask_often, &guests[i]);
    }
    int stood_in = 0;
    for (int i = 0; i < count; i++) {
      pthread_join(guests[i].thread, NULL);
      assert_int_equal(guests[i].ran, 2 * EACH);
      assert_int_equal(guests[i].stood_in + guests[i].posted, EACH);
      stood_in += guests[i].stood_in;
    }
    assert_true(stood_in > 0);
    weir_node_call call = {run_one, w, NULL};
    weir_node_post(w->node, WEIR_NET_CONTROL, &call); /* it is not forgotten */
    while (atomic_load(&w->ran) == 0) sched_yield();
    weir_node_offer(w->node, WEIR_NET_CONTROL); /* and nobody comes */
    free(guests);
    close_world(w);
  }
}

static weir_node_over never(void *self) {
  (void)self;
  return WEIR_NODE_GOES_ON;
}

static void *stand_in_until_the_stop(void *self) {
  world *w = self;
  bool in = false;
  while (!in) {
    weir_node_call call = {run_one, w, NULL};
    in = weir_node_stand_in(w->node, WEIR_NET_CONTROL, &call, never, NULL);
    if (!in) weir_node_offer(w->node, WEIR_NET_CONTROL);
  }
  return NULL;
}

/* A stop ends a caller's stay, and what was posted before runs. */
static void stop_while_a_caller_stands_in(void **state) {
  (void)state;
  for (int round = 0; round < 20; round++) {
    world *w = open_world();
    pthread_t thread;
    assert_ok(weir_node_start(w->node, &w->err), &w->err);
    pthread_create(&thread, NULL, stand_in_until_the_stop, w);
    while (atomic_load(&w->ran) == 0) sched_yield();
    weir_node_call call = {run_one, w, NULL};
    weir_node_post(w->node, WEIR_NET_CONTROL, &call);
    weir_node_stop(w->node);
    pthread_join(thread, NULL);
    weir_node_join(w->node);
    assert_int_equal(atomic_load(&w->ran), 2);
    close_world(w);
  }
}

/* A stop in the middle of posts: each runs or is told, none twice. */
static void stop_amid_posts(void **state) {
  (void)state;
  for (int round = 0; round < 30; round++) {
    world *w = open_world();
    racer racers[2] = {{w}, {w}};
    pthread_t threads[2];
    assert_ok(weir_node_start(w->node, &w->err), &w->err);
    for (int i = 0; i < 2; i++)
      pthread_create(&threads[i], NULL, race, &racers[i]);
    weir_node_stop(w->node);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    weir_node_join(w->node);
    assert_int_equal(atomic_load(&w->ran) + atomic_load(&w->told), 400);
    close_world(w);
  }
}

static void stop_itself(void *self, bool runs) {
  world *w = self;
  (void)runs;
  assert(runs);
  weir_node_stop(w->node);
}

static void stops_on_its_own(void **state) {
  (void)state;
  world *w = open_world();
  weir_node_call stop = {stop_itself, w, NULL};
  assert_ok(weir_node_start(w->node, &w->err), &w->err);
  weir_node_post(w->node, WEIR_NET_BULK, &stop);
  weir_node_join(w->node); /* both threads end */
  close_world(w);
}

static void never_started(void **state) {
  (void)state;
  world *w = open_world();
  weir_node_call call = {run_one, w, NULL};
  weir_node_post(w->node, WEIR_NET_CONTROL, &call);
  weir_node *node = w->node;
  w->node = NULL;
  weir_node_release(node);
  assert_int_equal(atomic_load(&w->told), 1);
  weir_node_release(NULL);
  close_world(w);
}

/* Steps come again at the deadline, without any event. */
static void deadlines(void **state) {
  (void)state;
  world *w = open_world();
  w->deadline_ns = 200000;
  int64_t began = now(w);
  assert_ok(weir_node_start(w->node, &w->err), &w->err);
  while (atomic_load(&w->steps) < 20) sched_yield();
  assert_true(now(w) - began >= 10 * w->deadline_ns);
  close_world(w);
}

/* ---- Frames between two nodes; lack of memory */

typedef struct dial {
  world *w;
  const char *to;
  weir_connection c;
} dial;

static void dial_and_send(void *self, bool runs) {
  dial *d = self;
  weir_transport *t = d->w->control;
  weir_net_piece piece = {"hello", 5, NULL, NULL};
  (void)runs;
  assert(runs);
  weir_status s = t->vt->connect(t, weir_sv_from(d->to), &d->c, NULL);
  if (s == WEIR_OK) s = t->vt->send(t, d->c, &piece, 1, NULL);
  assert(s == WEIR_OK);
  (void)s;
}

static void frames(void **state) {
  (void)state;
  world *w = open_world();
  char bound[WEIR_NET_ADDRESS_BYTES];
  assert_ok(
      w->control->vt->listen(w->control, WEIR_SV_LIT("local:"), bound, &w->err),
      &w->err);
  dial d = {w, bound, 0}; /* a node may dial itself */
  weir_node_call call = {dial_and_send, &d, NULL};
  assert_ok(weir_node_start(w->node, &w->err), &w->err);
  weir_node_post(w->node, WEIR_NET_CONTROL, &call);
  while (atomic_load(&w->frames) < 1) sched_yield();
  close_world(w);
}

static void no_memory(void **state) {
  (void)state;
  world *w = open_world();
  char bound[WEIR_NET_ADDRESS_BYTES];
  weir_node_machine machine = {0};
  weir_node *node = NULL;
  w->counted.fail_at = atomic_load(&w->counted.calls) + 1;
  assert_error(
      weir_node_create(&w->env, w->control, w->bulk, &machine, &node, &w->err),
      &w->err, "W6001");
  assert_null(node);
  w->counted.fail_at = 0;
  assert_ok(
      w->control->vt->listen(w->control, WEIR_SV_LIT("local:"), bound, &w->err),
      &w->err);
  dial d = {w, bound, 0};
  dial_and_send(&d, true); /* no thread runs yet */
  w->counted.fail_at = atomic_load(&w->counted.calls) + 1; /* the frame's */
  assert_ok(weir_node_start(w->node, &w->err), &w->err);
  while (atomic_load(&w->frames) < 1) sched_yield();
  assert_int_equal(atomic_load(&w->failures), 1);
  close_world(w);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(posts),
      cmocka_unit_test(callers_stand_in),
      cmocka_unit_test(stop_while_a_caller_stands_in),
      cmocka_unit_test(stop_amid_posts),
      cmocka_unit_test(stops_on_its_own),
      cmocka_unit_test(never_started),
      cmocka_unit_test(deadlines),
      cmocka_unit_test(frames),
      cmocka_unit_test(no_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
