/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/graph/eval/form_eval.h"

#include <assert.h>
#include <inttypes.h>

#include "runtime/base/table.h"
#include "runtime/graph/eval/add.h"
#include "runtime/graph/eval/call_op.h"
#include "runtime/graph/eval/eval_const.h"
#include "runtime/graph/eval/evaluate.h"
#include "runtime/graph/eval/levels.h"
#include "runtime/graph/eval/lookup.h"
#include "runtime/graph/eval/scope.h"
#include "runtime/graph/grad/gradients_node.h"
#include "runtime/graph/load/report.h"
#include "runtime/graph/parse/parse_call.h"

/* A form becomes a node, in stages: its arguments are evaluated where it
 * stands, then each body at a level of its own, then captures are united and
 * the node is added. Between stages the frame waits for the scope that it
 * pushed.
 *
 * Captures: the node hands the same inputs to all its bodies (control.h), but
 * each body names other outer values. So each body imports those of the other,
 * and all list them in the order of body 0: index i of the node's captured
 * inputs is the same outer value in every body. A body that does not use one
 * has an input without readers, which simplify drops. */

struct weir_form_state {
  weir_form *form;
  weir_scope *args, *bodies[2];
  weir_level *levels[2];
  weir_sv prefix;
  weir_value_id *in; /* args' values: carried, scanned; or cond */
  uint32_t stage;    /* 0: args not begun; 1: args done; 2 + k: body k done */
  weir_control parts;
  weir_dim *axes;
};

/* A scope for one part of the form that stands in |from|. It sees the
 * attributes and inputs of the block around; `after` is of no use at another
 * level. */
static weir_scope *part_scope(weir_loader *l, weir_scope *from,
                              const weir_def *def, const weir_body *body,
                              weir_sv prefix) {
  weir_scope *scope = weir_scope_create(l, body, from->module, from->block);
  if (scope == NULL) return NULL;
  scope->caller = from;
  scope->around = from;
  scope->around_loop = def->loop;
  scope->call_mark = *def->item->mark;
  scope->depth = from->depth;
  scope->prefix = prefix;
  scope->level = l->level;
  scope->attrs = from->attrs;
  scope->inputs = from->inputs;
  if (from->level == l->level) {
    scope->after = from->after;
    scope->after_count = from->after_count;
  }
  scope->device = def->item->device.size > 0 ? def->item->device : from->device;
  return scope;
}

/* ---- Constants: axis, reverse, length or limit */

static bool want_const(weir_loader *l, const weir_eval_frame *f,
                       const weir_expr *e, weir_const_kind kind,
                       const char *what, weir_const *out) {
  if (!weir_eval_const(l, f->scope, f->def->loop, e, e->count - 1, out))
    return false;
  if (out->kind == kind) return true;
  weir_mark at = weir_ast_mark(&e->nodes[e->count - 1]);
  char text[80];
  if (out->kind == WEIR_CONST_WORD)
    return weir_report_unknown(l, f->scope, &at, out->s);
  return weir_report(l, WEIR_W1123, &at, "%s is %s, must be %s", what,
                     weir_const_text(out, text, sizeof text),
                     kind == WEIR_CONST_INT ? "an integer" : "true or false");
}

static bool read_length(weir_loader *l, const weir_eval_frame *f,
                        weir_form_state *s, weir_const *out) {
  const weir_expr *e = &s->form->length;
  bool scan = s->form->kind == WEIR_CONTROL_SCAN;
  if (!want_const(l, f, e, WEIR_CONST_INT, scan ? "length" : "limit", out))
    return false;
  weir_mark at = weir_ast_mark(&e->nodes[e->count - 1]);
  if (!scan && !weir_dim_known(out->dim))
    return weir_report(l, WEIR_W1125, &at, "limit is known while loading");
  return (out->dim.symbol != 0 || out->dim.value >= 0) ||
         weir_report(l, WEIR_W1125, &at, "%" PRId64 " turns are too few",
                     out->dim.value);
}

/* The axis counted from the end becomes one counted from the start. */
static bool fix_axis(weir_loader *l, const weir_mark *at, int64_t axis,
                     int rank, weir_sv name, weir_dim *out) {
  int64_t fixed = axis < 0 ? axis + rank : axis;
  *out = weir_dim_of(fixed);
  return (fixed >= 0 && fixed < rank) ||
         weir_report(l, WEIR_W1125, at,
                     "%.*s: there is no axis %" PRId64
                     " in a tensor of rank %d",
                     WEIR_SV(name), axis, rank);
}

