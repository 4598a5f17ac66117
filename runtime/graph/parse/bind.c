/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/graph/parse/bind.h"

#include <stdio.h>

#include "runtime/base/diag/nearest.h"
#include "runtime/graph/load/loader.h"
#include "runtime/graph/load/module.h"
#include "runtime/graph/load/report.h"
#include "runtime/graph/parse/operators.h"
#include "runtime/graph/parse/parse_call.h"

/* Binding: which op or block a call means, and the role of each operand. No
 * types are known here, so it is done once per text, not per use.
 *
 * A call comes behind its operands in postorder, so the walk goes backwards: a
 * call gives its operands their modes before they are visited themselves. A
 * node whose mode stays SKIP is part of another one and is not visited.
 * An operation with names below it may be a node or a number, which the names
 * decide (infix.c); its operands are bound like those of a call.
 * Operands are dealt out to inputs first, then to attributes; |inputs_given|
 * and |attrs_given| are bit sets, so arguments past the 64th are not checked
 * for repeats (blocks have no more, see blocks.c). */

const weir_op_names *weir_loader_ops(const weir_loader *l, weir_sv name) {
  uint32_t i = weir_map_get(&l->op_names, name);
  return i == WEIR_MAP_NONE ? NULL : &l->ops.items[i];
}

/* The operand behind a keyword. */
static weir_ast *operand_of(weir_expr *e, uint32_t arg) {
  weir_ast *n = &e->nodes[arg];
  return n->kind == WEIR_AST_KEYWORD ? &e->nodes[n->first] : n;
}

static weir_sv op_name_at(const void *self, size_t i) {
  return ((const weir_loader *)self)->ops.items[i].name;
}

static weir_sv block_name_at(const void *self, size_t i) {
  return ((const weir_module *)self)->blocks[i].name;
}

static weir_sv alias_at(const void *self, size_t i) {
  return ((const weir_module *)self)->imports[i].alias;
}

/* nn.conv2d: a name of the library like it, or all names. */
static void hint_library(weir_loader *l, const weir_import *import,
                         weir_sv name) {
  const weir_module *m = import->module;
  char names[200] = "";
  if (m == NULL) return;
  weir_sv near = weir_nearest_name(name, m->block_count, block_name_at, m);
  for (uint32_t i = 0; near.size == 0 && i < m->block_count; i++) {
    weir_sv block = m->blocks[i].name; /* conv in conv2d */
    if (block.size > 2 && block.size < name.size &&
        memcmp(block.data, name.data, block.size) == 0)
      near = block;
  }
  for (uint32_t i = 0; i < m->block_count; i++) {
    size_t n = strlen(names);
    snprintf(names + n, sizeof names - n, " %.*s", WEIR_SV(m->blocks[i].name));
  }
  if (near.size > 0)
    weir_hint(&l->diag.error, "did you mean %.*s.%.*s?", WEIR_SV(import->alias),
              WEIR_SV(near));
  else
    weir_hint(&l->diag.error, "%.*s has%s", WEIR_SV(import->alias), names);
}

/* A name with a prefix, or a library's name without one. */
static void hint_import(weir_loader *l, const weir_module *m, weir_sv name) {
  const char *dot = memchr(name.data, '.', name.size);
  size_t size = dot != NULL ? (size_t)(dot - name.data) : 0;
  weir_sv alias = {name.data, size};
  for (uint32_t i = 0; i < m->import_count; i++) {
    const weir_import *import = &m->imports[i];
    if (dot != NULL && weir_sv_equal(import->alias, alias))
      hint_library(l, import, (weir_sv){dot + 1, name.size - size - 1});
    else if (dot == NULL && import->module != NULL &&
             weir_map_get(&import->module->block_names, name) != WEIR_MAP_NONE)
      weir_hint(&l->diag.error, "did you mean %.*s.%.*s?",
                WEIR_SV(import->alias), WEIR_SV(name));
  }
  if (dot == NULL || l->diag.error.hint[0] != '\0') return;
  weir_report_nearest(l, alias, m->import_count, alias_at, m);
  if (l->diag.error.hint[0] == '\0')
    weir_hint(&l->diag.error, "nothing is imported as %.*s: import: {%.*s: %s}",
              WEIR_SV(alias), WEIR_SV(alias),
              weir_sv_is(alias, "nn") ? "std/nn" : "FILE");
}

