/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/train/batch/data_maker.h"

#include <assert.h>
#include <string.h>

#include "runtime/base/size.h"
#include "runtime/exec/session/binding.h"
#include "runtime/train/data/data_map.h"

/* A batch: numbers of examples from the order, their rows from the source,
 * transformed on the way. Examples that follow each other in the source are
 * read in one call, so unshuffled data is read in long runs. Columns that need
 * no transform are read straight into the batch; others go through scratch of
 * at most kScratchBytes, which stays in the cache. Nothing is allocated after
 * init, but by a source that meets a longer record. */

enum { kScratchBytes = 1 << 20 };

static weir_status init_scratch(weir_data_maker *m, weir_error *err) {
  const weir_dataset *set = m->set;
  const weir_allocator *alloc = set->env->alloc;
  for (uint32_t c = 0; c < set->read_count; c++) {
    const weir_transform *t = &set->transforms[c];
    if (t->identity) continue;
    size_t rows = t->from_bytes > 0 ? kScratchBytes / t->from_bytes : 1;
    if (rows == 0) rows = 1;
    if (rows > (size_t)set->batch) rows = (size_t)set->batch;
    size_t bytes = 0;
    if (!weir_size_mul(rows, t->from_bytes, &bytes))
      return weir_fail_memory(err, SIZE_MAX);
    m->scratch_rows[c] = (int64_t)rows;
    m->scratch[c] = weir_alloc_aligned(alloc, bytes, 64);
    if (m->scratch[c] == NULL) return weir_fail_memory(err, bytes);
  }
  return WEIR_OK;
}

weir_status weir_data_maker_init(weir_data_maker *m, const weir_dataset *set,
                                 weir_error *err) {
  const weir_allocator *alloc = set->env->alloc;
  const weir_source *source = set->source;
  m->set = set;
  m->indices = weir_alloc_array(alloc, (size_t)set->batch, sizeof *m->indices);
  m->dst = weir_alloc_array(alloc, source->column_count, sizeof *m->dst);
  m->scratch = weir_alloc_array(alloc, set->read_count, sizeof *m->scratch);
  m->scratch_rows =
      weir_alloc_array(alloc, set->read_count, sizeof *m->scratch_rows);
  if (m->indices == NULL || m->dst == NULL || m->scratch == NULL ||
      m->scratch_rows == NULL)
    return weir_fail_memory(err, (size_t)set->batch * sizeof *m->indices);
  WEIR_TRY(init_scratch(m, err));
  WEIR_TRY(weir_order_create(alloc, &set->order, &m->order, err));
  if (set->map != NULL && weir_data_map_per_example(set->map)) {
    m->map_rows = weir_alloc_array(alloc, 1, sizeof *m->map_rows);
    if (m->map_rows == NULL) return weir_fail_memory(err, sizeof *m->map_rows);
    WEIR_TRY(weir_map_rows_init(m->map_rows, set, err));
  }
  return source->vtable->cursor_create(source, &m->cursor, err);
}

void weir_data_maker_release(weir_data_maker *m) {
  if (m->set == NULL) return;
  const weir_allocator *alloc = m->set->env->alloc;
  for (uint32_t c = 0; m->scratch != NULL && c < m->set->read_count; c++)
    weir_free(alloc, m->scratch[c]);
  m->set->source->vtable->cursor_release(m->set->source, m->cursor);
  weir_order_release(m->order);
  if (m->map_rows != NULL) weir_map_rows_release(m->map_rows);
  weir_free(alloc, m->map_rows);
  weir_free(alloc, m->scratch);
  weir_free(alloc, m->scratch_rows);
  weir_free(alloc, m->dst);
  weir_free(alloc, m->indices);
  *m = (weir_data_maker){0};
}

/* The first round of an epoch; an endless epoch is never left. */
static uint64_t first_round(const weir_dataset *set, uint64_t epoch) {
  return set->repeat > 0 ? epoch * (uint64_t)set->repeat : 0;
}

void weir_data_maker_seek(weir_data_maker *m, uint64_t epoch, int64_t at) {
  m->epoch = epoch;
  m->at = at;
  m->round = first_round(m->set, epoch) + (uint64_t)(at / m->set->round);
  weir_order_seek(m->order, m->round, at % m->set->round);
}

/* The numbers of the next |rows| examples. */
static void draw(weir_data_maker *m, int64_t rows) {
  for (int64_t r = 0; r < rows; r++) {
    if (weir_order_at(m->order) == m->set->round)
      weir_order_seek(m->order, ++m->round, 0);
    m->indices[r] = weir_order_next(m->order);
  }
}

