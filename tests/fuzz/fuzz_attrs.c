/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "kernels/kernel.h"
#include "runtime/graph/builder.h"
#include "runtime/graph/node.h"
#include "tests/fuzz/fuzz.h"

/* The input chooses an op, inputs of any dtype and shape, and attributes of the
 * right kinds with any value. The builder takes the node, with shapes that
 * hold, or refuses it with an error of its own. */

enum { kInts = 9, kElements = 1 << 12 };

typedef struct source {
  const uint8_t *data;
  size_t size, at;
} source;

static uint32_t pick(source *s, uint32_t n) {
  return s->at < s->size && n > 0 ? s->data[s->at++] % n : 0;
}

/* Sizes and numbers where overflow and limits lie, and small ones. */
static int64_t pick_int(source *s) {
  static const int64_t odd[] = {
      -1,        -2,        INT64_MAX,  INT64_MIN, 1ll << 31, (1ll << 31) - 1,
      1ll << 62, 1ll << 32, 3037000500, 100000};
  uint32_t kind = pick(s, 4);
  if (kind == 3) return odd[pick(s, sizeof odd / sizeof *odd)];
  return (int64_t)pick(s, 12) - (kind == 2 ? 6 : 0);
}

static double pick_float(source *s) {
  static const double odd[] = {0.0, -0.0, -1.0, 1e308, -1e308, 1e-320};
  uint32_t kind = pick(s, 10);
  if (kind == 0) return NAN;
  if (kind == 1) return INFINITY;
  if (kind < 8) return odd[kind - 2];
  return (double)pick_int(s) / 4;
}

typedef struct parts {
  weir_dim dims[WEIR_OP_ATTRS][kInts];
  double floats[WEIR_OP_ATTRS][kInts];
  weir_tensor *tensors[WEIR_OP_ATTRS];
} parts;

static weir_tensor *pick_tensor(source *s) {
  weir_tensor *t = NULL;
  int64_t dims[2] = {pick(s, 5), pick(s, 5)};
  weir_shape shape = weir_shape_of((int)pick(s, 3), dims);
  weir_dtype dtype = (weir_dtype)(1u << pick(s, 6));
  if (weir_tensor_create_shaped(weir_allocator_system(), dtype, &shape, &t,
                                NULL) != WEIR_OK)
    return NULL;
  for (size_t i = 0; i < t->bytes; i++)
    ((uint8_t *)t->data)[i] = (uint8_t)pick(s, dtype == WEIR_BOOL ? 2 : 256);
  return t;
}

static weir_sv pick_text(source *s, const weir_attr_def *def) {
  static const char *const texts[] = {
      "",  "ij,jk->ik", "m k, k n -> m n", "->",
      ",", "i i -> i",  "a b -> b a",      "%n"};
  if (def->choices == NULL || pick(s, 4) == 0)
    return weir_sv_from(texts[pick(s, 8)]);
  weir_sv text = weir_sv_from(def->choices);
  for (uint32_t skip = pick(s, 3); skip > 0; skip--) {
    const char *bar = memchr(text.data, '|', text.size);
    if (bar == NULL) break;
    text = weir_sv_from(bar + 1);
  }
  const char *end = memchr(text.data, '|', text.size);
  if (end != NULL) text.size = (size_t)(end - text.data);
  return text;
}

static void pick_list(source *s, parts *p, uint32_t i, weir_attr *a) {
  a->count = pick(s, kInts + 1);
  for (uint32_t k = 0; k < a->count; k++) {
    p->dims[i][k] = (weir_dim){pick_int(s), 0, 0};
    p->floats[i][k] = pick_float(s);
  }
  if (a->kind == WEIR_ATTR_INTS)
    a->dims = p->dims[i];
  else
    a->floats = p->floats[i];
}

static weir_attr pick_attr(source *s, const weir_attr_def *def, parts *p,
                           uint32_t i) {
  weir_attr a = {.kind = def->kind};
  if (pick(s, 3) == 0) return (weir_attr){0};
  if (a.kind == WEIR_ATTR_NUMBER)
    a.kind = pick(s, 2) == 0 ? WEIR_ATTR_INT : WEIR_ATTR_FLOAT;
  if (a.kind == WEIR_ATTR_INT) a.i = pick_int(s);
  if (a.kind == WEIR_ATTR_FLOAT) a.f = pick_float(s);
  if (a.kind == WEIR_ATTR_BOOL) a.b = pick(s, 2) != 0;
  if (a.kind == WEIR_ATTR_STRING) a.s = pick_text(s, def);
  if (a.kind == WEIR_ATTR_DTYPE) a.dtype = (weir_dtype)(1u << pick(s, 6));
  if (a.kind == WEIR_ATTR_INTS || a.kind == WEIR_ATTR_FLOATS)
    pick_list(s, p, i, &a);
  if (a.kind == WEIR_ATTR_TENSOR) {
    a.tensor = p->tensors[i] = pick_tensor(s);
    if (a.tensor == NULL) a.kind = WEIR_ATTR_NONE;
  }
  return a;
}

