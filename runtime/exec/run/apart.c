/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/exec/run/apart.h"

#include <stdint.h>
#include <stdlib.h>

/* Sorted by their beginnings, tensors overlap where one begins before the
 * farthest end so far. */

/* Memory of an input or output, for the check below. */
typedef struct extent {
  uintptr_t begin, end;
  uint32_t index;
  bool output;
} extent;

static int by_begin(const void *a, const void *b) {
  const extent *x = a, *y = b;
  return (x->begin > y->begin) - (x->begin < y->begin);
}

static weir_status check_sorted(const extent *list, size_t count,
                                weir_error *err) {
  const extent *out = NULL, *in = NULL; /* that reach farthest so far */
  for (size_t i = 0; i < count; i++) {
    const extent *e = &list[i], *with = NULL;
    if (out != NULL && e->begin < out->end) with = out;
    if (e->output && in != NULL && e->begin < in->end) with = in;
    if (with != NULL)
      return weir_fail(err, WEIR_W0004, NULL, "%s %u and %s %u share memory",
                       with->output ? "output" : "input", with->index,
                       e->output ? "output" : "input", e->index);
    const extent **far = e->output ? &out : &in;
    if (*far == NULL || e->end > (*far)->end) *far = e;
  }
  return WEIR_OK;
}

weir_status weir_run_check_apart(const weir_allocator *alloc,
                                 weir_tensor *const *inputs,
                                 uint32_t input_count,
                                 weir_tensor *const *outputs,
                                 uint32_t output_count, weir_error *err) {
  size_t n = (size_t)input_count + output_count, count = 0;
  extent *list = weir_alloc_array(alloc, n, sizeof *list);
  if (list == NULL) return weir_fail_memory(err, n * sizeof *list);
  for (uint32_t i = 0; i < n; i++) {
    bool output = i >= input_count;
    uint32_t index = output ? i - input_count : i;
    const weir_tensor *t = output ? outputs[index] : inputs[index];
    if (t == NULL || t->data == NULL) continue; /* another task's */
    uintptr_t at = (uintptr_t)t->data;
    if (t->bytes > 0)
      list[count++] = (extent){at, at + t->bytes, index, output};
  }
  qsort(list, count, sizeof *list, by_begin);
  weir_status s = check_sorted(list, count, err);
  weir_free(alloc, list);
  return s;
}
