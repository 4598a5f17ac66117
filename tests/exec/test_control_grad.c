/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/exec/session/session_run.h"
#include "runtime/graph/grad/gradients.h"
#include "runtime/graph/load/load.h"
#include "runtime/graph/pass/pass_simplify.h"
#include "tests/exec/generated.h"
#include "tests/exec/support.h"

/* Gradients through scan, while and if against finite differences in f64, of
 * the first and the second order; the same bits on 1, 2 and 8 threads; memory
 * that runs out. Output 0 is the loss; gradients are of the f64 inputs. */

enum { kInputs = 4, kElements = 64 };

typedef struct grad_case {
  const char *name, *text;
  bool second; /* order too */
} grad_case;

static const grad_case kCases[] = {
    {"products along an axis, final value and stack",
     "weir: 1\n"
     "inputs: {x: 'f64[4, 3]', h0: 'f64[3]'}\n"
     "nodes:\n"
     "  run:\n"
     "    scan:\n"
     "      over: {xt: x}\n"
     "      carry: {h: h0}\n"
     "      nodes: {h2: 'mul(h, xt)'}\n"
     "      next: {h: h2}\n"
     "      stack: {y: h2, old: h}\n"
     "  loss: add(reduce_sum(mul(run.y, run.old)), reduce_sum(run.h))\n"
     "outputs: [loss]\n",
     true},
    {"a recurrent cell on axis 1, backwards, weights from outside",
     "weir: 1\n"
     "inputs: {x: 'f64[2, 5, 3]', w: 'f64[5, 8]', b: 'f64[8]'}\n"
     "nodes:\n"
     "  run:\n"
     "    scan:\n"
     "      over: {xt: x}\n"
     "      axis: 1\n"
     "      reverse: true\n"
     "      carry: {h: 'zeros([2, 2], dtype=f64)', c: 'zeros([2, 2], "
     "dtype=f64)'}\n"
     "      nodes:\n"
     "        z: add(matmul(concat(xt, h, axis=-1), w), b)\n"
     "        i, f, g, o: split(z, 4, axis=-1)\n"
     "        c2: add(mul(sigmoid(f), c), mul(sigmoid(i), tanh(g)))\n"
     "        h2: mul(sigmoid(o), tanh(c2))\n"
     "      next: {h: h2, c: c2}\n"
     "      stack: {y: h2}\n"
     "  loss: add(reduce_sum(square(run.y)), reduce_sum(run.c))\n"
     "outputs: [loss]\n",
     true},
    {"a carry that only some outputs depend on, integers beside it",
     "weir: 1\n"
     "inputs: {x: 'f64[3, 2]', a: 'f64[2]'}\n"
     "nodes:\n"
     "  run:\n"
     "    scan:\n"
     "      over: {xt: x}\n"
     "      carry: {n: 'const(1, dtype=i64)', s: a, k: a, t: 'zeros([2], "
     "dtype=f64)'}\n"
     "      nodes: {p: 'mul(s, cast(n, f64))'}\n"
     "      next: {n: 'add(n, 1)', s: 'add(p, mul(xt, a))', k: k, t: 'add(t, "
     "p)'}\n"
     "      stack: {y: 'mul(k, xt)', z: n}\n"
     "  loss: add(reduce_sum(mul(run.t, run.k)), reduce_sum(run.y))\n"
     "outputs: [loss]\n",
     true},
    {"a scan in a scan, values of both levels captured",
     "weir: 1\n"
     "inputs: {x: 'f64[3, 2]', w: 'f64[2, 2]', a: 'f64[2]'}\n"
     "nodes:\n"
     "  outer:\n"
     "    scan:\n"
     "      over: {xt: x}\n"
     "      carry: {s: a}\n"
     "      nodes:\n"
     "        m: mul(s, xt)\n"
     "        inner:\n"
     "          scan:\n"
     "            over: {e: w}\n"
     "            carry: {v: m}\n"
     "            next: {v: 'tanh(add(mul(v, e), mul(s, a)))'}\n"
     "            stack: {q: 'mul(v, xt)'}\n"
     "      next: {s: 'add(inner.v, reduce_sum(inner.q, axis=0))'}\n"
     "      stack: {y: inner.q}\n"
     "  loss: add(reduce_sum(outer.s), reduce_sum(square(outer.y)))\n"
     "outputs: [loss]\n",
     true},
    {"a bounded while: Newton's method",
     "weir: 1\n"
     "inputs: {a: 'f64[3]', s: 'f64[]'}\n"
     "nodes:\n"
     "  root:\n"
     "    while:\n"
     "      carry: {x: 'add(mul(a, 0), mul(s, 2))', n: 'const(0, dtype=i64)'}\n"
     "      cond: less(n, 4)\n"
     "      next: {x: 'mul(0.5, add(x, div(a, x)))', n: 'add(n, 1)'}\n"
     "      limit: 9\n"
     "  loss: mul(reduce_sum(root.x), s)\n"
     "outputs: [loss]\n",
     true},
    {"a while that the data ends, in a scan",
     "weir: 1\n"
     "inputs: {x: 'f64[3]', g: 'f64[]'}\n"
     "nodes:\n"
     "  run:\n"
     "    scan:\n"
     "      over: {e: x}\n"
     "      carry: {s: g}\n"
     "      nodes:\n"
     "        up:\n"
     "          while:\n"
     "            carry: {v: e}\n"
     "            cond: less(v, 3)\n"
     "            next: {v: 'add(mul(v, 2), g)'}\n"
     "            limit: 6\n"
     "      next: {s: 'add(s, sin(up))'}\n"
     "outputs: {loss: run}\n",
     false},
    {"an if whose bodies need different values",
     "weir: 1\n"
     "inputs: {x: 'f64[3]', a: 'f64[]', b: 'f64[3]'}\n"
     "nodes:\n"
     "  low:\n"
     "    if:\n"
     "      cond: less(a, 100)\n"
     "      then: {nodes: {t: 'tanh(mul(x, a))'}, out: {u: t, v: 'mul(x, "
     "x)'}}\n"
     "      else: {out: {u: 'mul(b, 2)', v: exp(b)}}\n"
     "  high:\n"
     "    if:\n"
     "      cond: greater(a, 100)\n"
     "      then: {nodes: {t: 'tanh(mul(x, a))'}, out: {u: t, v: 'mul(x, "
     "x)'}}\n"
     "      else: {out: {u: 'mul(b, 2)', v: exp(b)}}\n"
     "  loss: reduce_sum(add(mul(low.u, low.v), mul(high.u, high.v)))\n"
     "outputs: [loss]\n",
     true},
    {"an if in a scan, and a scan in an if",
     "weir: 1\n"
     "inputs: {x: 'f64[4]', a: 'f64[]'}\n"
     "nodes:\n"
     "  run:\n"
     "    scan:\n"
     "      over: {e: x}\n"
     "      carry: {s: a}\n"
     "      nodes:\n"
     "        m: {if: {cond: 'greater(s, 1)', then: {out: 'mul(s, e)'}, else: "
     "{out: 'add(exp(s), a)'}}}\n"
     "      next: {s: m}\n"
     "      stack: {y: m}\n"
     "  pick:\n"
     "    if:\n"
     "      cond: greater(a, 0)\n"
     "      then:\n"
     "        nodes:\n"
     "          r:\n"
     "            scan:\n"
     "              over: {e: x}\n"
     "              carry: {p: a}\n"
     "              next: {p: 'mul(p, sin(e))'}\n"
     "        out: r.p\n"
     "      else: {out: a}\n"
     "  loss: add(reduce_sum(run.y), pick)\n"
     "outputs: [loss]\n",
     true},
    {"no turn at all, and a loss that does not depend on it",
     "weir: 1\n"
     "inputs: {x: 'f64[0, 2]', a: 'f64[2]', b: 'f64[2]'}\n"
     "nodes:\n"
     "  run:\n"
     "    scan:\n"
     "      over: {e: x}\n"
     "      carry: {s: a}\n"
     "      next: {s: 'mul(s, e)'}\n"
     "  loss: reduce_sum(mul(run.s, a))\n"
     "outputs: [loss]\n",
     true},
    {"stop_gradient in a body",
     "weir: 1\n"
     "inputs: {x: 'f64[3]'}\n"
     "nodes:\n"
     "  run:\n"
     "    scan:\n"
     "      over: {e: x}\n"
     "      carry: {s: 'ones([], dtype=f64)'}\n"
     "      next: {s: 'add(s, mul(e, e))'}\n"
     "      stack: {y: 'mul(stop_gradient(s), 0)'}\n"
     "  loss: add(run.s, reduce_sum(run.y))\n"
     "outputs: [loss]\n",
     true},
    {"weights used twice, transposed, and in a while",
     "weir: 1\n"
     "inputs: {x: 'f64[3, 2, 2]', w: 'f64[2, 2]', v: 'f64[2, 2]'}\n"
     "nodes:\n"
     "  run:\n"
     "    scan:\n"
     "      over: {xt: x}\n"
     "      carry: {h: 'zeros([2, 2], dtype=f64)'}\n"
     "      nodes:\n"
     "        p: matmul(tanh(xt), v, transpose_b=true)\n"
     "        h2: tanh(add(matmul(h, w), add(matmul(xt, w), p)))\n"
     "      next: {h: h2}\n"
     "  more:\n"
     "    while:\n"
     "      carry: {m: run.h, n: 'const(0, dtype=i64)'}\n"
     "      cond: less(n, 3)\n"
     "      next: {m: 'tanh(matmul(m, w))', n: 'add(n, 1)'}\n"
     "      limit: 5\n"
     "  loss: reduce_sum(square(more.m))\n"
     "outputs: [loss]\n",
     true},
};