static bool unknown_op(weir_loader *l, const weir_module *m,
                       const weir_ast *call) {
  weir_mark at =
      weir_yaml_mark_within(call->src, call->offset, call->text.size);
  weir_report_begin(l, WEIR_W1102, &at, "unknown op or block '%.*s'",
                    WEIR_SV(call->text));
  weir_report_nearest(l, call->text, m->block_count, block_name_at, m);
  if (l->diag.error.hint[0] == '\0') hint_import(l, m, call->text);
  if (l->diag.error.hint[0] == '\0')
    weir_report_nearest(l, call->text, l->ops.count, op_name_at, l);
  return weir_report_send(l);
}

static const weir_block *find_block(weir_module *m, weir_sv name) {
  const char *dot = memchr(name.data, '.', name.size);
  if (dot != NULL) {
    weir_sv alias = {name.data, (size_t)(dot - name.data)};
    name = (weir_sv){dot + 1, name.size - alias.size - 1};
    m = weir_module_import(m, alias);
    if (m == NULL) return NULL;
  }
  uint32_t i = weir_map_get(&m->block_names, name);
  return i == WEIR_MAP_NONE ? NULL : &m->blocks[i];
}

static int block_attr(const weir_block *b, weir_sv name) {
  for (uint32_t i = 0; b != NULL && i < b->attr_count; i++)
    if (weir_sv_equal(b->attrs[i].name, name)) return (int)i;
  return -1;
}

static int block_input(const weir_block *b, weir_sv name) {
  for (uint32_t i = 0; i < b->input_count; i++)
    if (weir_sv_equal(b->inputs[i].name, name)) return (int)i;
  return -1;
}

static int op_input(const weir_op_info *info, weir_sv name) {
  for (uint32_t i = 0; i < info->in_count; i++)
    if (weir_sv_is(name, info->op->inputs[i].name)) return (int)i;
  return -1;
}

/* Inputs that the call can give |info|: operands that are no strings, and
 * keywords that name inputs. */
static bool fits(const weir_expr *e, const weir_ast *call,
                 const weir_op_info *info) {
  uint32_t count = 0;
  for (uint32_t i = 0, a = call->first; i < call->count;
       i++, a = e->nodes[a].next) {
    const weir_ast *n = &e->nodes[a];
    if (n->kind == WEIR_AST_KEYWORD) {
      bool input = op_input(info, n->text) >= 0;
      if (!input && weir_op_attr_index(info->op, n->text) < 0) return false;
      count += input;
    } else {
      count += n->kind != WEIR_AST_STRING;
    }
  }
  return count >= info->in_required || info->op->instr == WEIR_INSTR_VAR_READ;
}

/* Among ops of one name the first that fits, else the first, whose message then
 * says how it is called. */
static const weir_op_info *choose_op(const weir_loader *l, const weir_expr *e,
                                     const weir_ast *call) {
  uint32_t i = weir_map_get(&l->op_names, call->text);
  if (i == WEIR_MAP_NONE) return NULL;
  const weir_op_names *first = &l->ops.items[i];
  if (first->next == WEIR_MAP_NONE) return first->info;
  for (; i != WEIR_MAP_NONE; i = l->ops.items[i].next)
    if (fits(e, call, l->ops.items[i].info)) return l->ops.items[i].info;
  return first->info;
}

/* State while the operands of one call are dealt out. */
typedef struct deal {
  weir_loader *l;
  weir_expr *e;
  weir_ast *call;
  const char *what; /* "op" or "block" */
  uint32_t next_input, next_attr, inputs, attrs;
  bool variadic, attrs_first;
  uint64_t inputs_given, attrs_given; /* bits, of the first 64 */
} deal;

static bool give(deal *d, weir_ast *n, const weir_ast *at, bool input,
                 uint32_t slot) {
  uint64_t *given = input ? &d->inputs_given : &d->attrs_given;
  uint64_t bit = slot < 64 ? UINT64_C(1) << slot : 0;
  if ((*given & bit) != 0) {
    weir_mark mark = weir_ast_mark(at);
    return weir_report(d->l, WEIR_W1101, &mark,
                       "%.*s: an argument is given twice",
                       WEIR_SV(d->call->text));
  }
  *given |= bit;
  n->slot = slot;
  n->mode = input ? WEIR_MODE_VALUE : WEIR_MODE_CONST;
  return true;
}

