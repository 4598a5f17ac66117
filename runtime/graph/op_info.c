/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/graph/op_info.h"

#include <string.h>

#include "runtime/base/yaml/yaml_scalar.h"
#include "runtime/graph/graph_internal.h"

/* Signatures of ops in the form the builder wants: type variables by number,
 * defaults parsed. Made when an op is first used in a builder, and found again
 * by the op's address. */

static weir_sv trim(weir_sv s) {
  while (s.size > 0 && s.data[0] == ' ') s.data++, s.size--;
  while (s.size > 0 && s.data[s.size - 1] == ' ') s.size--;
  return s;
}

/* Cuts the text before the first comma off |rest|. */
static weir_sv next_item(weir_sv *rest) {
  size_t n = 0;
  while (n < rest->size && rest->data[n] != ',') n++;
  weir_sv item = {rest->data, n};
  size_t skip = n < rest->size ? n + 1 : n;
  rest->data += skip;
  rest->size -= skip;
  return trim(item);
}

static bool parse_list(weir_sv text, weir_attr_kind kind, weir_arena *arena,
                       weir_attr *out, bool *out_memory) {
  text.data++, text.size -= 2;
  text = trim(text);
  uint32_t count = text.size > 0 ? 1 : 0;
  for (size_t i = 0; i < text.size; i++) count += text.data[i] == ',';
  size_t elem = kind == WEIR_ATTR_INTS ? sizeof(weir_dim) : sizeof(double);
  void *items = weir_arena_array(arena, count, elem);
  if (items == NULL) return *out_memory = true, false;
  for (uint32_t i = 0; i < count; i++) {
    weir_sv item = next_item(&text);
    int64_t n = 0;
    double f = 0;
    bool ok = kind == WEIR_ATTR_INTS ? weir_text_int(item, &n)
                                     : weir_text_float(item, &f);
    if (!ok) return false;
    if (kind == WEIR_ATTR_INTS)
      ((weir_dim *)items)[i] = weir_dim_of(n);
    else
      ((double *)items)[i] = f;
  }
  out->count = count;
  if (kind == WEIR_ATTR_INTS)
    out->dims = items;
  else
    out->floats = items;
  return true;
}

static bool parse_ints(weir_sv s, weir_arena *arena, weir_attr *out,
                       bool *out_memory) {
  if (s.size >= 2 && s.data[0] == '[')
    return parse_list(s, WEIR_ATTR_INTS, arena, out, out_memory);
  int64_t n;
  if (!weir_text_int(s, &n)) return false;
  weir_dim *dim = weir_arena_array(arena, 1, sizeof *dim);
  if (dim == NULL) return *out_memory = true, false;
  *dim = weir_dim_of(n);
  out->dims = dim;
  out->count = 1;
  return true;
}

static weir_sv unquote(weir_sv s) {
  if (s.size >= 2 && (s.data[0] == '"' || s.data[0] == '\''))
    return (weir_sv){s.data + 1, s.size - 2};
  return s;
}

static bool parse_bool(weir_sv s, bool *out) {
  *out = weir_sv_is(s, "true");
  return *out || weir_sv_is(s, "false");
}

/* Reads a default ("[1, 1]", "f32", "none") as |kind|; false when it is not
 * one. Lists go to |arena|; |*out_memory| tells that memory ran out. */
static bool parse_fallback(const char *text, weir_attr_kind kind,
                           weir_arena *arena, weir_attr *out,
                           bool *out_memory) {
  weir_sv s = trim(weir_sv_from(text));
  *out = (weir_attr){.kind = kind};
  if (weir_sv_is(s, "none") && kind != WEIR_ATTR_STRING) {
    out->kind = WEIR_ATTR_NONE;
    return true;
  }
  switch (kind) {
    case WEIR_ATTR_INT:
      return weir_text_int(s, &out->i);
    case WEIR_ATTR_NUMBER:
      out->kind = WEIR_ATTR_INT;
      if (weir_text_int(s, &out->i)) return true;
      out->kind = WEIR_ATTR_FLOAT;
      return weir_text_float(s, &out->f);
    case WEIR_ATTR_FLOAT:
      return weir_text_float(s, &out->f);
    case WEIR_ATTR_BOOL:
      return parse_bool(s, &out->b);
    case WEIR_ATTR_STRING:
      out->s = unquote(s);
      return true;
    case WEIR_ATTR_DTYPE:
      out->dtype = weir_dtype_from_name(s.data, s.size);
      return out->dtype != WEIR_DTYPE_NONE;
    case WEIR_ATTR_INTS:
      return parse_ints(s, arena, out, out_memory);
    case WEIR_ATTR_FLOATS:
      return s.size >= 2 && s.data[0] == '[' &&
             parse_list(s, kind, arena, out, out_memory);
    case WEIR_ATTR_NONE:
    case WEIR_ATTR_TENSOR:
    case WEIR_ATTR_KIND_COUNT:
      break;
  }
  return false;
}

