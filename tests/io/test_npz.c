/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/io/array/npz.h"
#include "runtime/io/array/npz_write.h"

#include "tests/io/io_check.h"

/* Reads every member; gives the last. */
static weir_status read_npz(const weir_allocator *alloc, weir_bytes bytes,
                            weir_tensor **out_tensor, weir_error *err) {
  weir_npz *npz = NULL;
  weir_tensor *t = NULL;
  weir_status s = weir_npz_open(alloc, bytes, "x.npz", &npz, err);
  for (size_t i = 0; s == WEIR_OK && i < weir_npz_count(npz); i++) {
    weir_tensor_unref(t);
    s = weir_npz_read(npz, i, &t, err);
  }
  weir_npz_release(npz);
  *out_tensor = t;
  return s;
}

static weir_tensor *member(weir_npz *npz, size_t i, const char *name) {
  weir_error err = WEIR_ERROR_INIT;
  weir_tensor *t = NULL;
  assert_true(weir_sv_is(weir_npz_name(npz, i), name));
  assert_ok(weir_npz_read(npz, i, &t, &err), &err);
  return t;
}

static weir_npz *open_npz(const io_bytes *b) {
  weir_error err = WEIR_ERROR_INIT;
  weir_npz *npz = NULL;
  assert_ok(weir_npz_open(weir_allocator_system(),
                          (weir_bytes){b->data, b->size}, "x.npz", &npz, &err),
            &err);
  return npz;
}

static const double kGrid[] = {0.5, 1.5, 2.5, 3.5, 4.5, 5.5};

static void reads_what_numpy_writes(void **state) {
  (void)state;
  static const double zeros[3000];
  double cube[24];
  for (int i = 0; i < 24; i++) cube[i] = i - 3;
  io_bytes b = io_fixture("stored.npz");
  weir_npz *npz = open_npz(&b);
  assert_int_equal(weir_npz_count(npz), 2);
  io_holds(member(npz, 0, "grid"), WEIR_F32, 2, (int64_t[]){2, 3}, kGrid);
  io_holds(member(npz, 1, "cube"), WEIR_I64, 3, (int64_t[]){2, 3, 4}, cube);
  weir_npz_release(npz);
  b = io_fixture("deflated.npz");
  npz = open_npz(&b);
  io_holds(member(npz, 0, "grid"), WEIR_F32, 2, (int64_t[]){2, 3}, kGrid);
  io_holds(member(npz, 1, "zeros"), WEIR_I32, 1, (int64_t[]){3000}, zeros);
  weir_npz_release(npz);
  weir_npz_release(NULL);
}

/* --- writing --- */

static weir_status write_two(const weir_allocator *alloc, const char *first,
                             const char *second, weir_strbuf *out,
                             weir_error *err) {
  weir_sv names[] = {weir_sv_from(first), weir_sv_from(second)};
  weir_tensor *tensors[] = {io_tensor(WEIR_F32, 2, (int64_t[]){2, 3}, kGrid),
                            io_tensor(WEIR_BOOL, 1, (int64_t[]){3}, NULL)};
  weir_strbuf_init(out, alloc);
  weir_status s = weir_npz_write(names, tensors, 2, out, err);
  weir_tensor_unref(tensors[0]);
  weir_tensor_unref(tensors[1]);
  return s;
}

static io_bytes two_members(void) {
  weir_error err = WEIR_ERROR_INIT;
  weir_strbuf out;
  assert_ok(write_two(weir_allocator_system(), "a", "b/c", &out, &err), &err);
  return io_take(&out);
}

static void writes(void **state) {
  (void)state;
  io_bytes b = two_members();
  weir_npz *npz = open_npz(&b);
  assert_int_equal(weir_npz_count(npz), 2);
  io_holds(member(npz, 0, "a"), WEIR_F32, 2, (int64_t[]){2, 3}, kGrid);
  io_holds(member(npz, 1, "b/c"), WEIR_BOOL, 1, (int64_t[]){3},
           (double[]){0, 1, 0});
  weir_npz_release(npz);
  /* The first header, in full: stored, UTF-8, 1980-01-01. */
  assert_memory_equal(b.data,
                      "PK\3\4\x14\0\0\x08\0\0\0\0\x21\0\xf7\x4a\x99\xcb"
                      "\x98\0\0\0\x98\0\0\0\x05\0\0\0a.npy\x93NUMPY",
                      41);
}

