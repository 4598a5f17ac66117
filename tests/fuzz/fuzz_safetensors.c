/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "runtime/io/array/safetensors.h"
#include "runtime/io/array/safetensors_write.h"
#include "tests/fuzz/fuzz.h"

/* Opens the input as safetensors and gets every tensor; those that weir has are
 * written to a file that must read the same. */

enum { kMost = 64 };

typedef struct contents {
  weir_sv names[kMost];
  weir_tensor *tensors[kMost];
  size_t count;
} contents;

static weir_safetensors *open_bytes(weir_bytes bytes) {
  weir_error err = WEIR_ERROR_INIT;
  weir_safetensors *f = NULL;
  weir_status s = weir_safetensors_from(weir_allocator_system(), bytes, "f",
                                        NULL, NULL, &f, &err);
  FUZZ_CHECK((s == WEIR_OK) == (f != NULL));
  FUZZ_CHECK((s == WEIR_OK) == (err.id[0] == '\0'));
  return f;
}

static void get_all(weir_safetensors *f, contents *c) {
  for (size_t i = 0; i < weir_safetensors_count(f) && i < kMost; i++) {
    weir_tensor *t = NULL;
    if (weir_safetensors_get(f, i, &t, NULL) != WEIR_OK) continue;
    c->names[c->count] = weir_safetensors_name(f, i);
    c->tensors[c->count++] = t;
  }
}

static void release_all(contents *c) {
  for (size_t i = 0; i < c->count; i++) weir_tensor_unref(c->tensors[i]);
}

/* The tensor called |name| of |c|. */
static const weir_tensor *find(const contents *c, weir_sv name) {
  for (size_t i = 0; i < c->count; i++)
    if (weir_sv_equal(c->names[i], name)) return c->tensors[i];
  return NULL;
}

static void check_round_trip(const contents *c) {
  contents again = {.count = 0};
  weir_strbuf out;
  weir_strbuf_init(&out, weir_allocator_system());
  FUZZ_CHECK(weir_safetensors_write(c->names, c->tensors, c->count, &out,
                                    NULL) == WEIR_OK);
  weir_safetensors *f =
      open_bytes((weir_bytes){(const uint8_t *)out.data, out.size});
  FUZZ_CHECK(f != NULL);
  get_all(f, &again);
  FUZZ_CHECK(again.count == c->count);
  for (size_t i = 0; i < c->count; i++) {
    const weir_tensor *a = c->tensors[i], *b = find(&again, c->names[i]);
    FUZZ_CHECK(b != NULL && a->dtype == b->dtype);
    FUZZ_CHECK(weir_shape_equal(&a->shape, &b->shape));
    FUZZ_CHECK(memcmp(a->data, b->data, a->bytes) == 0);
  }
  weir_safetensors_release(f); /* before its views */
  release_all(&again);
  weir_strbuf_release(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  weir_safetensors *f = open_bytes((weir_bytes){data, size});
  contents c = {.count = 0};
  if (f == NULL) return 0;
  get_all(f, &c);
  check_round_trip(&c);
  release_all(&c);
  weir_safetensors_release(f);
  return 0;
}
