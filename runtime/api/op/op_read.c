/* SPDX-License-Identifier: Apache-2.0 */
/* A host's description of an op as a definition and a kernel.
 *
 * Everything is checked here, once: the loader trusts definitions. The
 * signature is made of what two processes must agree on, in one line, so that a
 * difference can be shown as text. */
#include "runtime/api/op/op_read.h"

#include <string.h>

#include "runtime/api/op/op_use.h"
#include "runtime/api/weir_opts.h"
#include "runtime/base/strbuf.h"
#include "runtime/base/table.h"
#include "runtime/graph/op_info.h"

_Static_assert((int)WEIR_OP_MOST_INPUTS <= (int)WEIR_OP_INPUTS &&
                   (int)WEIR_OP_MOST_OUTPUTS <= (int)WEIR_OP_OUTPUTS &&
                   (int)WEIR_OP_MOST_ATTRS <= (int)WEIR_OP_ATTRS,
               "a definition has room for a host's op");

enum { NAME_BYTES = 63, FALLBACK_BYTES = 255, SUMMARY_BYTES = 255 };

static const struct {
  const char *name;
  weir_attr_kind kind;
} kKinds[] = {[WEIR_OP_ATTR_NONE] = {"none", WEIR_ATTR_NONE},
              [WEIR_OP_ATTR_INT] = {"int", WEIR_ATTR_INT},
              [WEIR_OP_ATTR_FLOAT] = {"float", WEIR_ATTR_FLOAT},
              [WEIR_OP_ATTR_BOOL] = {"bool", WEIR_ATTR_BOOL},
              [WEIR_OP_ATTR_STRING] = {"string", WEIR_ATTR_STRING},
              [WEIR_OP_ATTR_INTS] = {"ints", WEIR_ATTR_INTS},
              [WEIR_OP_ATTR_FLOATS] = {"floats", WEIR_ATTR_FLOATS}};

/* One description under way. */
typedef struct reader {
  const weir_op_spec *spec;
  weir_arena *arena;
  weir_op_def *def;
  weir_strbuf signature;
  weir_error *err;
} reader;

static weir_status bad(const reader *r, const char *what, const char *name) {
  return weir_fail(r->err, WEIR_W0002, NULL, "op %.64s: %s%s%.64s",
                   r->spec->name, what, name[0] != '\0' ? " " : "", name);
}

static bool is_small(char c) {
  return c >= 'a' && c <= 'z';
}

static weir_status check_name(const reader *r, const char *name) {
  if (name == NULL) return weir_fail_null(r->err, "the name of a port or attr");
  size_t n = strnlen(name, NAME_BYTES + 1);
  bool sound = n > 0 && n <= NAME_BYTES && is_small(name[0]);
  for (size_t i = 0; sound && i < n; i++)
    sound = is_small(name[i]) || (name[i] >= '0' && name[i] <= '9') ||
            name[i] == '_';
  if (sound) return WEIR_OK;
  return bad(r,
             "a name is a small letter, then those, digits and _, at most "
             "63; this is",
             name);
}

static weir_status copy(const reader *r, const char *text, size_t most,
                        const char **out) {
  size_t n = strnlen(text, most + 1);
  if (n > most) return bad(r, "a text is too long", "");
  *out = weir_arena_string(r->arena, text, n);
  return *out != NULL ? WEIR_OK : weir_fail_memory(r->err, n);
}

/* ---- Ports */

static bool is_dtype(weir_dtype dtype) {
  return weir_dtype_size(dtype) > 0;
}

static weir_status read_ports(reader *r, const weir_op_port *from, size_t count,
                              size_t most, weir_port *to) {
  bool optional = false;
  if (count < 1 || count > most)
    return bad(r, "has no inputs or outputs, or too many", "");
  if (from == NULL) return weir_fail_null(r->err, "weir_op_spec: ports");
  for (size_t i = 0; i < count; i++) {
    weir_op_port p;
    WEIR_TRY(WEIR_OPTS_READ(weir_op_port, &p, weir_opts_at(from, i), r->err));
    WEIR_TRY(check_name(r, p.name));
    WEIR_TRY(copy(r, p.name, NAME_BYTES, &to[i].name));
    if (p.dtype != WEIR_DTYPE_NONE && !is_dtype(p.dtype))
      return bad(r, "no such dtype of", p.name);
    if (optional && !p.optional)
      return bad(r, "no optional input may come before", p.name);
    if (p.optional && (i == 0 || to == r->def->outputs))
      return bad(r, "cannot be optional:", p.name);
    optional = to[i].optional = p.optional;
    to[i].type = p.dtype == WEIR_DTYPE_NONE ? "T" : weir_dtype_name(p.dtype);
    weir_strbuf_printf(&r->signature, "%s%s: %s%s", i > 0 ? ", " : "",
                       to[i].name, to[i].type, p.optional ? "?" : "");
  }
  return WEIR_OK;
}

static void sign_types(reader *r, unsigned types) {
  const char *between = "; T: ";
  for (unsigned bit = 1; bit <= WEIR_ALL_TYPES; bit <<= 1) {
    if ((types & bit) == 0) continue;
    weir_strbuf_printf(&r->signature, "%s%s", between,
                       weir_dtype_name((weir_dtype)bit));
    between = " ";
  }
}

