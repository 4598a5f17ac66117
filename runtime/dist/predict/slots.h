/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_DIST_PREDICT_SLOTS_H_
#define WEIR_DIST_PREDICT_SLOTS_H_

#include "runtime/dist/predict/model.h"
#include "runtime/exec/session/binding.h"

/* The programs of one runner: a binding for each size of a batch, with tensors
 * of its own that rows are written to and read from. */

typedef struct weir_predict_slot {
  int64_t rows;
  weir_tensor **inputs;  /* by the model's inputs; NULL: not of the batch */
  weir_tensor **outputs; /* by the model's outputs */
  weir_binding *binding;
} weir_predict_slot;

typedef struct weir_predict_slots {
  const weir_allocator *alloc;
  const weir_predict_model *model;
  weir_predict_slot items[WEIR_PREDICT_SIZES];
  uint32_t count; /* as the model's sizes */
} weir_predict_slots;

/* Makes those of |model|, which has a batch. Release |out| also after a
 * failure. Errors: those of weir_exec_bind. */
weir_status weir_predict_slots_init(const weir_allocator *alloc,
                                    weir_exec_session *session,
                                    const weir_predict_model *model,
                                    weir_predict_slots *out, weir_error *err);
/* NULL-safe; for zeroed memory too. */
void weir_predict_slots_release(weir_predict_slots *slots);

/* The smallest one that takes |rows|, at most the model's. */
weir_predict_slot *weir_predict_slot_for(weir_predict_slots *slots,
                                         int64_t rows);

/* Row |row| of input or output |i| of |slot|. */
static inline uint8_t *weir_predict_row(const weir_predict_port *port,
                                        const weir_tensor *tensor,
                                        int64_t row) {
  return (uint8_t *)tensor->data + (size_t)row * port->row_bytes;
}

#endif
