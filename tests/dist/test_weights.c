/* SPDX-License-Identifier: Apache-2.0 */
/* Weights of a graph go to the engines that read them, in pieces, once. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/dist/engines.h"

enum { WEIGHTS = 6, ROWS = 128, COLUMNS = 512, SMALL = 4 };

#define WEIGHT_BYTES ((size_t)ROWS * COLUMNS * sizeof(float))
#define FILE_BYTES (WEIGHTS * (WEIGHT_BYTES + SMALL * sizeof(float)))

typedef struct files {
  char folder[64], graph[128], weights[128];
} files;

/* Each weight with a small one behind it; |pad| spaces put the floats where no
 * view of them can be, unless it is 0. */
static void write_weights(const char *path, int pad) {
  char header[4096];
  size_t at = 0;
  int n = snprintf(header, sizeof header, "{");
  for (int i = 0; i < WEIGHTS; i++) {
    size_t mid = at + WEIGHT_BYTES, end = mid + SMALL * sizeof(float);
    n += snprintf(header + n, sizeof header - (size_t)n,
                  "%s\"w%d\":{\"dtype\":\"F32\",\"shape\":[%d,%d],"
                  "\"data_offsets\":[%zu,%zu]},"
                  "\"b%d\":{\"dtype\":\"F32\",\"shape\":[%d],"
                  "\"data_offsets\":[%zu,%zu]}",
                  i > 0 ? "," : "", i, ROWS, COLUMNS, at, mid, i, SMALL, mid,
                  end);
    at = end;
  }
  header[n++] = '}';
  while (n % 8 != pad) header[n++] = ' ';
  FILE *f = fopen(path, "wb");
  assert_non_null(f);
  uint64_t length = (uint64_t)n;
  fwrite(&length, 1, sizeof length, f);
  fwrite(header, 1, (size_t)n, f);
  uint32_t x = 7;
  for (size_t i = 0; i < at / sizeof(float); i++) {
    x = x * 1664525u + 1013904223u;
    float v = (float)(x >> 8) * 0x1p-23f - 1;
    fwrite(&v, sizeof v, 1, f);
  }
  assert_int_equal(fclose(f), 0);
}

static void write_graph(const char *path, const char *head, const char *tail) {
  FILE *f = fopen(path, "w");
  assert_non_null(f);
  fprintf(f, "weir: 1\nweights: w.safetensors\n%s", head);
  for (int i = 0; i < WEIGHTS; i++)
    fprintf(f,
            "  w%d: var([%d, %d], init=zeros())\n"
            "  b%d: var([%d], init=zeros())\n"
            "  y%d: add(mean(matmul(x, w%d)), mean(b%d))\n",
            i, ROWS, COLUMNS, i, SMALL, i, i, i);
  fprintf(f, "%s", tail);
  assert_int_equal(fclose(f), 0);
}

static const char kHead[] = "inputs: {x: 'f32[2, 128]'}\nnodes:\n";
static const char kRuns[] = "outputs: [y0, y1, y2, y3, y4, y5]\n";
static const char kTrains[] =
    "  loss: mean(square(add(add(y0, y1), add(add(y2, y3), add(y4, y5)))))\n"
    "outputs: [loss]\ntrain: {minimize: loss, optimizer: sgd(lr=0.1)}\n";
static const char kMeshHead[] =
    "dims: {batch: 2, features: 128}\nmesh: {axes: {row: 2}}\n"
    "layout: {features: row}\n"
    "inputs: {x: 'f32[batch, features]'}\nnodes:\n";

static files make_files(const char *head, const char *tail, int pad) {
  files f;
  snprintf(f.folder, sizeof f.folder, "/tmp/weir_weights_XXXXXX");
  assert_non_null(mkdtemp(f.folder));
  snprintf(f.graph, sizeof f.graph, "%s/g.weir.yaml", f.folder);
  snprintf(f.weights, sizeof f.weights, "%s/w.safetensors", f.folder);
  write_weights(f.weights, pad);
  write_graph(f.graph, head, tail);
  return f;
}

static void remove_files(const files *f) {
  unlink(f->graph);
  unlink(f->weights);
  rmdir(f->folder);
}

static uint64_t sent_bytes(const office *o) {
  uint64_t sum = 0;
  for (uint32_t i = 0; i < o->count; i++) sum += o->ends[i].blob_bytes;
  return sum;
}

/* |most|: bytes of blobs to all engines. */
static void check(const char *head, const char *tail, bool train, int pad,
                  uint64_t most) {
  files f = make_files(head, tail, pad);
  office o;
  office_open(&o, f.graph, NULL, "round_robin", train);
  assert_true(o.blobs.rows.count > WEIGHTS);
  office_register(&o);
  for (uint64_t step = 0; step < 2; step++) {
    if (!office_step(&o, step, true))
      fail_msg("%s %s", o.err.id, o.err.message);
    office_compare(&o, step);
  }
  office_compare_variables(&o);
  if (sent_bytes(&o) > most)
    fail_msg("%llu bytes, at most %llu", (unsigned long long)sent_bytes(&o),
             (unsigned long long)most);
  /* What is here is not asked for again. */
  uint64_t before = sent_bytes(&o);
  office_register(&o);
  assert_int_equal(sent_bytes(&o), before);
  office_close(&o);
  remove_files(&f);
}

/* Variables that a step assigns are at home alone; the others are at home and
 * where they are compiled in. */
static void weights_go_where_they_are_read(void **state) {
  (void)state;
  uint64_t rest = 3 * (64 << 10); /* bundle, plan, header */
  check(kHead, kTrains, true, 0, FILE_BYTES + rest);
  check(kHead, kRuns, false, 0, 2 * FILE_BYTES + rest);
}

/* Shards are parts of the whole that is fetched. */
static void meshes_take_parts(void **state) {
  (void)state;
  check(kMeshHead, kRuns, false, 0, 3 * FILE_BYTES + (64 << 10));
}

/* They are copied at the load, by every engine. */
static void weights_that_cannot_be_viewed(void **state) {
  (void)state;
  check(kHead, kTrains, true, 1, 3 * FILE_BYTES + 3 * (64 << 10));
}

/* A piece that is not there, or whose bytes are others, ends the registration;
 * then good ones are taken. */
static void bad_pieces_are_named(void **state) {
  (void)state;
  files f = make_files(kHead, kTrains, 0);
  for (int bad = BLOBS_SPOILT; bad <= BLOBS_LOST; bad++) {
    office o;
    office_open(&o, f.graph, NULL, "round_robin", true);
    o.bad = bad == BLOBS_SPOILT ? BLOBS_SPOILT : BLOBS_LOST;
    assert_false(office_try_register(&o));
    assert_string_equal(o.err.id, "W7051");
    assert_non_null(strstr(o.err.message, "w.safetensors"));
    assert_non_null(
        strstr(o.err.message, bad == BLOBS_LOST ? "no such blob" : "hash"));
    o.bad = BLOBS_GOOD;
    o.err = (weir_error)WEIR_ERROR_INIT;
    for (uint32_t i = 0; i < o.count; i++)
      o.ends[i].error = (weir_error)WEIR_ERROR_INIT;
    office_register(&o);
    if (!office_step(&o, 0, true)) fail_msg("%s %s", o.err.id, o.err.message);
    office_compare(&o, 0);
    office_close(&o);
  }
  remove_files(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(weights_go_where_they_are_read),
      cmocka_unit_test(meshes_take_parts),
      cmocka_unit_test(weights_that_cannot_be_viewed),
      cmocka_unit_test(bad_pieces_are_named),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
