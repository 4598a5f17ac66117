/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/ops/shape_case.h"

#include <inttypes.h>
#include <stdlib.h>

#include "kernels/kernel.h"
#include "runtime/graph/node.h"
#include "tests/check.h"

/* Reads "[n+1,-1]" and returns the rest of the text. */
static const char *read_dims(weir_graph_builder *b, const char *text,
                             weir_dim *dims, uint32_t *out_count) {
  *out_count = 0;
  if (*text != '[') return text;
  for (text++; *text != ']'; text += *text == ',') {
    weir_dim *d = &dims[(*out_count)++];
    *d = weir_dim_of(0);
    if (*text >= 'a' && *text <= 'z')
      d->symbol = weir_graph_builder_symbol(b, (weir_sv){text++, 1});
    if (*text == ',' || *text == ']') continue;
    char *end;
    d->value = strtoll(text, &end, 10);
    assert_true(end != text);
    text = end;
  }
  return text + 1;
}

static weir_attr read_attr(weir_graph_builder *b, weir_attr_kind kind,
                           const char *text, size_t size) {
  weir_attr attr = {.kind = kind};
  weir_dim *dims =
      weir_arena_array(weir_graph_builder_arena(b), 32, sizeof *dims);
  switch (kind) {
    case WEIR_ATTR_INTS:
      read_dims(b, text, dims, &attr.count);
      attr.dims = dims;
      break;
    case WEIR_ATTR_INT:
      attr.i = strtoll(text, NULL, 10);
      break;
    case WEIR_ATTR_NUMBER:
      attr.kind = strcspn(text, ".en") < size ? WEIR_ATTR_FLOAT : WEIR_ATTR_INT;
      if (attr.kind == WEIR_ATTR_INT)
        attr.i = strtoll(text, NULL, 10);
      else
        attr.f = strtod(text, NULL);
      break;
    case WEIR_ATTR_FLOAT:
      attr.f = strtod(text, NULL);
      break;
    case WEIR_ATTR_BOOL:
      attr.b = *text == 't';
      break;
    case WEIR_ATTR_STRING:
      attr.s = (weir_sv){text, size};
      break;
    case WEIR_ATTR_DTYPE:
      attr.dtype = weir_dtype_from_name(text, size);
      break;
    default:
      fail_msg("attribute of a kind that shape cases do not have");
  }
  return attr;
}

static void read_attrs(weir_graph_builder *b, const weir_op_def *op,
                       const char *text, weir_attr *attrs) {
  while (text != NULL && *text != '\0') {
    size_t name = strcspn(text, "="), size = strcspn(text, " ");
    int i = weir_op_attr_index(op, (weir_sv){text, name});
    assert_true(i >= 0);
    attrs[i] =
        read_attr(b, op->attrs[i].kind, text + name + 1, size - name - 1);
    text += size + (text[size] == ' ');
  }
}

/* An `input` of the type at |text|; "i64=[2,3]" is shape() of u8[2,3], which
 * has that known value, and "i64=2" is size() of u8[2]. */
