/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/graph/parse/forms.h"

#include <assert.h>

#include "runtime/graph/load/keys.h"
#include "runtime/graph/load/report.h"
#include "runtime/graph/parse/bind.h"
#include "runtime/graph/parse/body.h"
#include "runtime/graph/parse/items.h"
#include "runtime/graph/parse/lex.h"

/* Reading scan, while and if.
 *
 * Expressions that are evaluated for a form (first values, conditions, next
 * values, stacks) become hidden items: of |args| where they belong to the scope
 * around, at the end of a body where they are its results. They are parsed,
 * bound and evaluated like any node, and a result is found by its place: item
 * body.count - out_count + i is result i, in the order of the body's outputs.
 */

static const char *const kFormKeys[] = {"scan", "while", "if", NULL};
static const char *const kScanItem[] = {"scan", "device", "after", NULL};
static const char *const kWhileItem[] = {"while", "device", "after", NULL};
static const char *const kIfItem[] = {"if", "device", "after", NULL};
const char *const weir_scan_keys[] = {"over",   "axis",    "carry",
                                      "nodes",  "next",    "stack",
                                      "length", "reverse", NULL};
const char *const weir_while_keys[] = {"carry", "cond",  "nodes",
                                       "next",  "limit", NULL};
const char *const weir_if_keys[] = {"cond", "then", "else", NULL};
static const char *const kBranchKeys[] = {"nodes", "out", NULL};

enum { WEIR_FORM_NAMES = 4096 };

const char *weir_form_key(const weir_yaml *y) {
  for (const char *const *key = kFormKeys; *key != NULL; key++)
    if (weir_yaml_get(y, *key) != NULL) return *key;
  return NULL;
}

/* A map of names under |key|; NULL in |*out| when it is not there. */
static bool names_map(weir_loader *l, const weir_yaml *y, const char *key,
                      const weir_yaml **out) {
  *out = weir_yaml_get(y, key);
  if (*out == NULL) return true;
  if (!weir_want_kind(l, *out, WEIR_YAML_MAP, key)) return false;
  if ((*out)->count > WEIR_FORM_NAMES)
    return weir_report(l, WEIR_W1123, &(*out)->mark, "more than %d names",
                       (int)WEIR_FORM_NAMES);
  bool ok = true;
  for (uint32_t i = 0; i < (*out)->count; i++) {
    const weir_yaml_entry *e = &(*out)->entries[i];
    if (weir_is_name(e->key)) continue;
    weir_report_begin(l, WEIR_W1106, &e->key_mark, "'%.*s' is not a name",
                      WEIR_SV(e->key));
    weir_hint(&l->diag.error,
              "inside { } and [ ] a call with a comma needs quotes");
    ok = weir_report_send(l);
  }
  return ok;
}

static uint32_t count_of(const weir_yaml *y) {
  return y != NULL ? y->count : 0;
}

/* One more hidden item of |body|, whose room was made before. */
static bool hidden_item(weir_loader *l, weir_module *m, const weir_block *block,
                        weir_body *body, weir_sv name, const weir_yaml *y) {
  assert(body->count < body->capacity);
  weir_item *item = &body->items[body->count++];
  *item = (weir_item){.kind = WEIR_ITEM_CALL, .mark = &y->mark, .hidden = true};
  if (name.data == NULL) name = (weir_sv){"", 0};
  item->names = &item->one;
  item->one = (weir_item_name){.name = name, .mark = y->mark};
  item->name_count = name.size > 0 ? 1 : 0;
  if (weir_want_kind(l, y, WEIR_YAML_SCALAR, "an expression") &&
      weir_item_call(l, m, block, y, item))
    return true;
  item->kind = WEIR_ITEM_BROKEN;
  return false;
}

static bool const_expr(weir_loader *l, weir_module *m, const weir_block *block,
                       const weir_yaml *y, weir_expr *out) {
  if (y == NULL) return true;
  return weir_expr_parse(l, y, out) &&
         weir_expr_bind(l, m, block, out, WEIR_MODE_CONST);
}

/* Names the bodies take: those of |carry|, then those of |over|. */
static bool make_ports(weir_loader *l, weir_form *f, const weir_yaml *carry,
                       const weir_yaml *over) {
  f->carried = count_of(carry);
  f->scanned = count_of(over);
  f->ports = weir_arena_array(&l->work, (size_t)f->carried + f->scanned + 1,
                              sizeof *f->ports);
  if (f->ports == NULL) return weir_report_memory(l);
  for (uint32_t i = 0; i < f->carried + f->scanned; i++) {
    const weir_yaml_entry *e =
        i < f->carried ? &carry->entries[i] : &over->entries[i - f->carried];
    f->ports[i] = (weir_block_port){.name = e->key, .mark = e->key_mark};
  }
  return true;
}

