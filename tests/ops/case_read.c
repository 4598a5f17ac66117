/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/yaml/yaml_scalar.h"
#include "tests/ops/case.h"

typedef struct reading {
  op_case *c;
  weir_arena *arena;
  uint64_t seed;
  char *why;
  size_t capacity;
} reading;

WEIR_PRINTF(2, 3)
static bool refuse(const reading *r, const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  vsnprintf(r->why, r->capacity, fmt, args);
  va_end(args);
  return false;
}

static bool read_tensor(const reading *r, weir_sv name, const weir_yaml *y) {
  op_case *c = r->c;
  if (c->in_count == CASE_INPUTS) return refuse(r, "too many inputs");
  if (y->kind == WEIR_YAML_SCALAR && weir_sv_is(y->text, "first")) {
    c->in[c->in_count] = weir_tensor_ref(c->in[0]);
    c->in_names[c->in_count++] = name;
    return true;
  }
  c->in[c->in_count] =
      op_case_tensor(y, WEIR_DTYPE_NONE, r->seed * CASE_INPUTS + c->in_count);
  if (c->in[c->in_count] == NULL)
    return refuse(r, "cannot read tensor %.*s", WEIR_SV(name));
  c->in_names[c->in_count++] = name;
  return true;
}

/* `random: {a: [2, 3]}` stands for `{shape: [2, 3]}`. */
static bool read_random(const reading *r, weir_sv name, const weir_yaml *y) {
  static const weir_sv key = {"shape", 5};
  weir_yaml_entry entry = {.key = key, .value = y};
  weir_yaml map = {.kind = WEIR_YAML_MAP, .count = 1, .entries = &entry};
  return read_tensor(r, name, y->kind == WEIR_YAML_LIST ? &map : y);
}

/* Inputs in the op's order. A port that is not named is left out. */
static bool read_inputs(const reading *r, const weir_yaml *map, bool random) {
  const weir_op_def *op = r->c->op;
  uint32_t named = 0, ports = weir_op_input_count(op);
  if (map->kind != WEIR_YAML_MAP) return refuse(r, "in: want a map");
  for (uint32_t i = 0; i < ports && named < map->count; i++) {
    const weir_port *port = &op->inputs[i];
    weir_sv name = weir_sv_from(port->name);
    const weir_yaml *y = weir_yaml_get(map, port->name);
    if (y == NULL) {
      r->c->in_count++; /* NULL */
      continue;
    }
    named++;
    for (uint32_t k = 0; port->variadic && k < y->count; k++)
      if (!(random ? read_random : read_tensor)(r, name, y->items[k]))
        return false;
    if (port->variadic) continue;
    if (!(random ? read_random : read_tensor)(r, name, y)) return false;
  }
  return named == map->count || refuse(r, "an input the op does not have");
}

static bool read_dims(const reading *r, const weir_yaml *y, weir_attr *out) {
  weir_dim *dims = weir_arena_array(r->arena, y->count + 1, sizeof *dims);
  if (dims == NULL) return false;
  for (uint32_t i = 0; i < y->count; i++)
    if (!weir_yaml_int(y->items[i], &dims[i].value)) return false;
  *out = (weir_attr){.kind = WEIR_ATTR_INTS, .count = y->count, .dims = dims};
  return true;
}

static bool read_scalar_attr(const weir_yaml *y, weir_attr_kind kind,
                             weir_attr *out) {
  out->kind = kind;
  if (kind == WEIR_ATTR_BOOL) return weir_yaml_bool(y, &out->b);
  if (kind == WEIR_ATTR_NUMBER) {
    out->kind = WEIR_ATTR_INT;
    if (weir_yaml_int(y, &out->i)) return true;
    out->kind = kind = WEIR_ATTR_FLOAT;
  }
  if (kind == WEIR_ATTR_FLOAT) return weir_yaml_float(y, &out->f);
  if (kind == WEIR_ATTR_DTYPE) {
    out->dtype = weir_dtype_from_name(y->text.data, y->text.size);
    return out->dtype != WEIR_DTYPE_NONE;
  }
  if (kind == WEIR_ATTR_STRING) {
    out->s = y->text;
    return true;
  }
  out->kind = WEIR_ATTR_INT; /* also for INTS: a list of one */
  return weir_yaml_int(y, &out->i);
}

static bool read_attr(const reading *r, const weir_attr_def *def,
                      const weir_yaml *y, weir_attr *out) {
  if (def->kind == WEIR_ATTR_TENSOR) {
    out->kind = WEIR_ATTR_TENSOR;
    out->tensor = op_case_tensor(y, WEIR_DTYPE_NONE, r->seed);
    return out->tensor != NULL;
  }
  if (y->kind == WEIR_YAML_LIST) return read_dims(r, y, out);
  return y->kind == WEIR_YAML_SCALAR && read_scalar_attr(y, def->kind, out);
}

