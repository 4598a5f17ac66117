/* SPDX-License-Identifier: Apache-2.0 */
/* Limits of requests for variables in an engine: how many, for how many
 * variables, and the bytes of their values. */
#include <sched.h>
#include <stdlib.h>

#include "runtime/dist/run/run_internal.h"
#include "runtime/dist/run/run_limits.h"
#include "tests/dist/engines.h"

enum { BYTES = 160000 }; /* of `large` */

static const char kGraph[] =
    "weir: 1\n"
    "nodes:\n"
    "  small: {op: var, attrs: {shape: [4], init: ones()}, device: /job:ps}\n"
    "  large: {op: var, attrs: {shape: [40000], init: ones()}, device: "
    "/job:ps}\n"
    "  u: assign(small, add(small, 1))\n"
    "  v: assign(large, add(large, 1))\n"
    "outputs: [u, v]\n";

typedef struct scene {
  office o;
  office_end *ps;
  weir_engine *engine;
  run_engine *run;
  weir_node_id small, large;
  uint8_t value[BYTES];
} scene;

static scene *begin(void) {
  scene *s = calloc(1, sizeof *s);
  assert_non_null(s);
  office_open(&s->o, "vars", kGraph, "search", false);
  office_register(&s->o);
  const weir_graph *g = weir_session_graph(s->o.planner);
  s->small = weir_graph_find_node(g, WEIR_SV_LIT("small"));
  s->large = weir_graph_find_node(g, WEIR_SV_LIT("large"));
  uint32_t home = weir_placing_home_task(s->o.placing, WEIR_SV_LIT("large"));
  s->ps = &s->o.ends[home];
  s->engine = s->ps->engine;
  s->run = (run_engine *)s->engine;
  return s;
}

static void end(scene *s) {
  office_close(&s->o);
  free(s);
}

static weir_status get(scene *s, weir_node_id node) {
  s->o.err = (weir_error)WEIR_ERROR_INIT;
  return s->engine->vt->get(s->engine, 1, ++s->o.request, &node, 1, &s->o.err);
}

static weir_status set(scene *s, weir_node_id node) {
  s->o.err = (weir_error)WEIR_ERROR_INIT;
  return s->engine->vt->set(s->engine, 1, ++s->o.request, &node, 1, &s->o.err);
}

/* Waits for the end of |count| requests; the last one's error is |ps|'s. */
static void await(scene *s, int count) {
  for (; count > 0; count--) {
    s->ps->told = false;
    while (!s->ps->told) office_pump(&s->o);
  }
}

static void assert_says(const scene *s, const char *id, const char *says) {
  assert_string_equal(s->o.err.id, id);
  if (strstr(s->o.err.message, says) == NULL)
    fail_msg("no '%s' in: %s", says, s->o.err.message);
}

static void requests_are_counted(void **state) {
  (void)state;
  scene *s = begin();
  for (int i = 0; i < RUN_VARS_REQUESTS; i++)
    assert_ok(get(s, s->small), &s->o.err);
  assert_int_not_equal(get(s, s->small), WEIR_OK);
  assert_says(s, "W7031",
              "1024 requests for variables are under way, at most 1024 may be");
  assert_int_not_equal(set(s, s->small), WEIR_OK);
  assert_says(s, "W7031", "1024 requests");
  await(s, RUN_VARS_REQUESTS);
  assert_string_equal(s->ps->error.id, "");
  assert_ok(get(s, s->small), &s->o.err);
  await(s, 1);
  end(s);
}

static void their_variables_are_counted(void **state) {
  enum { MANY = RUN_VARS_NODES - 10 };
  (void)state;
  scene *s = begin();
  uint32_t *nodes = calloc(MANY, sizeof *nodes);
  assert_non_null(nodes);
  for (int i = 0; i < MANY; i++) nodes[i] = s->small;
  assert_ok(s->engine->vt->get(s->engine, 1, 1, nodes, MANY, &s->o.err),
            &s->o.err);
  assert_int_not_equal(
      s->engine->vt->get(s->engine, 1, 2, nodes, 11, &s->o.err), WEIR_OK);
  assert_says(s, "W7031", "at most 262144 may be named");
  await(s, 1); /* the first one has it twice, and takes no memory for values */
  assert_string_equal(s->ps->error.id, "W7011");
  assert_non_null(strstr(s->ps->error.message, "stands in a request twice"));
  s->o.err = (weir_error)WEIR_ERROR_INIT;
  assert_int_not_equal(s->engine->vt->set(s->engine, 1, 3, nodes, 2, &s->o.err),
                       WEIR_OK);
  assert_says(s, "W7011", "stands in a request twice");
  free(nodes);
  end(s);
}