typedef struct grad_world {
  exec_world world;
  weir_pool *pools[3];
} grad_world;

static int set_up(void **state) {
  static const int counts[] = {1, 2, 8};
  grad_world *w = calloc(1, sizeof *w);
  exec_world_init(&w->world);
  for (int i = 0; i < 3; i++) w->pools[i] = exec_pool(&w->world, counts[i]);
  *state = w;
  return 0;
}

static int tear_down(void **state) {
  grad_world *w = *state;
  for (int i = 0; i < 3; i++) weir_pool_release(w->pools[i]);
  exec_world_check_empty(&w->world);
  free(w);
  return 0;
}

/* A graph, its inputs and its fetches: the loss, then gradients. */
typedef struct scene {
  const char *name;
  weir_graph *graph;
  weir_exec_session *session;
  weir_tensor *inputs[kInputs];
  weir_value_id loss, grads[kInputs];
  uint32_t input_count;
} scene;

static weir_status load(grad_world *w, const char *text, scene *s,
                        weir_error *err) {
  weir_load_options options = {.registry = weir_builtin_registry()};
  WEIR_TRY(weir_graph_load_text(&w->world.env, weir_sv_from(text), "grad.yaml",
                                &options, &s->graph, err));
  s->input_count = s->graph->input_count;
  s->loss = s->graph->outputs[0].value;
  uint32_t x = 12345;
  for (uint32_t i = 0; i < s->input_count; i++) {
    const weir_value *v = &s->graph->values[s->graph->inputs[i].value];
    WEIR_TRY(weir_tensor_create_shaped(w->world.env.alloc, v->dtype, v->shape,
                                       &s->inputs[i], err));
    double *data = s->inputs[i]->data;
    for (size_t k = 0; k < s->inputs[i]->bytes / sizeof *data; k++) {
      x = x * 1664525u + 1013904223u;
      data[k] = (double)(x >> 8) * 0x1p-24 + 0.25;
    }
  }
  return WEIR_OK;
}