/* Examples [first, first + n) become rows from |row| on. */
static weir_status read_run(weir_data_maker *m, weir_tensor *const *out,
                            int64_t row, int64_t first, int64_t n,
                            weir_error *err) {
  const weir_dataset *set = m->set;
  for (uint32_t c = 0; c < set->read_count; c++) {
    const weir_transform *t = &set->transforms[c];
    uint8_t *to = (uint8_t *)out[c]->data + t->to_bytes * (size_t)row;
    m->dst[set->read_from[c]] = t->identity ? to : m->scratch[c];
  }
  WEIR_TRY(
      set->source->vtable->read(set->source, m->cursor, first, n, m->dst, err));
  for (uint32_t c = 0; c < set->read_count; c++) {
    const weir_transform *t = &set->transforms[c];
    uint8_t *to = (uint8_t *)out[c]->data + t->to_bytes * (size_t)row;
    if (!t->identity)
      WEIR_TRY(weir_transform_run(t, m->scratch[c], n, to, err));
  }
  return WEIR_OK;
}

static weir_status fill(weir_data_maker *m, weir_tensor *const *out,
                        int64_t rows, weir_error *err) {
  const weir_dataset *set = m->set;
  int64_t most = rows;
  for (uint32_t c = 0; c < set->read_count; c++)
    if (m->scratch[c] != NULL && m->scratch_rows[c] < most)
      most = m->scratch_rows[c];
  for (int64_t r = 0; r < rows;) {
    int64_t n = 1;
    while (r + n < rows && n < most && m->indices[r + n] == m->indices[r] + n)
      n++;
    WEIR_TRY(read_run(m, out, r, m->indices[r], n, err));
    r += n;
  }
  return WEIR_OK;
}

/* Fills a batch up with copies of its last example. */
static void pad(const weir_dataset *set, weir_tensor *const *out,
                int64_t rows) {
  for (uint32_t c = 0; c < set->read_count; c++) {
    size_t bytes = set->transforms[c].to_bytes;
    uint8_t *last = (uint8_t *)out[c]->data + bytes * (size_t)(rows - 1);
    for (int64_t r = rows; r < set->batch && bytes > 0; r++)
      memcpy(last + bytes * (size_t)(r - rows + 1), last, bytes);
  }
}

/* The number of the batch or example at hand since the start of epoch 0. */
static uint64_t step_of(const weir_data_maker *m, int64_t size) {
  const weir_dataset *set = m->set;
  uint64_t at = (uint64_t)(m->at / size);
  if (set->epoch == INT64_MAX) return at;
  return m->epoch * (uint64_t)((set->epoch + size - 1) / size) + at;
}

static weir_status map(weir_data_maker *m, weir_data_slot *slot, int64_t rows,
                       bool tail) {
  const weir_dataset *set = m->set;
  if (m->map_rows != NULL)
    return weir_map_rows_run(m->map_rows, slot->read_full, slot->full, rows,
                             step_of(m, 1), &slot->error);
  weir_run_options options = {.step = step_of(m, set->batch)};
  return weir_binding_run(tail ? slot->map_tail : slot->map_full, &options,
                          &slot->error);
}

static weir_status make(weir_data_maker *m, weir_data_slot *slot) {
  const weir_dataset *set = m->set;
  int64_t left = set->epoch - m->at;
  if (left == 0) {
    slot->batch = (weir_batch){.end_of_epoch = true};
    weir_data_maker_seek(m, m->epoch + 1, 0);
    return WEIR_OK;
  }
  assert(left > 0);
  int64_t rows = left < set->batch ? left : set->batch;
  bool tail = rows < set->batch && !set->pad;
  draw(m, rows);
  WEIR_TRY(fill(m, slot->read_full, rows, &slot->error));
  if (rows < set->batch && set->pad) pad(set, slot->read_full, rows);
  if (set->map != NULL)
    WEIR_TRY(map(m, slot, set->pad ? set->batch : rows, tail));
  slot->batch =
      (weir_batch){.rows = rows, .columns = tail ? slot->tail : slot->full};
  m->at += rows;
  return WEIR_OK;
}

weir_status weir_data_maker_next(weir_data_maker *m, weir_data_slot *slot) {
  slot->error = (weir_error)WEIR_ERROR_INIT;
  slot->status = make(m, slot);
  slot->epoch = m->epoch;
  slot->at = m->at;
  return slot->status;
}