static weir_mark axis_mark(const weir_form *form) {
  return form->axis.count > 0
             ? weir_ast_mark(&form->axis.nodes[form->axis.count - 1])
             : *form->mark;
}

static int64_t axis_of(weir_loader *l, const weir_eval_frame *f,
                       const weir_form *form, bool *ok) {
  weir_const c = {.dim = {0, 0, 0}};
  if (form->axis.count > 0)
    *ok = *ok && want_const(l, f, &form->axis, WEIR_CONST_INT, "axis", &c);
  return c.dim.value;
}

static bool scanned_axes(weir_loader *l, const weir_eval_frame *f,
                         weir_form_state *s) {
  const weir_form *form = s->form;
  const weir_graph *g = weir_graph_builder_graph(l->builder);
  weir_mark at = axis_mark(form);
  bool ok = true;
  int64_t axis = axis_of(l, f, form, &ok);
  s->axes = weir_arena_array(&l->work, form->scanned + form->stacked,
                             sizeof *s->axes);
  if (s->axes == NULL) return weir_report_memory(l);
  for (uint32_t i = 0; ok && i < form->scanned; i++) {
    weir_sv name = form->ports[form->carried + i].name;
    int rank = g->values[s->in[form->carried + i]].shape->rank;
    if (rank < 0)
      return weir_report(l, WEIR_W2008, &at, "%.*s: the rank is not known yet",
                         WEIR_SV(name));
    ok = fix_axis(l, &at, axis, rank, name, &s->axes[i]);
  }
  return ok;
}

static bool stack_axes(weir_loader *l, const weir_eval_frame *f,
                       weir_form_state *s, const weir_value_id *outs) {
  const weir_form *form = s->form;
  const weir_graph *g = weir_graph_builder_graph(s->levels[0]->builder);
  weir_mark at = axis_mark(form);
  bool ok = true;
  int64_t axis = axis_of(l, f, form, &ok);
  for (uint32_t i = 0; ok && i < form->stacked; i++)
    ok = fix_axis(l, &at, axis,
                  g->values[outs[form->carried + i]].shape->rank + 1,
                  form->results.out_names[form->carried + i],
                  &s->axes[form->scanned + i]);
  return ok;
}

/* ---- Parts */

static bool begin_args(weir_evaluation *e, weir_eval_frame *f) {
  weir_loader *l = e->l;
  weir_form_state *s = weir_arena_array(&l->work, 1, sizeof *s);
  if (s == NULL) return weir_report_memory(l);
  f->state = s;
  s->form = f->def->item->form;
  weir_sv name =
      weir_node_name(l, f->scope, f->def, WEIR_SV_LIT("form"), true, 0);
  char *text = weir_arena_alloc(&l->work, name.size + 1);
  if (name.data == NULL || text == NULL) return weir_report_memory(l);
  memcpy(text, name.data, name.size);
  text[name.size] = '/';
  s->prefix = (weir_sv){text, name.size + 1};
  s->args = part_scope(l, f->scope, f->def, &s->form->args, s->prefix);
  if (s->args == NULL || !weir_scope_expand(l, s->args)) return false;
  return weir_eval_push(e, s->args, NULL);
}

static bool take_args(weir_loader *l, weir_form_state *s) {
  uint32_t count = s->form->args.count;
  s->in = weir_arena_array(&l->work, count, sizeof *s->in);
  if (s->in == NULL) return weir_report_memory(l);
  for (uint32_t i = 0; i < count; i++)
    if (!weir_result_value(l, &s->args->defs.items[i], &s->in[i])) return false;
  return true;
}