/* The graph becomes that with the gradients of |loss|, which become known. */
static weir_status add_gradients(scene *s, weir_value_id loss,
                                 weir_error *err) {
  weir_value_id wrt[kInputs];
  weir_graph *with = NULL;
  for (uint32_t i = 0; i < s->input_count; i++)
    wrt[i] = s->graph->inputs[i].value;
  WEIR_TRY(weir_graph_gradients(s->graph, loss, wrt, s->input_count, s->grads,
                                &with, err));
  weir_graph_unref(s->graph);
  s->graph = with;
  s->loss = loss;
  return WEIR_OK;
}

static weir_status open_session(grad_world *w, scene *s, int pool,
                                weir_error *err) {
  weir_exec_session_release(s->session);
  return weir_exec_session_create(&w->world.env, w->pools[pool], s->graph, NULL,
                                  &s->session, err);
}

static void close_scene(scene *s) {
  weir_exec_session_release(s->session);
  for (int i = 0; i < kInputs; i++) weir_tensor_unref(s->inputs[i]);
  weir_graph_unref(s->graph);
}

/* Fetches the loss and, unless NULL, the gradients. */
static weir_status run(scene *s, weir_tensor **loss, weir_tensor **grads,
                       weir_error *err) {
  weir_exec_feed feeds[kInputs] = {{0}};
  weir_exec_fetch fetches[kInputs + 1] = {{.value = s->loss}};
  uint32_t n = 1;
  for (uint32_t i = 0; i < s->input_count; i++) {
    feeds[i] = (weir_exec_feed){s->graph->inputs[i].value, s->inputs[i]};
    if (grads != NULL) fetches[n++].value = s->grads[i];
  }
  weir_exec_request request = {.feeds = feeds,
                               .feed_count = s->input_count,
                               .fetches = fetches,
                               .fetch_count = n};
  weir_status status = weir_exec_run(s->session, &request, err);
  *loss = fetches[0].tensor;
  for (uint32_t i = 1; i < n; i++) grads[i - 1] = fetches[i].tensor;
  return status;
}

