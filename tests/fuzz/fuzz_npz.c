/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "runtime/io/array/npz.h"
#include "runtime/io/array/npz_write.h"
#include "tests/fuzz/fuzz.h"

/* Opens the input as .npz and reads its members; when all can be read, they are
 * written to an archive that must read the same. */

typedef struct members {
  weir_sv names[WEIR_NPZ_MEMBERS];
  weir_tensor *tensors[WEIR_NPZ_MEMBERS];
  size_t count;
} members;

/* False when a member cannot be read. */
static bool read_all(const weir_npz *npz, members *m) {
  bool all = true;
  m->count = weir_npz_count(npz);
  FUZZ_CHECK(m->count <= WEIR_NPZ_MEMBERS);
  for (size_t i = 0; i < m->count; i++) {
    weir_error err = WEIR_ERROR_INIT;
    m->names[i] = weir_npz_name(npz, i);
    weir_status s = weir_npz_read(npz, i, &m->tensors[i], &err);
    FUZZ_CHECK((s == WEIR_OK) == (m->tensors[i] != NULL));
    FUZZ_CHECK((s == WEIR_OK) == (err.id[0] == '\0'));
    all = all && s == WEIR_OK;
  }
  return all;
}

static void release_all(members *m) {
  for (size_t i = 0; i < m->count; i++) weir_tensor_unref(m->tensors[i]);
  free(m);
}

static members *new_members(void) {
  members *m = calloc(1, sizeof *m);
  FUZZ_CHECK(m != NULL);
  return m;
}

static void check_round_trip(const members *m) {
  weir_npz *npz = NULL;
  members *again = new_members();
  weir_strbuf out;
  weir_strbuf_init(&out, weir_allocator_system());
  FUZZ_CHECK(weir_npz_write(m->names, m->tensors, m->count, &out, NULL) ==
             WEIR_OK);
  weir_bytes bytes = {(const uint8_t *)out.data, out.size};
  FUZZ_CHECK(weir_npz_open(weir_allocator_system(), bytes, "f", &npz, NULL) ==
             WEIR_OK);
  FUZZ_CHECK(read_all(npz, again) && again->count == m->count);
  for (size_t i = 0; i < m->count; i++) {
    const weir_tensor *a = m->tensors[i], *b = again->tensors[i];
    FUZZ_CHECK(weir_sv_equal(m->names[i], again->names[i]));
    FUZZ_CHECK(a->dtype == b->dtype && weir_shape_equal(&a->shape, &b->shape));
    FUZZ_CHECK(memcmp(a->data, b->data, a->bytes) == 0);
  }
  release_all(again);
  weir_npz_release(npz);
  weir_strbuf_release(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  weir_error err = WEIR_ERROR_INIT;
  weir_npz *npz = NULL;
  weir_status s = weir_npz_open(weir_allocator_system(),
                                (weir_bytes){data, size}, "f", &npz, &err);
  FUZZ_CHECK((s == WEIR_OK) == (npz != NULL));
  FUZZ_CHECK((s == WEIR_OK) == (err.id[0] == '\0'));
  if (npz == NULL) return 0;
  members *m = new_members();
  if (read_all(npz, m)) check_round_trip(m);
  release_all(m);
  weir_npz_release(npz);
  return 0;
}