/* The names that a body takes, as inputs of its level. */
static bool add_ports(weir_loader *l, weir_form_state *s, weir_scope *scope) {
  const weir_form *form = s->form;
  uint32_t count = form->carried + form->scanned;
  weir_control parts = {
      .carried = form->carried, .scanned = form->scanned, .axes = s->axes};
  scope->inputs = weir_arena_array(&l->work, count, sizeof *scope->inputs);
  if (scope->inputs == NULL) return weir_report_memory(l);
  for (uint32_t i = 0; i < count; i++) {
    const weir_graph *g = weir_graph_builder_graph(l->builder);
    weir_value v = g->values[s->in[i]];
    weir_shape slice = weir_control_slice(&parts, i, v.shape);
    v.shape = &slice;
    weir_sv port = form->ports[i].name;
    size_t size = s->prefix.size + port.size;
    char *name = weir_arena_alloc(l->arena, size + 1);
    if (name == NULL) return weir_report_memory(l);
    memcpy(name, s->prefix.data, s->prefix.size);
    memcpy(name + s->prefix.size, port.data, port.size);
    name[size] = '\0';
    weir_value_id id;
    if (!weir_level_input(l, scope->level, (weir_sv){name, size}, &v,
                          &form->ports[i].mark, &id))
      return false;
    scope->inputs[i] = (weir_result){
        .first = id,
        .count = 1,
        .node =
            weir_graph_builder_graph(scope->level->builder)->values[id].node,
        .level = scope->level};
  }
  return true;
}

static bool begin_body(weir_evaluation *e, weir_eval_frame *f, uint32_t k) {
  weir_loader *l = e->l;
  weir_form_state *s = f->state;
  weir_level *home = l->level;
  weir_level *level = weir_level_create(l, f->scope, f->def->item->mark);
  if (level == NULL) return false;
  s->levels[k] = level;
  weir_loader_enter(l, level);
  weir_scope *scope =
      part_scope(l, f->scope, f->def, &s->form->bodies[k], s->prefix);
  weir_loader_enter(l, home);
  s->bodies[k] = scope;
  if (scope == NULL || !add_ports(l, s, scope)) return false;
  weir_loader_enter(l, level);
  bool ok = weir_scope_expand(l, scope);
  weir_loader_enter(l, home);
  return ok && weir_eval_push(e, scope, NULL);
}

/* The results of body |k|: its hidden items at the end. */
static weir_value_id *take_outs(weir_loader *l, weir_form_state *s,
                                uint32_t k) {
  uint32_t count = s->form->out_count[k];
  uint32_t first = s->form->bodies[k].count - count;
  weir_level *home = l->level;
  weir_value_id *outs = weir_arena_array(&l->work, count, sizeof *outs);
  if (outs == NULL) return weir_report_memory(l), NULL;
  weir_loader_enter(l, s->levels[k]);
  bool ok = true;
  for (uint32_t i = 0; ok && i < count; i++)
    ok = weir_result_value(l, &s->bodies[k]->defs.items[first + i], &outs[i]);
  weir_loader_enter(l, home);
  return ok ? outs : NULL;
}

/* ---- The node */

/* Every body takes the captures of all. */
static bool unite_captures(weir_loader *l, weir_form_state *s) {
  weir_level *a = s->levels[0], *b = s->levels[1];
  if (b == NULL) return true;
  weir_level *home = l->level;
  const weir_mark *at = s->form->mark;
  weir_value_id ignored;
  bool ok = true;
  for (size_t i = 0; ok && i < a->captures.count; i++) {
    weir_value_id id = a->captures.items[i].outer;
    weir_loader_enter(l, b);
    if (id != WEIR_NO_VALUE) ok = weir_level_import(l, home, id, at, &ignored);
  }
  for (size_t i = 0; ok && i < b->captures.count; i++) {
    weir_value_id id = b->captures.items[i].outer;
    weir_loader_enter(l, a);
    if (id != WEIR_NO_VALUE) ok = weir_level_import(l, home, id, at, &ignored);
  }
  weir_loader_enter(l, home);
  return ok;
}

/* The body's value for |outer|, a capture of body 0. */
static weir_value_id captured_as(const weir_level *level, weir_value_id outer) {
  uint32_t i =
      weir_map_get(&level->ids, (weir_sv){(const char *)&outer, sizeof outer});
  return i == WEIR_MAP_NONE ? WEIR_NO_VALUE : level->captures.items[i].inner;
}

static bool add_port(weir_loader *l, weir_level *level, weir_value_id value,
                     weir_sv name, const weir_mark *at, bool input) {
  weir_error err = WEIR_ERROR_INIT;
  weir_graph_port port = {.name = name, .value = value, .mark = *at};
  return (input ? weir_graph_builder_add_input(level->builder, &port, &err)
                : weir_graph_builder_add_output(level->builder, &port, &err)) ==
             WEIR_OK ||
         weir_report_memory(l);
}