static bool read_attrs(const reading *r, const weir_yaml *map) {
  const weir_op_def *op = r->c->op;
  if (map->kind != WEIR_YAML_MAP) return refuse(r, "attrs: want a map");
  for (uint32_t i = 0; i < map->count; i++) {
    weir_sv name = map->entries[i].key;
    int at = weir_op_attr_index(op, name);
    if (at < 0) return refuse(r, "the op has no attribute %.*s", WEIR_SV(name));
    const weir_yaml *y = map->entries[i].value;
    if (op->attrs[at].kind != WEIR_ATTR_STRING && y->kind == WEIR_YAML_SCALAR &&
        weir_sv_is(y->text, "none"))
      continue; /* left at its default */
    if (!read_attr(r, &op->attrs[at], map->entries[i].value, &r->c->attrs[at]))
      return refuse(r, "cannot read attribute %.*s", WEIR_SV(name));
  }
  return true;
}

/* Outputs by name; a list op (split) has y0, y1, ... of its one port y. */
static bool read_outputs(const reading *r, const weir_yaml *map) {
  uint32_t ports = weir_op_output_count(r->c->op);
  bool numbered = r->c->op->output_count != NULL;
  if (map->kind != WEIR_YAML_MAP) return refuse(r, "out: want a map");
  for (uint32_t i = 0; i < CASE_OUTPUTS; i++) {
    char name[32] = "";
    if (numbered)
      snprintf(name, sizeof name, "%s%u", r->c->op->outputs[0].name, i);
    else if (i < ports)
      snprintf(name, sizeof name, "%s", r->c->op->outputs[i].name);
    r->c->out[i] = name[0] != 0 ? weir_yaml_get(map, name) : NULL;
    if (r->c->out[i] != NULL) r->c->out_count++;
  }
  return r->c->out_count == map->count ||
         refuse(r, "an output the op does not have");
}

static bool read_entry(const reading *r, weir_sv key, const weir_yaml *y) {
  op_case *c = r->c;
  if (weir_sv_is(key, "in")) return read_inputs(r, y, false);
  if (weir_sv_is(key, "random")) return read_inputs(r, y, true);
  if (weir_sv_is(key, "attrs")) return read_attrs(r, y);
  if (weir_sv_is(key, "out")) return read_outputs(r, y);
  if (weir_sv_is(key, "source") || weir_sv_is(key, "why")) return true;
  if (weir_sv_is(key, "rtol")) return weir_yaml_float(y, &c->rtol);
  if (weir_sv_is(key, "atol")) return weir_yaml_float(y, &c->atol);
  if (weir_sv_is(key, "zeros"))
    return c->signed_zeros = weir_sv_is(y->text, "signed");
  if (weir_sv_is(key, "grad")) return weir_yaml_bool(y, &c->grad);
  if (weir_sv_is(key, "error")) return c->error = y->text, true;
  if (weir_sv_is(key, "says")) return c->says = y->text, true;
  if (!weir_sv_is(key, "against"))
    return refuse(r, "a case has no key %.*s", WEIR_SV(key));
  c->against_ref = weir_sv_is(y->text, "ref");
  return c->against_ref || refuse(r, "against: want ref");
}

/* A case must be able to fail, and numbers must say where they are from. */
static bool check(const reading *r) {
  const weir_yaml *y = r->c->yaml;
  bool has_out = weir_yaml_get(y, "out") != NULL;
  bool has_error = weir_yaml_get(y, "error") != NULL;
  if (has_out + has_error + r->c->against_ref != 1)
    return refuse(r, "want one of out, error, against");
  if (has_out && weir_yaml_get(y, "source") == NULL)
    return refuse(r, "out without source");
  if (has_error && r->c->says.size == 0) return refuse(r, "error without says");
  if ((r->c->rtol >= 0 || r->c->atol >= 0) && weir_yaml_get(y, "why") == NULL)
    return refuse(r, "a tolerance without why");
  return true;
}

bool op_case_read(const weir_op_def *op, const weir_yaml *yaml, uint32_t index,
                  weir_arena *arena, op_case *out, char *why, size_t capacity) {
  reading r = {out, arena, index + 1, why, capacity};
  *out = (op_case){.op = op, .yaml = yaml, .rtol = -1, .atol = -1};
  if (yaml->kind != WEIR_YAML_MAP) return refuse(&r, "a case is a map");
  for (uint32_t i = 0; i < yaml->count; i++) {
    weir_sv key = yaml->entries[i].key;
    snprintf(why, capacity, "cannot read %.*s", WEIR_SV(key));
    if (!read_entry(&r, key, yaml->entries[i].value)) return false;
  }
  return check(&r);
}

void op_case_release(op_case *c) {
  for (uint32_t i = 0; i < CASE_INPUTS; i++) weir_tensor_unref(c->in[i]);
  for (uint32_t i = 0; i < WEIR_OP_ATTRS; i++)
    if (c->attrs[i].kind == WEIR_ATTR_TENSOR)
      weir_tensor_unref(c->attrs[i].tensor);
  *c = (op_case){0};
}
