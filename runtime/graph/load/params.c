/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/graph/load/params.h"

#include "runtime/base/yaml/yaml_scalar.h"
#include "runtime/graph/load/keys.h"
#include "runtime/graph/load/loader.h"
#include "runtime/graph/load/report.h"
#include "runtime/graph/parse/lex.h"

/* Params and named dimensions, with their overrides. They are declared before
 * any body is parsed, as bodies refuse names that a param has. Only the main
 * file's can be set from outside. */

const weir_named_const *weir_module_const(const weir_module *m, weir_sv name) {
  uint32_t i = weir_map_get(&m->const_names, name);
  return i == WEIR_MAP_NONE ? NULL : &m->consts.items[i];
}

static bool scalar_const(const weir_yaml *y, weir_const *out) {
  *out = (weir_const){.kind = WEIR_CONST_INT};
  int64_t i;
  if (y->kind != WEIR_YAML_SCALAR) return false;
  if (weir_yaml_int(y, &i)) {
    out->dim = weir_dim_of(i);
    return true;
  }
  *out = weir_const_float(0, 0);
  if (weir_yaml_float(y, &out->f)) {
    out->single = weir_text_single(y->text, out->f);
    return true;
  }
  out->kind = WEIR_CONST_BOOL;
  if (weir_yaml_bool(y, &out->b)) return true;
  out->kind = WEIR_CONST_NONE;
  if (weir_yaml_null(y) || (y->plain && weir_sv_is(y->text, "none")))
    return true;
  out->kind = WEIR_CONST_STRING;
  out->s = y->text;
  return true;
}

bool weir_const_from_yaml(weir_loader *l, const weir_yaml *y, weir_const *out) {
  if (y->kind != WEIR_YAML_LIST) return scalar_const(y, out);
  weir_const *items = weir_arena_array(&l->work, y->count, sizeof *items);
  if (items == NULL) return weir_report_memory(l);
  for (uint32_t i = 0; i < y->count; i++)
    if (!scalar_const(y->items[i], &items[i])) return false;
  *out =
      (weir_const){.kind = WEIR_CONST_LIST, .count = y->count, .items = items};
  return true;
}

static bool declare(weir_loader *l, weir_module *m, const weir_yaml_entry *e,
                    weir_const value) {
  if (!weir_is_name(e->key))
    return weir_report(l, WEIR_W1106, &e->key_mark, "'%.*s' is not a name",
                       WEIR_SV(e->key));
  uint32_t before;
  weir_named_const c = {e->key, e->key_mark, value};
  if (!weir_map_put(&m->const_names, e->key, (uint32_t)m->consts.count,
                    &before) ||
      !weir_vec_push(l->alloc, &m->consts, c))
    return weir_report_memory(l);
  if (before == WEIR_MAP_NONE) return true;
  m->consts.count--;
  weir_report_begin(l, WEIR_W1104, &e->key_mark, "%.*s is defined twice",
                    WEIR_SV(e->key));
  weir_diag_add_label(&l->diag, &m->consts.items[before].mark, "first here");
  return weir_report_send(l);
}

static void declare_params(weir_loader *l, weir_module *m) {
  const weir_yaml *y = weir_yaml_get(m->root, "params");
  if (y == NULL || !weir_want_kind(l, y, WEIR_YAML_MAP, "params")) return;
  for (uint32_t i = 0; i < y->count && weir_loader_going(l); i++) {
    weir_const value;
    if (!weir_const_from_yaml(l, y->entries[i].value, &value))
      weir_report(l, WEIR_W1010, &y->entries[i].value->mark,
                  "a param is a number, true, false, a string or a list");
    else
      declare(l, m, &y->entries[i], value);
  }
  m->param_count = m->consts.count;
}

/* `m: 4096`, or `batch: null` for one not known yet. With a mesh dimensions
 * keep their names: it lays these, not sizes, over its axes. */
