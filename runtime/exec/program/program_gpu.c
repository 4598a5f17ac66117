/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/exec/program/program_gpu.h"

#include <stdlib.h>

#include "runtime/base/size.h"
#include "runtime/exec/gpu/gpu_memory.h"

/* Of equal addresses the largest comes first, and has the copy. */

enum { kAlign = 256 };

typedef struct constant {
  const void *data;
  size_t bytes;
  uint32_t value;
} constant;

static int by_address(const void *a, const void *b) {
  const constant *x = a, *y = b;
  uintptr_t p = (uintptr_t)x->data, q = (uintptr_t)y->data;
  if (p != q) return p < q ? -1 : 1;
  return (x->bytes < y->bytes) - (x->bytes > y->bytes);
}

/* Those that an instruction reads, sorted. */
static uint32_t collect(const weir_program *p, bool *met, constant *out) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < p->slot_count; i++) {
    if (p->slot_values[i] == WEIR_NO_INDEX) continue;
    uint32_t root = p->values[p->slot_values[i]].root;
    const weir_pvalue *v = &p->values[root];
    if (v->storage != WEIR_STORAGE_CONST || met[root]) continue;
    met[root] = true;
    out[count++] = (constant){v->data, v->bytes, root};
  }
  if (count > 0) qsort(out, count, sizeof *out, by_address);
  return count;
}

static weir_status place(weir_program *p, const constant *all, uint32_t count,
                         size_t *out_bytes, weir_error *err) {
  size_t total = 0;
  for (uint32_t i = 0; i < count; i++) {
    weir_pvalue *v = &p->values[all[i].value];
    if (i > 0 && all[i].data == all[i - 1].data) {
      v->offset = p->values[all[i - 1].value].offset;
      continue;
    }
    v->offset = total;
    if (!weir_size_add(total, all[i].bytes, &total) ||
        !weir_size_align(total, kAlign, &total))
      return weir_fail(err, WEIR_W2001, NULL, "constants overflow");
  }
  *out_bytes = total;
  return WEIR_OK;
}

static weir_status write(weir_program *p, const constant *all, uint32_t count,
                         weir_error *err) {
  for (uint32_t i = 0; i < count; i++) {
    if (i > 0 && all[i].data == all[i - 1].data) continue;
    weir_device_place at = {&p->constants, p->values[all[i].value].offset};
    WEIR_TRY(weir_gpu_write(p->gpu, at, all[i].data, all[i].bytes, err));
  }
  return WEIR_OK;
}

weir_status weir_program_gpu_constants(weir_program *p, weir_error *err) {
  size_t bytes = 0;
  constant *all =
      weir_alloc_array(p->alloc, (size_t)p->value_count + 1, sizeof *all);
  bool *met =
      weir_alloc_array(p->alloc, (size_t)p->value_count + 1, sizeof *met);
  weir_status s = WEIR_OK;
  if (all == NULL || met == NULL)
    s = weir_fail_memory(err, p->value_count * sizeof *all);
  uint32_t count = s == WEIR_OK ? collect(p, met, all) : 0;
  if (s == WEIR_OK) s = place(p, all, count, &bytes, err);
  if (s == WEIR_OK && bytes > 0)
    s = weir_gpu_alloc_waiting(p->gpu, bytes, &p->constants, err);
  if (s == WEIR_OK) s = write(p, all, count, err);
  weir_free(p->alloc, all);
  weir_free(p->alloc, met);
  return s;
}

void weir_program_gpu_release(weir_program *p) {
  if (p->gpu == NULL || p->constants.handle == NULL) return;
  weir_device *d = p->gpu->gpu.device;
  d->vt->free(d, &p->constants);
}
