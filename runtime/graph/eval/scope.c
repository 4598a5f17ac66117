/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/graph/eval/scope.h"

#include <inttypes.h>
#include <stdio.h>

#include "runtime/graph/eval/eval_const.h"
#include "runtime/graph/eval/lookup.h"
#include "runtime/graph/load/loader.h"
#include "runtime/graph/load/report.h"
#include "runtime/graph/parse/parse_call.h"

/* Scopes: one for the main graph and one for each call of a block. `repeat` is
 * unrolled here, before any definition is evaluated: a name such as h[i+1] can
 * then be defined and used in any order, like all others.
 *
 * Nested repeats multiply, and so do blocks that call blocks twice: a file of a
 * hundred lines could ask for 2^64 nodes. So every scope, definition and round
 * counts against one limit (expand), before it is made. */

/* Counts one more scope, definition or round; W1014 past the limit. */
static bool expand(weir_loader *l, const weir_mark *at) {
  if (++l->expanded <= 8 * l->max_nodes + 1000) return true;
  weir_report(l, WEIR_W1014, at,
              "blocks and repeats expand to more than %" PRIu64 " definitions",
              8 * l->max_nodes);
  l->fatal = true;
  return false;
}

weir_scope *weir_scope_create(weir_loader *l, const weir_body *body,
                              weir_module *m, const weir_block *block) {
  if (!expand(l, block != NULL ? &block->mark : NULL)) return NULL;
  weir_scope *scope = weir_arena_array(&l->work, 1, sizeof *scope);
  if (scope == NULL) return weir_report_memory(l), NULL;
  weir_map_init(&scope->names, l->alloc);
  scope->body = body;
  scope->prefix = (weir_sv){"", 0};
  scope->module = m;
  scope->block = block;
  scope->next = l->scopes;
  l->scopes = scope;
  return scope;
}

void weir_scope_release(weir_loader *l, weir_scope *scope) {
  weir_map_release(&scope->names);
  weir_vec_free(l->alloc, &scope->defs);
  weir_vec_free(l->alloc, &scope->rounds);
}

static bool push_def(weir_loader *l, weir_scope *scope, const weir_item *item,
                     const weir_loop *loop, weir_sv name) {
  weir_def def = {.item = item, .loop = loop, .name = name};
  if (item->kind == WEIR_ITEM_BROKEN) def.state = WEIR_DEF_FAILED;
  if (item->kind == WEIR_ITEM_REPEAT) { /* no node is called so */
    def.state = WEIR_DEF_DONE;
    def.result.node = UINT32_MAX;
  }
  if (!expand(l, item->mark)) return false;
  if (scope->defs.count >= l->max_nodes)
    return weir_report_too_many(l, item->mark, l->max_nodes, "nodes");
  return weir_vec_push(l->alloc, &scope->defs, def) || weir_report_memory(l);
}

/* The definition just pushed can be found as |text|. */
static bool name_round(weir_loader *l, weir_scope *scope,
                       const weir_item_name *name, weir_sv text,
                       uint32_t port) {
  uint32_t before, index = (uint32_t)scope->rounds.count;
  weir_round_name r = {(uint32_t)scope->defs.count - 1, port};
  if (!weir_map_put(&scope->names, text, index, &before) ||
      !weir_vec_push(l->alloc, &scope->rounds, r))
    return weir_report_memory(l);
  if (before == WEIR_MAP_NONE) return true;
  scope->rounds.count--;
  const weir_def *first = &scope->defs.items[scope->rounds.items[before].def];
  weir_report_begin(l, WEIR_W1104, &name->mark, "%.*s is defined twice",
                    WEIR_SV(text));
  weir_diag_add_label(&l->diag, first->item->mark, "first here");
  return weir_report_send(l);
}

/* "h[2]": its own subscripts, or those of the rounds it is in. Subscripts are
 * evaluated here, so h[i+1] in round 0 and h[1] are one name. */
static bool full_name(weir_loader *l, weir_scope *scope,
                      const weir_item_name *name, const weir_loop *loop,
                      weir_sv *out) {
  char text[512];
  size_t size;
  const weir_expr *e = name->subscripts;
  if (e != NULL) {
    const weir_ast *root = &e->nodes[e->count - 1];
    weir_const subs[WEIR_MAX_RANK];
    uint32_t i = 0;
    for (uint32_t a = root->first; i < root->count; a = e->nodes[a].next) {
      if (i == WEIR_MAX_RANK ||
          !weir_eval_const(l, scope, loop, e, a, &subs[i++]))
        return false;
    }
    size = weir_round_text(name->name, subs, i, text, sizeof text);
    if (size == 0)
      return weir_report(
          l, WEIR_W1113, &name->mark,
          "subscripts of names are integers known while loading");
  } else {
    weir_sv suffix = loop != NULL ? loop->suffix : (weir_sv){"", 0};
    if (loop == NULL) {
      *out = name->name;
      return true;
    }
    size = (size_t)snprintf(text, sizeof text, "%.*s%.*s", WEIR_SV(name->name),
                            WEIR_SV(suffix));
    if (size >= sizeof text) size = sizeof text - 1;
  }
  *out = (weir_sv){weir_arena_string(l->arena, text, size), size};
  return out->data != NULL || weir_report_memory(l);
}

