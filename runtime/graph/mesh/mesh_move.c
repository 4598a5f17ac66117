/* SPDX-License-Identifier: Apache-2.0
 *
 * From one cut to another. Collectives work on dimension 0, in blocks of ranks:
 * where another dimension is meant, the blocks get a dimension of their own,
 * which is moved to the front or from there. That takes one dimension more than
 * the value has, hence W3056.
 *
 * The order of steps: partial sums, exchanges and gathers, slices. For n ranks
 * and W bytes of the value, whole along their axis, each rank sends: all_reduce
 * 2 W (n - 1) / n, reduce_scatter and all_gather half of that, all_to_all an
 * n-th of the latter; a slice sends nothing. So a sum that ends cut is
 * scattered, and an axis that goes to another dimension is exchanged. */
#include "runtime/graph/mesh/mesh_move.h"

#include <assert.h>
#include <string.h>

#include "ops/grads.h"
#include "runtime/graph/mesh/mesh_add.h"
#include "runtime/graph/mesh/mesh_internal.h"
#include "runtime/graph/mesh/mesh_spec.h"

/* ---- Steps on the value of one device */

static weir_status step(weir_mesh_lower *l, const weir_mesh_moving *m,
                        const char *op, uint32_t device,
                        const weir_named_attr *attrs, weir_value_id *value) {
  weir_mesh_node node = {.of = m->node,
                         .what = op,
                         .op = op,
                         .device = device,
                         .named = attrs,
                         .inputs = value,
                         .input_count = 1};
  return weir_mesh_add_value(l, &node, value);
}

static weir_status reshape(weir_mesh_lower *l, const weir_mesh_moving *m,
                           uint32_t device, const weir_shape *shape,
                           weir_value_id *value) {
  weir_named_attr attrs[] = {{"shape", weir_attr_shape(shape)},
                             {NULL, {.kind = WEIR_ATTR_NONE}}};
  return step(l, m, "reshape", device, attrs, value);
}

/* Dimension |from| becomes dimension |to|, the others keep their order. */
static weir_status shift(weir_mesh_lower *l, const weir_mesh_moving *m,
                         uint32_t device, int rank, int from, int to,
                         weir_value_id *value) {
  weir_dim perm[WEIR_MAX_RANK];
  if (from == to) return WEIR_OK;
  for (int i = 0, old = 0; i < rank; i++) {
    if (old == from) old++;
    perm[i] = weir_dim_of(i == to ? from : old++);
  }
  weir_named_attr attrs[] = {{"perm", weir_attr_dims((uint32_t)rank, perm)},
                             {NULL, {.kind = WEIR_ATTR_NONE}}};
  return step(l, m, "transpose", device, attrs, value);
}

/* |shape| with dimension |at| cut into |n| parts, these a dimension of their
 * own at |to|. */
static weir_shape with_parts(const weir_shape *shape, int at, int64_t n,
                             int to) {
  weir_shape out = {.rank = shape->rank + 1};
  for (int i = 0, old = 0; i < out.rank; i++)
    out.dims[i] = i == to ? weir_dim_of(n) : shape->dims[old++];
  out.dims[to <= at ? at + 1 : at].value /= n;
  return out;
}

/* ---- Collectives: one node for each device. It has control edges from the
 * inputs of the other ranks: it cannot end before these are there, and devices
 * that begin their nodes in an order that keeps to these edges cannot get
 * stuck. */

/* The nodes that make the other ranks' inputs, |ids|. */
static uint32_t others(const weir_mesh_lower *l, const weir_value_id *ids,
                       uint32_t device, uint32_t axis, weir_node_id *out) {
  const weir_mesh_axis *a = &l->mesh->axes[axis];
  const weir_graph *g = weir_graph_builder_graph(l->pass.builder);
  uint32_t rank = weir_mesh_place(l->mesh, device, axis), count = 0;
  for (uint32_t k = 0; k < a->size; k++)
    if (k != rank)
      out[count++] =
          g->values[ids[device - rank * a->stride + k * a->stride]].node;
  return count;
}

