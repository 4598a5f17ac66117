/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/io/checkpoint/convert.h"

#include <string.h>

weir_status weir_io_check_shape(const weir_shape *shape, weir_dtype dtype,
                                weir_error_id id, const char *file,
                                weir_error *err) {
  weir_error inner = WEIR_ERROR_INIT;
  weir_mark at = {.file = file};
  if (weir_shape_check(shape, dtype, &inner) == WEIR_OK) return WEIR_OK;
  return weir_fail(err, id, &at, "%s", inner.message);
}

void weir_io_swap(void *data, size_t count, size_t size) {
  uint8_t *p = data;
  for (size_t i = 0; i < count; i++) {
    if (size == 4) {
      uint32_t v;
      memcpy(&v, p + 4 * i, 4);
      v = __builtin_bswap32(v);
      memcpy(p + 4 * i, &v, 4);
    } else if (size == 8) {
      uint64_t v;
      memcpy(&v, p + 8 * i, 8);
      v = __builtin_bswap64(v);
      memcpy(p + 8 * i, &v, 8);
    }
  }
}

void weir_io_normalise_bool(void *data, size_t count) {
  uint8_t *p = data;
  for (size_t i = 0; i < count; i++) p[i] = p[i] != 0;
}

bool weir_io_is_bool(const void *data, size_t count) {
  const uint8_t *p = data;
  uint8_t seen = 0;
  for (size_t i = 0; i < count; i++) seen |= p[i];
  return seen <= 1;
}

/* One row of |dst|: its elements stand |step| bytes apart in |src|. The sizes
 * are spelt out, so that a copy of an element is one move. */
static void copy_row(uint8_t *dst, const uint8_t *src, size_t step,
                     size_t count, size_t size) {
  for (size_t i = 0; i < count; i++) {
    if (size == 1)
      dst[i] = src[i * step];
    else if (size == 4)
      memcpy(dst + 4 * i, src + i * step, 4);
    else
      memcpy(dst + 8 * i, src + i * step, 8);
  }
}

/* Walks over |dst| row by row, with a counter for each outer dimension in place
 * of divisions: writes run forward, reads jump. */
void weir_io_copy_fortran(weir_tensor *dst, const uint8_t *src) {
  size_t size = weir_dtype_size(dst->dtype), steps[WEIR_MAX_RANK] = {0};
  size_t at[WEIR_MAX_RANK] = {0}, from = 0, step = size;
  int last = dst->shape.rank - 1;
  if (dst->bytes == 0) return;
  if (last < 0) copy_row(dst->data, src, size, 1, size);
  for (int d = 0; d <= last; d++) { /* fits: the shape was checked */
    steps[d] = step;
    step *= (size_t)dst->shape.dims[d].value;
  }
  size_t row = last < 0 ? 0 : (size_t)dst->shape.dims[last].value;
  for (size_t done = 0; last >= 0 && done < dst->bytes; done += row * size) {
    copy_row((uint8_t *)dst->data + done, src + from, steps[last], row, size);
    for (int d = last - 1; d >= 0; d--) { /* the next row's start */
      from += steps[d];
      if (++at[d] < (size_t)dst->shape.dims[d].value) break;
      from -= steps[d] * at[d];
      at[d] = 0;
    }
  }
}

/* A heap sort: n log n for every input, a hostile one too, without recursion
 * and without memory, which qsort may take outside the allocator. */
static bool before(const weir_io_span *a, const weir_io_span *b) {
  if (a->begin != b->begin) return a->begin < b->begin;
  if (a->end != b->end) return a->end < b->end;
  return a->index < b->index;
}

/* Lets spans[root] sink to its place in the heap of |count| spans. */
static void sink(weir_io_span *spans, size_t root, size_t count) {
  weir_io_span moving = spans[root];
  for (size_t child; (child = 2 * root + 1) < count; root = child) {
    if (child + 1 < count && before(&spans[child], &spans[child + 1])) child++;
    if (!before(&moving, &spans[child])) break;
    spans[root] = spans[child];
  }
  spans[root] = moving;
}

void weir_io_sort_spans(weir_io_span *spans, size_t count) {
  for (size_t i = count / 2; i-- > 0;) sink(spans, i, count);
  for (size_t end = count; end-- > 1;) {
    weir_io_span largest = spans[0];
    spans[0] = spans[end];
    spans[end] = largest;
    sink(spans, 0, end);
  }
}