static bool finish_body(weir_loader *l, weir_form_state *s, uint32_t k,
                        const weir_value_id *outs, weir_graph **out) {
  const weir_form *form = s->form;
  weir_level *level = s->levels[k];
  weir_error err = WEIR_ERROR_INIT;
  bool ok = true;
  for (uint32_t i = 0; ok && i < form->carried + form->scanned; i++)
    ok = add_port(l, level, s->bodies[k]->inputs[i].first, form->ports[i].name,
                  &form->ports[i].mark, true);
  for (size_t i = 0; ok && i < s->levels[0]->captures.count; i++) {
    weir_value_id outer = s->levels[0]->captures.items[i].outer;
    if (outer == WEIR_NO_VALUE) continue;
    weir_value_id value = captured_as(level, outer);
    assert(value != WEIR_NO_VALUE); /* unite_captures saw to it */
    const weir_graph *g = weir_graph_builder_graph(level->builder);
    const weir_node *node = &g->nodes[g->values[value].node];
    ok = add_port(l, level, value, node->name, &node->mark, true);
  }
  uint32_t first = form->bodies[k].count - form->out_count[k];
  for (uint32_t i = 0; ok && i < form->out_count[k]; i++) {
    weir_sv name = {"", 0};
    uint32_t n = i; /* a loop's results are carried, then stacks */
    if (form->kind != WEIR_CONTROL_WHILE || k == 1)
      name = form->results.out_names[n];
    if (name.data == NULL) name = (weir_sv){"", 0};
    ok = add_port(l, level, outs[i], name,
                  form->bodies[k].items[first + i].mark, false);
  }
  weir_graph *body = NULL;
  if (!ok) return false;
  if (weir_graph_builder_finish(level->builder, &body, &err) != WEIR_OK)
    return weir_report_memory(l);
  ok = weir_body_expand_gradients(body, l->builder, l->max_nodes, out, &err) ==
           WEIR_OK ||
       weir_report_error(l, &err);
  weir_graph_unref(body);
  return ok;
}

static bool fill_attrs(weir_loader *l, const weir_eval_frame *f,
                       weir_form_state *s, const weir_op_def *op,
                       weir_dim *length, weir_attr *attrs) {
  const weir_form *form = s->form;
  weir_const c;
  if (form->kind == WEIR_CONTROL_IF) return true;
  attrs[weir_op_attr_index(op, WEIR_SV_LIT("carried"))] =
      (weir_attr){.kind = WEIR_ATTR_INT, .i = form->carried};
  if (form->length.count > 0) {
    if (!read_length(l, f, s, &c)) return false;
    *length = c.dim;
    if (form->kind == WEIR_CONTROL_WHILE)
      attrs[weir_op_attr_index(op, WEIR_SV_LIT("limit"))] =
          (weir_attr){.kind = WEIR_ATTR_INT, .i = c.dim.value};
    else
      attrs[weir_op_attr_index(op, WEIR_SV_LIT("length"))] =
          (weir_attr){.kind = WEIR_ATTR_INTS, .count = 1, .dims = length};
  }
  if (form->kind == WEIR_CONTROL_WHILE) return true;
  attrs[weir_op_attr_index(op, WEIR_SV_LIT("scanned"))] =
      (weir_attr){.kind = WEIR_ATTR_INT, .i = form->scanned};
  attrs[weir_op_attr_index(op, WEIR_SV_LIT("axes"))] =
      (weir_attr){.kind = WEIR_ATTR_INTS,
                  .count = form->scanned + form->stacked,
                  .dims = s->axes};
  if (form->reverse.count == 0) return true;
  if (!want_const(l, f, &form->reverse, WEIR_CONST_BOOL, "reverse", &c))
    return false;
  attrs[weir_op_attr_index(op, WEIR_SV_LIT("reverse"))] =
      (weir_attr){.kind = WEIR_ATTR_BOOL, .b = c.b};
  return true;
}

/* args' values, then captured ones. */
static weir_value_id *gather_inputs(weir_loader *l, const weir_form_state *s,
                                    uint32_t *count) {
  uint32_t args = s->form->args.count;
  size_t captures = s->levels[0]->captures.count;
  weir_value_id *in = weir_arena_array(&l->work, args + captures, sizeof *in);
  if (in == NULL) return weir_report_memory(l), NULL;
  memcpy(in, s->in, args * sizeof *in);
  *count = args;
  for (size_t i = 0; i < captures; i++)
    if (s->levels[0]->captures.items[i].outer != WEIR_NO_VALUE)
      in[(*count)++] = s->levels[0]->captures.items[i].outer;
  return in;
}

