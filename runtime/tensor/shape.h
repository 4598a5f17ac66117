/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_TENSOR_SHAPE_H_
#define WEIR_TENSOR_SHAPE_H_

#include "runtime/base/status.h"
#include "runtime/tensor/dtype.h"

/* Shapes.
 *
 * A dimension is a number, or a symbol plus a number: `batch`, `batch + 1`.
 * Symbols are small integers given out by a graph; symbol 0 means "none", so
 * a known dimension is {0, value}. A Shape whose number of elements or bytes
 * overflows cannot be built: all shapes pass weir_shape_check. */

enum { WEIR_MAX_RANK = 8 };

typedef struct weir_dim {
  int64_t value;   /* the size, or the number added to the symbol */
  uint32_t symbol; /* 0: the size is known */
  /* The dimension's own name, as a symbol of the graph: how a mesh knows it
   * from others of its size. 0: none. Copies keep it, arithmetic drops it. */
  uint32_t name;
} weir_dim;

typedef struct weir_shape {
  int32_t rank; /* 0 to 8; WEIR_RANK_UNKNOWN: nothing is known */
  int32_t zero; /* always 0 */
  weir_dim dims[WEIR_MAX_RANK]; /* those past the rank are all zero */
} weir_shape;

#define WEIR_RANK_UNKNOWN (-1)

static inline weir_dim weir_dim_of(int64_t value) {
  return (weir_dim){value, 0, 0};
}

static inline bool weir_dim_known(weir_dim d) {
  return d.symbol == 0;
}

/* Of one size; names play no part. */
static inline bool weir_dim_equal(weir_dim a, weir_dim b) {
  return a.value == b.value && a.symbol == b.symbol;
}

static inline bool weir_dim_is(weir_dim d, int64_t value) {
  return d.symbol == 0 && d.value == value;
}

/* Whether |a| and |b| can be equal; |*out| is the better known of them. Two
 * symbols, or a symbol and a number, can be (it is checked again once known).
 */
bool weir_dim_unify(weir_dim a, weir_dim b, weir_dim *out);

/* True when every dimension is a number. */
bool weir_shape_known(const weir_shape *shape);
/* Whether sizes are equal; names play no part. */
bool weir_shape_equal(const weir_shape *a, const weir_shape *b);
/* Whether names are equal too. */
bool weir_shape_same(const weir_shape *a, const weir_shape *b);
/* A shape of known dimensions, unchecked; |rank| at most WEIR_MAX_RANK. */
weir_shape weir_shape_of(int rank, const int64_t *dims);

/* Checks rank, signs, and that elements and bytes fit 63 bits in any order of
 * the product (a 0 hides nothing). Symbols count as 1.
 * Errors: W2001, W2002, W2003. */
weir_status weir_shape_check(const weir_shape *shape, weir_dtype dtype,
                             weir_error *err);

/* Elements and bytes of a known, checked shape. */
int64_t weir_shape_elements(const weir_shape *shape);
size_t weir_shape_bytes(const weir_shape *shape, weir_dtype dtype);

/* Writes "[64, 784]" to |text| (always terminated) and returns it.
 * |symbol_name| gives the name of a symbol; NULL prints "?". */
typedef const char *(*weir_symbol_name_fn)(const void *self, uint32_t symbol);
char *weir_shape_print(const weir_shape *shape, weir_symbol_name_fn symbol_name,
                       const void *self, char *text, size_t capacity);

#endif
