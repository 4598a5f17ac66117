/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/io/array/png.h"
#include "tests/fuzz/fuzz.h"

/* Reads the input as PNG. Memory is bounded by the input: a bit may stand for
 * four bytes, and deflate for 1032 times its size. */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  weir_error err = WEIR_ERROR_INIT;
  weir_tensor *t = NULL;
  weir_status s = weir_png_read(weir_allocator_system(),
                                (weir_bytes){data, size}, "f", &t, &err);
  FUZZ_CHECK((s == WEIR_OK) == (t != NULL));
  FUZZ_CHECK((s == WEIR_OK) == (err.id[0] == '\0'));
  if (t != NULL) {
    FUZZ_CHECK(t->shape.rank == 3 && t->dtype == WEIR_U8);
    FUZZ_CHECK(t->bytes / 32 <= (size + 1) * 1032);
  }
  weir_tensor_unref(t);
  return 0;
}
