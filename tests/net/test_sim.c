/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "runtime/base/env_system.h"
#include "runtime/base/mix.h"
#include "runtime/net/sim.h"
#include "runtime/net/sim_faults.h"
#include "tests/net/conformance.h"

/* ---- The suite of all transports, without faults */

typedef struct sim_net {
  weir_env env;
  weir_net_sim *sim;
  uint64_t seed;
  uint32_t processes;
} sim_net;

static weir_status open_sim(weir_fixture *f, const weir_allocator *alloc,
                            const weir_env **out_env, weir_error *err) {
  sim_net *net = f->self;
  weir_net_sim_options options = {.window_bytes = 200000};
  net->env = *weir_env_system();
  net->env.alloc = alloc;
  net->processes = 0;
  WEIR_TRY(weir_net_sim_create(&net->env, net->seed, &options, &net->sim, err));
  *out_env = weir_net_sim_env(net->sim);
  return WEIR_OK;
}

static void close_sim(weir_fixture *f) {
  sim_net *net = f->self;
  weir_net_sim_release(net->sim);
  net->sim = NULL;
}

static weir_status create(weir_fixture *f,
                          const weir_transport_handler *handler,
                          const weir_transport_options *options,
                          weir_transport **out_transport, weir_error *err) {
  sim_net *net = f->self;
  return weir_net_sim_transport(net->sim, net->processes++, handler, options,
                                out_transport, err);
}

/* ---- Faults: nodes that send numbers to each other for a while */

enum { NODES = 4, ROUNDS = 400 };

typedef struct node {
  struct world *world;
  uint32_t process;
  weir_transport *t;
  char address[WEIR_NET_ADDRESS_BYTES];
  weir_connection to[NODES];        /* those we dialled */
  bool up[NODES];                   /* it is connected */
  uint32_t next[NODES];             /* number of the next frame to send */
  weir_connection from[64 * NODES]; /* those that came in, any number */
  uint32_t want[64 * NODES];
  size_t froms;
} node;

typedef struct world {
  weir_counted_allocator counted;
  weir_env env;
  weir_net_sim *sim;
  weir_error err;
  node nodes[NODES];
  uint64_t random, trace;
  int lent, released, frames, resets;
} world;

static void note(world *w, uint64_t what) {
  w->trace = weir_mix(w->trace ^ what) +
             (uint64_t)weir_net_sim_env(w->sim)->clock->now_ns(w->sim);
}

static node *other_of(node *n, weir_connection c, uint32_t *out_to) {
  for (uint32_t i = 0; i < NODES; i++)
    if (n->to[i] == c) return *out_to = i, n;
  return NULL;
}

static void on_connected(void *self, weir_connection c, weir_sv peer,
                         bool incoming) {
  (void)peer;
  node *n = self;
  uint32_t to = 0;
  note(n->world, c + (uint64_t)incoming);
  if (incoming) {
    assert_true(n->froms < 64 * NODES);
    n->from[n->froms] = c;
    n->want[n->froms++] = 0;
  } else {
    assert_non_null(other_of(n, c, &to));
    n->up[to] = true;
    n->next[to] = 0;
  }
}

static uint32_t head_of(const weir_net_frame *frame) {
  uint8_t bytes[4] = {0};
  size_t at = 0;
  for (size_t i = 0; i < frame->count; i++)
    for (size_t k = 0; k < frame->pieces[i].size && at < 4; k++)
      bytes[at++] = frame->pieces[i].data[k];
  uint32_t head;
  memcpy(&head, bytes, 4);
  return head;
}

/* Frames of one connection come whole, in order, none missing or twice. */
static void on_frame(void *self, weir_connection c, weir_net_frame *frame) {
  node *n = self;
  n->world->frames++;
  note(n->world, frame->size);
  for (size_t i = 0; i < n->froms; i++)
    if (n->from[i] == c) {
      assert_int_equal(head_of(frame), n->want[i]++);
      return;
    }
  fail_msg("a frame of no connection");
}

