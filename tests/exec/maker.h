/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_EXEC_MAKER_H_
#define TESTS_EXEC_MAKER_H_

#include <string.h>

#include "kernels/kernel.h"
#include "runtime/exec/session/session.h"
#include "runtime/graph/builder.h"
#include "runtime/graph/node.h"
#include "tests/exec/support.h"

/* Graphs of the built-in ops, put together by name. */
typedef struct maker {
  weir_graph_builder *b;
  const weir_allocator *alloc;
} maker;

static inline void begin(maker *m, const weir_allocator *alloc) {
  weir_error err = WEIR_ERROR_INIT;
  m->alloc = alloc;
  assert_ok(
      weir_graph_builder_create(alloc, weir_builtin_registry(), 7, &m->b, &err),
      &err);
}

/* |attrs|: pairs are set by index of the op's attribute names. */
static inline weir_value_id add_attrs(maker *m, const char *name,
                                      const char *op_name, uint32_t count,
                                      const weir_value_id *in,
                                      const weir_named_attr *named) {
  static weir_diag diag;
  weir_node_id node = 0;
  const weir_op_def *op =
      weir_registry_find_op(weir_builtin_registry(), weir_sv_from(op_name));
  assert_non_null(op);
  weir_attr attrs[WEIR_OP_ATTRS];
  memset(attrs, 0, sizeof attrs);
  for (; named != NULL && named->name != NULL; named++)
    attrs[weir_op_attr_index(op, weir_sv_from(named->name))] = named->value;
  weir_node_spec spec = {.name = weir_sv_from(name),
                         .op = op,
                         .attrs = attrs,
                         .inputs = in,
                         .input_count = count,
                         .mark = {"test.yaml", 3, 5, 3, 9}};
  weir_status s = weir_graph_builder_add(m->b, &spec, &node, &diag);
  if (s != WEIR_OK) fail_msg("%s: %s", diag.error.id, diag.error.message);
  return weir_graph_builder_output(m->b, node, 0);
}

#define NODE(m, name, op, ...)                                              \
  add_attrs(m, name, op,                                                    \
            sizeof((weir_value_id[]){__VA_ARGS__}) / sizeof(weir_value_id), \
            (weir_value_id[]){__VA_ARGS__}, NULL)

static inline weir_attr ints(uint32_t count, const weir_dim *dims) {
  return (weir_attr){.kind = WEIR_ATTR_INTS, .count = count, .dims = dims};
}

static inline weir_attr dtype_attr(weir_dtype dtype) {
  return (weir_attr){.kind = WEIR_ATTR_DTYPE, .dtype = dtype};
}

static inline weir_value_id typed(maker *m, const char *name, const char *op,
                                  weir_dtype dtype, uint32_t rank,
                                  const weir_dim *dims, weir_value_id from) {
  weir_named_attr named[] = {
      {"shape", ints(rank, dims)}, {"dtype", dtype_attr(dtype)}, {NULL, {0}}};
  weir_value_id id =
      add_attrs(m, name, op, from == WEIR_NO_VALUE ? 0 : 1, &from, named);
  return id;
}

static inline weir_value_id input(maker *m, const char *name, weir_dtype dtype,
                                  uint32_t rank, const weir_dim *dims,
                                  weir_value_id fallback) {
  weir_value_id id = typed(m, name, "input", dtype, rank, dims, fallback);
  weir_graph_port port = {.name = weir_sv_from(name),
                          .value = id,
                          .has_default = fallback != WEIR_NO_VALUE};
  weir_error err = WEIR_ERROR_INIT;
  assert_ok(weir_graph_builder_add_input(m->b, &port, &err), &err);
  return id;
}

/* A const of |count| f32 numbers; rank 0 when |dims| is NULL. */
static inline weir_value_id constant(maker *m, const char *name, uint32_t rank,
                                     const weir_dim *dims,
                                     const float *values) {
  weir_error err = WEIR_ERROR_INIT;
  weir_shape shape = {.rank = (int32_t)rank};
  for (uint32_t i = 0; i < rank; i++) shape.dims[i] = dims[i];
  weir_tensor *t = NULL;
  assert_ok(weir_tensor_create_shaped(m->alloc, WEIR_F32, &shape, &t, &err),
            &err);
  memcpy(t->data, values, t->bytes);
  weir_named_attr named[] = {{"value", {.kind = WEIR_ATTR_TENSOR, .tensor = t}},
                             {NULL, {0}}};
  weir_value_id id = add_attrs(m, name, "const", 0, NULL, named);
  weir_tensor_unref(t);
  return id;
}

static inline weir_graph *finish(maker *m) {
  weir_graph *graph = NULL;
  weir_error err = WEIR_ERROR_INIT;
  assert_ok(weir_graph_builder_finish(m->b, &graph, &err), &err);
  weir_graph_builder_release(m->b);
  return graph;
}

static inline weir_tensor *f32_tensor(const weir_allocator *alloc, int rank,
                                      const int64_t *dims,
                                      const float *values) {
  weir_error err = WEIR_ERROR_INIT;
  weir_shape shape = weir_shape_of(rank, dims);
  weir_tensor *t = NULL;
  assert_ok(weir_tensor_create_shaped(alloc, WEIR_F32, &shape, &t, &err), &err);
  if (values != NULL) memcpy(t->data, values, t->bytes);
  return t;
}

static inline weir_tensor *f32_scalar(const weir_allocator *alloc, float x) {
  return f32_tensor(alloc, 0, NULL, &x);
}

#endif