static void refuses_to_write(void **state) {
  (void)state;
  const char *bad[] = {"../a", "/a", "", "a\\b", "a\nb", "x/../y", "\xff"};
  weir_error err = WEIR_ERROR_INIT;
  weir_strbuf out;
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    assert_error(write_two(weir_allocator_system(), "a", bad[i], &out, &err),
                 &err, "W5009");
    weir_strbuf_release(&out);
  }
  assert_error(write_two(weir_allocator_system(), "a", "a", &out, &err), &err,
               "W5009");
  weir_strbuf_release(&out);
  weir_strbuf_init(&out, weir_allocator_system());
  assert_error(weir_npz_write(NULL, NULL, 4097, &out, &err), &err, "W5009");
}

static void no_memory_to_write(void **state) {
  (void)state;
  weir_status s = WEIR_UNKNOWN;
  for (uint64_t k = 1; s != WEIR_OK; k++) {
    weir_counted_allocator c;
    weir_strbuf out;
    weir_error err = WEIR_ERROR_INIT;
    weir_counted_allocator_init(&c, NULL);
    c.fail_at = k;
    s = write_two(&c.base, "a", "b", &out, &err);
    if (s != WEIR_OK) assert_string_equal(err.id, "W6001");
    weir_strbuf_release(&out);
    assert_int_equal(atomic_load(&c.live_blocks), 0);
  }
}

static void no_members(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_strbuf out;
  weir_strbuf_init(&out, weir_allocator_system());
  assert_ok(weir_npz_write(NULL, NULL, 0, &out, &err), &err);
  io_bytes b = io_take(&out);
  assert_int_equal(b.size, 22);
  weir_npz *npz = open_npz(&b);
  assert_int_equal(weir_npz_count(npz), 0);
  weir_npz_release(npz);
}

static void cuts_and_memory(void **state) {
  (void)state;
  const char *names[] = {"stored.npz", "deflated.npz"};
  for (int i = 0; i < 2; i++) {
    io_bytes b = io_fixture(names[i]);
    io_no_cut_is_read(read_npz, &b);
    io_no_tail_is_read(read_npz, &b, "W4004", "no end record");
    io_sweep(read_npz, &b);
  }
}

/* --- bad archives (F05) --- */

/* Where the parts of two_members() stand. */
enum {
  kEnd = 22,
  kEntry = 46,
  kLocal = 30,
  kNameA = 5, /* "a.npy" */
  kNameB = 7
};

static size_t directory_at(const io_bytes *b) {
  return b->size - kEnd - 2 * kEntry - kNameA - kNameB;
}

static void set(io_bytes *b, size_t at, uint64_t v, int bytes) {
  for (int i = 0; i < bytes; i++) b->data[at + i] = (uint8_t)(v >> (8 * i));
}

static uint32_t get32(const io_bytes *b, size_t at) {
  uint32_t v;
  memcpy(&v, b->data + at, 4);
  return v;
}

static void insert(io_bytes *b, size_t at, const void *data, size_t size) {
  memmove(b->data + at + size, b->data + at, b->size - at);
  memcpy(b->data + at, data, size);
  b->size += size;
}

/* Sets a field of the directory's first entry, and of the member's header
 * (|local| 0: not there). */
static void refuses_field(size_t central, size_t local, uint64_t v, int bytes,
                          const char *says) {
  io_bytes b = two_members();
  set(&b, directory_at(&b) + central, v, bytes);
  if (local != 0) set(&b, local, v, bytes);
  io_refuses(read_npz, &b, "W4004", says);
}

static void bad_members(void **state) {
  (void)state;
  refuses_field(8, 6, 0x801, 2, "encrypted");
  refuses_field(8, 6, 0x840, 2, "encrypted");
  refuses_field(8, 6, 0x2800, 2, "encrypted");
  refuses_field(8, 6, 0x820, 2, "a patch");
  refuses_field(10, 8, 12, 2, "neither stored nor deflate");
  refuses_field(16, 14, 1, 4, "CRC");
  refuses_field(16, 0, 1, 4, "differs from the directory");
  refuses_field(24, 22, 151, 4, "two sizes differ");
  refuses_field(34, 0, 1, 2, "split over several");
  refuses_field(42, 0, 1, 4, "no member where");
  refuses_field(42, 0, 0x7fffffff, 4, "no member where");
  refuses_field(28, 0, 0xffff, 2, "cut short");
  refuses_field(0, 0, 0, 4, "directory is damaged");
  refuses_field(10, 0, 8, 2, "differs from the directory");
  io_bytes b = two_members();
  b.data[b.size / 4] ^= 1; /* in a's data */
  io_refuses(read_npz, &b, "W4004", "CRC");
  set(&b, 26, 0xffff, 2); /* the local name's length */
  io_refuses(read_npz, &b, "W4004", "cut short");
}