static void here(void *self, weir_status status, const weir_error *err) {
  (void)err;
  *(int *)self = status == WEIR_OK ? 1 : 2;
}

/* How many wait; no more bytes are taken than may be. */
static int waiting(scene *s) {
  int count = 0;
  pthread_mutex_lock(&s->run->lock);
  assert_true(s->run->vars.read <= s->run->vars.most_read);
  for (const run_vars *v = s->run->vars.first; v != NULL; v = v->next) count++;
  pthread_mutex_unlock(&s->run->lock);
  return count;
}

/* Reads that wait go on in their order as values leave. */
static void reads_wait(void **state) {
  enum { COUNT = 5 };
  (void)state;
  scene *s = begin();
  weir_channel_done done[COUNT];
  weir_bytes got[COUNT] = {{NULL, 0}};
  int arrived[COUNT] = {0};
  s->run->vars.most_read = 2 * BYTES + 1;
  for (int i = 0; i < COUNT; i++) assert_ok(get(s, s->large), &s->o.err);
  while (waiting(s) < COUNT - 2) sched_yield();
  for (int i = 0; i < COUNT; i++) {
    weir_slot slot = {WEIR__V1__VALUE_KIND__VARIABLE, s->large,
                      (uint64_t)i + 1};
    done[i] = (weir_channel_done){.fn = here, .self = &arrived[i]};
    weir_exchange_recv_owned(s->o.remote, s->ps->id, &slot, 64 << 20, &got[i],
                             &done[i]);
    while (arrived[i] == 0) {
      office_pump(&s->o);
      (void)waiting(s);
    }
    assert_int_equal(arrived[i], 1);
    assert_int_equal(got[i].size, BYTES);
    weir_free(s->o.world.env.alloc, (void *)(uintptr_t)got[i].data);
  }
  /* The last one's end may still be on its way. */
  while (s->run->vars.read > 0) office_pump(&s->o);
  assert_int_equal(waiting(s), 0);
  /* One that is alone passes, however large. */
  s->run->vars.most_read = 1;
  assert_ok(get(s, s->small), &s->o.err);
  await(s, 1);
  assert_string_equal(s->ps->error.id, "");
  end(s);
}

static void a_session_ends_while_reads_wait(void **state) {
  (void)state;
  scene *s = begin();
  s->run->vars.most_read = BYTES;
  for (int i = 0; i < 4; i++) assert_ok(get(s, s->large), &s->o.err);
  while (waiting(s) < 3) sched_yield();
  end(s);
  s = begin(); /* and before the engine has looked at them */
  s->run->vars.most_read = BYTES;
  for (int i = 0; i < 40; i++) assert_ok(get(s, s->large), &s->o.err);
  end(s);
}

static void writes_are_refused(void **state) {
  (void)state;
  scene *s = begin();
  s->run->vars.most_written = BYTES + 1; /* one that is alone always passes */
  assert_ok(set(s, s->large), &s->o.err);
  weir_slot slot = {WEIR__V1__VALUE_KIND__VARIABLE, s->large, s->o.request};
  assert_int_not_equal(set(s, s->large), WEIR_OK);
  assert_says(s, "W7031",
              "160000 bytes of variables are being set, at most 160001 may be, "
              "and this request has 160000 more");
  office_send(&s->o, s->ps->id, &slot, (weir_bytes){s->value, BYTES});
  await(s, 1);
  assert_string_equal(s->ps->error.id, "");
  s->run->vars.most_written = 1;
  assert_ok(set(s, s->large), &s->o.err);
  slot.step = s->o.request;
  office_send(&s->o, s->ps->id, &slot, (weir_bytes){s->value, BYTES});
  await(s, 1);
  assert_string_equal(s->ps->error.id, "");
  end(s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(requests_are_counted),
      cmocka_unit_test(their_variables_are_counted),
      cmocka_unit_test(reads_wait),
      cmocka_unit_test(a_session_ends_while_reads_wait),
      cmocka_unit_test(writes_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
