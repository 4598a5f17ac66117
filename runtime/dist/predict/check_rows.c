/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/dist/predict/check_rows.h"

#include <string.h>

#include "runtime/base/mix.h"

/* Do rows depend on each other? Shapes cannot tell: a batch norm of the batch
 * itself, or a product from the left, has outputs of the right shape. Nor do
 * they tell whether a kernel adds in another order for another size. So it is
 * tried, with random rows x[0], x[1], ... of n:
 *
 *   x[0], x[1], ..., x[n-1]     the answers that others are compared with
 *   y[0], x[n-2], y[1], ...     every other one at its mirrored place, between
 *                               new rows
 *   x[0], ..., x[s-1]           for each smaller size s
 *
 * Sums of random floats in another order differ in some bit of some row with
 * near certainty. Cost: a run of each size, and one more. */

typedef struct probe {
  weir_predict_slots *slots;
  weir_predict_model *model;
  uint8_t **inputs, **outputs; /* rows of the first batch */
  uint64_t random;
} probe;

static void fill_row(probe *p, const weir_predict_port *port, uint8_t *row) {
  size_t size = weir_dtype_size(port->dtype);
  for (size_t at = 0; at < port->row_bytes; at += size) {
    uint64_t bits = weir_mix_next(&p->random);
    double real = (double)(int64_t)(bits >> 11) * 0x1p-52 - 1; /* [-1, 1) */
    float f32 = (float)real;
    int32_t i32 = (int32_t)(bits >> 63);
    int64_t i64 = i32; /* small: it may be an index */
    uint8_t u8 = port->dtype == WEIR_BOOL ? (uint8_t)i32 : (uint8_t)bits;
    const void *value = port->dtype == WEIR_F32   ? (const void *)&f32
                        : port->dtype == WEIR_F64 ? (const void *)&real
                        : port->dtype == WEIR_I32 ? (const void *)&i32
                        : port->dtype == WEIR_I64 ? (const void *)&i64
                                                  : (const void *)&u8;
    memcpy(row + at, value, size);
  }
}

static weir_status make_copies(probe *p, weir_error *err) {
  const weir_predict_model *m = p->model;
  const weir_allocator *a = p->slots->alloc;
  p->inputs = weir_alloc_array(a, m->input_count, sizeof *p->inputs);
  p->outputs = weir_alloc_array(a, m->output_count, sizeof *p->outputs);
  if (p->inputs == NULL || p->outputs == NULL)
    return weir_fail_memory(err, m->input_count);
  for (uint32_t i = 0; i < m->input_count + m->output_count; i++) {
    bool in = i < m->input_count;
    uint32_t k = in ? i : i - m->input_count;
    const weir_predict_port *port = in ? &m->inputs[k] : &m->outputs[k];
    uint8_t **to = in ? &p->inputs[k] : &p->outputs[k];
    if (!port->batched) continue;
    *to = weir_alloc_array(a, (size_t)m->rows, port->row_bytes);
    if (*to == NULL) return weir_fail_memory(err, port->row_bytes);
  }
  return WEIR_OK;
}

static void free_copies(probe *p) {
  const weir_predict_model *m = p->model;
  const weir_allocator *a = p->slots->alloc;
  for (uint32_t i = 0; p->inputs != NULL && i < m->input_count; i++)
    weir_free(a, p->inputs[i]);
  for (uint32_t k = 0; p->outputs != NULL && k < m->output_count; k++)
    weir_free(a, p->outputs[k]);
  weir_free(a, p->inputs);
  weir_free(a, p->outputs);
}

/* Row |from| of the first batch, or a new one (-1), to row |to| of |slot|. */
static void put_row(probe *p, const weir_predict_slot *slot, int64_t from,
                    int64_t to) {
  for (uint32_t i = 0; i < p->model->input_count; i++) {
    const weir_predict_port *port = &p->model->inputs[i];
    if (!port->batched) continue;
    uint8_t *row = weir_predict_row(port, slot->inputs[i], to);
    if (from < 0)
      fill_row(p, port, row);
    else
      memcpy(row, p->inputs[i] + (size_t)from * port->row_bytes,
             port->row_bytes);
  }
}