weir_status weir_op_fallback_check(weir_arena *arena, const weir_attr_def *def,
                                   bool *out_reads, weir_error *err) {
  weir_attr value;
  bool memory = false;
  *out_reads = parse_fallback(def->fallback, def->kind, arena, &value, &memory);
  return memory ? weir_fail_memory(err, sizeof value) : WEIR_OK;
}

/* The type variable called |type|, or -1 and the set of that dtype. */
static int8_t find_var(const weir_op_info *info, const char *type,
                       unsigned *types) {
  *types = type == NULL ? WEIR_ALL_TYPES : 0;
  if (type == NULL) return -1;
  for (uint32_t i = 0; i < info->type_count; i++)
    if (strcmp(info->op->types[i].name, type) == 0) {
      *types = info->op->types[i].types;
      return (int8_t)i;
    }
  *types = (unsigned)weir_dtype_from_name(type, strlen(type));
  return -1;
}

static void fill_ports(weir_op_info *info) {
  const weir_op_def *op = info->op;
  while (info->type_count < WEIR_OP_TYPES &&
         op->types[info->type_count].name != NULL)
    info->type_count++;
  info->in_count = weir_op_input_count(op);
  info->out_count = weir_op_output_count(op);
  for (uint32_t i = 0; i < info->in_count; i++) {
    const weir_port *port = &op->inputs[i];
    if (!port->optional) info->in_required = i + 1;
    info->variadic = info->variadic || port->variadic;
    info->in_var[i] = find_var(info, port->type, &info->in_types[i]);
  }
  for (uint32_t i = 0; i < info->out_count; i++)
    info->out_var[i] = find_var(info, op->outputs[i].type, &info->out_types[i]);
}

static bool fill_attrs(weir_op_info *info, weir_arena *arena) {
  const weir_op_def *op = info->op;
  bool memory = false;
  for (; info->attr_count < WEIR_OP_ATTRS; info->attr_count++) {
    const weir_attr_def *def = &op->attrs[info->attr_count];
    weir_attr *out = &info->defaults[info->attr_count];
    if (def->name == NULL) break;
    if (def->fallback == NULL ||
        !parse_fallback(def->fallback, def->kind, arena, out, &memory))
      *out = (weir_attr){.kind = WEIR_ATTR_NONE};
  }
  for (uint32_t v = 0; v < info->type_count; v++) {
    info->var_attr[v] = -1;
    for (uint32_t a = 0; a < info->attr_count; a++)
      if (op->types[v].attr != NULL &&
          strcmp(op->attrs[a].name, op->types[v].attr) == 0)
        info->var_attr[v] = (int8_t)a;
  }
  return !memory;
}

static weir_op_info *make(weir_graph_builder *b, const weir_op_def *op) {
  weir_op_info *info = weir_arena_array(&b->scratch, 1, sizeof *info);
  if (info == NULL) return NULL;
  info->op = op;
  fill_ports(info);
  /* Defaults may end up in nodes, so their lists live with the graph. */
  return fill_attrs(info, &b->graph->g.arena) ? info : NULL;
}

/* Open addressing by address, whose low bits say little, hence the shift. Past
 * half of the slots infos are made anew each time: slower, still right. */
const weir_op_info *weir_graph_builder_op(weir_graph_builder *b,
                                          const weir_op_def *op) {
  size_t i = ((uintptr_t)op >> 4) * 0x9e3779b1u % WEIR_OP_SLOTS;
  for (size_t n = 0; n < WEIR_OP_SLOTS; n++, i = (i + 1) % WEIR_OP_SLOTS) {
    if (b->ops[i] != NULL && b->ops[i]->op == op) return b->ops[i];
    if (b->ops[i] == NULL) break;
  }
  weir_op_info *info = make(b, op);
  if (info != NULL && b->ops[i] == NULL && b->op_count < WEIR_OP_SLOTS / 2) {
    b->ops[i] = info;
    b->op_count++;
  }
  return info;
}