/* Inputs first, then attributes in their order. A string is never an input, so
 * einsum("ij,jk->ik", a, b) and einsum(a, b, "...") both work. */
static bool give_positional(deal *d, weir_ast *n) {
  bool string = n->kind == WEIR_AST_STRING;
  bool room = d->next_input < d->inputs || d->variadic;
  if (d->attrs_first && d->next_attr == 0) room = false;
  if (room && !string) return give(d, n, n, true, d->next_input++);
  if (d->next_attr < d->attrs) return give(d, n, n, false, d->next_attr++);
  weir_mark at = weir_ast_mark(n);
  return weir_report(d->l, WEIR_W1108, &at, "%.*s takes at most %u arguments",
                     WEIR_SV(d->call->text), d->inputs + d->attrs);
}

static weir_sv attr_name_at(const void *self, size_t i) {
  return weir_sv_from(((const weir_op_def *)self)->attrs[i].name);
}

static bool give_op_keyword(deal *d, const weir_op_info *info, weir_ast *kw) {
  weir_ast *n = &d->e->nodes[kw->first];
  int i = weir_op_attr_index(info->op, kw->text);
  if (i >= 0) return give(d, n, kw, false, (uint32_t)i);
  i = op_input(info, kw->text);
  if (i >= 0) return give(d, n, kw, true, (uint32_t)i);
  weir_mark at = weir_yaml_mark_within(kw->src, kw->offset, kw->text.size);
  weir_report_begin(d->l, WEIR_W1109, &at, "%s has no attribute '%.*s'",
                    info->op->name, WEIR_SV(kw->text));
  weir_report_nearest(d->l, kw->text, info->attr_count, attr_name_at, info->op);
  if (d->l->diag.error.hint[0] == '\0' && info->attr_count > 0) {
    char list[200];
    size_t n_text = 0;
    for (uint32_t a = 0; a < info->attr_count && n_text < sizeof list; a++)
      n_text += (size_t)snprintf(list + n_text, sizeof list - n_text, " %s",
                                 info->op->attrs[a].name);
    weir_hint(&d->l->diag.error, "it has%s", list);
  }
  return weir_report_send(d->l);
}

/* gradients(loss, [w, b]): the elements of the list are arguments. They are
 * linked in place of the list, whose own node stays in the array with mode
 * SKIP.
 */
static void unlist(weir_expr *e, weir_ast *call, const weir_op_info *info) {
  uint32_t before = WEIR_AST_NONE, last = info->in_count - 1;
  if (info->in_count == 0 || !info->op->inputs[last].listed) return;
  for (uint32_t i = 0, a = call->first; i < call->count;
       i++, a = e->nodes[a].next) {
    weir_ast *list = &e->nodes[a];
    if (list->kind != WEIR_AST_LIST || list->count == 0) {
      before = a;
      continue;
    }
    uint32_t end = list->first;
    for (uint32_t k = 1; k < list->count; k++) end = e->nodes[end].next;
    if (before == WEIR_AST_NONE)
      call->first = list->first;
    else
      e->nodes[before].next = list->first;
    e->nodes[end].next = list->next;
    call->count += list->count - 1;
    return;
  }
}

