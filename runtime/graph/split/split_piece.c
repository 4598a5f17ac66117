/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/graph/split/split_piece.h"

#include <assert.h>
#include <string.h>

#include "ops/reduce/norm_blocks.h"
#include "runtime/graph/train/train_build.h"

/* The update graph of a piece has the nodes of the variable's: their shapes
 * follow from the variable and the gradient, which have fewer rows. What is
 * left to do is where rows enter: the first value, the file's bytes, the sums
 * of a norm. */

const weir_split_var *weir_split_piece(const weir_splitter *s,
                                       weir_node_id node, uint32_t server) {
  uint32_t i = s->var_of[node];
  for (; i < s->out->var_count && s->vars[i].node == node; i++)
    if (s->vars[i].server == server || s->vars[i].server == WEIR_SPLIT_ALL)
      return &s->vars[i];
  return NULL;
}

weir_status weir_split_copy_piece(weir_splitter *s, weir_pass *pass,
                                  weir_node_id id, const weir_split_var *v) {
  const weir_node *node = &pass->from->nodes[id];
  int32_t shape = weir_op_attr_index(node->op, WEIR_SV_LIT("shape"));
  weir_attr attrs[WEIR_OP_ATTRS];
  weir_dim dims[WEIR_MAX_RANK];
  weir_dim from = {.value = v->rows.first},
           to = {.value = v->rows.first + v->rows.count};
  weir_named_attr range[] = {
      {"start", {.kind = WEIR_ATTR_INTS, .count = 1, .dims = &from}},
      {"stop", {.kind = WEIR_ATTR_INTS, .count = 1, .dims = &to}},
      {NULL, {.kind = WEIR_ATTR_NONE}}};
  memcpy(attrs, node->attrs, sizeof attrs);
  memcpy(dims, attrs[shape].dims, attrs[shape].count * sizeof *dims);
  dims[0].value = v->rows.count;
  attrs[shape].dims = dims;
  if (node->input_count == 0)
    return weir_pass_copy(pass, id, attrs, UINT32_MAX, s->err);
  weir_value_id *init = &pass->values[node->inputs[0]], whole = *init;
  weir_train_build b = {.pass = *pass, .err = s->err};
  b.device = node->device;
  b.mark = node->mark;
  *init = weir_train_add(
      &b, weir_train_name(&b, "train/%.*s/rows", WEIR_SV(node->name)), "slice",
      1, &whole, range);
  weir_vec_free(b.pass.alloc, &b.marks);
  WEIR_TRY(b.status);
  WEIR_TRY(weir_pass_copy(pass, id, attrs, UINT32_MAX, s->err));
  *init = whole;
  return WEIR_OK;
}

weir_split_share weir_split_share_of(const weir_splitter *s, uint32_t k,
                                     uint32_t server) {
  const weir_train_graph *t = s->train;
  weir_split_share share = s->shares[k];
  const weir_split_rows *rows =
      &weir_split_piece(s, t->vars[k].node, server)->rows;
  if (rows->all == 0) return share;
  const weir_node *norm = &t->graph->nodes[t->graph->values[t->grad_norm].node];
  int64_t row =
      weir_shape_elements(t->graph->values[norm->inputs[k]].shape) / rows->all;
  int64_t at = (int64_t)share.at;
  assert(rows->first == 0 || (at + rows->first * row) % WEIR_NORM_BLOCK == 0);
  share.at += (uint64_t)(rows->first * row);
  share.first += (uint32_t)weir_norm_stretches(at, rows->first * row);
  share.count =
      (uint32_t)weir_norm_stretches((int64_t)share.at, rows->count * row);
  return share;
}

weir_status weir_split_cut_weights(weir_splitter *s, weir_pass *pass,
                                   uint32_t server) {
  weir_graph *made = weir_graph_builder_graph(pass->builder);
  uint32_t count = made->weight_count;
  weir_graph_weight *own = weir_arena_array(&made->arena, count, sizeof *own);
  if (own == NULL) return weir_fail_memory(s->err, count * sizeof *own);
  for (uint32_t i = 0; i < count; i++) {
    own[i] = made->weights[i];
    for (uint32_t v = 0; v < s->out->var_count; v++) {
      const weir_split_var *var = &s->vars[v];
      if (var->server != server || var->rows.all == 0 ||
          !weir_sv_equal(var->name, own[i].name))
        continue;
      own[i].from = (size_t)var->rows.offset;
      own[i].bytes = (size_t)var->bytes;
    }
  }
  made->weights = own;
  return WEIR_OK;
}
