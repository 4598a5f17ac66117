/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/graph/load/sections.h"

#include <stdio.h>

#include "runtime/base/number.h"
#include "runtime/base/strbuf.h"
#include "runtime/base/yaml/yaml_scalar.h"
#include "runtime/device/kind.h"
#include "runtime/graph/eval/eval_const.h"
#include "runtime/graph/load/keys.h"
#include "runtime/graph/load/loader.h"
#include "runtime/graph/load/params.h"
#include "runtime/graph/load/report.h"
#include "runtime/graph/load/sections_data.h"
#include "runtime/graph/train/train_spec.h"

/* cluster, placement, data: other rooms give them meaning. Here keys and kinds
 * of values are checked, so that a mistake is reported when the graph is loaded
 * and not when a run begins; names of params are replaced by their values, and
 * the trees kept in the graph. train is read by train_spec.c, once the graph is
 * complete. */

const char *const weir_rule_keys[] = {"match", "device", "balance", "prefer",
                                      "soft",  "with",   NULL};

static bool check_map(weir_loader *l, const weir_yaml *y, const char *what,
                      const char *const *keys) {
  return y == NULL || (weir_want_kind(l, y, WEIR_YAML_MAP, what) &&
                       weir_check_keys(l, y, what, keys, true));
}

static void check_placement(weir_loader *l, const weir_yaml *y) {
  if (y == NULL || !weir_want_kind(l, y, WEIR_YAML_LIST, "placement")) return;
  for (uint32_t i = 0; i < y->count && weir_loader_going(l); i++) {
    const weir_yaml *rule = y->items[i];
    if (!check_map(l, rule, "a placement rule", weir_rule_keys)) continue;
    if (weir_yaml_get(rule, "match") == NULL)
      weir_report(l, WEIR_W1010, &rule->mark, "a placement rule needs `match`");
  }
}

/* Whether |y| is what holds for the tasks of a job: `tasks`, `addresses` and
 * kinds of devices. */
static bool is_job(const weir_yaml *y) {
  if (y->kind != WEIR_YAML_MAP) return false;
  for (uint32_t i = 0; i < y->count; i++) {
    weir_sv key = y->entries[i].key;
    if (!weir_sv_is(key, "tasks") && !weir_sv_is(key, "addresses") &&
        !weir_sv_starts_with(key, "x-") &&
        weir_device_kind_find(key) == WEIR_DEVICE_ANY)
      return false;
  }
  return true;
}

static void check_insecure(weir_loader *l, const weir_yaml_entry *e) {
  bool on;
  if (weir_yaml_bool(e->value, &on)) return;
  weir_report(
      l, WEIR_W1010, &e->value->mark,
      "insecure is '%.*s', must be true or false",
      WEIR_SV(e->value->kind == WEIR_YAML_SCALAR ? e->value->text : e->key));
}

/* A folder, or the three files. */
static void check_tls(weir_loader *l, const weir_yaml *y) {
  static const char *const keys[] = {"ca", "cert", "key", NULL};
  if (y->kind != WEIR_YAML_SCALAR) check_map(l, y, "tls", keys);
}

static void check_cluster(weir_loader *l, const weir_yaml *y) {
  if (y == NULL || !weir_want_kind(l, y, WEIR_YAML_MAP, "cluster")) return;
  for (uint32_t i = 0; i < y->count && weir_loader_going(l); i++) {
    const weir_yaml_entry *e = &y->entries[i];
    int64_t n;
    if (weir_sv_starts_with(e->key, "x-")) continue;
    if (weir_sv_is(e->key, "insecure")) {
      check_insecure(l, e);
      continue;
    }
    if (weir_sv_is(e->key, "tls")) {
      check_tls(l, e->value);
      continue;
    }
    bool devices = weir_device_kind_find(e->key) != WEIR_DEVICE_ANY ||
                   weir_sv_is(e->key, "threads");
    bool count = weir_yaml_int(e->value, &n) && (n > 0 || (devices && n == 0));
    bool model = weir_sv_is(e->key, "devices") ||
                 weir_sv_is(e->key, "network") || weir_sv_is(e->key, "local");
    bool other = model && e->value->kind == WEIR_YAML_MAP;
    bool job = !devices && !model && is_job(e->value);
    if (!count && !other && !job && e->value->kind != WEIR_YAML_LIST)
      weir_report(l, WEIR_W1010, &e->value->mark,
                  "a job is a list of addresses, a number of tasks or a map of "
                  "tasks, addresses and devices");
  }
}