static bool bind_op(weir_loader *l, weir_expr *e, weir_ast *call,
                    const weir_op_info *info) {
  bool var = info->op->instr == WEIR_INSTR_VAR_READ;
  deal d = {.l = l,
            .e = e,
            .call = call,
            .inputs = info->in_count,
            .attrs = info->attr_count,
            .variadic = info->variadic,
            .attrs_first = var};
  call->op_info = info;
  unlist(e, call, info);
  for (uint32_t i = 0, a = call->first; i < call->count;
       i++, a = e->nodes[a].next) {
    weir_ast *n = &e->nodes[a];
    if (!(n->kind == WEIR_AST_KEYWORD ? give_op_keyword(&d, info, n)
                                      : give_positional(&d, n)))
      return false;
    weir_ast *o = operand_of(e, a);
    if (var && o->mode == WEIR_MODE_VALUE &&
        (o->kind == WEIR_AST_CALL || o->named))
      o->inject = (uint32_t)(call - e->nodes);
  }
  uint64_t need = (UINT64_C(1) << info->in_required) - 1;
  if (var || (d.inputs_given & need) == need) return true;
  uint32_t given = (uint32_t)__builtin_popcountll(d.inputs_given);
  weir_mark at = weir_ast_mark(call);
  weir_report_begin(
      l, WEIR_W1108, &at, "%s takes %s%u input%s, not %u", info->op->name,
      info->variadic || info->in_required < info->in_count ? "at least " : "",
      info->in_required, info->in_required == 1 ? "" : "s", given);
  if (info->op->example != NULL)
    weir_hint(&l->diag.error, "for example %s", info->op->example);
  return weir_report_send(l);
}

static weir_sv arg_name_at(const void *self, size_t i) {
  const weir_block *b = self;
  return i < b->input_count ? b->inputs[i].name
                            : b->attrs[i - b->input_count].name;
}

static bool give_block_keyword(deal *d, const weir_block *b, weir_ast *kw) {
  weir_ast *n = &d->e->nodes[kw->first];
  int i = block_attr(b, kw->text);
  if (i >= 0) return give(d, n, kw, false, (uint32_t)i);
  i = block_input(b, kw->text);
  if (i >= 0) return give(d, n, kw, true, (uint32_t)i);
  weir_mark at = weir_yaml_mark_within(kw->src, kw->offset, kw->text.size);
  weir_report_begin(d->l, WEIR_W1118, &at, "block %.*s has no argument '%.*s'",
                    WEIR_SV(b->name), WEIR_SV(kw->text));
  weir_report_nearest(d->l, kw->text, (size_t)b->input_count + b->attr_count,
                      arg_name_at, b);
  return weir_report_send(d->l);
}

static bool bind_block(weir_loader *l, weir_expr *e, weir_ast *call,
                       const weir_block *b) {
  deal d = {.l = l,
            .e = e,
            .call = call,
            .inputs = b->input_count,
            .attrs = b->attr_count};
  call->block = b;
  for (uint32_t i = 0, a = call->first; i < call->count;
       i++, a = e->nodes[a].next) {
    weir_ast *n = &e->nodes[a];
    if (!(n->kind == WEIR_AST_KEYWORD ? give_block_keyword(&d, b, n)
                                      : give_positional(&d, n)))
      return false;
  }
  weir_mark at = weir_ast_mark(call);
  for (uint32_t i = 0; i < b->input_count && i < 64; i++)
    if ((d.inputs_given >> i & 1) == 0)
      return weir_report(l, WEIR_W1118, &at, "block %.*s needs input %.*s",
                         WEIR_SV(b->name), WEIR_SV(b->inputs[i].name));
  for (uint32_t i = 0; i < b->attr_count && i < 64; i++)
    if ((d.attrs_given >> i & 1) == 0 && !b->attrs[i].has_default)
      return weir_report(l, WEIR_W1118, &at, "block %.*s needs attribute %.*s",
                         WEIR_SV(b->name), WEIR_SV(b->attrs[i].name));
  return true;
}

/* `act(z)`, where `act` is an attribute of the block: all operands are its. */
static bool bind_dynamic(weir_loader *l, weir_expr *e, weir_ast *call,
                         int attr) {
  call->port = attr;
  for (uint32_t i = 0, a = call->first; i < call->count;
       i++, a = e->nodes[a].next) {
    weir_ast *n = &e->nodes[a];
    if (n->kind == WEIR_AST_KEYWORD) {
      weir_mark at = weir_ast_mark(n);
      return weir_report(l, WEIR_W1118, &at,
                         "a call of an attribute takes inputs only");
    }
    n->mode = WEIR_MODE_VALUE;
    n->slot = i;
  }
  return true;
}