static bool add(weir_graph_builder *b, const char *op, const char *name,
                const weir_attr *attrs, const weir_value_id *in, uint32_t count,
                weir_node_id *out) {
  const weir_op_def *def =
      weir_registry_find_op(weir_builtin_registry(), weir_sv_from(op));
  weir_diag diag;
  weir_node_spec spec = {.name = weir_sv_from(name),
                         .op = def,
                         .attrs = attrs,
                         .inputs = in,
                         .input_count = count};
  FUZZ_CHECK(def != NULL);
  weir_status s = weir_graph_builder_add(b, &spec, out, &diag);
  if (s != WEIR_OK)
    FUZZ_CHECK(diag.error.id[0] == 'W' && strcmp(diag.error.id, "W9001") != 0 &&
               diag.error.message[0] != '\0');
  return s == WEIR_OK;
}

/* A constant, or an input whose shape may hold a symbol or any size. */
static weir_value_id pick_input(source *s, weir_graph_builder *b, int i) {
  static const char *const names[] = {"i0", "i1", "i2", "i3",
                                      "i4", "i5", "i6", "i7"};
  weir_attr attrs[WEIR_OP_ATTRS] = {{0}};
  weir_dim dims[kInts];
  parts p = {.tensors = {NULL}};
  weir_node_id node = 0;
  bool constant = pick(s, 3) == 0;
  const char *name = constant ? "const" : "input";
  const weir_op_def *op =
      weir_registry_find_op(weir_builtin_registry(), weir_sv_from(name));
  if (constant) {
    int at = weir_op_attr_index(op, weir_sv_from("value"));
    attrs[at] = (weir_attr){.kind = WEIR_ATTR_TENSOR};
    attrs[at].tensor = p.tensors[0] = pick_tensor(s);
    if (attrs[at].tensor == NULL) return WEIR_NO_VALUE;
  } else {
    uint32_t rank = pick(s, kInts);
    for (uint32_t k = 0; k < rank; k++)
      dims[k] = (weir_dim){pick(s, 6) == 0 ? pick_int(s) : pick(s, 9), 0, 0};
    int shape = weir_op_attr_index(op, weir_sv_from("shape"));
    int dtype = weir_op_attr_index(op, weir_sv_from("dtype"));
    attrs[shape] =
        (weir_attr){.kind = WEIR_ATTR_INTS, .count = rank, .dims = dims};
    attrs[dtype] = (weir_attr){.kind = WEIR_ATTR_DTYPE, .dtype = WEIR_F32};
    if (pick(s, 3) == 0) attrs[dtype].dtype = (weir_dtype)(1u << pick(s, 6));
  }
  bool ok = add(b, name, names[i], attrs, NULL, 0, &node);
  weir_tensor_unref(p.tensors[0]);
  return ok ? weir_graph_builder_output(b, node, 0) : WEIR_NO_VALUE;
}

static void check_outputs(weir_graph_builder *b, weir_node_id node) {
  const weir_graph *g = weir_graph_builder_graph(b);
  const weir_node *n = &g->nodes[node];
  for (uint32_t i = 0; i < n->output_count; i++) {
    const weir_value *v = &g->values[n->first_output + i];
    weir_error err = WEIR_ERROR_INIT;
    FUZZ_CHECK(v->dtype != WEIR_DTYPE_NONE);
    FUZZ_CHECK(weir_shape_check(v->shape, v->dtype, &err) == WEIR_OK);
    if (v->known != NULL)
      FUZZ_CHECK(weir_shape_elements(&v->known->shape) <= kElements);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  source s = {data, size, 0};
  const weir_registry *registry = weir_builtin_registry();
  weir_graph_builder *b = NULL;
  weir_value_id in[WEIR_OP_INPUTS];
  weir_attr attrs[WEIR_OP_ATTRS] = {{0}};
  parts *p = calloc(1, sizeof *p);
  weir_node_id node = 0;
  FUZZ_CHECK(p != NULL);
  FUZZ_CHECK(weir_graph_builder_create(weir_allocator_system(), registry, 1, &b,
                                       NULL) == WEIR_OK);
  const weir_op_def *op = registry->ops[pick(&s, (uint32_t)registry->op_count)];
  uint32_t count = pick(&s, 5);
  for (uint32_t i = 0; i < count; i++) in[i] = pick_input(&s, b, (int)i);
  for (uint32_t i = 0; i < WEIR_OP_ATTRS && op->attrs[i].name != NULL; i++)
    attrs[i] = pick_attr(&s, &op->attrs[i], p, i);
  if (add(b, op->name, "n", attrs, in, count, &node)) check_outputs(b, node);
  weir_graph_builder_release(b);
  for (int i = 0; i < WEIR_OP_ATTRS; i++) weir_tensor_unref(p->tensors[i]);
  free(p);
  return 0;
}
