/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_IO_IO_CHECK_H_
#define TESTS_IO_IO_CHECK_H_

#include <stdlib.h>
#include <string.h>

#include "runtime/base/env.h"
#include "runtime/base/strbuf.h"
#include "runtime/tensor/tensor.h"
#include "tests/check.h"

/* Shared by the tests of file formats. */

/* Reads all of a format's bytes: the first tensor, or all of them. */
typedef weir_status (*io_read_fn)(const weir_allocator *alloc, weir_bytes bytes,
                                  weir_tensor **out_tensor, weir_error *err);

enum { kFixtureMost = 4096 };

/* Bytes that a test changes at will, in a block of their own size. */
typedef struct io_bytes {
  uint8_t data[2 * kFixtureMost];
  size_t size;
} io_bytes;

/* The file tests/io/data/NAME. */
static inline io_bytes io_fixture(const char *name) {
  char path[1024];
  io_bytes b = {.size = 0};
  snprintf(path, sizeof path, "%s/tests/io/data/%s",
           getenv("WEIR_SOURCE_ROOT") ? getenv("WEIR_SOURCE_ROOT") : ".", name);
  FILE *f = fopen(path, "rb");
  if (f == NULL) fail_msg("cannot open %s", path);
  b.size = fread(b.data, 1, kFixtureMost, f);
  fclose(f);
  return b;
}

static inline io_bytes io_take(weir_strbuf *text) {
  io_bytes b = {.size = text->size};
  assert_true(text->size <= kFixtureMost);
  memcpy(b.data, text->data, text->size);
  weir_strbuf_release(text);
  return b;
}

/* Reads a copy of |bytes| that ends where its block ends, with an allocator
 * that must be left empty when the tensor is released. */
static inline weir_status io_read(io_read_fn read, const void *data,
                                  size_t size, weir_error *err) {
  weir_counted_allocator c;
  weir_tensor *t = NULL;
  uint8_t *copy = malloc(size > 0 ? size : 1);
  memcpy(copy, data, size);
  weir_counted_allocator_init(&c, NULL);
  weir_status s = read(&c.base, (weir_bytes){copy, size}, &t, err);
  assert_true((s == WEIR_OK) == (t != NULL));
  weir_tensor_unref(t);
  assert_int_equal(atomic_load(&c.live_blocks), 0);
  free(copy);
  return s;
}

/* |bytes| are refused with error |id|, whose message has |says| in it. */
static inline void io_refuses(io_read_fn read, const io_bytes *bytes,
                              const char *id, const char *says) {
  weir_error err = WEIR_ERROR_INIT;
  weir_status s = io_read(read, bytes->data, bytes->size, &err);
  if (s == WEIR_OK) fail_msg("was read, but: %s", says);
  if (strcmp(err.id, id) != 0 || strstr(err.message, says) == NULL)
    fail_msg("%s %s, want %s %s", err.id, err.message, id, says);
  assert_int_equal(weir_error_exit_code(err.id), 5);
}

/* A sound file stays refused however many of its last bytes are missing. */
static inline void io_no_cut_is_read(io_read_fn read, const io_bytes *bytes) {
  weir_error err = WEIR_ERROR_INIT;
  assert_ok(io_read(read, bytes->data, bytes->size, &err), &err);
  for (size_t size = 0; size < bytes->size; size++) {
    if (io_read(read, bytes->data, size, &err) == WEIR_OK)
      fail_msg("read with %zu of %zu bytes", size, bytes->size);
    assert_int_equal(weir_error_exit_code(err.id), 5);
  }
}

/* One byte more is refused too. */
static inline void io_no_tail_is_read(io_read_fn read, const io_bytes *bytes,
                                      const char *id, const char *says) {
  io_bytes longer = *bytes;
  longer.data[longer.size++] = 0;
  io_refuses(read, &longer, id, says);
}

/* Fails the k-th allocation, once and from then on, for every k. */
static inline void io_sweep(io_read_fn read, const io_bytes *bytes) {
  for (int forever = 0; forever < 2; forever++) {
    weir_status s = WEIR_UNKNOWN;
    uint64_t k = 0;
    while (s != WEIR_OK) {
      weir_counted_allocator c;
      weir_tensor *t = NULL;
      weir_error err = WEIR_ERROR_INIT;
      weir_counted_allocator_init(&c, NULL);
      c.fail_at = ++k;
      c.fail_forever = forever;
      s = read(&c.base, (weir_bytes){bytes->data, bytes->size}, &t, &err);
      if (s != WEIR_OK) assert_string_equal(err.id, "W6001");
      assert_true((s == WEIR_OK) == (t != NULL));
      weir_tensor_unref(t);
      assert_int_equal(atomic_load(&c.live_blocks), 0);
    }
    assert_true(k > 1);
  }
}

/* Dtype, shape and elements of |t|, which is released. */
static inline void io_holds(weir_tensor *t, weir_dtype dtype, int rank,
                            const int64_t *dims, const double *values) {
  weir_shape shape = weir_shape_of(rank, dims);
  assert_int_equal(t->dtype, dtype);
  assert_true(weir_shape_equal(&t->shape, &shape));
  for (int64_t i = 0; i < weir_shape_elements(&shape); i++)
    if (weir_tensor_get_f64(t, i) != values[i])
      fail_msg("element %d is %g, want %g", (int)i, weir_tensor_get_f64(t, i),
               values[i]);
  weir_tensor_unref(t);
}

static inline weir_tensor *io_tensor(weir_dtype dtype, int rank,
                                     const int64_t *dims,
                                     const double *values) {
  weir_error err = WEIR_ERROR_INIT;
  weir_shape shape = weir_shape_of(rank, dims);
  weir_tensor *t = NULL;
  assert_ok(weir_tensor_create_shaped(weir_allocator_system(), dtype, &shape,
                                      &t, &err),
            &err);
  for (int64_t i = 0; i < weir_shape_elements(&shape); i++)
    weir_tensor_set_f64(t, i, values != NULL ? values[i] : (double)(i % 2));
  return t;
}

#endif
