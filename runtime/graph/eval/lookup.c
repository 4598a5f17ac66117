/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/graph/eval/lookup.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#include "runtime/graph/eval/eval_const.h"
#include "runtime/graph/load/loader.h"
#include "runtime/graph/load/params.h"
#include "runtime/graph/load/report.h"
#include "runtime/graph/parse/parse_call.h"

/* Meanings of names. A name is looked for in the loops around it, from inside
 * out, then in the body, then, for bodies of forms, in the scopes around;
 * params and dims of the module come last. */

size_t weir_round_text(weir_sv name, const weir_const *subs, uint32_t count,
                       char *text, size_t capacity) {
  int n = snprintf(text, capacity, "%.*s", WEIR_SV(name));
  for (uint32_t i = 0; i < count; i++) {
    if (subs[i].kind != WEIR_CONST_INT || !weir_dim_known(subs[i].dim) ||
        n < 0 || (size_t)n >= capacity)
      return 0;
    n += snprintf(text + n, capacity - (size_t)n, "[%" PRId64 "]",
                  subs[i].dim.value);
  }
  return n > 0 && (size_t)n < capacity ? (size_t)n : 0;
}

static bool find_round(const weir_scope *scope, weir_sv text,
                       weir_lookup *out) {
  uint32_t i = weir_map_get(&scope->names, text);
  if (i == WEIR_MAP_NONE) return false;
  const weir_round_name *r = &scope->rounds.items[i];
  out->kind = WEIR_FOUND_DEF;
  out->def = &scope->defs.items[r->def];
  out->scope = (weir_scope *)(uintptr_t)scope;
  out->port = r->port;
  return true;
}

/* Loop variables, and names of this round or of those around it. A definition
 * in a round is called NAME followed by the rounds from outside in, so a plain
 * name means the one with the longest suffix that exists. */
static bool find_in_loop(const weir_scope *scope, const weir_loop *loop,
                         weir_sv name, weir_lookup *out) {
  char text[640];
  for (const weir_loop *at = loop; at != NULL; at = at->outer) {
    if (weir_sv_equal(at->var, name)) {
      out->kind = WEIR_FOUND_CONST;
      out->value =
          (weir_const){.kind = WEIR_CONST_INT, .dim = weir_dim_of(at->value)};
      return true;
    }
    int n = snprintf(text, sizeof text, "%.*s%.*s", WEIR_SV(name),
                     WEIR_SV(at->suffix));
    if (n > 0 && (size_t)n < sizeof text &&
        find_round(scope, (weir_sv){text, (size_t)n}, out))
      return true;
  }
  return false;
}

static void find_plain(const weir_scope *scope, weir_sv name,
                       weir_lookup *out) {
  uint32_t code = weir_map_get(&scope->body->names, name);
  if (code == WEIR_MAP_NONE) {
    const weir_named_const *c =
        scope->around == NULL ? weir_module_const(scope->module, name) : NULL;
    if (c == NULL) return;
    out->kind = WEIR_FOUND_CONST;
    out->value = c->value;
    return;
  }
  out->scope = (weir_scope *)(uintptr_t)scope;
  uint32_t i = code & ~WEIR_BIND_KIND;
  switch (code & WEIR_BIND_KIND) {
    case WEIR_BIND_INPUT:
      out->kind = WEIR_FOUND_RESULT;
      out->result = &scope->inputs[i];
      break;
    case WEIR_BIND_ATTR:
      out->kind = WEIR_FOUND_CONST;
      out->value = scope->attrs[i];
      break;
    case WEIR_BIND_RESULT:
      out->kind = WEIR_FOUND_DEF;
      out->def = &scope->defs.items[scope->body->results.items[i].item];
      out->port = scope->body->results.items[i].port;
      break;
    default:
      out->kind = WEIR_FOUND_DEF;
      out->def = &scope->defs.items[i];
      break;
  }
}

/* kernel[0], kernel[-1]: an item of a list. */
static void pick_item(const weir_const *subs, uint32_t count,
                      weir_lookup *out) {
  for (uint32_t i = 0; i < count; i++) {
    const weir_const *list = &out->value;
    if (list->kind == WEIR_CONST_INT && i == 0) return; /* a list of one */
    if (list->kind != WEIR_CONST_LIST || subs[i].kind != WEIR_CONST_INT) {
      out->kind = WEIR_FOUND_NOTHING;
      return;
    }
    int64_t at = subs[i].dim.value;
    if (at < 0) at += list->count;
    if (at < 0 || at >= list->count || !weir_dim_known(subs[i].dim)) {
      out->kind = WEIR_FOUND_NOTHING;
      return;
    }
    weir_const item = list->items[at];
    out->value = item;
  }
}