static bool add_def(weir_loader *l, weir_scope *scope, const weir_item *item,
                    const weir_loop *loop) {
  weir_sv name = {"", 0};
  if (item->name_count > 0 && item->kind != WEIR_ITEM_REPEAT &&
      !full_name(l, scope, &item->names[0], loop, &name))
    return !l->fatal && push_def(l, scope, item, loop, name) &&
           (scope->defs.items[scope->defs.count - 1].state = WEIR_DEF_FAILED,
            true);
  if (!push_def(l, scope, item, loop, name)) return false;
  if (item->kind == WEIR_ITEM_REPEAT) return true;
  for (uint32_t i = 0; i < item->name_count; i++) {
    if (loop == NULL && item->names[i].subscripts == NULL) continue;
    if (i > 0 && !full_name(l, scope, &item->names[i], loop, &name))
      return !l->fatal;
    if (!name_round(l, scope, &item->names[i], name,
                    item->name_count > 1 ? i : UINT32_MAX)) {
      if (!weir_loader_going(l)) return false;
      scope->defs.items[scope->defs.count - 1].state = WEIR_DEF_FAILED;
    }
  }
  return true;
}

/* A repeat under way; |outer| is the round that it stands in. */
typedef struct round_frame {
  const weir_item *item;
  const weir_loop *outer;
  int64_t at, end;
} round_frame;

typedef WEIR_VEC(round_frame) round_vec;

static bool range_end(weir_loader *l, weir_scope *scope, const weir_loop *loop,
                      const weir_expr *e, int64_t *out) {
  weir_const c;
  const weir_ast *root = &e->nodes[e->count - 1];
  if (!weir_eval_const(l, scope, loop, e, e->count - 1, &c)) return false;
  weir_mark at = weir_ast_mark(root);
  if (c.kind == WEIR_CONST_WORD) return weir_report_unknown(l, scope, &at, c.s);
  if (c.kind != WEIR_CONST_INT || !weir_dim_known(c.dim))
    return weir_report(l, WEIR_W1119, &at,
                       "the ends of a range are integers known while loading");
  *out = c.dim.value;
  return true;
}

static bool begin_rounds(weir_loader *l, weir_scope *scope,
                         const weir_item *item, const weir_loop *outer,
                         round_vec *frames) {
  round_frame f = {item, outer, 0, 0};
  if (!range_end(l, scope, outer, &item->repeat->from, &f.at) ||
      !range_end(l, scope, outer, &item->repeat->to, &f.end))
    return !l->fatal;
  return weir_vec_push(l->alloc, frames, f) || weir_report_memory(l);
}

/* One round: all items of the body; inner repeats go on the stack. */
static bool one_round(weir_loader *l, weir_scope *scope, round_frame *f,
                      round_vec *frames) {
  char text[256];
  if (!expand(l, f->item->mark)) return false;
  weir_sv outer = f->outer != NULL ? f->outer->suffix : (weir_sv){"", 0};
  weir_loop *loop = weir_arena_array(&l->work, 1, sizeof *loop);
  int size =
      snprintf(text, sizeof text, "%.*s[%" PRId64 "]", WEIR_SV(outer), f->at);
  if (size < 0 || (size_t)size >= sizeof text)
    return weir_report(l, WEIR_W1119, f->item->mark,
                       "repeats are nested too deeply");
  char *suffix = weir_arena_string(&l->work, text, (size_t)size);
  if (loop == NULL || suffix == NULL) return weir_report_memory(l);
  *loop = (weir_loop){.outer = f->outer,
                      .var = f->item->repeat->var,
                      .value = f->at++,
                      .suffix = {suffix, (size_t)size}};
  const weir_body *body = f->item->repeat->body;
  for (uint32_t i = 0; i < body->count; i++) {
    const weir_item *item = &body->items[i];
    if (!(item->kind == WEIR_ITEM_REPEAT
              ? begin_rounds(l, scope, item, loop, frames)
              : add_def(l, scope, item, loop)))
      return false;
  }
  return true;
}

bool weir_scope_expand(weir_loader *l, weir_scope *scope) {
  const weir_body *body = scope->body;
  round_vec frames = {0};
  bool ok = weir_vec_reserve(l->alloc, &scope->defs, body->count) ||
            weir_report_memory(l);
  for (uint32_t i = 0; ok && i < body->count; i++)
    ok = add_def(l, scope, &body->items[i], NULL);
  /* From the last to the first, so that the first is on top of the stack. */
  for (uint32_t i = body->count; ok && body->has_repeat && i-- > 0;)
    if (body->items[i].kind == WEIR_ITEM_REPEAT)
      ok = begin_rounds(l, scope, &body->items[i], NULL, &frames);
  while (ok && frames.count > 0) {
    size_t top = frames.count - 1;
    round_frame f = frames.items[top];
    if (f.at >= f.end) {
      frames.count--;
      continue;
    }
    frames.items[top].at++;
    ok = one_round(l, scope, &f, &frames);
  }
  weir_vec_free(l->alloc, &frames);
  return ok && !l->fatal;
}