static double sum_of(const weir_tensor *t) {
  double sum = 0;
  for (int64_t i = 0; i < weir_shape_elements(&t->shape); i++)
    sum += weir_tensor_get_f64(t, i);
  return sum;
}

static double loss_at(scene *s) {
  weir_error err = WEIR_ERROR_INIT;
  weir_tensor *loss = NULL;
  if (run(s, &loss, NULL, &err) != WEIR_OK)
    fail_msg("%s: %s %s", s->name, err.id, err.message);
  double sum = sum_of(loss);
  weir_tensor_unref(loss);
  return sum;
}

/* Central differences of the sum of the loss, element by element. */
static void check_differences(scene *s, double tolerance) {
  weir_error err = WEIR_ERROR_INIT;
  weir_tensor *loss = NULL, *grads[kInputs] = {NULL};
  if (run(s, &loss, grads, &err) != WEIR_OK)
    fail_msg("%s: %s %s", s->name, err.id, err.message);
  for (uint32_t i = 0; i < s->input_count; i++) {
    double *data = s->inputs[i]->data;
    assert_int_equal(grads[i]->bytes, s->inputs[i]->bytes);
    for (size_t k = 0; k < s->inputs[i]->bytes / sizeof *data; k++) {
      const double h = 1e-5, at = data[k];
      data[k] = at + h;
      double high = loss_at(s);
      data[k] = at - h;
      double low = loss_at(s);
      data[k] = at;
      double want = (high - low) / (2 * h);
      double got = weir_tensor_get_f64(grads[i], (int64_t)k);
      if (!(fabs(want - got) <= tolerance * (1 + fabs(want))))
        fail_msg("%s: d/d input %u[%zu] is %.12g, by differences %.12g",
                 s->name, i, k, got, want);
    }
    weir_tensor_unref(grads[i]);
  }
  weir_tensor_unref(loss);
}

static void by_differences(void **state) {
  grad_world *w = *state;
  weir_error err = WEIR_ERROR_INIT;
  for (size_t i = 0; i < sizeof kCases / sizeof kCases[0]; i++) {
    scene s = {.name = kCases[i].name};
    weir_status status = load(w, kCases[i].text, &s, &err);
    if (status == WEIR_OK) status = add_gradients(&s, s.loss, &err);
    if (status == WEIR_OK) status = open_session(w, &s, 1, &err);
    if (status != WEIR_OK) fail_msg("%s: %s %s", s.name, err.id, err.message);
    check_differences(&s, 1e-8);
    close_scene(&s);
  }
}

/* The gradient of the sum of one input's gradient. */
static void of_second_order(void **state) {
  grad_world *w = *state;
  weir_error err = WEIR_ERROR_INIT;
  for (size_t i = 0; i < sizeof kCases / sizeof kCases[0]; i++) {
    if (!kCases[i].second) continue;
    scene s = {.name = kCases[i].name};
    weir_status status = load(w, kCases[i].text, &s, &err);
    if (status == WEIR_OK) status = add_gradients(&s, s.loss, &err);
    if (status == WEIR_OK)
      status = add_gradients(&s, s.grads[s.input_count > 1 ? 1 : 0], &err);
    if (status == WEIR_OK) status = open_session(w, &s, 1, &err);
    if (status != WEIR_OK) fail_msg("%s: %s %s", s.name, err.id, err.message);
    check_differences(&s, 1e-7);
    close_scene(&s);
  }
}

/* The forward scan that saves values stands for the one that does not. */
static void forward_runs_once(void **state) {
  grad_world *w = *state;
  weir_error err = WEIR_ERROR_INIT;
  for (size_t i = 0; i < 4; i++) {
    scene s = {.name = kCases[i].name};
    weir_graph *simple = NULL;
    weir_value_id values[kInputs + 1];
    assert_ok(load(w, kCases[i].text, &s, &err), &err);
    assert_ok(add_gradients(&s, s.loss, &err), &err);
    values[0] = s.loss;
    for (uint32_t k = 0; k < s.input_count; k++) values[k + 1] = s.grads[k];
    weir_simplify_options options = {.values = values,
                                     .value_count = s.input_count + 1};
    assert_ok(weir_graph_simplify(s.graph, &options, NULL, NULL, &simple, &err),
              &err);
    uint32_t loops = 0, inner = 0;
    for (uint32_t n = 0; n < simple->node_count; n++) {
      const weir_node *node = &simple->nodes[n];
      if (node->body_count == 0) continue;
      loops++;
      for (uint32_t b = 0; b < node->bodies[0]->node_count; b++)
        inner += node->bodies[0]->nodes[b].body_count > 0;
    }
    assert_int_equal(loops, 2);
    assert_int_equal(inner, i == 3 ? 2 : 0);
    weir_graph_unref(simple);
    close_scene(&s);
  }
}