/* ---- ${name} and ${env:NAME:-default} */

typedef struct tree_walk {
  weir_loader *l;
  const weir_module *m;
  bool env_allowed;
  WEIR_VEC(const weir_yaml *) todo;
} tree_walk;

/* The text of a scalar param, as the file or -p spelled it. */
static bool param_text(weir_loader *l, const weir_named_const *c,
                       weir_sv *out) {
  char text[80];
  const char *s = text;
  if (c->value.kind == WEIR_CONST_STRING) {
    *out = c->value.s;
    return true;
  }
  if (c->value.kind == WEIR_CONST_FLOAT)
    weir_number_format(text, c->value.f);
  else
    s = weir_const_text(&c->value, text, sizeof text);
  size_t size = strlen(s);
  *out = (weir_sv){weir_arena_string(l->arena, s, size), size};
  return out->data != NULL || weir_report_memory(l);
}

/* The same of a list; text in single quotes, as names could be numbers. */
static bool list_text(weir_loader *l, const weir_const *list, weir_sv *out) {
  weir_strbuf text;
  weir_strbuf_init(&text, l->alloc);
  weir_strbuf_text(&text, "[");
  bool good = true;
  for (uint32_t i = 0; good && i < list->count; i++) {
    const weir_named_const item = {.value = list->items[i]};
    bool quoted = item.value.kind == WEIR_CONST_STRING;
    weir_sv one = {NULL, 0};
    good = param_text(l, &item, &one);
    weir_strbuf_text(&text, i > 0 ? ", " : "");
    weir_strbuf_text(&text, quoted ? "'" : "");
    for (size_t k = 0; k < one.size; k++) {
      if (quoted && one.data[k] == '\'') weir_strbuf_text(&text, "'");
      weir_strbuf_append(&text, one.data + k, 1);
    }
    weir_strbuf_text(&text, quoted ? "'" : "");
  }
  weir_strbuf_text(&text, "]");
  weir_sv view = weir_strbuf_view(&text);
  *out = (weir_sv){NULL, view.size};
  if (good && weir_strbuf_status(&text, NULL) == WEIR_OK)
    out->data = weir_arena_string(l->arena, view.data, view.size);
  weir_strbuf_release(&text);
  return good && (out->data != NULL || weir_report_memory(l));
}

static bool env_text(tree_walk *w, const weir_yaml *y, weir_sv body,
                     weir_sv *out) {
  weir_loader *l = w->l;
  body.data += 4; /* env: */
  body.size -= 4;
  char name[128];
  size_t n = 0;
  while (n < body.size && body.data[n] != ':') n++;
  if (n == 0 || n >= sizeof name)
    return weir_report(l, WEIR_W1010, &y->mark,
                       "write ${env:NAME} or ${env:NAME:-default}");
  if (!w->env_allowed || l->options->getenv == NULL)
    return weir_report(l, WEIR_W1010, &y->mark,
                       "${env:...} can be used in cluster and data only");
  memcpy(name, body.data, n);
  name[n] = '\0';
  const char *value = l->options->getenv(l->options->getenv_self, name);
  if (value != NULL) {
    *out = (weir_sv){weir_arena_string(l->arena, value, strlen(value)),
                     strlen(value)};
    return out->data != NULL || weir_report_memory(l);
  }
  if (body.size >= n + 2 && body.data[n + 1] == '-') {
    *out = (weir_sv){body.data + n + 2, body.size - n - 2};
    return true;
  }
  return weir_report(l, WEIR_W1010, &y->mark,
                     "the environment has no variable %s", name);
}

static weir_sv walk_name_at(const void *self, size_t i) {
  return ((const weir_module *)self)->consts.items[i].name;
}

