/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "runtime/exec/session/binding.h"
#include "runtime/exec/session/session_run.h"
#include "runtime/graph/grad/gradients.h"
#include "runtime/graph/load/load.h"
#include "runtime/graph/pass/cut.h"
#include "tests/exec/maker.h"

/* Attention in parts becomes one node where it may, and its gradient another,
 * with the same values; token by token with kept keys and values it is the
 * whole with a causal mask. */

typedef struct bench {
  exec_world world;
  weir_graph *graph;
  weir_value_id values[8]; /* fetched: the outputs, or a loss and gradients */
  uint32_t count;
  weir_error err;
} bench;

static void load(bench *t, const char *text) {
  memset(t, 0, sizeof *t);
  t->err.struct_size = sizeof t->err;
  exec_world_init(&t->world);
  weir_load_options options = {.registry = weir_builtin_registry(), .seed = 3};
  assert_ok(weir_graph_load_text(&t->world.env, weir_sv_from(text), "attention",
                                 &options, &t->graph, &t->err),
            &t->err);
  t->count = t->graph->output_count;
  for (uint32_t i = 0; i < t->count; i++)
    t->values[i] = t->graph->outputs[i].value;
}

static weir_value_id value_of(const bench *t, const char *name) {
  for (weir_node_id id = 0; id < t->graph->node_count; id++)
    if (weir_sv_equal(t->graph->nodes[id].name, weir_sv_from(name)))
      return t->graph->nodes[id].first_output;
  fail_msg("no node %s", name);
  return WEIR_NO_VALUE;
}

/* The graph with the gradients of its first output with respect to the values
 * whose names are the letters of |names|. */
static void derive(bench *t, const char *names) {
  weir_value_id of[8];
  weir_graph *derived = NULL;
  uint32_t count = (uint32_t)strlen(names);
  for (uint32_t i = 0; i < count; i++)
    of[i] = value_of(t, (const char[]){names[i], '\0'});
  assert_ok(weir_graph_gradients(t->graph, t->values[0], of, count,
                                 t->values + 1, &derived, &t->err),
            &t->err);
  weir_graph_unref(t->graph);
  t->graph = derived;
  t->count = 1 + count;
}

static void unload(bench *t) {
  weir_graph_unref(t->graph);
  exec_world_check_empty(&t->world);
}

/* How many nodes of a cut for what is fetched are |op|. */
static int nodes_of(bench *t, const char *op, bool with_gpus) {
  weir_cut_request request = {.graph = t->graph,
                              .values = t->values,
                              .value_count = t->count,
                              .with_gpus = with_gpus};
  weir_cut *cut = NULL;
  int count = 0;
  assert_ok(weir_graph_cut(&request, &cut, &t->err), &t->err);
  for (weir_node_id id = 0; id < cut->graph->node_count; id++)
    count += strcmp(cut->graph->nodes[id].op->name, op) == 0;
  weir_cut_release(cut);
  return count;
}

/* Runs the graph |times| times, one after the other. |each| gets what a run has
 * fetched. */
static void run(bench *t, bool no_fusion, int times,
                void (*each)(void *self, int i, weir_tensor *const *out),
                void *self) {
  weir_exec_session *session = NULL;
  weir_binding *binding = NULL;
  weir_exec_fetch fetches[8] = {{0}};
  weir_tensor *out[8];
  weir_session_options options = {.no_fusion = no_fusion};
  weir_run_options once = {.step = 0};
  weir_pool *pool = exec_pool(&t->world, 2);
  uint32_t count = t->count;
  for (uint32_t i = 0; i < count; i++) fetches[i].value = t->values[i];
  assert_ok(weir_exec_session_create(&t->world.env, pool, t->graph, &options,
                                     &session, &t->err),
            &t->err);
  weir_exec_request request = {.fetches = fetches, .fetch_count = count};
  assert_ok(weir_exec_bind(session, &request, &binding, &t->err), &t->err);
  for (int k = 0; k < times; k++) {
    assert_ok(weir_binding_run(binding, &once, &t->err), &t->err);
    for (uint32_t i = 0; i < count; i++) out[i] = fetches[i].tensor;
    each(self, k, out);
  }
  weir_binding_release(binding);
  for (uint32_t i = 0; i < count; i++) weir_tensor_unref(fetches[i].tensor);
  weir_exec_session_release(session);
  weir_pool_release(pool);
}

/* Values of the first |wanted| fetches, one behind the other. */
typedef struct kept {
  uint32_t wanted;
  float y[4096];
  size_t count;
} kept;

static void keep(void *self, int i, weir_tensor *const *out) {
  kept *k = self;
  (void)i;
  k->count = 0;
  for (uint32_t f = 0; f < k->wanted; f++) {
    size_t count = out[f]->bytes / sizeof(float);
    assert_true(k->count + count <= sizeof k->y / sizeof *k->y);
    memcpy(k->y + k->count, out[f]->data, out[f]->bytes);
    k->count += count;
  }
}