static void same_bits(void **state) {
  grad_world *w = *state;
  weir_error err = WEIR_ERROR_INIT;
  for (size_t i = 0; i < sizeof kCases / sizeof kCases[0]; i++) {
    scene s = {.name = kCases[i].name};
    weir_tensor *first[kInputs] = {NULL}, *loss = NULL;
    assert_ok(load(w, kCases[i].text, &s, &err), &err);
    assert_ok(add_gradients(&s, s.loss, &err), &err);
    for (int k = 0; k < 3; k++) {
      weir_tensor *grads[kInputs] = {NULL};
      assert_ok(open_session(w, &s, k, &err), &err);
      assert_ok(run(&s, &loss, grads, &err), &err);
      weir_tensor_unref(loss);
      for (uint32_t n = 0; n < s.input_count; n++) {
        if (k > 0 && grads[n]->bytes > 0)
          assert_memory_equal(grads[n]->data, first[n]->data, grads[n]->bytes);
        weir_tensor_unref(k > 0 ? grads[n] : NULL);
        if (k == 0) first[n] = grads[n];
      }
    }
    for (int n = 0; n < kInputs; n++) weir_tensor_unref(first[n]);
    close_scene(&s);
  }
}

/* The backward pass of a while needs a bound. */
static void an_unbounded_while_is_refused(void **state) {
  grad_world *w = *state;
  weir_error err = WEIR_ERROR_INIT;
  scene s = {.name = "unbounded"};
  assert_ok(load(w,
                 "weir: 1\n"
                 "inputs: {a: 'f64[]'}\n"
                 "nodes:\n"
                 "  up:\n"
                 "    while:\n"
                 "      carry: {v: a}\n"
                 "      cond: less(v, 3)\n"
                 "      next: {v: 'mul(v, 2)'}\n"
                 "outputs: {loss: up}\n",
                 &s, &err),
            &err);
  assert_error(add_gradients(&s, s.loss, &err), &err, "W1128");
  assert_int_equal(err.line, 4);
  close_scene(&s);
}

/* True when no allocation failed any more. */
static bool sweep_one(grad_world *w, const char *text, uint64_t k) {
  weir_error err = WEIR_ERROR_INIT;
  scene s = {.name = "sweep"};
  weir_tensor *loss = NULL, *grads[kInputs] = {NULL};
  uint64_t live = (uint64_t)atomic_load(&w->world.memory.live_blocks);
  assert_ok(load(w, text, &s, &err), &err);
  uint64_t calls = atomic_load(&w->world.memory.calls);
  w->world.memory.fail_at = calls + k;
  weir_status status = add_gradients(&s, s.loss, &err);
  if (status == WEIR_OK) status = open_session(w, &s, 0, &err);
  if (status == WEIR_OK) status = run(&s, &loss, grads, &err);
  bool failed = atomic_load(&w->world.memory.calls) >= calls + k;
  w->world.memory.fail_at = 0;
  if (status != WEIR_OK && strcmp(err.id, "W6001") != 0)
    fail_msg("allocation %d: %s %s", (int)k, err.id, err.message);
  if (status != WEIR_OK) assert_true(failed);
  weir_tensor_unref(loss);
  for (int n = 0; n < kInputs; n++) weir_tensor_unref(grads[n]);
  close_scene(&s);
  if ((uint64_t)atomic_load(&w->world.memory.live_blocks) != live)
    fail_msg("allocation %d: blocks are left", (int)k);
  return !failed;
}

static void memory_runs_out(void **state) {
  grad_world *w = *state;
  static const size_t cases[] = {1, 3, 5, 7};
  for (size_t i = 0; i < 4; i++) {
    uint64_t k = 1;
    while (!sweep_one(w, kCases[cases[i]].text, k)) k = counted_next(k);
    assert_true(k > 200);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(by_differences),
      cmocka_unit_test(of_second_order),
      cmocka_unit_test(forward_runs_once),
      cmocka_unit_test(same_bits),
      cmocka_unit_test(an_unbounded_while_is_refused),
      cmocka_unit_test(memory_runs_out)};
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
