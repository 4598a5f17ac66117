/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/graph/split/split_rows.h"

#include "ops/reduce/norm_blocks.h"

/* Values that must be cut at the same rows are one *class*: inputs and outputs
 * of a node that works row by row, a variable and what is assigned to it.
 * Classes are joined as the nodes behind the cut are walked (union by the
 * smaller id, paths halved). A node of any other kind needs its inputs whole,
 * and so the classes of these. A class with variables of two units stays whole
 * too: two servers may get the units. All other classes can be cut: a node that
 * reads some rows computes these rows of its output.
 *
 * A norm over several servers is no such node: it adds the blocks of a
 * variable's gradient (ops/reduce/norm_blocks.h), so pieces begin at blocks.
 *
 * A *unit* is a variable with its slots. Cost: two walks over the training
 * graph. */

/* Parts are dealt one by one: more than these would even out nothing. */
enum { PARTS = 4096 };

typedef struct finder {
  weir_splitter *s;
  const weir_graph *g;
  weir_value_id *up;       /* per value: towards its class */
  weir_node_id *whole_for; /* per class: who needs it whole; UINT32_MAX */
  uint32_t *unit;          /* per class: a variable's place; UINT32_MAX */
} finder;

static weir_value_id class_of(const finder *f, weir_value_id v) {
  while (f->up[v] != v) v = f->up[v] = f->up[f->up[v]];
  return v;
}

static void need_whole(finder *f, weir_value_id v, weir_node_id node) {
  if (v == WEIR_NO_VALUE) return;
  v = class_of(f, v);
  if (f->whole_for[v] == UINT32_MAX) f->whole_for[v] = node;
}

static void join(finder *f, weir_value_id a, weir_value_id b,
                 weir_node_id node) {
  a = class_of(f, a);
  b = class_of(f, b);
  if (a == b) return;
  weir_value_id to = a < b ? a : b, from = a < b ? b : a;
  bool clash = f->unit[to] != UINT32_MAX && f->unit[from] != UINT32_MAX &&
               f->unit[to] != f->unit[from];
  f->up[from] = to;
  if (f->unit[to] == UINT32_MAX) f->unit[to] = f->unit[from];
  if (f->whole_for[to] == UINT32_MAX) f->whole_for[to] = f->whole_for[from];
  if (clash) need_whole(f, to, node);
}

/* Rows of a value; -1: it has none, or how many is not known. */
static int64_t rows_of(const finder *f, weir_value_id v) {
  const weir_shape *shape = f->g->values[v].shape;
  return shape->rank > 0 && weir_shape_known(shape) ? shape->dims[0].value : -1;
}

/* Whether the rows of |in| are those of |out|, one for one. */
static bool same_rows(const finder *f, weir_value_id in, weir_value_id out) {
  return f->g->values[in].shape->rank == f->g->values[out].shape->rank &&
         rows_of(f, in) >= 0 && rows_of(f, in) == rows_of(f, out);
}

static bool is_row_by_row(const weir_node *node) {
  return (node->op->flags & (WEIR_OP_ROWS | WEIR_OP_ELEMENTWISE)) != 0 ||
         node->op->instr == WEIR_INSTR_VAR_COMMIT;
}

/* Inputs of another shape are numbers, or spread over the rows. */
static void walk_node(finder *f, weir_node_id id) {
  const weir_node *node = &f->g->nodes[id];
  weir_value_id out = node->first_output;
  bool rows = is_row_by_row(node) && node->output_count > 0;
  for (uint32_t i = 0; i < node->input_count; i++) {
    weir_value_id in = node->inputs[i];
    if (in == WEIR_NO_VALUE) continue;
    if (rows && same_rows(f, in, out))
      join(f, in, out, id);
    else
      need_whole(f, in, id);
  }
  for (uint32_t i = 0; i < node->output_count; i++) {
    if (rows && same_rows(f, out + i, out))
      join(f, out + i, out, id);
    else
      need_whole(f, out + i, id);
  }
}

/* What |server| 0 would do if it had all variables. */
static void walk(finder *f) {
  const weir_splitter *s = f->s;
  weir_split_mark(f->s, 0);
  for (weir_node_id id = 0; id < f->g->node_count; id++) {
    const weir_node *node = &f->g->nodes[id];
    if (node->op->instr == WEIR_INSTR_VAR_READ) {
      /* Another variable's first value is made of this one's. */
      if ((s->need[id] & WEIR_SPLIT_NEED_FIRST) != 0)
        need_whole(f, node->first_output, id);
    } else if ((s->need[id] & WEIR_SPLIT_NEED_STEP) != 0 &&
               !weir_split_is_norm(s, id)) {
      walk_node(f, id);
    }
  }
}

/* ---- Where */