static void on_closed(void *self, weir_connection c, weir_close_reason why,
                      weir_sv text) {
  (void)text;
  node *n = self;
  uint32_t to = 0;
  note(n->world, (uint64_t)why + 100);
  n->world->resets += why == WEIR_CLOSED_RESET;
  if (other_of(n, c, &to) != NULL) {
    n->to[to] = 0;
    n->up[to] = false;
    return;
  }
  for (size_t i = 0; i < n->froms; i++)
    if (n->from[i] == c) n->from[i] = 0;
}

static void start(world *w, uint32_t process) {
  node *n = &w->nodes[process];
  weir_transport_handler handler = {n, on_connected, on_frame, on_closed};
  weir_transport_options options = {.max_queue_bytes = 20000,
                                    .connect_ns = 50000000};
  *n = (node){.world = w, .process = process};
  assert_ok(weir_net_sim_transport(w->sim, process, &handler, &options, &n->t,
                                   &w->err),
            &w->err);
  char address[32];
  snprintf(address, sizeof address, "sim:%u:7", process);
  assert_ok(n->t->vt->listen(n->t, weir_sv_from(address), n->address, &w->err),
            &w->err);
}

static void released(void *self) {
  ((world *)self)->released++;
}

static void talk(world *w, node *n, uint32_t to) {
  static const uint8_t kTail[5000] = {0};
  weir_transport *t = n->t;
  char address[32];
  snprintf(address, sizeof address, "sim:%u:7", to);
  if (n->to[to] == 0) {
    assert_ok(t->vt->connect(t, weir_sv_from(address), &n->to[to], &w->err),
              &w->err);
    return;
  }
  if (!n->up[to]) return;
  uint32_t head = n->next[to];
  weir_net_piece list[2] = {
      {&head, 4},
      {kTail, weir_mix_below(&w->random, sizeof kTail), released, w}};
  weir_status s = t->vt->send(t, n->to[to], list, 2, &w->err);
  if (s == WEIR_OK) n->next[to]++, w->lent++;
  if (s != WEIR_OK) assert_string_equal(w->err.id, "W7003");
  if (weir_mix_below(&w->random, 100) == 0) {
    t->vt->close(t, n->to[to]);
    n->to[to] = 0;
    n->up[to] = false;
  }
}

/* One fault now and then; each is undone later. */
static void disturb(world *w, uint32_t round) {
  uint32_t a = weir_mix_below(&w->random, NODES);
  uint32_t b = (a + 1 + weir_mix_below(&w->random, NODES - 1)) % NODES;
  weir_error *err = &w->err;
  switch (round % 80) {
    case 0:
      assert_ok(weir_net_sim_cut(w->sim, 0, 1, true, err), err);
      break;
    case 12:
      assert_ok(weir_net_sim_heal(w->sim, 0, 1, true, err), err);
      break;
    case 15:
      assert_ok(weir_net_sim_cut(w->sim, a, b, false, err), err);
      break;
    case 30:
      for (uint32_t i = 0; i < NODES * NODES; i++)
        assert_ok(weir_net_sim_heal(w->sim, i / NODES, i % NODES, false, err),
                  err);
      break;
    case 35:
      assert_ok(weir_net_sim_pause(w->sim, 2, true, err), err);
      break;
    case 45:
      assert_ok(weir_net_sim_pause(w->sim, 2, false, err), err);
      break;
    case 50:
      assert_ok(weir_net_sim_slow(w->sim, a, b, 100000, err), err);
      break;
    case 60:
      assert_ok(weir_net_sim_kill(w->sim, 3, round % 160 < 80, err), err);
      weir_transport_release(w->nodes[3].t);
      w->nodes[3].t = NULL;
      break;
    case 65:
      start(w, 3);
      break;
    default:
      break;
  }
}

static void step_until(world *w, int64_t limit) {
  int64_t process = 0;
  do {
    assert_ok(weir_net_sim_step(w->sim, limit, &process, &w->err), &w->err);
    if (process >= 0) note(w, (uint64_t)process);
  } while (process >= 0);
}

static void add_counts(world *w, uint64_t *sums) {
  for (int i = 0; i < WEIR_NET_FAULT_COUNT; i++)
    sums[i] += weir_net_sim_count(w->sim, (weir_net_fault)i);
}