static bool bind_value_call(weir_loader *l, weir_module *m,
                            const weir_block *block, weir_expr *e,
                            weir_ast *call) {
  call->port = -1;
  e->calls++;
  int attr = block_attr(block, call->text);
  if (attr >= 0 && block->attrs[attr].kind == WEIR_BLOCK_OP)
    return bind_dynamic(l, e, call, attr);
  const weir_block *b = find_block(m, call->text);
  /* A block may be called like the op that it wraps. */
  if (b == block && weir_loader_ops(l, call->text) != NULL) b = NULL;
  if (b != NULL && b->broken) return false; /* reported there */
  if (b != NULL) return bind_block(l, e, call, b);
  const weir_op_info *info = choose_op(l, e, call);
  return info != NULL ? bind_op(l, e, call, info) : unknown_op(l, m, call);
}

/* dim(x, 0) and size(x): the type of x is wanted, the rest are constants. */
static bool bind_const_call(weir_loader *l, weir_expr *e, weir_ast *call) {
  bool known = weir_sv_is(call->text, "dim") || weir_sv_is(call->text, "size");
  weir_mark at = weir_ast_mark(call);
  if (!known || call->count == 0 || e->nodes[call->first].kind != WEIR_AST_NAME)
    return weir_report(l, WEIR_W1113, &at,
                       "attributes and shapes take numbers, names, dim(x, i) "
                       "and size(x)");
  if (call->count != (weir_sv_is(call->text, "dim") ? 2u : 1u))
    return weir_report(l, WEIR_W1113, &at,
                       "dim(x, i) takes a name and an axis");
  e->nodes[call->first].mode = WEIR_MODE_REF;
  operand_of(e, e->nodes[call->first].next != WEIR_AST_NONE
                    ? e->nodes[call->first].next
                    : call->first)
      ->mode = call->count == 2 ? WEIR_MODE_CONST : WEIR_MODE_REF;
  return true;
}

/* a + b, -a with names below. dim(x, 0) and size(x) are numbers here, as in
 * shapes: x / dim(x, 0) needs no cast. */
static void bind_operation(weir_loader *l, weir_expr *e, weir_ast *n) {
  const char *name =
      n->kind == WEIR_AST_NEG ? "neg" : weir_operator_name(n->op);
  const weir_op_names *op =
      name != NULL ? weir_loader_ops(l, weir_sv_from(name)) : NULL;
  n->op_info = op != NULL ? op->info : NULL;
  n->text = weir_sv_from(name);
  e->calls++;
  for (uint32_t i = 0, a = n->first; i < n->count; i++, a = e->nodes[a].next) {
    weir_ast *o = &e->nodes[a];
    o->mode = WEIR_MODE_VALUE;
    o->slot = i;
    o->inject = n->inject;
    o->constant = o->kind == WEIR_AST_CALL &&
                  (weir_sv_is(o->text, "dim") || weir_sv_is(o->text, "size"));
  }
}

/* All of a variable's first value is evaluated where variables are. */
static void mark_init(weir_expr *e, const weir_ast *n) {
  bool var = n->kind == WEIR_AST_CALL && n->op_info != NULL &&
             n->op_info->op->instr == WEIR_INSTR_VAR_READ;
  if (!n->init && !var) return;
  for (uint32_t i = 0, a = n->first; i < n->count; i++, a = e->nodes[a].next)
    e->nodes[a].init = true;
}

static void all_const(weir_expr *e, const weir_ast *n) {
  for (uint32_t i = 0, a = n->first; i < n->count; i++, a = e->nodes[a].next)
    operand_of(e, a)->mode = WEIR_MODE_CONST;
}

bool weir_expr_bind(weir_loader *l, weir_module *m, const weir_block *block,
                    weir_expr *e, weir_ast_mode mode) {
  bool ok = true;
  e->nodes[e->count - 1].mode = (uint8_t)mode;
  for (uint32_t i = e->count; i-- > 0;) {
    weir_ast *n = &e->nodes[i];
    if (n->mode == WEIR_MODE_SKIP)
      ; /* a keyword */
    else if (n->mode == WEIR_MODE_VALUE && n->named)
      bind_operation(l, e, n);
    else if (n->kind != WEIR_AST_CALL)
      all_const(e, n);
    else if (n->mode == WEIR_MODE_VALUE && !n->constant)
      ok = bind_value_call(l, m, block, e, n) && ok;
    else
      ok = bind_const_call(l, e, n) && ok;
    mark_init(e, n);
  }
  return ok;
}