static weir_status collective(weir_mesh_lower *l, const weir_mesh_moving *m,
                              const char *op, uint32_t axis) {
  const weir_mesh_axis *a = &l->mesh->axes[axis];
  uint32_t base = l->groups;
  l->groups += l->devices / a->size;
  weir_value_id *ids = weir_mesh_ids(l, l->devices);
  weir_node_id *after = weir_mesh_ids(l, a->size);
  if (ids == NULL || after == NULL) return WEIR_RESOURCE_EXHAUSTED;
  memcpy(ids, m->ids, l->devices * sizeof *ids);
  for (uint32_t d = 0; d < l->devices; d++) {
    uint32_t rank = weir_mesh_place(l->mesh, d, axis);
    /* Devices that differ along this axis only. */
    uint32_t line = d - rank * a->stride;
    uint32_t group =
        base + line / (a->stride * a->size) * a->stride + line % a->stride;
    weir_named_attr attrs[] = {
        {"group", weir_attr_int(group)},
        {"rank", weir_attr_int(rank)},
        {"ranks", weir_attr_int(a->size)},
        {"mesh_axis", {.kind = WEIR_ATTR_STRING, .s = a->name}},
        {NULL, {.kind = WEIR_ATTR_NONE}}};
    weir_mesh_node node = {.of = m->node,
                           .what = op,
                           .op = op,
                           .device = d,
                           .named = attrs,
                           .inputs = &ids[d],
                           .input_count = 1,
                           .after = after,
                           .after_count = others(l, ids, d, axis, after)};
    WEIR_TRY(weir_mesh_add_value(l, &node, &m->ids[d]));
  }
  return WEIR_OK;
}

static weir_status too_many_dims(const weir_mesh_lower *l,
                                 const weir_mesh_moving *m) {
  return weir_fail(l->err, WEIR_W3056, &m->node->mark,
                   "%.*s has %d dimensions; moving one that is cut between "
                   "devices takes one more than there can be",
                   WEIR_SV(m->node->name), (int)m->shape->rank);
}

/* Dimension |i| is whole afterwards. all_gather puts the ranks' blocks along
 * dimension 0; for another dimension they are moved there and joined with it.
 */
static weir_status gather(weir_mesh_lower *l, weir_mesh_moving *m, int i) {
  uint32_t axis = (uint32_t)m->spec.axis[i];
  int64_t n = l->mesh->axes[axis].size;
  if (i > 0 && m->shape->rank == WEIR_MAX_RANK) return too_many_dims(l, m);
  WEIR_TRY(collective(l, m, "all_gather", axis));
  m->spec.axis[i] = WEIR_MESH_WHOLE;
  if (i == 0) return WEIR_OK;
  weir_shape after = weir_mesh_local(l->mesh, &m->spec, m->shape);
  weir_shape blocks = with_parts(&after, i, n, 0);
  for (uint32_t d = 0; d < l->devices; d++) {
    WEIR_TRY(reshape(l, m, d, &blocks, &m->ids[d]));
    WEIR_TRY(shift(l, m, d, blocks.rank, 0, i, &m->ids[d]));
    WEIR_TRY(reshape(l, m, d, &after, &m->ids[d]));
  }
  return WEIR_OK;
}

/* Cuts dimension |i| of the local value into |n| parts and brings these to the
 * front, as dimension 0. The caller gives the result its shape. */
static weir_status parts_first(weir_mesh_lower *l, weir_mesh_moving *m, int i,
                               int64_t n) {
  weir_shape local = weir_mesh_local(l->mesh, &m->spec, m->shape);
  weir_shape parts = with_parts(&local, i, n, i);
  for (uint32_t d = 0; d < l->devices; d++) {
    WEIR_TRY(reshape(l, m, d, &parts, &m->ids[d]));
    WEIR_TRY(shift(l, m, d, parts.rank, i, 0, &m->ids[d]));
  }
  return WEIR_OK;
}

/* Partial sums over |axis| become sums, of which each device keeps its part
 * along dimension |i|. */
static weir_status scatter(weir_mesh_lower *l, weir_mesh_moving *m,
                           uint32_t axis, int i) {
  int64_t n = l->mesh->axes[axis].size;
  if (i > 0 && m->shape->rank == WEIR_MAX_RANK) return too_many_dims(l, m);
  if (i > 0) WEIR_TRY(parts_first(l, m, i, n));
  WEIR_TRY(collective(l, m, "reduce_scatter", axis));
  m->spec.axis[i] = (int8_t)axis;
  weir_shape after = weir_mesh_local(l->mesh, &m->spec, m->shape);
  for (uint32_t d = 0; i > 0 && d < l->devices; d++)
    WEIR_TRY(reshape(l, m, d, &after, &m->ids[d]));
  return WEIR_OK;
}

/* Dimension |from| is whole afterwards, and dimension |to| cut instead. */
static weir_status exchange(weir_mesh_lower *l, weir_mesh_moving *m, int from,
                            int to) {
  uint32_t axis = (uint32_t)m->spec.axis[from];
  int64_t n = l->mesh->axes[axis].size;
  if (m->shape->rank == WEIR_MAX_RANK) return too_many_dims(l, m);
  WEIR_TRY(parts_first(l, m, to, n));
  WEIR_TRY(collective(l, m, "all_to_all", axis));
  m->spec.axis[from] = WEIR_MESH_WHOLE;
  m->spec.axis[to] = (int8_t)axis;
  weir_shape after = weir_mesh_local(l->mesh, &m->spec, m->shape);
  for (uint32_t d = 0; d < l->devices; d++) {
    WEIR_TRY(shift(l, m, d, after.rank + 1, 0, from, &m->ids[d]));
    WEIR_TRY(reshape(l, m, d, &after, &m->ids[d]));
  }
  return WEIR_OK;
}

