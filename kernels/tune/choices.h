/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_TUNE_CHOICES_H_
#define KERNELS_TUNE_CHOICES_H_

#include "kernels/tune/calls.h"
#include "runtime/base/strbuf.h"
#include "runtime/base/vec.h"
#include "runtime/device/gemm.h"

/* A file of choices, in memory. It has a part for each kind of device, one of
 * them at least; `cpu` stands in calls.h.
 *
 *   tuned: 1
 *   gpu:
 *     name: "NVIDIA H100 80GB HBM3"
 *     library: "cuBLASLt 13.1.0"
 *     products:
 *       - {type: f32, epilogue: relu_bias, m: 64, ..., id: 66, tile: 20, ...}
 *
 * A product has all keys of WEIR_TUNE_KEY_LIST and WEIR_GEMM_NUMBER_LIST. */

enum {
  WEIR_TUNE_FILE_BYTES = 8 << 20,
  WEIR_TUNE_PRODUCTS = 4096 /* of a file, at most */
};

/* All of a description that an algorithm may depend on, as numbers. X(name) */
#define WEIR_TUNE_KEY_LIST(X) \
  X(type)                     \
  X(epilogue)                 \
  X(m)                        \
  X(n)                        \
  X(k)                        \
  X(batch)                    \
  X(a_transposed)             \
  X(b_transposed)             \
  X(a_ld)                     \
  X(a_stride)                 \
  X(b_ld)                     \
  X(b_stride)                 \
  X(c_ld)                     \
  X(c_stride)                 \
  X(d_ld)                     \
  X(d_stride)                 \
  X(adds_c)                   \
  X(align)

enum {
#define WEIR_TUNE_KEY_ROW(name) WEIR_TUNE_KEY_##name,
  WEIR_TUNE_KEY_LIST(WEIR_TUNE_KEY_ROW)
#undef WEIR_TUNE_KEY_ROW
      WEIR_TUNE_KEYS
};

typedef struct weir_tune_key {
  int64_t numbers[WEIR_TUNE_KEYS];
} weir_tune_key;

typedef struct weir_tune_product {
  weir_tune_key key;
  weir_gemm_choice choice;
} weir_tune_product;

/* All zero: none. */
typedef struct weir_tune_choices {
  weir_gemm_library of; /* empty names: of nothing yet */
  WEIR_VEC(weir_tune_product) products;
  weir_tune_calls cpu;
} weir_tune_choices;

/* The key of |desc|: what does not matter for it is 0. */
weir_tune_key weir_tune_key_of(const weir_gemm_desc *desc);

/* NULL: there is none of that key. */
const weir_tune_product *weir_tune_find(const weir_tune_choices *choices,
                                        const weir_tune_key *key);

/* Adds |product|, whose key is a new one. Errors: W6001. */
weir_status weir_tune_add(const weir_allocator *alloc,
                          weir_tune_choices *choices,
                          const weir_tune_product *product, weir_error *err);

/* Reads a file's |text|, called |name|, into |out|, which is empty and is freed
 * also after a failure. The text is not trusted. Errors: W6006 and those of
 * YAML, with the place; W6001. */
weir_status weir_tune_read(const weir_allocator *alloc, weir_sv text,
                           const char *name, weir_tune_choices *out,
                           weir_error *err);

/* Appends the file to |out|. */
void weir_tune_write(const weir_tune_choices *choices, weir_strbuf *out);

/* Adds a call, whose text is a new one. Errors: W6001. */
weir_status weir_tune_add_call(const weir_allocator *alloc,
                               weir_tune_choices *choices,
                               const weir_tune_call *call, weir_error *err);

/* Leaves |choices| empty. */
void weir_tune_free(const weir_allocator *alloc, weir_tune_choices *choices);

#endif