/* One node or parts: the same values. */
static void compare_ways(bench *t) {
  kept fused = {.wanted = t->count}, apart = {.wanted = t->count};
  run(t, false, 1, keep, &fused);
  run(t, true, 1, keep, &apart);
  assert_int_equal(fused.count, apart.count);
  for (size_t k = 0; k < fused.count; k++)
    assert_true(fabsf(fused.y[k] - apart.y[k]) <= 1e-5f);
}

/* ---- The rule */

/* Inputs of [2, 3, t, 8]; |nodes| makes y of them. */
static void graph_text(char *text, size_t size, const char *nodes,
                       const char *outputs) {
  snprintf(text, size,
           "weir: 1\n"
           "inputs:\n"
           "  x: f32[2, 5, 3, 8] = uniform(-1, 1)\n"
           "  z: f32[2, 7, 3, 8] = uniform(-1, 1)\n"
           "  q: f32[2, 3, 5, 8] = uniform(-1, 1)\n"
           "  k: f32[2, 3, 7, 8] = uniform(-1, 1)\n"
           "  v: f32[2, 3, 7, 8] = uniform(-1, 1)\n"
           "  m: f32[2, 1, 1, 7] = uniform(-1, 1)\n"
           "nodes:\n%s"
           "outputs: %s\n",
           nodes, outputs);
}

/* |kept|: of the transposes of heads. */
typedef struct variant {
  const char *nodes;
  int attentions, transposes;
} variant;

static const variant kVariants[] = {
    {"  y: matmul(softmax(mul(matmul(q, k, transpose_b=true), 0.3)), v)\n", 1,
     0},
    {"  y: matmul(softmax(div(matmul(q, k, transpose_b=true), 3)), v)\n", 1, 0},
    {"  y: matmul(softmax(mul(0.3, matmul(q, k, transpose_b=true))), v)\n", 1,
     0},
    {"  y: matmul(softmax(matmul(q, k, transpose_b=true)), v)\n", 1, 0},
    {"  y: matmul(softmax(add(matmul(q, k, transpose_b=true), m)), v)\n", 1, 0},
    {"  y: matmul(softmax(add(m, mul(matmul(q, k, transpose_b=true), 2))), "
     "v)\n",
     1, 0},
    {"  h: transpose(x, [0, 2, 1, 3])\n"
     "  i: transpose(z, [0, 2, 1, 3])\n"
     "  j: transpose(mul(z, 2), [0, 2, 1, 3])\n"
     "  y: transpose(matmul(softmax(mul(matmul(h, i, transpose_b=true), 0.3)), "
     "j), [0, 2, 1, 3])\n",
     1, 0},
    {"  h: transpose(x, [0, 2, 1, 3])\n"
     "  y: matmul(softmax(mul(matmul(h, k, transpose_b=true), 0.3)), v)\n",
     1, 1},
    /* Not attention. */
    {"  y: matmul(softmax(mul(matmul(q, k, transpose_b=true), 0.3), axis=2), "
     "v)\n",
     0, 0},
    {"  y: matmul(v, softmax(matmul(q, k, transpose_b=true)), "
     "transpose_a=true, transpose_b=true)\n",
     0, 0},
    {"  s: softmax(mul(matmul(q, k, transpose_b=true), 0.3))\n"
     "  y: add(matmul(s, v), mean(s))\n",
     0, 0}};

static void parts_become_one(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof kVariants / sizeof kVariants[0]; i++) {
    const variant *v = &kVariants[i];
    char text[2048];
    bench t;
    graph_text(text, sizeof text, v->nodes, "[y]");
    load(&t, text);
    assert_int_equal(nodes_of(&t, "attention", false), v->attentions);
    assert_int_equal(nodes_of(&t, "attention", true), 0);
    if (v->attentions > 0)
      assert_int_equal(nodes_of(&t, "transpose", false), v->transposes);
    compare_ways(&t);
    unload(&t);
  }
}

/* What lies between and is fetched stays. */
static void fetched_parts_stay(void **state) {
  (void)state;
  char text[2048];
  kept got = {.wanted = 2};
  bench t;
  graph_text(text, sizeof text,
             "  s: softmax(mul(matmul(q, k, transpose_b=true), 0.3))\n"
             "  y: matmul(s, v)\n",
             "[y, s]");
  load(&t, text);
  assert_int_equal(nodes_of(&t, "attention", false), 0);
  run(&t, false, 1, keep, &got);
  unload(&t);
}

/* ---- The rule, of gradients */

/* |ones|: nodes attention, and as many attention_grad; |transposes|: of heads,
 * in both ways. */
typedef struct trained {
  const char *nodes, *wrt;
  int ones, transposes;
} trained;

