/* SPDX-License-Identifier: Apache-2.0 */
#include <float.h>
#include <math.h>

#include "runtime/base/bytes/crc32c.h"
#include "runtime/base/bytes/proto.h"
#include "runtime/base/env_system.h"
#include "runtime/io/record/event_file.h"
#include "tests/base/sim_fs.h"
#include "tests/check.h"

/* Event files, read back with a reader of our own. With arguments `write DIR`
 * the program writes a file for the test that reads it with TensorBoard. */

static const weir_sv kInputs[] = {{"x", 1}, {"layer/w:1", 9}, {"^x", 2}};
static const weir_event_node kNodes[] = {
    {.name = {"x", 1}, .op = {"input", 5}},
    {.name = {"layer/w", 7},
     .op = {"variable", 8},
     .device = {"/job:localhost/task:0/device:CPU:0", 34}},
    {.name = {"layer/y", 7},
     .op = {"matmul", 6},
     .inputs = kInputs,
     .input_count = 3},
};
enum { kNodeCount = sizeof kNodes / sizeof kNodes[0], kScalars = 20 };

static const float kValues[] = {-1.0f, 0.0f, 0.5f, 0.5f, 3.0f, NAN};
enum { kValueCount = sizeof kValues / sizeof kValues[0] };

/* 1,700,000,000 s and a quarter. */
static const int64_t kTime = 1700000000250000000;

static weir_status write_all(const weir_env *env, const char *dir,
                             weir_error *err) {
  weir_event_file *f = NULL;
  weir_status s =
      weir_event_file_create(env, NULL, dir, kTime, "host", &f, err);
  if (s == WEIR_OK)
    s = weir_event_file_graph(f, kTime, kNodes, kNodeCount, err);
  for (int64_t i = 0; s == WEIR_OK && i < kScalars; i++) {
    s = weir_event_file_scalar(f, kTime + i * 1000000000, i * 10,
                               WEIR_SV_LIT("train/loss"), 1.0f / (float)(i + 1),
                               err);
    if (s == WEIR_OK && i % 10 == 0)
      s = weir_event_file_histogram(f, kTime, i * 10, WEIR_SV_LIT("layer/w"),
                                    kValues, kValueCount, err);
  }
  if (s == WEIR_OK) s = weir_event_file_flush(f, err);
  weir_event_file_close(f);
  return s;
}

/* --- reading --- */

/* The next record's event, checked; false at the end. */
static bool next_event(weir_reader *r, weir_reader *out_event) {
  if (weir_reader_left(r) == 0) return false;
  const uint8_t *head = weir_reader_bytes(r, 8);
  assert_non_null(head);
  weir_reader length = weir_reader_of(head, 8);
  uint64_t size = weir_reader_u64le(&length);
  uint32_t crc = weir_reader_u32le(r);
  assert_int_equal(crc, weir_crc32c_mask(weir_crc32c(0, head, 8)));
  const uint8_t *data = weir_reader_bytes(r, (size_t)size);
  crc = weir_reader_u32le(r);
  assert_false(r->failed);
  assert_int_equal(crc, weir_crc32c_mask(weir_crc32c(0, data, (size_t)size)));
  *out_event = weir_reader_of(data, (size_t)size);
  return true;
}

/* Field |number| of |message|, which must have it once. */
static weir_proto_field field(weir_reader message, uint32_t number) {
  weir_proto_field f, found = {0};
  int count = 0;
  while (weir_proto_next(&message, &f))
    if (f.number == number) {
      found = f;
      count++;
    }
  assert_false(message.failed);
  if (count != 1) fail_msg("field %u is there %d times", number, count);
  return found;
}

static bool has_field(weir_reader message, uint32_t number) {
  weir_proto_field f;
  while (weir_proto_next(&message, &f))
    if (f.number == number) return true;
  return false;
}

static void is_text(const weir_proto_field *f, const char *want) {
  assert_int_equal(f->wire, WEIR_PROTO_BYTES);
  assert_int_equal(f->sub.size, strlen(want));
  assert_memory_equal(f->sub.data, want, f->sub.size);
}

