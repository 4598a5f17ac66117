/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/graph/mesh/mesh_var.h"

#include <string.h>

#include "runtime/base/vec.h"
#include "runtime/graph/graph_internal.h"
#include "runtime/graph/mesh/mesh_internal.h"
#include "runtime/graph/mesh/mesh_spec.h"

/* Variables and their shards, and the shards of weights from a file.
 *
 * A shard is a box of the whole: in each cut dimension one range, in the others
 * all. weir_mesh_shard_copy goes through the box row by row, |at| counting like
 * an odometer over all dimensions but the last, so each row is one memcpy. */

void weir_mesh_shard_copy(const weir_mesh_shard *shard, void *whole, void *part,
                          bool to_whole) {
  const weir_shape *shape = shard->whole;
  const weir_mesh_spec *spec = &shard->var->spec;
  weir_shape local = weir_mesh_local(shard->mesh, spec, shape);
  int64_t start[WEIR_MAX_RANK] = {0}, at[WEIR_MAX_RANK] = {0};
  int rank = shape->rank, last = rank - 1;
  int64_t rows = 1;
  for (int i = 0; i < rank; i++) {
    if (spec->axis[i] >= 0)
      start[i] =
          weir_mesh_place(shard->mesh, shard->device, (uint32_t)spec->axis[i]) *
          local.dims[i].value;
    if (i < last) rows *= local.dims[i].value;
  }
  size_t size = weir_dtype_size(shard->dtype);
  size_t row = rank == 0 ? size : (size_t)local.dims[last].value * size;
  for (int64_t r = 0; r < rows && row > 0; r++) {
    int64_t offset = 0;
    for (int i = 0; i < rank; i++)
      offset =
          offset * shape->dims[i].value + start[i] + (i < last ? at[i] : 0);
    char *big = (char *)whole + (size_t)offset * size;
    char *small = (char *)part + (size_t)r * row;
    memcpy(to_whole ? big : small, to_whole ? small : big, row);
    for (int i = last - 1; i >= 0 && ++at[i] == local.dims[i].value; i--)
      at[i] = 0;
  }
}

/* One weight for each shard: the same tensor, of which a variable takes its
 * part. */
static weir_status cut_weight(weir_mesh_lower *l, const weir_mesh_var *var,
                              const weir_graph_weight *from,
                              weir_graph_weight *out) {
  weir_graph_full *full = l->pass.builder->graph;
  weir_arena *arena = &full->g.arena;
  weir_mesh_var *own = weir_arena_array(arena, 1, sizeof *own);
  weir_mesh_shard *shards = weir_arena_array(arena, l->devices, sizeof *shards);
  if (own == NULL || shards == NULL ||
      !weir_vec_push(l->pass.alloc, &full->tensors, from->tensor))
    return weir_fail_memory(l->err, l->devices * sizeof *shards);
  weir_tensor_ref(from->tensor);
  *own = *var;
  for (uint32_t d = 0; d < l->devices; d++) {
    shards[d] = (weir_mesh_shard){l->mesh, own, d, from->tensor->dtype,
                                  &from->tensor->shape};
    out[d] = *from;
    out[d].name = full->g.nodes[var->parts[d]].name;
    out[d].shard = &shards[d];
  }
  return WEIR_OK;
}

static weir_status cut_weights(weir_mesh_lower *l) {
  const weir_graph *g = l->from;
  weir_graph *made = weir_graph_builder_graph(l->pass.builder);
  size_t room = (size_t)g->weight_count * l->devices;
  weir_graph_weight *weights =
      weir_arena_array(&made->arena, room, sizeof *weights);
  if (weights == NULL) return weir_fail_memory(l->err, sizeof *weights);
  uint32_t count = 0;
  for (uint32_t w = 0; w < g->weight_count; w++)
    for (uint32_t v = 0; v < l->out->var_count; v++) {
      const weir_mesh_var *var = &l->out->vars[v];
      if (!weir_sv_equal(g->nodes[var->node].name, g->weights[w].name))
        continue;
      WEIR_TRY(cut_weight(l, var, &g->weights[w], weights + count));
      count += l->devices;
    }
  made->weights = weights;
  made->weight_count = count;
  return WEIR_OK;
}

weir_status weir_mesh_vars(weir_mesh_lower *l) {
  const weir_graph *g = l->from;
  uint32_t count = 0;
  for (weir_node_id id = 0; id < g->node_count; id++)
    count += g->nodes[id].op->instr == WEIR_INSTR_VAR_READ;
  weir_mesh_var *vars = weir_arena_array(&l->out->arena, count, sizeof *vars);
  if (vars == NULL) return weir_fail_memory(l->err, count * sizeof *vars);
  for (weir_node_id id = 0; id < g->node_count; id++) {
    if (g->nodes[id].op->instr != WEIR_INSTR_VAR_READ) continue;
    weir_node_id *parts =
        weir_arena_array(&l->out->arena, l->devices, sizeof *parts);
    if (parts == NULL) return weir_fail_memory(l->err, sizeof *parts);
    memcpy(parts, l->copies + (size_t)id * l->devices,
           l->devices * sizeof *parts);
    vars[l->out->var_count++] = (weir_mesh_var){
        id, parts, l->variants[g->nodes[id].first_output]->spec};
  }
  l->out->vars = vars;
  return cut_weights(l);
}