static void declare_dim(weir_loader *l, weir_module *m,
                        const weir_yaml_entry *e) {
  weir_const value = {.kind = WEIR_CONST_INT};
  uint32_t name = 0;
  int64_t n = 0;
  const weir_yaml *y = e->value;
  if (y->kind == WEIR_YAML_SCALAR &&
      (weir_sv_is(y->text, "?") || weir_yaml_null(y))) {
    value.dim.symbol = weir_graph_builder_symbol(l->builder, e->key);
    if (value.dim.symbol == 0) {
      weir_report_memory(l);
      return;
    }
  } else if (!weir_yaml_int(y, &n) || n < 0) {
    weir_report(l, WEIR_W1010, &y->mark,
                "a dimension is an integer of 0 or more, or null for unknown");
    return;
  }
  value.dim.value = n;
  if (m == l->main && weir_yaml_get(m->root, "mesh") != NULL) {
    name = weir_graph_builder_symbol(l->builder, e->key);
    if (name == 0) {
      weir_report_memory(l);
      return;
    }
  }
  value.dim.name = name;
  declare(l, m, e, value);
}

static void declare_dims(weir_loader *l, weir_module *m) {
  const weir_yaml *y = weir_yaml_get(m->root, "dims");
  if (y == NULL) return;
  if (y->kind == WEIR_YAML_LIST) { /* names of unknown dimensions */
    for (uint32_t i = 0; i < y->count && weir_loader_going(l); i++) {
      if (!weir_want_kind(l, y->items[i], WEIR_YAML_SCALAR, "a dimension"))
        continue;
      static const weir_yaml kUnknown = {
          .kind = WEIR_YAML_SCALAR, .plain = true, .text = {"?", 1}};
      weir_yaml_entry e = {y->items[i]->text, y->items[i]->mark, &kUnknown};
      declare_dim(l, m, &e);
    }
    return;
  }
  if (!weir_want_kind(l, y, WEIR_YAML_MAP, "dims")) return;
  for (uint32_t i = 0; i < y->count && weir_loader_going(l); i++)
    declare_dim(l, m, &y->entries[i]);
}

static weir_sv const_at(const void *self, size_t i) {
  return ((const weir_module *)self)->consts.items[i].name;
}

/* Whether a param declared as |was| may become |is|. */
static bool fits(const weir_const *was, weir_const *is) {
  if (was->kind == WEIR_CONST_FLOAT && is->kind == WEIR_CONST_INT)
    *is = weir_const_float((double)is->dim.value, (float)is->dim.value);
  if (was->kind == WEIR_CONST_LIST && is->kind != WEIR_CONST_LIST) return false;
  return was->kind == is->kind || was->kind == WEIR_CONST_NONE;
}

static void override_one(weir_loader *l, weir_module *m,
                         const weir_param_value *p) {
  uint32_t i = weir_map_get(&m->const_names, p->name);
  if (i == WEIR_MAP_NONE) {
    weir_report_begin(l, WEIR_W1114, NULL, "the graph has no param '%.*s'",
                      WEIR_SV(p->name));
    weir_report_nearest(l, p->name, m->consts.count, const_at, m);
    weir_report_send(l);
    return;
  }
  const weir_yaml *y = NULL;
  weir_error err = WEIR_ERROR_INIT;
  weir_const value;
  weir_status s = weir_yaml_parse(p->text, "-p", &l->options->limits, l->arena,
                                  NULL, &y, &err);
  if (s == WEIR_RESOURCE_EXHAUSTED && err.id[1] == '6') {
    weir_report_memory(l);
  } else if (s != WEIR_OK) {
    weir_report_error(l, &err);
  } else if (!weir_const_from_yaml(l, y, &value) ||
             !fits(&m->consts.items[i].value, &value)) {
    weir_report(l, WEIR_W1111, NULL,
                "param %.*s: '%.*s' is not of the kind the graph declares",
                WEIR_SV(p->name), WEIR_SV(p->text));
  } else {
    const weir_const *was = &m->consts.items[i].value;
    if (was->kind == WEIR_CONST_INT) value.dim.name = was->dim.name;
    m->consts.items[i].value = value;
  }
}

bool weir_module_params(weir_loader *l, weir_module *m) {
  declare_params(l, m);
  declare_dims(l, m);
  if (m != l->main || l->fatal) return !l->fatal;
  for (size_t i = 0; i < l->options->param_count; i++)
    override_one(l, m, &l->options->params[i]);
  return !l->fatal;
}