/* Returns a hash of all that happened; adds the counts of faults to |sums|. */
static uint64_t run(uint64_t seed, uint64_t *sums) {
  world *w = calloc(1, sizeof *w);
  weir_counted_allocator_init(&w->counted, NULL);
  w->env.alloc = &w->counted.base;
  w->random = seed + 17;
  weir_net_sim_options options = {.window_bytes = 20000,
                                  .loss_ppm = 2000,
                                  .late_reset_ppm = 2000,
                                  .stall_ppm = 20000,
                                  .stall_ns = 20000000,
                                  .unreachable_ppm = 50000,
                                  .give_up_ppm = 300000};
  assert_ok(weir_net_sim_create(&w->env, seed, &options, &w->sim, &w->err),
            &w->err);
  for (uint32_t i = 0; i < NODES; i++) start(w, i);
  const weir_clock *clock = weir_net_sim_env(w->sim)->clock;
  for (uint32_t round = 0; round < ROUNDS; round++) {
    disturb(w, round);
    for (uint32_t i = 0; i < NODES; i++)
      if (w->nodes[i].t != NULL &&
          (i != 2 || round % 80 < 35 || round % 80 > 44))
        talk(w, &w->nodes[i],
             (i + 1 + weir_mix_below(&w->random, NODES - 1)) % NODES);
    step_until(w, clock->now_ns(clock->self) + 5000000);
  }
  for (uint32_t i = 0; i < NODES; i++) weir_transport_release(w->nodes[i].t);
  assert_int_equal(w->released, w->lent);
  assert_true(w->frames > 100);
  add_counts(w, sums);
  weir_net_sim_release(w->sim);
  assert_int_equal(atomic_load(&w->counted.live_blocks), 0);
  uint64_t trace = w->trace;
  free(w);
  return trace;
}

/* Each kind of fault happens; the same seed gives the same run. */
static void faults(void **state) {
  (void)state;
  uint64_t sums[WEIR_NET_FAULT_COUNT] = {0}, again[WEIR_NET_FAULT_COUNT] = {0};
  for (uint64_t seed = 1; seed <= 30; seed++) {
    uint64_t trace = run(seed, sums);
    assert_int_equal(trace, run(seed, again));
  }
  assert_memory_equal(sums, again, sizeof sums);
  for (int i = 0; i < WEIR_NET_FAULT_COUNT; i++) {
    printf("%-12s %llu\n", weir_net_fault_name((weir_net_fault)i),
           (unsigned long long)sums[i]);
    assert_true(sums[i] > 0);
  }
  assert_true(run(1, sums) != run(2, sums));
}

/* ---- Single faults, looked at closely */

/* Node 0 is connected to node 1. */
static world *two(const weir_net_sim_options *options) {
  world *w = calloc(1, sizeof *w);
  weir_counted_allocator_init(&w->counted, NULL);
  w->env.alloc = &w->counted.base;
  assert_ok(weir_net_sim_create(&w->env, 5, options, &w->sim, &w->err),
            &w->err);
  start(w, 0);
  start(w, 1);
  talk(w, &w->nodes[0], 1);
  step_until(w, 2000000000);
  assert_true(w->nodes[0].up[1]);
  assert_int_equal(w->nodes[1].froms, 1);
  return w;
}

static void end(world *w) {
  for (uint32_t i = 0; i < 2; i++) weir_transport_release(w->nodes[i].t);
  weir_net_sim_release(w->sim);
  assert_int_equal(atomic_load(&w->counted.live_blocks), 0);
  free(w);
}

static void send_some(world *w, uint32_t count) {
  node *n = &w->nodes[0];
  for (uint32_t i = 0; i < count; i++) {
    weir_net_piece piece = {&n->next[1], 4};
    assert_ok(n->t->vt->send(n->t, n->to[1], &piece, 1, &w->err), &w->err);
    n->next[1]++;
  }
}