static void refuses_name(const char *name, const char *says) {
  io_bytes b = two_members();
  memcpy(b.data + kLocal, name, kNameA);
  memcpy(b.data + directory_at(&b) + kEntry, name, kNameA);
  io_refuses(read_npz, &b, "W4004", says);
}

static void bad_names(void **state) {
  (void)state;
  refuses_name("../xy", "out of a folder");
  refuses_name("/.npy", "out of a folder");
  refuses_name("x//yz", "out of a folder");
  refuses_name("\\.npy", "out of a folder");
  refuses_name("\n.npy", "out of a folder");
  refuses_name("\xff.npy", "out of a folder");
  refuses_name("x.pkl", "does not end with .npy");
  io_bytes b = two_members();
  size_t second = directory_at(&b) + kEntry + kNameA;
  size_t local = get32(&b, second + 42);
  memcpy(b.data + second + kEntry, "../.npy", kNameB);
  memcpy(b.data + local + kLocal, "../.npy", kNameB);
  io_refuses(read_npz, &b, "W4004", "out of a folder");
  memcpy(b.data + second + kEntry, "zzz.npy", kNameB);
  io_refuses(read_npz, &b, "W4004", "differs from the directory");
}

static void duplicate_names(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_strbuf out;
  assert_ok(write_two(weir_allocator_system(), "ab", "xy", &out, &err), &err);
  io_bytes b = io_take(&out);
  for (size_t i = 0; i + 6 <= b.size; i++)
    if (memcmp(b.data + i, "xy.npy", 6) == 0) memcpy(b.data + i, "ab", 2);
  io_refuses(read_npz, &b, "W4004", "'ab.npy': the name occurs twice");
}

/* b's header and data move into a's data: quoted overlap. */
static void overlaps(void **state) {
  (void)state;
  io_bytes b = two_members();
  size_t second = directory_at(&b) + kEntry + kNameA;
  size_t local = get32(&b, second + 42), inside = kLocal + kNameA + 60;
  memcpy(b.data + inside, b.data + local, kLocal + kNameB);
  set(&b, second + 20, 1, 4);
  set(&b, second + 24, 1, 4);
  set(&b, inside + 18, 1, 4);
  set(&b, inside + 22, 1, 4);
  set(&b, second + 42, inside, 4);
  io_refuses(read_npz, &b, "W4004", "overlaps another member");
}

static void bomb(void **state) {
  (void)state;
  io_bytes b = io_fixture("deflated.npz");
  size_t at = b.size - kEnd - 2 * kEntry - strlen("grid.npyzeros.npy");
  size_t second = at + kEntry + strlen("grid.npy");
  assert_int_equal(get32(&b, second), 0x02014b50);
  size_t local = get32(&b, second + 42);
  set(&b, second + 24, 1u << 30, 4);
  /* its own header keeps the sizes in a zip64 field */
  set(&b, local + kLocal + strlen("zeros.npy") + 4, 1u << 30, 8);
  io_refuses(read_npz, &b, "W4004", "more than 1000 times");
  /* Within the ratio the stream itself tells. */
  set(&b, second + 24, 12129, 4);
  set(&b, local + kLocal + strlen("zeros.npy") + 4, 12129, 8);
  io_refuses(read_npz, &b, "W4007", "ends early");
  set(&b, second + 24, 12127, 4);
  set(&b, local + kLocal + strlen("zeros.npy") + 4, 12127, 8);
  io_refuses(read_npz, &b, "W4007", "more than was declared");
}

static void bad_ends(void **state) {
  (void)state;
  io_bytes good = two_members(), b = good;
  size_t end = b.size - kEnd;
  set(&b, end + 4, 1, 2);
  io_refuses(read_npz, &b, "W4004", "split");
  b = good;
  set(&b, end + 8, 1, 2);
  io_refuses(read_npz, &b, "W4004", "split");
  b = good;
  set(&b, end + 8, 1, 2);
  set(&b, end + 10, 1, 2);
  io_refuses(read_npz, &b, "W4004", "more than its count");
  b = good;
  set(&b, end + 8, 3, 2);
  set(&b, end + 10, 3, 2);
  io_refuses(read_npz, &b, "W4004", "too short for its count");
  b = good;
  set(&b, end + 8, 4097, 2);
  set(&b, end + 10, 4097, 2);
  io_refuses(read_npz, &b, "W4004", "more than 4096");
  b = good;
  set(&b, end + 12, 1, 4);
  io_refuses(read_npz, &b, "W4004", "does not end at its end record");
  b = good;
  set(&b, end + 16, 0xfffffff0, 4);
  io_refuses(read_npz, &b, "W4004", "does not end at its end record");
  b = good; /* a comment is fine */
  set(&b, end + 20, 2, 2);
  insert(&b, b.size, "hi", 2);
  weir_error err = WEIR_ERROR_INIT;
  assert_ok(io_read(read_npz, b.data, b.size, &err), &err);
}

