/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/tensor/shape.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/size.h"

bool weir_dim_unify(weir_dim a, weir_dim b, weir_dim *out) {
  *out = weir_dim_known(b) && !weir_dim_known(a) ? b : a;
  if (out->name == 0) out->name = a.name != 0 ? a.name : b.name;
  if (a.symbol == b.symbol) return a.value == b.value;
  return true;
}

bool weir_shape_known(const weir_shape *shape) {
  if (shape->rank < 0) return false;
  for (int i = 0; i < shape->rank; i++)
    if (shape->dims[i].symbol != 0) return false;
  return true;
}

bool weir_shape_equal(const weir_shape *a, const weir_shape *b) {
  if (a->rank != b->rank) return false;
  for (int i = 0; i < a->rank; i++)
    if (!weir_dim_equal(a->dims[i], b->dims[i])) return false;
  return true;
}

bool weir_shape_same(const weir_shape *a, const weir_shape *b) {
  if (!weir_shape_equal(a, b)) return false;
  for (int i = 0; i < a->rank; i++)
    if (a->dims[i].name != b->dims[i].name) return false;
  return true;
}

/* All bytes are set, padding too, since shapes are hashed as bytes. */
weir_shape weir_shape_of(int rank, const int64_t *dims) {
  assert(rank <= WEIR_MAX_RANK);
  weir_shape shape;
  memset(&shape, 0, sizeof shape);
  shape.rank = rank;
  for (int i = 0; i < rank; i++) shape.dims[i].value = dims[i];
  return shape;
}

weir_status weir_shape_check(const weir_shape *shape, weir_dtype dtype,
                             weir_error *err) {
  if (shape->rank > WEIR_MAX_RANK)
    return weir_fail(err, WEIR_W2003, NULL, "rank %d, at most %d",
                     (int)shape->rank, WEIR_MAX_RANK);
  int64_t bytes = (int64_t)weir_dtype_size(dtype);
  if (bytes == 0) bytes = 1;
  for (int i = 0; i < shape->rank; i++) {
    weir_dim d = shape->dims[i];
    if (d.symbol != 0) continue;
    if (d.value < 0)
      return weir_fail(err, WEIR_W2002, NULL, "dimension %d is %" PRId64, i,
                       d.value);
    /* A 0 counts as 1: [2^40, 2^40, 0] has no bytes, but a product of some of
     * its dimensions, a stride for one, would overflow. */
    int64_t factor = d.value > 0 ? d.value : 1;
    if (!weir_dim_mul_checked(bytes, factor, &bytes)) {
      char text[256];
      return weir_fail(err, WEIR_W2001, NULL,
                       "shape %s has more than 2^63 bytes",
                       weir_shape_print(shape, NULL, NULL, text, sizeof text));
    }
  }
  return WEIR_OK;
}

int64_t weir_shape_elements(const weir_shape *shape) {
  int64_t n = 1;
  for (int i = 0; i < shape->rank; i++) n *= shape->dims[i].value;
  return n;
}

size_t weir_shape_bytes(const weir_shape *shape, weir_dtype dtype) {
  return (size_t)weir_shape_elements(shape) * weir_dtype_size(dtype);
}

static int print_dim(weir_dim d, weir_symbol_name_fn symbol_name,
                     const void *self, char *text, size_t capacity) {
  if (d.symbol == 0) return snprintf(text, capacity, "%" PRId64, d.value);
  const char *name = symbol_name ? symbol_name(self, d.symbol) : "?";
  if (d.value == 0) return snprintf(text, capacity, "%s", name);
  return snprintf(text, capacity, "%s %c %" PRIu64, name,
                  d.value < 0 ? '-' : '+',
                  d.value < 0 ? 0 - (uint64_t)d.value : (uint64_t)d.value);
}

char *weir_shape_print(const weir_shape *shape, weir_symbol_name_fn symbol_name,
                       const void *self, char *text, size_t capacity) {
  if (shape->rank < 0) {
    snprintf(text, capacity, "[?...]");
    return text;
  }
  size_t n = (size_t)snprintf(text, capacity, "[");
  for (int i = 0; i < shape->rank && n < capacity; i++) {
    if (i > 0) n += (size_t)snprintf(text + n, capacity - n, ", ");
    if (n >= capacity) break;
    n += (size_t)print_dim(shape->dims[i], symbol_name, self, text + n,
                           capacity - n);
  }
  if (n < capacity) snprintf(text + n, capacity - n, "]");
  return text;
}