static bool hidden_map(weir_loader *l, weir_module *m, const weir_block *block,
                       weir_body *body, const weir_yaml *map) {
  bool ok = true;
  for (uint32_t i = 0; i < count_of(map); i++)
    ok = hidden_item(l, m, block, body, map->entries[i].key,
                     map->entries[i].value) &&
         ok;
  return ok;
}

static weir_sv port_at(const void *self, size_t i) {
  return ((const weir_form *)self)->ports[i].name;
}

/* `next` has the names of `carry`, all of them. */
static bool check_next(weir_loader *l, const weir_form *f,
                       const weir_yaml *next) {
  bool ok = true;
  for (uint32_t i = 0; i < count_of(next); i++) {
    const weir_yaml_entry *e = &next->entries[i];
    uint32_t k = 0;
    while (k < f->carried && !weir_sv_equal(f->ports[k].name, e->key)) k++;
    if (k < f->carried) continue;
    weir_report_begin(l, WEIR_W1123, &e->key_mark,
                      "%.*s has no first value under `carry`", WEIR_SV(e->key));
    weir_report_nearest(l, e->key, f->carried, port_at, f);
    ok = weir_report_send(l);
  }
  for (uint32_t i = 0; i < f->carried; i++)
    if (next == NULL || weir_yaml_entry_of(next, f->ports[i].name) == NULL)
      ok = weir_report(l, WEIR_W1123, &f->ports[i].mark,
                       "%.*s has no next value under `next`",
                       WEIR_SV(f->ports[i].name));
  return ok;
}

/* Names of results: carried ones, |more|, then those of |stack|. */
static bool loop_results(weir_loader *l, weir_form *f, const char *more,
                         const weir_yaml *stack) {
  weir_block *r = &f->results;
  f->stacked = count_of(stack);
  r->out_names = weir_arena_array(&l->work, (size_t)f->carried + f->stacked + 1,
                                  sizeof(weir_sv));
  if (r->out_names == NULL) return weir_report_memory(l);
  for (uint32_t i = 0; i < f->carried; i++)
    r->out_names[r->out_count++] = f->ports[i].name;
  if (more != NULL) r->out_names[r->out_count++] = weir_sv_from(more);
  for (uint32_t i = 0; i < f->stacked; i++) {
    const weir_yaml_entry *e = &stack->entries[i];
    for (uint32_t k = 0; k < f->carried; k++)
      if (weir_sv_equal(f->ports[k].name, e->key))
        return weir_report(l, WEIR_W1123, &e->key_mark,
                           "%.*s is a carried value already: give the stack "
                           "another name",
                           WEIR_SV(e->key));
    r->out_names[r->out_count++] = e->key;
  }
  return true;
}

static bool read_nodes(weir_loader *l, weir_form *f, uint32_t k,
                       const weir_yaml *y) {
  f->nodes[k] = weir_yaml_get(y, "nodes");
  return f->nodes[k] == NULL ||
         weir_want_kind(l, f->nodes[k], WEIR_YAML_MAP, "nodes");
}

static bool scan_form(weir_loader *l, weir_module *m, const weir_block *block,
                      weir_form *f) {
  const weir_yaml *y = f->yaml, *carry, *over, *next, *stack;
  f->kind = WEIR_CONTROL_SCAN;
  f->body_count = 1;
  if (!weir_check_keys(l, y, "a scan", weir_scan_keys, false) ||
      !names_map(l, y, "carry", &carry) || !names_map(l, y, "over", &over) ||
      !names_map(l, y, "next", &next) || !names_map(l, y, "stack", &stack) ||
      !read_nodes(l, f, 0, y) || !make_ports(l, f, carry, over) ||
      !check_next(l, f, next) || !loop_results(l, f, NULL, stack))
    return false;
  f->out_count[0] = f->carried + f->stacked;
  if (f->out_count[0] == 0)
    return weir_report(l, WEIR_W1123, f->mark,
                       "a scan has a `carry`, a `stack` or both");
  return const_expr(l, m, block, weir_yaml_get(y, "axis"), &f->axis) &&
         const_expr(l, m, block, weir_yaml_get(y, "reverse"), &f->reverse) &&
         const_expr(l, m, block, weir_yaml_get(y, "length"), &f->length) &&
         weir_body_begin(l, &f->args, f->carried + f->scanned) &&
         hidden_map(l, m, block, &f->args, carry) &&
         hidden_map(l, m, block, &f->args, over);
}

