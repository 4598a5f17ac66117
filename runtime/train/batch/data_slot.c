/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/train/batch/data_slot.h"

#include "runtime/exec/session/binding.h"
#include "runtime/train/data/data_internal.h"
#include "runtime/train/data/data_map.h"

/* The memory of a batch: tensors of the full size, and, where an epoch ends
 * with fewer examples, smaller ones on the same bytes. */

static weir_status make_tensor(const weir_dataset *set,
                               const weir_data_column *column, int64_t rows,
                               weir_tensor *full, weir_tensor **out,
                               weir_error *err) {
  int64_t dims[WEIR_MAX_RANK];
  for (int32_t d = 0; d < column->rank; d++) dims[d] = column->dims[d];
  dims[0] = rows;
  weir_shape shape = weir_shape_of(column->rank, dims);
  if (full == NULL)
    return weir_tensor_create_shaped(set->env->alloc, column->dtype, &shape,
                                     out, err);
  weir_tensor_memory memory = {column->dtype, &shape, full->data, NULL, NULL};
  return weir_tensor_wrap(set->env->alloc, &memory, out, err);
}

static int64_t tail_rows(const weir_dataset *set) {
  if (set->epoch == INT64_MAX || set->pad) return 0;
  return set->epoch % set->batch;
}

static weir_status make_tensors(const weir_dataset *set,
                                const weir_data_column *columns, uint32_t count,
                                weir_tensor ***out_full,
                                weir_tensor ***out_tail, weir_error *err) {
  const weir_allocator *alloc = set->env->alloc;
  int64_t tail = tail_rows(set);
  *out_full = weir_alloc_array(alloc, count, sizeof **out_full);
  *out_tail = weir_alloc_array(alloc, count, sizeof **out_tail);
  if (*out_full == NULL || *out_tail == NULL)
    return weir_fail_memory(err, count * sizeof **out_full);
  for (uint32_t c = 0; c < count; c++) {
    WEIR_TRY(
        make_tensor(set, &columns[c], set->batch, NULL, &(*out_full)[c], err));
    if (tail > 0)
      WEIR_TRY(make_tensor(set, &columns[c], tail, (*out_full)[c],
                           &(*out_tail)[c], err));
  }
  return WEIR_OK;
}

/* Columns that pass the map by are the read ones. */
static void share(const weir_dataset *set, weir_data_slot *slot) {
  for (uint32_t c = 0; c < set->column_count; c++) {
    uint32_t from = weir_data_map_pass(set->map, c);
    if (from == UINT32_MAX) continue;
    weir_tensor_unref(slot->tail[c]);
    weir_tensor_unref(slot->full[c]);
    slot->full[c] = weir_tensor_ref(slot->read_full[from]);
    slot->tail[c] = NULL;
    if (slot->read_tail[from] != NULL)
      slot->tail[c] = weir_tensor_ref(slot->read_tail[from]);
  }
}

weir_status weir_data_slot_init(const weir_dataset *set, weir_data_slot *slot,
                                weir_error *err) {
  WEIR_TRY(make_tensors(set, set->read_columns, set->read_count,
                        &slot->read_full, &slot->read_tail, err));
  if (set->map == NULL) {
    slot->full = slot->read_full;
    slot->tail = slot->read_tail;
    return WEIR_OK;
  }
  WEIR_TRY(make_tensors(set, set->columns, set->column_count, &slot->full,
                        &slot->tail, err));
  share(set, slot);
  if (weir_data_map_per_example(set->map)) return WEIR_OK;
  WEIR_TRY(weir_data_map_bind(set->map, slot->read_full, slot->full,
                              &slot->map_full, err));
  if (tail_rows(set) == 0) return WEIR_OK;
  return weir_data_map_bind(set->map, slot->read_tail, slot->tail,
                            &slot->map_tail, err);
}

static void drop(const weir_dataset *set, weir_tensor **tensors,
                 uint32_t count) {
  for (uint32_t c = 0; tensors != NULL && c < count; c++)
    weir_tensor_unref(tensors[c]);
  weir_free(set->env->alloc, tensors);
}

void weir_data_slot_release(const weir_dataset *set, weir_data_slot *slot) {
  weir_binding_release(slot->map_tail);
  weir_binding_release(slot->map_full);
  if (slot->full != slot->read_full) drop(set, slot->full, set->column_count);
  if (slot->tail != slot->read_tail) drop(set, slot->tail, set->column_count);
  drop(set, slot->read_tail, set->read_count);
  drop(set, slot->read_full, set->read_count);
}
