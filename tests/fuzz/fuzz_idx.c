/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/io/array/idx.h"
#include "runtime/io/inflate.h"
#include "tests/fuzz/fuzz.h"

/* Reads the input as IDX, plain or gzip. The tensor is no larger than the
 * input allows; i8 becomes i32, four times its bytes. */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  weir_error err = WEIR_ERROR_INIT;
  weir_tensor *t = NULL;
  weir_bytes bytes = {data, size};
  weir_status s = weir_idx_read(weir_allocator_system(), bytes, "f", &t, &err);
  FUZZ_CHECK((s == WEIR_OK) == (t != NULL));
  FUZZ_CHECK((s == WEIR_OK) == (err.id[0] == '\0'));
  if (t == NULL) return 0;
  uint64_t most = weir_gzip_is(bytes) ? weir_inflate_most(size) : size;
  FUZZ_CHECK(t->bytes <= 4 * most);
  FUZZ_CHECK(t->shape.rank >= 1 && t->shape.rank <= WEIR_MAX_RANK);
  for (int64_t i = 0; i < weir_shape_elements(&t->shape); i += 97)
    (void)weir_tensor_get_f64(t, i);
  weir_tensor_unref(t);
  return 0;
}