static bool while_form(weir_loader *l, weir_module *m, const weir_block *block,
                       weir_form *f) {
  const weir_yaml *y = f->yaml, *carry, *next;
  f->kind = WEIR_CONTROL_WHILE;
  f->body_count = 2;
  f->out_count[0] = 1;
  if (!weir_check_keys(l, y, "a while", weir_while_keys, false) ||
      !names_map(l, y, "carry", &carry) || !names_map(l, y, "next", &next) ||
      !read_nodes(l, f, 1, y) || !make_ports(l, f, carry, NULL) ||
      !check_next(l, f, next) || !loop_results(l, f, "turns", NULL))
    return false;
  f->out_count[1] = f->carried;
  if (f->carried == 0 || weir_yaml_get(y, "cond") == NULL)
    return weir_report(l, WEIR_W1123, f->mark,
                       "a while has a `carry` and a `cond`");
  return const_expr(l, m, block, weir_yaml_get(y, "limit"), &f->length) &&
         weir_body_begin(l, &f->args, f->carried) &&
         hidden_map(l, m, block, &f->args, carry);
}

/* ---- if */

static const weir_yaml *out_at(const weir_yaml *out, const weir_form *f,
                               uint32_t i) {
  if (out->kind == WEIR_YAML_SCALAR) return out;
  if (out->kind == WEIR_YAML_LIST) return out->items[i];
  const weir_yaml_entry *e = weir_yaml_entry_of(out, f->results.out_names[i]);
  return e != NULL ? e->value : NULL;
}

static bool branch(weir_loader *l, weir_form *f, uint32_t k) {
  const char *key = k == 1 ? "then" : "else";
  const weir_yaml *y = weir_yaml_get(f->yaml, key);
  if (y == NULL)
    return weir_report(l, WEIR_W1123, f->mark, "an if has `then` and `else`");
  if (!weir_want_kind(l, y, WEIR_YAML_MAP, key) ||
      !weir_check_keys(l, y, key, kBranchKeys, false) ||
      !read_nodes(l, f, k, y))
    return false;
  const weir_yaml *out = weir_yaml_get(y, "out");
  if (out == NULL)
    return weir_report(l, WEIR_W1123, &y->mark, "`%s` has no `out`", key);
  f->out_count[k] = out->kind == WEIR_YAML_SCALAR ? 1 : out->count;
  return true;
}

/* The results of `then` name those of both. In a map, those of `else` may stand
 * in another order: out_at finds them by name. */
static bool branch_names(weir_loader *l, weir_form *f) {
  const weir_yaml *yes = weir_yaml_get(weir_yaml_get(f->yaml, "then"), "out");
  const weir_yaml *no = weir_yaml_get(weir_yaml_get(f->yaml, "else"), "out");
  weir_block *r = &f->results;
  if (f->out_count[0] != f->out_count[1] || f->out_count[0] == 0 ||
      yes->kind != no->kind)
    return weir_report(l, WEIR_W1126, &no->mark,
                       "`then` gives %u result%s, `else` %u%s", f->out_count[1],
                       f->out_count[1] == 1 ? "" : "s", f->out_count[0],
                       yes->kind != no->kind ? ", written in another way" : "");
  r->out_count = f->out_count[0];
  r->out_names = weir_arena_array(&l->work, r->out_count, sizeof(weir_sv));
  if (r->out_names == NULL) return weir_report_memory(l);
  for (uint32_t i = 0; i < r->out_count && yes->kind == WEIR_YAML_MAP; i++) {
    const weir_yaml_entry *e = &yes->entries[i];
    r->out_names[i] = e->key;
    if (weir_yaml_entry_of(no, e->key) == NULL)
      return weir_report(l, WEIR_W1126, &no->mark, "`else` gives no %.*s",
                         WEIR_SV(e->key));
  }
  return true;
}

