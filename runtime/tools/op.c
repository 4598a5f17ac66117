/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "kernels/kernel.h"
#include "runtime/api/weir_internal.h"
#include "runtime/base/json/json.h"
#include "runtime/base/table.h"
#include "runtime/tools/tools.h"

/* Text that goes out piece by piece; the first failure is kept. */
typedef struct text_out {
  weir_write_fn write;
  void *self;
  bool ok;
} text_out;

WEIR_PRINTF(2, 3)
static void say(text_out *out, const char *fmt, ...) {
  char text[1024];
  va_list args;
  va_start(args, fmt);
  int n = vsnprintf(text, sizeof text, fmt, args);
  va_end(args);
  if (n < 0 || !out->ok) return;
  size_t size = (size_t)n < sizeof text ? (size_t)n : sizeof text - 1;
  out->ok = out->write(out->self, text, size);
}

static void put(text_out *out, const char *text) {
  if (out->ok) out->ok = out->write(out->self, text, strlen(text));
}

static void wrap(text_out *out, size_t at, size_t left, const char *text) {
  if (out->ok) out->ok = weir_tools_wrap(text, at, left, out->write, out->self);
}

/* Text that is put together before it goes out. */
typedef struct text_line {
  char text[2048];
  size_t size;
} text_line;

WEIR_PRINTF(2, 3)
static void add(text_line *line, const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  int n = vsnprintf(line->text + line->size, sizeof line->text - line->size,
                    fmt, args);
  va_end(args);
  if (n > 0) line->size += (size_t)n;
  if (line->size >= sizeof line->text) line->size = sizeof line->text - 1;
}

/* "f32 f64" */
static void types_text(unsigned types, char *text, size_t size) {
  size_t used = 0;
  text[0] = '\0';
  for (unsigned bit = 1; bit <= WEIR_BOOL; bit <<= 1) {
    if ((types & bit) == 0) continue;
    int n = snprintf(text + used, size - used, "%s%s", used != 0 ? " " : "",
                     weir_dtype_name((weir_dtype)bit));
    if (n > 0 && (size_t)n < size - used) used += (size_t)n;
  }
}

static const char *kind_text(weir_attr_kind kind) {
  static const char *const names[] = {
      [WEIR_ATTR_NONE] = "none",     [WEIR_ATTR_INT] = "int",
      [WEIR_ATTR_FLOAT] = "float",   [WEIR_ATTR_BOOL] = "bool",
      [WEIR_ATTR_STRING] = "string", [WEIR_ATTR_DTYPE] = "dtype",
      [WEIR_ATTR_INTS] = "ints",     [WEIR_ATTR_FLOATS] = "floats",
      [WEIR_ATTR_TENSOR] = "tensor", [WEIR_ATTR_NUMBER] = "number"};
  WEIR_TABLE_OF(names, WEIR_ATTR_KIND_COUNT);
  return (size_t)kind < sizeof names / sizeof names[0] ? names[kind] : "?";
}

/* ---- Text */

/* "  name(a, b?, axis=1)" */
static void say_call(text_out *out, const weir_op_def *op) {
  text_line call = {"", 0};
  add(&call, "%s(", op->name);
  const char *between = "";
  for (const weir_port *p = op->inputs; p < op->inputs + WEIR_OP_INPUTS; p++) {
    if (p->name == NULL) break;
    add(&call, "%s%s%s", between, p->name,
        p->variadic ? "..." : (p->optional ? "?" : ""));
    between = ", ";
  }
  for (const weir_attr_def *a = op->attrs; a < op->attrs + WEIR_OP_ATTRS; a++) {
    if (a->name == NULL) break;
    add(&call, "%s%s", between, a->name);
    if (a->fallback != NULL) add(&call, "=%s", a->fallback);
    between = ", ";
  }
  add(&call, ")");
  put(out, "  ");
  wrap(out, 2, 6, call.text);
}

static void say_ports(text_out *out, const char *title, const weir_port *ports,
                      size_t count) {
  if (ports[0].name == NULL) return;
  say(out, "\n%s\n", title);
  for (size_t i = 0; i < count && ports[i].name != NULL; i++)
    say(out, "  %-12s %s%s%s%s\n", ports[i].name, ports[i].type,
        ports[i].shape != NULL ? ports[i].shape : "",
        ports[i].variadic ? "  one or more" : "",
        ports[i].optional ? "  optional" : "");
}

static void say_attrs(text_out *out, const weir_op_def *op) {
  if (op->attrs[0].name == NULL) return;
  put(out, "\nAttributes\n");
  for (const weir_attr_def *a = op->attrs; a < op->attrs + WEIR_OP_ATTRS; a++) {
    if (a->name == NULL) break;
    text_line row = {"", 0};
    add(&row, "%s, ", kind_text(a->kind));
    if (a->fallback == NULL)
      add(&row, "required");
    else
      add(&row, "default %s", a->fallback);
    if (a->choices != NULL) add(&row, ", one of %s", a->choices);
    if (a->doc != NULL) add(&row, ". %s", a->doc);
    say(out, "  %-12s ", a->name);
    size_t name = strlen(a->name);
    wrap(out, name > 12 ? name + 3 : 15, 15, row.text);
  }
}