/* A whole scalar `${...}` is replaced in place: the tree is the loader's own
 * until the graph is handed over. */
static bool substitute(tree_walk *w, const weir_yaml *y) {
  weir_sv t = y->text;
  if (t.size < 4 || t.data[0] != '$' || t.data[1] != '{' ||
      t.data[t.size - 1] != '}')
    return true;
  weir_sv body = {t.data + 2, t.size - 3}, text;
  weir_yaml *out = (weir_yaml *)(uintptr_t)y;
  if (weir_sv_starts_with(body, "env:")) {
    if (!env_text(w, y, body, &text)) return false;
  } else {
    const weir_named_const *c = weir_module_const(w->m, body);
    if (c == NULL) {
      weir_report_begin(w->l, WEIR_W1103, &y->mark, "unknown param '%.*s'",
                        WEIR_SV(body));
      weir_report_nearest(w->l, body, w->m->consts.count, walk_name_at, w->m);
      return weir_report_send(w->l);
    }
    if (!param_text(w->l, c, &text)) return false;
  }
  out->text = text;
  return true;
}

static bool walk(tree_walk *w, const weir_yaml *root) {
  weir_loader *l = w->l;
  if (root == NULL) return true;
  w->todo.count = 0;
  if (!weir_vec_push(l->alloc, &w->todo, root)) return weir_report_memory(l);
  while (w->todo.count > 0 && weir_loader_going(l)) {
    const weir_yaml *y = w->todo.items[--w->todo.count];
    if (y->kind == WEIR_YAML_SCALAR) {
      substitute(w, y);
      continue;
    }
    for (uint32_t i = y->count; i-- > 0;) {
      const weir_yaml *next =
          y->kind == WEIR_YAML_LIST ? y->items[i] : y->entries[i].value;
      if (!weir_vec_push(l->alloc, &w->todo, next))
        return weir_report_memory(l);
    }
  }
  return weir_loader_going(l);
}

/* The graph remembers params: `train` may name them. */
static bool keep_params(weir_loader *l, const weir_module *m, weir_graph *g) {
  weir_graph_param *params =
      weir_arena_array(l->arena, m->param_count, sizeof *params);
  if (params == NULL) return weir_report_memory(l);
  for (size_t i = 0; i < m->param_count; i++) {
    const weir_named_const *c = &m->consts.items[i];
    weir_graph_param *p = &params[g->param_count++];
    p->name = c->name;
    p->list = c->value.kind == WEIR_CONST_LIST;
    if (!(p->list ? list_text(l, &c->value, &p->text)
                  : param_text(l, c, &p->text)))
      return false;
  }
  g->params = params;
  return true;
}

static void pass_on(void *self, const weir_diag *diag) {
  weir_loader *l = self;
  l->diag = *diag;
  weir_report_send(l);
}

bool weir_train_section(weir_loader *l, bool complete) {
  const weir_graph *g = weir_graph_builder_graph(l->builder);
  weir_diag_sink sink = {.self = l, .report = pass_on};
  if (g->train == NULL || !weir_loader_going(l)) return true;
  return weir_train_check(g, &sink, complete, NULL) == 0;
}

bool weir_sections_check(weir_loader *l, const weir_module *m) {
  weir_graph *g = weir_graph_builder_graph(l->builder);
  g->cluster = weir_yaml_get(m->root, "cluster");
  g->placement = weir_yaml_get(m->root, "placement");
  g->data = weir_yaml_get(m->root, "data");
  g->train = weir_yaml_get(m->root, "train");
  check_cluster(l, g->cluster);
  check_placement(l, g->placement);
  tree_walk w = {.l = l, .m = m, .env_allowed = true};
  bool ok = walk(&w, g->cluster) && walk(&w, g->data);
  if (ok) weir_section_check_data(l, g->data);
  w.env_allowed = false;
  ok = ok && walk(&w, g->placement) && walk(&w, g->train);
  weir_vec_free(l->alloc, &w.todo);
  return ok && keep_params(l, m, g);
}