/* Cuts whole dimensions as |to| has them, on each device for itself. */
static weir_status cut(weir_mesh_lower *l, weir_mesh_moving *m,
                       const weir_mesh_spec *to) {
  weir_dim start[WEIR_MAX_RANK], stop[WEIR_MAX_RANK], axes[WEIR_MAX_RANK];
  for (uint32_t d = 0; d < l->devices; d++) {
    uint32_t count = 0;
    for (int i = 0; i < m->shape->rank; i++) {
      if (to->axis[i] < 0 || m->spec.axis[i] >= 0) continue;
      uint32_t axis = (uint32_t)to->axis[i];
      int64_t part = m->shape->dims[i].value / l->mesh->axes[axis].size;
      int64_t at = weir_mesh_place(l->mesh, d, axis) * part;
      start[count] = weir_dim_of(at);
      stop[count] = weir_dim_of(at + part);
      axes[count++] = weir_dim_of(i);
    }
    if (count == 0) return WEIR_OK;
    weir_named_attr attrs[] = {{"start", weir_attr_dims(count, start)},
                               {"stop", weir_attr_dims(count, stop)},
                               {"axis", weir_attr_dims(count, axes)},
                               {NULL, {.kind = WEIR_ATTR_NONE}}};
    WEIR_TRY(step(l, m, "slice", d, attrs, &m->ids[d]));
  }
  return WEIR_OK;
}

/* ---- The way */

/* Sums first: a scattered value leaves less to move afterwards. */
static weir_status finish_sums(weir_mesh_lower *l, weir_mesh_moving *m,
                               const weir_mesh_spec *to) {
  for (uint32_t a = 0; a < l->mesh->axis_count; a++) {
    if ((m->partial & 1u << a) == 0) continue;
    int i = weir_mesh_dim_on(to, (int)a);
    if (i >= 0 && m->spec.axis[i] == WEIR_MESH_WHOLE)
      WEIR_TRY(scatter(l, m, a, i));
    else
      WEIR_TRY(collective(l, m, "all_reduce", a));
  }
  m->partial = 0;
  return WEIR_OK;
}

weir_status weir_mesh_move(weir_mesh_lower *l, weir_mesh_moving *m,
                           const weir_mesh_spec *to) {
  WEIR_TRY(finish_sums(l, m, to));
  /* Gathers make room for exchanges, so that those come last. */
  for (int pass = 0; pass < 2; pass++) {
    for (int i = 0; i < m->shape->rank; i++) {
      int axis = m->spec.axis[i];
      if (axis < 0 || axis == to->axis[i]) continue;
      int j = weir_mesh_dim_on(to, axis);
      bool free = j >= 0 && m->spec.axis[j] == WEIR_MESH_WHOLE;
      if (free)
        WEIR_TRY(exchange(l, m, i, j));
      else if (j < 0 || pass == 1)
        WEIR_TRY(gather(l, m, i));
    }
  }
  for (int i = 0; i < m->shape->rank; i++)
    assert(m->spec.axis[i] < 0 || m->spec.axis[i] == to->axis[i]);
  WEIR_TRY(cut(l, m, to));
  m->spec = *to;
  return WEIR_OK;
}

weir_status weir_mesh_get(weir_mesh_lower *l, weir_value_id id,
                          const weir_mesh_spec *spec,
                          const weir_value_id **out_ids) {
  weir_mesh_variant *first = l->variants[id];
  for (weir_mesh_variant *v = first; v != NULL; v = v->next)
    if (weir_mesh_spec_equal(&v->spec, spec)) {
      *out_ids = v->ids;
      return WEIR_OK;
    }
  weir_mesh_variant *made = weir_arena_array(&l->work, 1, sizeof *made);
  weir_value_id *ids = weir_mesh_ids(l, l->devices);
  if (made == NULL || ids == NULL)
    return weir_fail_memory(l->err, sizeof *made);
  memcpy(ids, first->ids, l->devices * sizeof *ids);
  const weir_value *value = &l->from->values[id];
  weir_mesh_moving m = {.node = &l->from->nodes[value->node],
                        .shape = value->shape,
                        .spec = first->spec,
                        .ids = ids};
  WEIR_TRY(weir_mesh_move(l, &m, spec));
  *made = (weir_mesh_variant){*spec, ids, first->next};
  first->next = made;
  *out_ids = ids;
  return WEIR_OK;
}