static bool if_form(weir_loader *l, weir_module *m, const weir_block *block,
                    weir_form *f) {
  const weir_yaml *cond = weir_yaml_get(f->yaml, "cond");
  f->kind = WEIR_CONTROL_IF;
  f->body_count = 2;
  if (!weir_check_keys(l, f->yaml, "an if", weir_if_keys, false) ||
      !make_ports(l, f, NULL, NULL)) /* bodies take no names of their own */
    return false;
  if (cond == NULL)
    return weir_report(l, WEIR_W1123, f->mark, "an if has a `cond`");
  return branch(l, f, 1) && branch(l, f, 0) && branch_names(l, f) &&
         weir_body_begin(l, &f->args, 1) &&
         hidden_item(l, m, block, &f->args, WEIR_SV_LIT("cond"), cond);
}

/* ---- All */

static weir_form *new_form(weir_loader *l, const weir_yaml *y,
                           const weir_mark *mark) {
  weir_form *f = weir_arena_array(&l->work, 1, sizeof *f);
  if (f == NULL) return weir_report_memory(l), NULL;
  f->yaml = y;
  f->mark = mark;
  weir_map_init(&f->args.names, l->alloc);
  weir_map_init(&f->bodies[0].names, l->alloc);
  weir_map_init(&f->bodies[1].names, l->alloc);
  f->next = l->forms;
  l->forms = f;
  return f;
}

bool weir_item_form(weir_loader *l, weir_module *m, const weir_block *block,
                    const weir_yaml *y, const char *key, weir_item *item) {
  bool scan = strcmp(key, "scan") == 0, loop = strcmp(key, "while") == 0;
  const weir_yaml *parts = weir_yaml_get(y, key);
  const weir_yaml *device = weir_yaml_get(y, "device");
  const weir_yaml *after = weir_yaml_get(y, "after");
  item->kind = WEIR_ITEM_FORM;
  if (!weir_check_keys(l, y, scan ? "a scan's node" : "a node",
                       scan   ? kScanItem
                       : loop ? kWhileItem
                              : kIfItem,
                       false) ||
      !weir_want_kind(l, parts, WEIR_YAML_MAP, key))
    return false;
  weir_form *f = item->form = new_form(l, parts, item->mark);
  if (f == NULL) return false;
  if (device != NULL &&
      !(weir_want_kind(l, device, WEIR_YAML_SCALAR, "device") &&
        weir_device_parse(l, device, 0, &item->device)))
    return false;
  if (after != NULL && !weir_item_after(l, m, block, after, item)) return false;
  return scan   ? scan_form(l, m, block, f)
         : loop ? while_form(l, m, block, f)
                : if_form(l, m, block, f);
}

bool weir_form_body_begin(weir_loader *l, weir_module *m,
                          const weir_block *block, weir_form *f, uint32_t k) {
  weir_body *body = &f->bodies[k];
  bool ok = true;
  body->ports = f->ports;
  if (!weir_body_begin(l, body, count_of(f->nodes[k]) + f->out_count[k]))
    return false;
  for (uint32_t i = 0; i < f->carried + f->scanned; i++) {
    weir_body_name port = {f->ports[i].name, &f->ports[i].mark,
                           WEIR_BIND_INPUT | i};
    ok = weir_body_bind(l, m, block, body, &port) && ok;
  }
  return ok;
}

bool weir_form_body_end(weir_loader *l, weir_module *m, const weir_block *block,
                        weir_form *f, uint32_t k) {
  weir_body *body = &f->bodies[k];
  const weir_sv *names = f->results.out_names;
  bool ok = true;
  if (f->kind == WEIR_CONTROL_IF) {
    const weir_yaml *out =
        weir_yaml_get(weir_yaml_get(f->yaml, k == 1 ? "then" : "else"), "out");
    for (uint32_t i = 0; i < f->out_count[k]; i++)
      ok = hidden_item(l, m, block, body, names[i], out_at(out, f, i)) && ok;
    return ok;
  }
  if (f->kind == WEIR_CONTROL_WHILE && k == 0)
    return hidden_item(l, m, block, body, WEIR_SV_LIT("cond"),
                       weir_yaml_get(f->yaml, "cond"));
  const weir_yaml *next = weir_yaml_get(f->yaml, "next");
  const weir_yaml *stack = weir_yaml_get(f->yaml, "stack");
  for (uint32_t i = 0; i < f->carried; i++)
    ok = hidden_item(l, m, block, body, names[i],
                     weir_yaml_entry_of(next, f->ports[i].name)->value) &&
         ok;
  for (uint32_t i = 0; i < f->stacked; i++)
    ok = hidden_item(l, m, block, body, stack->entries[i].key,
                     stack->entries[i].value) &&
         ok;
  return ok;
}