/* The type variable, where a port names it. */
static weir_status read_types(reader *r) {
  unsigned types = r->spec->types != 0 ? r->spec->types : WEIR_ALL_TYPES;
  bool of_input = false, used = false;
  if ((types & ~WEIR_ALL_TYPES) != 0) return bad(r, "no such types", "");
  for (size_t i = 0; i < r->spec->input_count; i++)
    of_input = of_input || (strcmp(r->def->inputs[i].type, "T") == 0 &&
                            !r->def->inputs[i].optional);
  for (size_t i = 0; i < r->spec->input_count; i++)
    used = used || strcmp(r->def->inputs[i].type, "T") == 0;
  for (size_t i = 0; i < r->spec->output_count; i++) {
    bool named = strcmp(r->def->outputs[i].type, "T") == 0;
    if (named && !of_input)
      return bad(r, "no input gives the dtype of", r->def->outputs[i].name);
    used = used || named;
  }
  if (!used) return WEIR_OK;
  r->def->types[0] = (weir_type_var){.name = "T", .types = types};
  sign_types(r, types);
  return WEIR_OK;
}

/* ---- Attributes */

static weir_status read_attr(reader *r, const weir_op_attr_spec *a,
                             weir_attr_def *to) {
  bool sound = true;
  WEIR_TRY(check_name(r, a->name));
  if (a->kind <= WEIR_OP_ATTR_NONE || a->kind > WEIR_OP_ATTR_FLOATS)
    return bad(r, "no such kind of attribute", a->name);
  WEIR_TRY(copy(r, a->name, NAME_BYTES, &to->name));
  to->kind = kKinds[a->kind].kind;
  weir_strbuf_printf(&r->signature, ", %s: %s", to->name, kKinds[a->kind].name);
  if (a->fallback == NULL) return WEIR_OK;
  WEIR_TRY(copy(r, a->fallback, FALLBACK_BYTES, &to->fallback));
  weir_strbuf_printf(&r->signature, " = %s", to->fallback);
  WEIR_TRY(weir_op_fallback_check(r->arena, to, &sound, r->err));
  return sound ? WEIR_OK : bad(r, "the default cannot be read of", to->name);
}

static weir_status read_attrs(reader *r) {
  const weir_op_spec *spec = r->spec;
  if (spec->attr_count > WEIR_OP_MOST_ATTRS)
    return bad(r, "has too many attributes", "");
  if (spec->attr_count > 0 && spec->attrs == NULL)
    return weir_fail_null(r->err, "weir_op_spec: attrs");
  for (size_t i = 0; i < spec->attr_count; i++) {
    weir_op_attr_spec a;
    WEIR_TRY(WEIR_OPTS_READ(weir_op_attr_spec, &a, weir_opts_at(spec->attrs, i),
                            r->err));
    WEIR_TRY(read_attr(r, &a, &r->def->attrs[i]));
  }
  return WEIR_OK;
}

/* The names in the order in which a call gives them; NULL at the end. */
static const char *name_at(const reader *r, size_t i) {
  const weir_op_spec *s = r->spec;
  if (i < s->input_count) return r->def->inputs[i].name;
  i -= s->input_count;
  return i < s->attr_count ? r->def->attrs[i].name : NULL;
}

/* Inputs and attributes are given by name in a call, so none is twice. */
static weir_status check_twice(const reader *r) {
  for (size_t i = 0; name_at(r, i) != NULL; i++)
    for (size_t k = 0; k < i; k++)
      if (strcmp(name_at(r, i), name_at(r, k)) == 0)
        return bad(r, "two inputs or attributes are called", name_at(r, i));
  return WEIR_OK;
}

/* ---- All of it */

static weir_status read_parts(reader *r) {
  const weir_op_spec *s = r->spec;
  weir_op_def *def = r->def;
  WEIR_TRY(copy(r, s->name, NAME_BYTES, &def->name));
  WEIR_TRY(copy(r, s->summary != NULL ? s->summary : "An op of the program.",
                SUMMARY_BYTES, &def->summary));
  weir_strbuf_printf(&r->signature, "version %u (", s->version);
  WEIR_TRY(read_ports(r, s->inputs, s->input_count, WEIR_OP_MOST_INPUTS,
                      def->inputs));
  WEIR_TRY(read_attrs(r));
  WEIR_TRY(check_twice(r));
  weir_strbuf_text(&r->signature, ") -> (");
  WEIR_TRY(read_ports(r, s->outputs, s->output_count, WEIR_OP_MOST_OUTPUTS,
                      def->outputs));
  weir_strbuf_text(&r->signature, ")");
  WEIR_TRY(read_types(r));
  WEIR_TRY(weir_strbuf_status(&r->signature, r->err));
  weir_sv text = weir_strbuf_view(&r->signature);
  def->signature = weir_arena_string(r->arena, text.data, text.size);
  return def->signature != NULL ? WEIR_OK : weir_fail_memory(r->err, text.size);
}

weir_status weir_op_read(const weir_op_spec *spec, weir_arena *arena,
                         weir_host_op *out, weir_error *err) {
  reader r = {.spec = spec, .arena = arena, .def = &out->def, .err = err};
  if (spec->run == NULL) return weir_fail_null(err, "weir_op_spec: run");
  WEIR_TRY(check_name(&r, spec->name));
  weir_strbuf_init(&r.signature, arena->alloc);
  weir_status s = read_parts(&r);
  weir_strbuf_release(&r.signature);
  if (s != WEIR_OK) return s;
  out->def.flags = WEIR_OP_MAY_FAIL | WEIR_OP_FOREIGN;
  out->def.shape = weir_host_op_shape;
  out->def.cost = weir_host_op_cost;
  out->kernel = (weir_kernel_def){.op = out->def.name,
                                  .name = "host.cpu",
                                  .device = WEIR_CPU,
                                  .types = WEIR_ALL_TYPES,
                                  .prepare = weir_host_op_prepare,
                                  .run = weir_host_op_run};
  out->spec = *spec;
  return WEIR_OK;
}
