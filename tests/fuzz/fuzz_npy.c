/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "runtime/io/array/npy.h"
#include "tests/fuzz/fuzz.h"

/* Reads the input as .npy; a tensor is written again and must read the same. */

static void check_round_trip(const weir_tensor *t) {
  weir_strbuf out;
  weir_tensor *again = NULL;
  weir_strbuf_init(&out, weir_allocator_system());
  FUZZ_CHECK(weir_npy_write(t, &out, NULL) == WEIR_OK);
  weir_bytes bytes = {(const uint8_t *)out.data, out.size};
  FUZZ_CHECK(weir_npy_read(weir_allocator_system(), bytes, "f", &again, NULL) ==
             WEIR_OK);
  FUZZ_CHECK(again->dtype == t->dtype);
  FUZZ_CHECK(weir_shape_equal(&again->shape, &t->shape));
  FUZZ_CHECK(memcmp(again->data, t->data, t->bytes) == 0);
  weir_tensor_unref(again);
  weir_strbuf_release(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  weir_error err = WEIR_ERROR_INIT;
  weir_tensor *t = NULL;
  weir_status s = weir_npy_read(weir_allocator_system(),
                                (weir_bytes){data, size}, "f", &t, &err);
  FUZZ_CHECK((s == WEIR_OK) == (t != NULL));
  FUZZ_CHECK((s == WEIR_OK) == (err.id[0] == '\0'));
  if (t != NULL) FUZZ_CHECK(t->bytes < size);
  if (t != NULL) check_round_trip(t);
  weir_tensor_unref(t);
  return 0;
}