static bool add_form_node(weir_loader *l, weir_eval_frame *f,
                          const weir_graph *const *bodies) {
  static const char *const kOps[] = {[WEIR_CONTROL_NONE] = "",
                                     [WEIR_CONTROL_SCAN] = "scan",
                                     [WEIR_CONTROL_WHILE] = "while",
                                     [WEIR_CONTROL_IF] = "if"};
  WEIR_TABLE_OF(kOps, WEIR_CONTROL_COUNT);
  weir_form_state *s = f->state;
  const weir_form *form = s->form;
  const weir_op_def *op = weir_loader_op(l, kOps[form->kind]);
  weir_attr attrs[WEIR_OP_ATTRS] = {0};
  weir_dim length;
  weir_node_id id;
  if (op == NULL)
    return weir_report(l, WEIR_W9001, form->mark, "the op %s does not exist",
                       kOps[form->kind]);
  if (!fill_attrs(l, f, s, op, &length, attrs)) return false;
  weir_node_spec spec = {
      .name =
          weir_node_name(l, f->scope, f->def, weir_sv_from(op->name), true, 0),
      .op = op,
      .attrs = attrs,
      .device = f->def->item->device,
      .mark = *form->mark,
      .bodies = bodies,
      .body_count = form->body_count};
  spec.inputs = gather_inputs(l, s, &spec.input_count);
  if (spec.name.data == NULL || spec.inputs == NULL ||
      !weir_after_nodes(l, f->scope, f->def, &spec) ||
      !weir_add_node(l, f->scope, &spec, &id))
    return false;
  const weir_node *node = &weir_graph_builder_graph(l->builder)->nodes[id];
  f->def->result =
      (weir_result){.first = node->first_output,
                    .count = node->output_count,
                    .block = &form->results,
                    .node = id,
                    .level = l->level,
                    .hidden = form->kind == WEIR_CONTROL_WHILE ? 1 : 0};
  return true;
}

static bool finish(weir_loader *l, weir_eval_frame *f) {
  weir_form_state *s = f->state;
  weir_graph *graphs[2] = {NULL, NULL};
  weir_value_id *outs[2] = {NULL, NULL};
  bool ok = true;
  for (uint32_t k = 0; ok && k < s->form->body_count; k++)
    ok = (outs[k] = take_outs(l, s, k)) != NULL;
  if (ok && s->form->kind == WEIR_CONTROL_SCAN)
    ok = stack_axes(l, f, s, outs[0]);
  ok = ok && unite_captures(l, s);
  for (uint32_t k = 0; ok && k < s->form->body_count; k++)
    ok = finish_body(l, s, k, outs[k], &graphs[k]);
  if (ok) ok = add_form_node(l, f, (const weir_graph *const *)graphs);
  weir_graph_unref(graphs[0]);
  weir_graph_unref(graphs[1]);
  return ok;
}

/* The names in constants: dim(x, 0) needs x. */
static bool need_consts(weir_evaluation *e, weir_eval_frame *f) {
  const weir_form *form = f->def->item->form;
  const weir_expr *const exprs[] = {&form->axis, &form->reverse, &form->length};
  for (int i = 0; i < 3; i++) {
    f->at = 0;
    if (!weir_eval_need_expr(e, f, exprs[i])) return false;
  }
  f->at = 0;
  return true;
}

bool weir_form_step(weir_evaluation *e, size_t index, bool *wait) {
  weir_loader *l = e->l;
  weir_eval_frame *f = &e->frames.items[index];
  *wait = false;
  if (f->def->item->form->broken) return false;
  if (f->state == NULL) {
    *wait = !need_consts(e, f);
    if (*wait) return true;
    f = &e->frames.items[index];
    return !f->failed && (*wait = begin_args(e, f));
  }
  weir_form_state *s = f->state;
  if (s->stage == 0 &&
      (!take_args(l, s) ||
       (s->form->kind == WEIR_CONTROL_SCAN && !scanned_axes(l, f, s))))
    return false;
  if (s->stage < s->form->body_count)
    return *wait = begin_body(e, f, s->stage++);
  return finish(l, f);
}