static int64_t divisor(int64_t a, int64_t b) {
  while (b != 0) {
    int64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

/* Rows that begin with a block of the norm: |at| elements lie before the
 * variable's. False: none does. */
static bool at_blocks(weir_split_cut *cut, uint64_t at, int64_t row) {
  int64_t rest = (int64_t)(at % WEIR_NORM_BLOCK), block = WEIR_NORM_BLOCK;
  int64_t common = divisor(row, block);
  if (rest % common != 0) return false;
  row %= block;
  cut->step = block / common;
  cut->begin = 1;
  while ((rest + cut->begin * row) % block != 0) cut->begin++;
  return cut->begin < cut->rows;
}

/* Of the norm over servers, where |var| is in it. */
static const weir_split_share *share_of(const weir_splitter *s,
                                        weir_node_id var) {
  for (uint32_t k = 0; s->shares != NULL && k < s->train->trained_count; k++)
    if (s->train->vars[k].node == var) return &s->shares[k];
  return NULL;
}

/* As many parts as keep each of |most| bytes or less. */
static void divide(weir_split_cut *cut, uint64_t row_bytes, uint64_t most) {
  int64_t spans = (cut->rows - cut->begin + cut->step - 1) / cut->step + 1;
  uint64_t span = row_bytes * (uint64_t)cut->step;
  int64_t each = span < most ? (int64_t)(most / span) : 1;
  int64_t parts = (spans + each - 1) / each;
  cut->parts = parts < PARTS ? (uint32_t)parts : PARTS;
}

int64_t weir_split_row(const weir_split_cut *cut, uint32_t k) {
  int64_t spans = (cut->rows - cut->begin + cut->step - 1) / cut->step + 1;
  int64_t at =
      spans / cut->parts * k + spans % cut->parts * (int64_t)k / cut->parts;
  if (at == 0) return 0;
  return k == cut->parts ? cut->rows : cut->begin + (at - 1) * cut->step;
}

/* ---- Units */

/* Who needs variable |i| of the unit |head| whole; UINT32_MAX: nobody. */
static weir_node_id needs(const finder *f, uint32_t i, uint32_t head) {
  const weir_split_var *v = &f->s->vars[i];
  weir_value_id value = f->g->nodes[v->node].first_output;
  weir_value_id unit = f->g->nodes[f->s->vars[head].node].first_output;
  if (rows_of(f, value) != rows_of(f, unit)) return v->node;
  return f->whole_for[class_of(f, value)];
}

static void cut_unit(finder *f, uint32_t head, weir_split_cut *cut) {
  weir_splitter *s = f->s;
  weir_split_var *v = &s->vars[head];
  int64_t rows = rows_of(f, f->g->nodes[v->node].first_output);
  if (v->server == WEIR_SPLIT_ALL || v->bytes <= s->options.split || rows < 2)
    return;
  for (uint32_t i = 0; i < s->out->var_count; i++)
    if (s->unit_of[i] == head && v->whole_for == UINT32_MAX)
      v->whole_for = needs(f, i, head);
  if (v->whole_for != UINT32_MAX) return;
  const weir_split_share *share = share_of(s, v->node);
  uint64_t row_bytes = v->bytes / (uint64_t)rows;
  size_t size =
      weir_dtype_size(f->g->values[f->g->nodes[v->node].first_output].dtype);
  *cut = (weir_split_cut){.rows = rows, .begin = 1, .step = 1};
  if (share != NULL &&
      !at_blocks(cut, share->at, (int64_t)(row_bytes / size))) {
    v->whole_for = f->g->values[s->train->grad_norm].node;
    return;
  }
  divide(cut, row_bytes, s->options.split);
}

static void cut_units(finder *f, weir_split_cut *cuts) {
  weir_splitter *s = f->s;
  for (uint32_t i = 0; i < s->out->var_count; i++)
    if (s->unit_of[i] == i) cut_unit(f, i, &cuts[i]);
  for (uint32_t i = 0; i < s->out->var_count; i++)
    cuts[i] = cuts[s->unit_of[i]];
  for (weir_value_id v = 0; v < f->g->value_count; v++) {
    uint32_t unit = f->unit[class_of(f, v)];
    if (unit != UINT32_MAX && cuts[unit].parts > 0)
      s->follows[v] = s->vars[unit].node;
  }
}

static void begin(finder *f) {
  weir_splitter *s = f->s;
  for (weir_value_id v = 0; v < f->g->value_count; v++) {
    f->up[v] = v;
    f->whole_for[v] = f->unit[v] = UINT32_MAX;
  }
  for (uint32_t i = 0; i < s->out->var_count; i++)
    f->unit[f->g->nodes[s->vars[i].node].first_output] = s->unit_of[i];
}

weir_status weir_split_find_cuts(weir_splitter *s, weir_split_cut *cuts) {
  finder f = {.s = s, .g = s->train->graph};
  const weir_allocator *alloc = s->out->alloc;
  uint32_t count = f.g->value_count;
  if (s->options.split == 0 || s->out->server_count == 1) return WEIR_OK;
  f.up = weir_alloc_array(alloc, count, sizeof *f.up);
  f.whole_for = weir_alloc_array(alloc, count, sizeof *f.whole_for);
  f.unit = weir_alloc_array(alloc, count, sizeof *f.unit);
  weir_status status = WEIR_OK;
  if (f.up == NULL || f.whole_for == NULL || f.unit == NULL) {
    status = weir_fail_memory(s->err, count * sizeof *f.up);
  } else {
    begin(&f);
    walk(&f);
    cut_units(&f, cuts);
  }
  weir_free(alloc, f.up);
  weir_free(alloc, f.whole_for);
  weir_free(alloc, f.unit);
  return status;
}