#define SCORES "mul(matmul(q, k, transpose_b=true), 0.3)"
#define LOSS "  l: mean(square(y))\n"
static const trained kTrained[] = {
    {"  y: matmul(softmax(" SCORES "), v)\n" LOSS, "qkv", 1, 0},
    {"  y: matmul(softmax(div(matmul(q, k, transpose_b=true), 3)), v)\n" LOSS,
     "qkv", 1, 0},
    {"  y: matmul(softmax(matmul(q, k, transpose_b=true)), v)\n" LOSS, "qkv", 1,
     0},
    {"  y: matmul(softmax(add(" SCORES ", m)), v)\n" LOSS, "qkv", 1, 0},
    /* The mask's gradient reads what lies between. */
    {"  y: matmul(softmax(add(m, " SCORES ")), v)\n" LOSS, "qkvm", 1, 0},
    {"  y: matmul(softmax(add(matmul(q, k, transpose_b=true), m)), v)\n" LOSS,
     "mvkq", 1, 0},
    /* Keys that are the values too, and a query with other readers. */
    {"  y: matmul(softmax(" SCORES "), k)\n" LOSS, "qk", 1, 0},
    {"  y: matmul(softmax(" SCORES "), v)\n"
     "  l: add(mean(square(y)), mean(q))\n",
     "qkv", 1, 0},
    {"  h: transpose(x, [0, 2, 1, 3])\n"
     "  i: transpose(z, [0, 2, 1, 3])\n"
     "  j: transpose(mul(z, 2), [0, 2, 1, 3])\n"
     "  y: transpose(matmul(softmax(add(mul(matmul(h, i, transpose_b=true), "
     "0.3), m)), j), [0, 2, 1, 3])\n" LOSS,
     "xzm", 1, 0},
    {"  h: transpose(x, [0, 2, 1, 3])\n"
     "  y: matmul(softmax(mul(matmul(h, k, transpose_b=true), 0.3)), v)\n" LOSS,
     "xkv", 1, 2},
    /* Two, one behind the other. */
    {"  a: matmul(softmax(" SCORES "), v)\n"
     "  y: matmul(softmax(matmul(a, k, transpose_b=true)), v)\n" LOSS,
     "qkv", 2, 0},
    /* Gradients that lack a part, or one of whose parts is read elsewhere. */
    {"  y: matmul(softmax(" SCORES "), v)\n" LOSS, "v", 0, 0},
    {"  y: matmul(softmax(" SCORES "), v)\n" LOSS, "qk", 0, 0},
    {"  s: softmax(" SCORES ")\n"
     "  y: matmul(s, v)\n"
     "  l: add(mean(square(y)), mean(square(s)))\n",
     "qkv", 0, 0},
};

static void gradients_become_one(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof kTrained / sizeof kTrained[0]; i++) {
    const trained *v = &kTrained[i];
    char text[2048];
    bench t;
    graph_text(text, sizeof text, v->nodes, "[l]");
    load(&t, text);
    derive(&t, v->wrt);
    assert_int_equal(nodes_of(&t, "attention", false), v->ones);
    assert_int_equal(nodes_of(&t, "attention_grad", false), v->ones);
    assert_int_equal(nodes_of(&t, "attention_grad", true), 0);
    if (v->ones > 0) {
      assert_int_equal(nodes_of(&t, "softmax", false), 0);
      assert_int_equal(nodes_of(&t, "transpose", false), v->transposes);
    }
    compare_ways(&t);
    unload(&t);
  }
}

/* ---- Decoding */

static const char kDecode[] =
    "weir: 1\n"
    "inputs: {x: 'f32[1, 6, 16] = uniform(-1, 1)'}\n"
    "nodes:\n"
    "  wq: var([16, 16], init=normal(0, 0.4))\n"
    "  wk: var([16, 16], init=normal(0, 0.4))\n"
    "  wv: var([16, 16], init=normal(0, 0.4))\n"
    "  y: attention(matmul(x, wq), matmul(x, wk), matmul(x, wv), "
    "q_num_heads=4, is_causal=true)\n"
    "  at: state([], dtype=i64)\n"
    "  ks: state([1, 6, 16])\n"
    "  vs: state([1, 6, 16])\n"
    "  xt: gather(x, reshape(at, [1]), axis=1)\n"
    "  here: reshape(equal(range(0, 6), at), [1, 6, 1])\n"
    "  k: where(here, matmul(xt, wk), ks)\n"
    "  v: where(here, matmul(xt, wv), vs)\n"
    "  z: attention(matmul(xt, wq), k, v, 0.0, add(at, 1), q_num_heads=4)\n"
    "update: {at: 'add(at, 1)', ks: k, vs: v}\n"
    "outputs: [y, z]\n";

static void compare_token(void *self, int i, weir_tensor *const *out) {
  const float *whole = (const float *)out[0]->data + i * 16;
  const float *token = out[1]->data;
  int *compared = self;
  for (int c = 0; c < 16; c++) assert_true(fabsf(whole[c] - token[c]) <= 1e-5f);
  (*compared)++;
}

static void tokens_are_the_whole(void **state) {
  (void)state;
  bench t;
  int compared = 0;
  load(&t, kDecode);
  run(&t, false, 6, compare_token, &compared);
  assert_int_equal(compared, 6);
  unload(&t);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(parts_become_one),
      cmocka_unit_test(gradients_become_one),
      cmocka_unit_test(fetched_parts_stay),
      cmocka_unit_test(tokens_are_the_whole),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