static const char *add_input(weir_graph_builder *b, const char *text,
                             uint32_t at, weir_value_id *out) {
  static const char *const kNames[] = {"a", "b", "c", "d", "e"};
  static const char *const kDerived[] = {"aa", "bb", "cc", "dd", "ee"};
  const char *derived = NULL;
  size_t dtype = strcspn(text, "[=");
  weir_dim dims[WEIR_MAX_RANK + 1];
  uint32_t rank = 0;
  weir_attr attrs[2] = {
      {.kind = WEIR_ATTR_DTYPE, .dtype = weir_dtype_from_name(text, dtype)},
      {.kind = WEIR_ATTR_INTS}};
  text += dtype;
  if (*text == '=') {
    derived = *++text == '[' ? "shape" : "size";
    attrs[0].dtype = WEIR_U8;
  }
  if (derived != NULL && *text != '[') {
    char *end;
    dims[rank++] = weir_dim_of(strtoll(text, &end, 10));
    text = end;
  } else {
    text = read_dims(b, text, dims, &rank);
  }
  attrs[1].count = rank;
  attrs[1].dims = dims;
  weir_node_spec spec = {.name = weir_sv_from(kNames[at]),
                         .op = weir_registry_find_op(weir_builtin_registry(),
                                                     WEIR_SV_LIT("input")),
                         .attrs = attrs};
  weir_node_id node;
  weir_error err = WEIR_ERROR_INIT;
  assert_ok(weir_graph_builder_add(b, &spec, &node, NULL), &err);
  *out = weir_graph_builder_output(b, node, 0);
  if (derived != NULL) {
    spec = (weir_node_spec){.name = weir_sv_from(kDerived[at]),
                            .op = weir_registry_find_op(weir_builtin_registry(),
                                                        weir_sv_from(derived)),
                            .inputs = out,
                            .input_count = 1};
    assert_ok(weir_graph_builder_add(b, &spec, &node, NULL), &err);
    *out = weir_graph_builder_output(b, node, 0);
  }
  return text + (*text == ' ');
}

static void print_value(const weir_graph *g, weir_value_id id, char *text,
                        size_t capacity) {
  weir_graph_type_text(g, id, text, capacity);
  const weir_tensor *known = g->values[id].known;
  if (known == NULL) return;
  size_t n = strlen(text);
  n += (size_t)snprintf(text + n, capacity - n, "=[");
  for (int64_t i = 0; i < weir_shape_elements(&known->shape); i++)
    n += (size_t)snprintf(text + n, capacity - n, "%s%" PRId64,
                          i > 0 ? ", " : "", weir_tensor_get_i64(known, i));
  snprintf(text + n, capacity - n, "]");
}

weir_status shape_case_add(weir_graph_builder *b, const shape_case *c,
                           weir_value_id *in, uint32_t *out_in_count,
                           weir_node_id *out_node, weir_diag *diag) {
  weir_attr attrs[WEIR_OP_ATTRS] = {{0}};
  weir_node_spec spec = {
      .name = WEIR_SV_LIT("node"),
      .op = weir_registry_find_op(weir_builtin_registry(), weir_sv_from(c->op)),
      .attrs = attrs,
      .inputs = in,
      .mark = {"g.yaml", 1, 1, 1, 2}};
  assert_non_null(spec.op);
  for (const char *text = c->in; *text != '\0'; spec.input_count++) {
    assert_true(spec.input_count < SHAPE_CASE_INPUTS);
    text = add_input(b, text, spec.input_count, &in[spec.input_count]);
  }
  read_attrs(b, spec.op, c->attrs, attrs);
  *out_in_count = spec.input_count;
  return weir_graph_builder_add(b, &spec, out_node, diag);
}

void shape_case_check(const shape_case *c) {
  static weir_diag diag;
  weir_graph_builder *b = NULL;
  weir_error err = WEIR_ERROR_INIT;
  weir_value_id in[SHAPE_CASE_INPUTS];
  uint32_t in_count;
  weir_node_id node;
  char got[256];
  assert_ok(weir_graph_builder_create(weir_allocator_system(),
                                      weir_builtin_registry(), 1, &b, &err),
            &err);
  weir_status s = shape_case_add(b, c, in, &in_count, &node, &diag);
  if (s == WEIR_OK)
    print_value(weir_graph_builder_graph(b),
                weir_graph_builder_output(b, node, 0), got, sizeof got);
  else
    snprintf(got, sizeof got, "%s", diag.error.id);
  if (strcmp(got, c->want) != 0)
    fail_msg("%s(%s; %s): %s, want %s; %s", c->op, c->in,
             c->attrs != NULL ? c->attrs : "", got, c->want,
             s == WEIR_OK ? "" : diag.error.message);
  if (c->says != NULL && strstr(diag.error.message, c->says) == NULL)
    fail_msg("%s(%s): \"%s\" does not say \"%s\"", c->op, c->in,
             diag.error.message, c->says);
  weir_graph_builder_release(b);
}