/* The number whose bits |bits| are. */
static double as_double(uint64_t bits) {
  double value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static double double_field(weir_reader message, uint32_t number) {
  weir_proto_field f = field(message, number);
  assert_int_equal(f.wire, WEIR_PROTO_FIXED64);
  return as_double(f.value);
}

static void check_graph(weir_reader graph) {
  weir_proto_field f;
  size_t n = 0;
  assert_int_equal(field(field(graph, 4).sub, 1).value, 22);
  for (weir_reader r = graph; weir_proto_next(&r, &f);) {
    if (f.number != 1) continue;
    weir_proto_field name = field(f.sub, 1), op = field(f.sub, 2);
    assert_int_equal(name.sub.size, kNodes[n].name.size);
    assert_memory_equal(name.sub.data, kNodes[n].name.data, name.sub.size);
    assert_memory_equal(op.sub.data, kNodes[n].op.data, op.sub.size);
    assert_int_equal(has_field(f.sub, 4), n == 1);
    assert_int_equal(has_field(f.sub, 3), n == 2);
    n++;
  }
  assert_int_equal(n, kNodeCount);
}

static double packed(const weir_proto_field *f, size_t i) {
  weir_reader r = f->sub;
  weir_reader_skip(&r, i * 8);
  return as_double(weir_reader_u64le(&r));
}

/* Every value lies under the limit of the bucket that counts it, and above the
 * limit before. */
static void check_histogram(weir_reader h) {
  weir_proto_field limits = field(h, 6), counts = field(h, 7);
  size_t n = limits.sub.size / 8;
  double total = 0;
  assert_int_equal(limits.sub.size, counts.sub.size);
  assert_true(double_field(h, 1) == -1.0);
  assert_true(double_field(h, 2) == 3.0);
  assert_true(double_field(h, 3) == 5.0); /* without the NaN */
  assert_true(double_field(h, 4) == 3.0);
  assert_true(double_field(h, 5) == 10.5);
  for (size_t i = 0; i < n; i++) {
    double low = i > 0 ? packed(&limits, i - 1) : -INFINITY, want = 0;
    for (int j = 0; j < kValueCount; j++)
      want +=
          (double)kValues[j] >= low && (double)kValues[j] < packed(&limits, i);
    assert_true(packed(&counts, i) == want);
    assert_true(low < packed(&limits, i));
    total += want;
  }
  assert_true(total == 5.0);
  assert_true(packed(&limits, n - 1) == DBL_MAX);
  assert_true(n < 16); /* empty ones are told as one */
}

static const char kPath[] = "logs/events.out.tfevents.1700000000.host";

static void comes_back(void **state) {
  (void)state;
  sim_fs *fs = sim_fs_create(weir_allocator_system());
  weir_env env = {weir_allocator_system(), &fs->fs, weir_env_system()->clock};
  weir_error err = WEIR_ERROR_INIT;
  weir_reader event;
  assert_ok(write_all(&env, "logs", &err), &err);
  sim_inode *f = sim_fs_file(fs, kPath);
  assert_non_null(f);
  weir_reader r = weir_reader_of(f->data, f->size);
  assert_true(next_event(&r, &event));
  weir_proto_field version = field(event, 3);
  is_text(&version, "brain.Event:2");
  assert_true(next_event(&r, &event));
  check_graph(field(event, 4).sub);
  int scalars = 0, histograms = 0;
  while (next_event(&r, &event)) {
    weir_reader value = field(field(event, 5).sub, 1).sub;
    weir_proto_field tag = field(value, 1);
    if (has_field(value, 5)) {
      is_text(&tag, "layer/w");
      check_histogram(field(value, 5).sub);
      histograms++;
      continue;
    }
    is_text(&tag, "train/loss");
    assert_true(weir_proto_as_float(field(value, 2).value) ==
                1.0f / (float)(scalars + 1));
    assert_true(double_field(event, 1) == 1700000000.25 + scalars);
    assert_int_equal(scalars == 0 ? 0 : (int)field(event, 2).value,
                     scalars * 10);
    scalars++;
  }
  assert_int_equal(scalars, kScalars);
  assert_int_equal(histograms, 2);
  sim_fs_destroy(fs);
}

/* TensorFlow's: 1e-12 and on by tenths up to 1e20 on both sides of 0. */
static void limits_are_tensorflows(void **state) {
  (void)state;
  sim_fs *fs = sim_fs_create(weir_allocator_system());
  weir_env env = {weir_allocator_system(), &fs->fs, weir_env_system()->clock};
  weir_error err = WEIR_ERROR_INIT;
  weir_event_file *f = NULL;
  double want[800];
  static float data[20000];
  size_t n = 0, count = 0;
  for (double v = 1e-12; v < 1e20; v *= 1.1) want[n++] = v;
  assert_int_equal(n, 774);
  /* A value in each bucket, so that each is told. */
  data[count++] = -INFINITY;
  for (size_t i = n; i-- > 0;) data[count++] = (float)(-want[i] * 0.97);
  for (size_t i = 0; i < n; i++) data[count++] = (float)(want[i] * 0.97);
  data[count++] = INFINITY;
  data[count++] = -3.3e20f;
  /* And floats of all kinds but NaN: bits that a generator gives. */
  for (uint32_t bits = 1; count < 20000; bits = bits * 1664525u + 1013904223u) {
    float v = weir_proto_as_float(bits);
    if (!isnan(v)) data[count++] = v;
  }
  assert_ok(weir_event_file_create(&env, NULL, "logs", kTime, "host", &f, &err),
            &err);
  assert_ok(weir_event_file_histogram(f, kTime, 1, WEIR_SV_LIT("h"), data,
                                      (int64_t)count, &err),
            &err);
  weir_event_file_close(f);
  sim_inode *file = sim_fs_file(fs, kPath);
  weir_reader r = weir_reader_of(file->data, file->size), event;
  assert_true(next_event(&r, &event) && next_event(&r, &event));
  weir_reader h = field(field(field(event, 5).sub, 1).sub, 5).sub;
  weir_proto_field limits = field(h, 6);
  assert_int_equal(limits.sub.size / 8, 2 * 775 + 1);
  assert_true(packed(&limits, 0) == -DBL_MAX);
  assert_true(packed(&limits, 775) == 0);
  for (size_t i = 0; i < n; i++) {
    assert_true(packed(&limits, 776 + i) == want[i]);
    assert_true(packed(&limits, 774 - i) == -want[i]);
  }
  weir_proto_field counts = field(h, 7);
  for (size_t i = 0; i <= 2 * 775; i++) {
    double low = i > 0 ? packed(&limits, i - 1) : -INFINITY, inside = 0;
    double high = i < 2 * 775 ? packed(&limits, i) : INFINITY;
    for (size_t j = 0; j < count; j++)
      inside += ((double)data[j] >= low && (double)data[j] < high) ||
                (i == 2 * 775 && isinf(data[j]) && data[j] > 0);
    if (packed(&counts, i) != inside) fail_msg("bucket %d", (int)i);
  }
  sim_fs_destroy(fs);
}

static void a_name_of_its_own(void **state) {
  (void)state;
  sim_fs *fs = sim_fs_create(weir_allocator_system());
  weir_env env = {weir_allocator_system(), &fs->fs, weir_env_system()->clock};
  weir_error err = WEIR_ERROR_INIT;
  for (int i = 0; i < 3; i++) assert_ok(write_all(&env, "logs", &err), &err);
  assert_int_equal(sim_fs_count(fs, ".host"), 1);
  assert_int_equal(sim_fs_count(fs, ".host.1"), 1);
  assert_int_equal(sim_fs_count(fs, ".host.2"), 1);
  sim_fs_destroy(fs);
}

/* After a write that failed nothing is written any more: the file ends in
 * one torn record at most. */
static void faults(void **state) {
  (void)state;
  for (int fault = 0; fault < SIM_FAULTS; fault++)
    for (uint64_t at = 1;; at++) {
      sim_fs *fs = sim_fs_create(weir_allocator_system());
      weir_env env = {weir_allocator_system(), &fs->fs, NULL};
      weir_error err = WEIR_ERROR_INIT;
      fs->fault_at = at;
      fs->fault = (sim_fault)fault;
      weir_status s = write_all(&env, "logs", &err);
      bool reached = fs->ops >= at;
      bool is_end = fs->ops == at; /* close tells nobody */
      sim_fs_destroy(fs);
      if (!reached) break;
      if (!is_end) assert_string_equal(err.id, "W6005");
      if (!is_end) assert_int_not_equal(s, WEIR_OK);
    }
}

static void no_memory(void **state) {
  (void)state;
  for (int forever = 0; forever < 2; forever++) {
    weir_status s = WEIR_UNKNOWN;
    for (uint64_t k = 1; s != WEIR_OK; k++) {
      sim_fs *fs = sim_fs_create(weir_allocator_system());
      weir_counted_allocator c;
      weir_counted_allocator_init(&c, NULL);
      c.fail_at = k;
      c.fail_forever = forever;
      weir_env env = {&c.base, &fs->fs, NULL};
      weir_error err = WEIR_ERROR_INIT;
      s = write_all(&env, "logs", &err);
      if (s != WEIR_OK) assert_string_equal(err.id, "W6001");
      assert_int_equal(atomic_load(&c.live_blocks), 0);
      /* Whole records only. */
      sim_inode *f = sim_fs_file(fs, kPath);
      weir_reader r = weir_reader_of(f != NULL ? f->data : NULL,
                                     f != NULL ? f->size : 0),
                  event;
      while (next_event(&r, &event)) {
      }
      sim_fs_destroy(fs);
    }
  }
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(comes_back),
      cmocka_unit_test(limits_are_tensorflows),
      cmocka_unit_test(a_name_of_its_own),
      cmocka_unit_test(faults),
      cmocka_unit_test(no_memory),
  };
  if (argc == 3 && strcmp(argv[1], "write") == 0) {
    weir_error err = WEIR_ERROR_INIT;
    if (write_all(weir_env_system(), argv[2], &err) == WEIR_OK) return 0;
    fprintf(stderr, "%s\n", err.message);
    return 1;
  }
  return cmocka_run_group_tests(tests, NULL, NULL);
}