static void look_here(const weir_scope *scope, const weir_loop *loop,
                      const weir_ast *name, const weir_const *subs,
                      weir_lookup *out) {
  if (name->count > 0) {
    char text[512];
    size_t n =
        weir_round_text(name->text, subs, name->count, text, sizeof text);
    if (n > 0 && find_round(scope, (weir_sv){text, n}, out)) return;
    find_plain(scope, name->text, out);
    if (out->kind == WEIR_FOUND_CONST)
      pick_item(subs, name->count, out);
    else
      out->kind = WEIR_FOUND_NOTHING;
    return;
  }
  if (loop != NULL && find_in_loop(scope, loop, name->text, out)) return;
  find_plain(scope, name->text, out);
}

/* Bodies of forms see the scopes around them, the nearest first. */
void weir_scope_lookup(const weir_scope *scope, const weir_loop *loop,
                       const weir_ast *name, const weir_const *subs,
                       weir_lookup *out) {
  *out = (weir_lookup){.kind = WEIR_FOUND_NOTHING, .port = UINT32_MAX};
  look_here(scope, loop, name, subs, out);
  while (out->kind == WEIR_FOUND_NOTHING && scope->around != NULL) {
    loop = scope->around_loop;
    scope = scope->around;
    look_here(scope, loop, name, subs, out);
  }
}

bool weir_operand_lookup(weir_loader *l, const weir_scope *scope,
                         const weir_loop *loop, const weir_expr *expr,
                         uint32_t node, weir_lookup *out) {
  weir_ast *name = &expr->nodes[node];
  weir_const subs[WEIR_MAX_RANK];
  /* Names of the main graph outside rounds mean one thing for good. */
  bool fixed = scope->caller == NULL && loop == NULL;
  if (fixed && name->found > 0) {
    *out = (weir_lookup){.kind = WEIR_FOUND_DEF,
                         .def = &scope->defs.items[name->found - 1],
                         .port = UINT32_MAX};
    return true;
  }
  if (name->count > WEIR_MAX_RANK) {
    weir_mark at = weir_ast_mark(name);
    return weir_report(l, WEIR_W1113, &at, "a name has at most 8 subscripts");
  }
  uint32_t i = 0;
  for (uint32_t a = name->first; i < name->count; a = expr->nodes[a].next)
    if (!weir_eval_const(l, scope, loop, expr, a, &subs[i++])) return false;
  weir_scope_lookup(scope, loop, name, subs, out);
  assert(!fixed || out->kind != WEIR_FOUND_DEF || out->scope == scope);
  if (fixed && out->kind == WEIR_FOUND_DEF && out->port == UINT32_MAX)
    name->found = (uint32_t)(out->def - scope->defs.items) + 1;
  if (out->kind != WEIR_FOUND_NOTHING) return true;
  weir_mark at = weir_ast_mark(name);
  char text[300];
  size_t n = weir_round_text(name->text, subs, name->count, text, sizeof text);
  weir_report_unknown_begin(l, scope, &at,
                            n > 0 ? (weir_sv){text, n} : name->text);
  if (weir_ast_is_path(name))
    weir_hint(&l->diag.error,
              "/ divides; names with / are weir's own and cannot be written in "
              "a file: give the inner call a name of its own");
  return weir_report_send(l);
}

static weir_sv scope_name_at(const void *self, size_t i) {
  const weir_scope *scope = self;
  const weir_module *m = scope->module;
  const weir_block *b = scope->block;
  size_t n = scope->defs.count;
  for (; i >= n && scope->around != NULL; n = scope->defs.count) {
    i -= n;
    scope = scope->around;
  }
  if (i < n) return scope->defs.items[i].name;
  if ((i -= n) < m->consts.count) return m->consts.items[i].name;
  i -= m->consts.count;
  if (b != NULL && i < b->input_count) return b->inputs[i].name;
  return b != NULL ? b->attrs[i - b->input_count].name : (weir_sv){"", 0};
}

void weir_report_unknown_begin(weir_loader *l, const weir_scope *scope,
                               const weir_mark *at, weir_sv name) {
  const weir_block *b = scope->block;
  size_t count = scope->module->consts.count;
  for (const weir_scope *s = scope; s != NULL; s = s->around)
    count += s->defs.count;
  if (b != NULL) count += (size_t)b->input_count + b->attr_count;
  weir_report_begin(l, WEIR_W1103, at, "unknown name '%.*s'", WEIR_SV(name));
  weir_report_nearest(l, name, count, scope_name_at, scope);
}

bool weir_report_unknown(weir_loader *l, const weir_scope *scope,
                         const weir_mark *at, weir_sv name) {
  weir_report_unknown_begin(l, scope, at, name);
  return weir_report_send(l);
}