/* Whether row |at| of |slot| has the bits of row |of| of the first batch. */
static bool same_row(const probe *p, const weir_predict_slot *slot, int64_t of,
                     int64_t at) {
  for (uint32_t k = 0; k < p->model->output_count; k++) {
    const weir_predict_port *port = &p->model->outputs[k];
    if (memcmp(weir_predict_row(port, slot->outputs[k], at),
               p->outputs[k] + (size_t)of * port->row_bytes,
               port->row_bytes) != 0)
      return false;
  }
  return true;
}

static weir_status first_batch(probe *p, const weir_predict_slot *slot,
                               weir_error *err) {
  for (int64_t r = 0; r < slot->rows; r++) put_row(p, slot, -1, r);
  for (uint32_t i = 0; i < p->model->input_count; i++)
    if (slot->inputs[i] != NULL)
      memcpy(p->inputs[i], slot->inputs[i]->data, slot->inputs[i]->bytes);
  WEIR_TRY(weir_binding_run(slot->binding, NULL, err));
  for (uint32_t k = 0; k < p->model->output_count; k++)
    memcpy(p->outputs[k], slot->outputs[k]->data, slot->outputs[k]->bytes);
  return WEIR_OK;
}

static weir_status mirrored(probe *p, const weir_predict_slot *slot,
                            bool *out_same, weir_error *err) {
  int64_t n = slot->rows;
  for (int64_t r = 0; r < n; r++)
    put_row(p, slot, r % 2 == 0 ? -1 : n - 1 - r, r);
  WEIR_TRY(weir_binding_run(slot->binding, NULL, err));
  *out_same = true;
  for (int64_t r = 1; r < n; r += 2)
    *out_same = *out_same && same_row(p, slot, n - 1 - r, r);
  return WEIR_OK;
}

static weir_status smaller(probe *p, const weir_predict_slot *slot,
                           bool *out_same, weir_error *err) {
  for (int64_t r = 0; r < slot->rows; r++) put_row(p, slot, r, r);
  WEIR_TRY(weir_binding_run(slot->binding, NULL, err));
  *out_same = true;
  for (int64_t r = 0; r < slot->rows; r++)
    *out_same = *out_same && same_row(p, slot, r, r);
  return WEIR_OK;
}

static weir_status check(probe *p, weir_error *err) {
  weir_predict_model *m = p->model;
  const weir_predict_slots *slots = p->slots;
  const weir_predict_slot *full = &slots->items[slots->count - 1];
  uint32_t kept = 0;
  bool same;
  WEIR_TRY(make_copies(p, err));
  WEIR_TRY(first_batch(p, full, err));
  WEIR_TRY(mirrored(p, full, &same, err));
  if (!same) {
    weir_predict_model_alone(m, "rows of a batch depend on each other");
    return WEIR_OK;
  }
  for (uint32_t i = 0; i + 1 < slots->count; i++) {
    WEIR_TRY(smaller(p, &slots->items[i], &same, err));
    if (same) m->sizes[kept++] = slots->items[i].rows;
  }
  m->sizes[kept++] = full->rows;
  m->size_count = kept;
  return WEIR_OK;
}

weir_status weir_predict_check_rows(weir_predict_slots *slots,
                                    weir_predict_model *model,
                                    weir_error *err) {
  probe p = {.slots = slots, .model = model};
  weir_error why = WEIR_ERROR_INIT;
  weir_status s = check(&p, &why);
  free_copies(&p);
  bool ours = s == WEIR_OK || s == WEIR_RESOURCE_EXHAUSTED ||
              s == WEIR_UNAVAILABLE || s == WEIR_CANCELLED ||
              s == WEIR_DEADLINE_EXCEEDED;
  if (!ours)
    weir_predict_model_alone(model, "a batch of random rows fails: %.120s",
                             why.message);
  if (ours && s != WEIR_OK && err != NULL) *err = why;
  return ours ? s : WEIR_OK;
}