/* --- zip64 --- */

/* two_members() with a zip64 end record, which the short one points to. */
static io_bytes long_end(void) {
  io_bytes b = two_members();
  uint8_t record[56 + 20] = {
      'P', 'K', 6, 6, 44, [12] = 45, [14] = 45, [24] = 2, [32] = 2};
  size_t end = b.size - kEnd, at = directory_at(&b);
  uint64_t size = end - at, where = at;
  memcpy(record + 40, &size, 8);
  memcpy(record + 48, &where, 8);
  where = end;
  memcpy(record + 56, "PK\6\7", 4);
  memcpy(record + 64, &where, 8);
  record[72] = 1;
  set(&b, end + 8, 0xffff, 2);
  set(&b, end + 10, 0xffff, 2);
  set(&b, end + 12, 0xffffffff, 4);
  set(&b, end + 16, 0xffffffff, 4);
  insert(&b, end, record, sizeof record);
  return b;
}

static void refuses_long_end(size_t from_record, uint64_t v, int bytes,
                             const char *says) {
  io_bytes b = long_end();
  set(&b, b.size - kEnd - 76 + from_record, v, bytes);
  io_refuses(read_npz, &b, "W4004", says);
}

static void zip64_ends(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  io_bytes b = long_end();
  io_no_cut_is_read(read_npz, &b);
  set(&b, b.size - kEnd + 10, 2, 2); /* may also say the same */
  assert_ok(io_read(read_npz, b.data, b.size, &err), &err);
  set(&b, b.size - kEnd + 10, 3, 2);
  io_refuses(read_npz, &b, "W4004", "differs from its end record");
  refuses_long_end(0, 0, 4, "leads nowhere");
  refuses_long_end(4, 45, 8, "does not end at its locator");
  refuses_long_end(16, 1, 4, "differs from its end record");
  refuses_long_end(32, UINT64_MAX, 8, "split");
  refuses_long_end(40, UINT64_MAX, 8, "does not end at its end record");
  refuses_long_end(48, UINT64_MAX, 8, "does not end at its end record");
  refuses_long_end(60, 1, 4, "split");
  refuses_long_end(64, UINT64_MAX, 8, "leads nowhere");
  refuses_long_end(64, UINT64_MAX - 54, 8, "leads nowhere");
  refuses_long_end(72, 2, 4, "split");
}

/* The sizes of stored.npz's members stand in zip64 fields of their headers. */
static void zip64_fields(void **state) {
  (void)state;
  io_bytes good = io_fixture("stored.npz"), b = good;
  size_t field = kLocal + strlen("grid.npy");
  set(&b, field + 4, 153, 8);
  io_refuses(read_npz, &b, "W4004", "differs from the directory");
  b = good;
  set(&b, field + 12, UINT64_MAX, 8);
  io_refuses(read_npz, &b, "W4004", "differs from the directory");
  b = good;
  set(&b, field, 2, 2); /* another field's id */
  io_refuses(read_npz, &b, "W4004", "zip64 field is missing");
  b = good;
  set(&b, field + 2, 8, 2); /* room for one size only */
  io_refuses(read_npz, &b, "W4004", "zip64 field is missing");
  b = two_members(); /* and in the directory */
  set(&b, directory_at(&b) + 42, UINT32_MAX, 4);
  io_refuses(read_npz, &b, "W4004", "zip64 field is missing");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(reads_what_numpy_writes),
      cmocka_unit_test(writes),
      cmocka_unit_test(refuses_to_write),
      cmocka_unit_test(no_memory_to_write),
      cmocka_unit_test(no_members),
      cmocka_unit_test(cuts_and_memory),
      cmocka_unit_test(bad_members),
      cmocka_unit_test(bad_names),
      cmocka_unit_test(duplicate_names),
      cmocka_unit_test(overlaps),
      cmocka_unit_test(bomb),
      cmocka_unit_test(bad_ends),
      cmocka_unit_test(zip64_ends),
      cmocka_unit_test(zip64_fields),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