static void one_way_cut(void **state) {
  (void)state;
  world *w = two(&(weir_net_sim_options){0});
  assert_ok(weir_net_sim_cut(w->sim, 0, 1, false, &w->err), &w->err);
  send_some(w, 5);
  step_until(w, INT64_C(100000000000));
  assert_int_equal(w->frames, 0); /* and nobody is told */
  assert_int_equal(w->resets, 0);
  assert_ok(weir_net_sim_heal(w->sim, 0, 1, false, &w->err), &w->err);
  assert_int_equal(weir_net_sim_count(w->sim, WEIR_NET_FAULT_HELD), 5);
  step_until(w, INT64_C(200000000000));
  assert_int_equal(w->frames, 5);
  end(w);
}

static void paused(void **state) {
  (void)state;
  world *w = two(&(weir_net_sim_options){.window_bytes = 40});
  assert_ok(weir_net_sim_pause(w->sim, 1, true, &w->err), &w->err);
  send_some(w, 5000); /* the window, then the queue */
  weir_net_piece piece = {&w->nodes[0].next[1], 41};
  assert_error(w->nodes[0].t->vt->send(w->nodes[0].t, w->nodes[0].to[1], &piece,
                                       1, &w->err),
               &w->err, "W7003");
  step_until(w, INT64_C(9000000000));
  assert_int_equal(w->frames, 0);
  assert_ok(weir_net_sim_pause(w->sim, 1, false, &w->err), &w->err);
  step_until(w, INT64_C(900000000000));
  assert_int_equal(w->frames, 5000);
  end(w);
}

static void killed(void **state) {
  (void)state;
  for (int silent = 0; silent < 2; silent++) {
    world *w = two(&(weir_net_sim_options){0});
    send_some(w, 5);
    assert_ok(weir_net_sim_kill(w->sim, 0, silent != 0, &w->err), &w->err);
    step_until(w, INT64_C(9000000000));
    assert_int_equal(w->resets, !silent);
    weir_transport_release(w->nodes[0].t);
    start(w, 0); /* the new process does not know the connection */
    step_until(w, INT64_C(19000000000));
    assert_int_equal(w->resets, 1);
    end(w);
  }
}

static void lost(void **state) {
  (void)state;
  world *w = two(&(weir_net_sim_options){.loss_ppm = 1000000});
  send_some(w, 1);
  step_until(w, INT64_C(9000000000));
  assert_int_equal(w->frames, 0);
  assert_int_equal(w->resets, 2);
  end(w);
  w = two(&(weir_net_sim_options){.late_reset_ppm = 1000000});
  send_some(w, 1);
  step_until(w, INT64_C(9000000000));
  assert_int_equal(w->frames, 1);
  assert_int_equal(w->resets, 2);
  end(w);
}

static void cut_connect(void **state) {
  (void)state;
  world *w = two(&(weir_net_sim_options){0});
  node *n = &w->nodes[0];
  assert_ok(weir_net_sim_cut(w->sim, 1, 0, false, &w->err), &w->err);
  weir_connection old = n->to[1];
  n->to[1] = 0;
  n->up[1] = false;
  talk(w, n, 1);
  assert_int_not_equal(n->to[1], old);
  step_until(w, INT64_C(9000000000));
  assert_int_equal(n->to[1], 0); /* no answer in time */
  assert_int_equal(w->nodes[1].froms, 2);
  assert_int_equal(weir_net_sim_count(w->sim, WEIR_NET_FAULT_HALF_OPEN), 1);
  end(w);
}

int main(void) {
  sim_net net = {0};
  weir_fixture fixture = {.name = "sim",
                          .self = &net,
                          .listen = "sim:",
                          .nobody = "sim:1:77",
                          .foreign = "127.0.0.1:1",
                          .open = open_sim,
                          .close = close_sim,
                          .create = create};
  int failed = 0;
  for (net.seed = 0; net.seed < 3; net.seed++)
    failed += weir_conformance_run(&fixture);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(one_way_cut), cmocka_unit_test(paused),
      cmocka_unit_test(killed),      cmocka_unit_test(lost),
      cmocka_unit_test(cut_connect), cmocka_unit_test(faults),
  };
  return failed + cmocka_run_group_tests(tests, NULL, NULL);
}