static void say_types(text_out *out, const weir_op_def *op) {
  char text[64];
  for (int i = 0; i < WEIR_OP_TYPES && op->types[i].name != NULL; i++) {
    types_text(op->types[i].types, text, sizeof text);
    say(out, "%s  %-12s %s\n", i == 0 ? "\nTypes\n" : "", op->types[i].name,
        text);
  }
}

static bool write_text(const weir_op_def *op, weir_write_fn write, void *self) {
  text_out out = {write, self, true};
  say(&out, "%s: ", op->name);
  wrap(&out, strlen(op->name) + 2, 2, op->summary);
  for (int i = 0; op->aliases[i] != NULL; i++)
    say(&out, "%s%s", i == 0 ? "also " : ", ", op->aliases[i]);
  if (op->aliases[0] != NULL) put(&out, "\n");
  put(&out, "\n");
  say_call(&out, op);
  say_ports(&out, "Inputs", op->inputs, WEIR_OP_INPUTS);
  say_attrs(&out, op);
  say_ports(&out, "Outputs", op->outputs, WEIR_OP_OUTPUTS);
  say_types(&out, op);
  if (op->doc != NULL) {
    put(&out, "\n");
    wrap(&out, 0, 0, op->doc);
  }
  for (int i = 0; i < WEIR_OP_REFUSALS && op->refuses[i] != NULL; i++) {
    put(&out, i == 0 ? "\nRefused\n  " : "  ");
    wrap(&out, 2, 4, op->refuses[i]);
  }
  if (op->example != NULL) say(&out, "\nExample\n  %s\n", op->example);
  say(&out, "\nGradient: %s\n", op->grad != NULL ? "yes" : "none");
  if (op->source != NULL) {
    put(&out, "Source: ");
    wrap(&out, 8, 8, op->source);
  }
  return out.ok;
}

/* ---- JSON */

static void json_text(weir_json_writer *w, const char *key, const char *text) {
  weir_json_key(w, key);
  if (text != NULL)
    weir_json_string(w, weir_sv_from(text));
  else
    weir_json_null(w);
}

static void json_ports(weir_json_writer *w, const char *key,
                       const weir_port *ports, size_t count) {
  weir_json_key(w, key);
  weir_json_array_begin(w, false);
  for (size_t i = 0; i < count && ports[i].name != NULL; i++) {
    weir_json_object_begin(w, true);
    json_text(w, "name", ports[i].name);
    json_text(w, "type", ports[i].type);
    json_text(w, "shape", ports[i].shape);
    weir_json_key(w, "variadic");
    weir_json_bool(w, ports[i].variadic);
    weir_json_key(w, "optional");
    weir_json_bool(w, ports[i].optional);
    weir_json_object_end(w);
  }
  weir_json_array_end(w);
}

static void json_attrs(weir_json_writer *w, const weir_op_def *op) {
  weir_json_key(w, "attributes");
  weir_json_array_begin(w, false);
  for (int i = 0; i < WEIR_OP_ATTRS && op->attrs[i].name != NULL; i++) {
    const weir_attr_def *a = &op->attrs[i];
    weir_json_object_begin(w, true);
    json_text(w, "name", a->name);
    json_text(w, "kind", kind_text(a->kind));
    json_text(w, "default", a->fallback);
    json_text(w, "choices", a->choices);
    json_text(w, "doc", a->doc);
    weir_json_object_end(w);
  }
  weir_json_array_end(w);
}

static bool write_json(const weir_op_def *op, weir_write_fn write, void *self) {
  weir_json_writer w;
  weir_json_writer_init(&w, (weir_writer){self, write}, 2);
  weir_json_object_begin(&w, false);
  json_text(&w, "name", op->name);
  json_text(&w, "summary", op->summary);
  weir_json_key(&w, "aliases");
  weir_json_array_begin(&w, true);
  for (int i = 0; op->aliases[i] != NULL; i++)
    weir_json_string(&w, weir_sv_from(op->aliases[i]));
  weir_json_array_end(&w);
  json_ports(&w, "inputs", op->inputs, WEIR_OP_INPUTS);
  json_ports(&w, "outputs", op->outputs, WEIR_OP_OUTPUTS);
  json_attrs(&w, op);
  json_text(&w, "doc", op->doc);
  json_text(&w, "example", op->example);
  json_text(&w, "source", op->source);
  weir_json_key(&w, "gradient");
  weir_json_bool(&w, op->grad != NULL);
  weir_json_object_end(&w);
  return weir_json_finish(&w);
}

bool weir_tools_op_write(size_t i, bool json, weir_write_fn write, void *self) {
  const weir_registry *registry = weir_builtin_registry();
  if (i >= weir_registry_op_count(registry)) return false;
  const weir_op_def *op = weir_registry_op_at(registry, i);
  return json ? write_json(op, write, self) : write_text(op, write, self);
}
