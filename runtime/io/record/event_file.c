/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/io/record/event_file.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "runtime/base/bytes/crc32c.h"
#include "runtime/base/bytes/proto.h"

/* Numbers of fields, from TensorFlow's event.proto, summary.proto,
 * histogram.proto, graph.proto, node_def.proto and versions.proto. */
enum {
  kEventTime = 1,
  kEventStep = 2,
  kEventVersion = 3,
  kEventGraph = 4,
  kEventSummary = 5,
  kSummaryValue = 1,
  kValueTag = 1,
  kValueSimple = 2,
  kValueHistogram = 5,
  kHistogramMin = 1,
  kHistogramMax = 2,
  kHistogramCount = 3,
  kHistogramSum = 4,
  kHistogramSquares = 5,
  kHistogramLimits = 6,
  kHistogramBuckets = 7,
  kGraphNode = 1,
  kGraphVersions = 4,
  kNodeName = 1,
  kNodeOp = 2,
  kNodeInput = 3,
  kNodeDevice = 4,
  kVersionsProducer = 1
};

enum {
  kFlushBytes = 64 << 10,
  kProducer = 22, /* the oldest that readers still take */
  kSide = 775,    /* bucket limits above 0 */
  kLimits = 2 * kSide + 1,
  kCells = 1 << 12, /* of floats: sign, exponent and three bits more */
  kCellShift = 20,
  kNameTries = 1000,
  kNameBytes = 256
};

struct weir_event_file {
  const weir_env *env;
  void *folder, *file;
  weir_status failure; /* of the first write that failed; then no other */
  weir_error failure_error;
  weir_strbuf out;                 /* records that are not written yet */
  weir_strbuf event, value, inner; /* messages being made */
  double limits[kLimits];          /* of buckets, upper ends */
  uint16_t firsts[kCells];         /* the bucket of the least value of a cell */
  uint64_t counts[kLimits];
};

/* --- records --- */

static weir_status write_out(weir_event_file *f, weir_error *err) {
  const weir_fs *fs = f->env->fs;
  weir_bytes bytes = {(const uint8_t *)f->out.data, f->out.size};
  if (f->failure != WEIR_OK) {
    weir_error_copy(err, &f->failure_error);
    return f->failure;
  }
  if (bytes.size == 0) return WEIR_OK;
  f->failure_error = (weir_error)WEIR_ERROR_INIT;
  f->failure = fs->folders->append(fs->self, f->file, bytes, &f->failure_error);
  weir_strbuf_clear(&f->out);
  if (f->failure != WEIR_OK) weir_error_copy(err, &f->failure_error);
  return f->failure;
}

/* Starts f->event. */
static void begin_event(weir_event_file *f, int64_t time_ns, int64_t step) {
  weir_strbuf_clear(&f->event);
  weir_strbuf_clear(&f->value);
  weir_strbuf_clear(&f->inner);
  weir_proto_put_double(&f->event, kEventTime, (double)time_ns * 1e-9);
  if (step != 0) weir_proto_put_int(&f->event, kEventStep, step);
}

/* Puts f->event in the file as a record: length, its CRC, data, its CRC. */
static weir_status end_event(weir_event_file *f, weir_error *err) {
  const weir_strbuf *parts[] = {&f->event, &f->value, &f->inner};
  for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
    WEIR_TRY(weir_strbuf_status(parts[i], err));
  size_t start = f->out.size;
  weir_proto_put_fixed(&f->out, f->event.size, 8);
  if (!f->out.failed)
    weir_proto_put_fixed(
        &f->out, weir_crc32c_mask(weir_crc32c(0, f->out.data + start, 8)), 4);
  weir_strbuf_append(&f->out, f->event.data, f->event.size);
  weir_proto_put_fixed(
      &f->out, weir_crc32c_mask(weir_crc32c(0, f->event.data, f->event.size)),
      4);
  if (f->out.failed) { /* a record is written whole or not at all */
    size_t wanted = f->event.size;
    f->out.failed = false;
    f->out.size = start;
    return weir_fail_memory(err, wanted);
  }
  return f->out.size >= kFlushBytes ? write_out(f, err) : WEIR_OK;
}

/* Ends an event with a summary of one value, f->value. */
static weir_status end_summary(weir_event_file *f, weir_error *err) {
  weir_strbuf_clear(&f->inner);
  weir_proto_put_bytes(&f->inner, kSummaryValue, weir_strbuf_view(&f->value));
  weir_proto_put_bytes(&f->event, kEventSummary, weir_strbuf_view(&f->inner));
  return end_event(f, err);
}

weir_status weir_event_file_scalar(weir_event_file *file, int64_t time_ns,
                                   int64_t step, weir_sv tag, float value,
                                   weir_error *err) {
  begin_event(file, time_ns, step);
  weir_proto_put_bytes(&file->value, kValueTag, tag);
  weir_proto_put_float(&file->value, kValueSimple, value);
  return end_summary(file, err);
}

/* --- histograms --- */

/* TensorFlow's limits: 0 and, on both sides, 1e-12 and on by tenths up to
 * 1e20, then the largest double. */
static void fill_limits(double limits[kLimits]) {
  double v = 1e-12;
  for (int i = 0; i < kSide; i++, v *= 1.1) {
    double limit = i < kSide - 1 ? v : DBL_MAX;
    limits[kSide + 1 + i] = limit;
    limits[kSide - 1 - i] = -limit;
  }
  limits[kSide] = 0;
}

/* The first bucket with a limit above |v|, or the last. */
static size_t search(const double limits[kLimits], double v) {
  size_t low = 0, high = kLimits - 1;
  while (low < high) {
    size_t mid = (low + high) / 2;
    if (limits[mid] > v)
      high = mid;
    else
      low = mid + 1;
  }
  return low;
}

/* For each cell, the floats that agree in their upper 12 bits, the bucket of
 * its least value: of a negative cell that is the one with all lower bits set.
 */
static void fill_firsts(weir_event_file *f) {
  for (uint32_t cell = 0; cell < kCells; cell++) {
    bool negative = cell >= kCells / 2;
    uint32_t low = (1u << kCellShift) - 1;
    uint32_t bits = cell << kCellShift | (negative ? low : 0);
    double v = (double)weir_proto_as_float(bits);
    f->firsts[cell] = (uint16_t)(isnan(v) ? 0 : search(f->limits, v));
  }
}

/* The same as search: a cell spans an eighth, a bucket a tenth, so it is the
 * cell's first bucket or one of the next few. */
static size_t bucket_of(const weir_event_file *f, float v) {
  uint32_t bits;
  memcpy(&bits, &v, sizeof bits);
  size_t i = f->firsts[bits >> kCellShift];
  while (i + 1 < kLimits && f->limits[i] <= (double)v) i++;
  return i;
}

/* Runs of empty buckets are written as one. */
static void put_buckets(weir_event_file *f, weir_strbuf *limits,
                        weir_strbuf *counts) {
  for (size_t i = 0; i < kLimits; i++) {
    bool empty = f->counts[i] == 0;
    if (empty && i + 1 < kLimits && f->counts[i + 1] == 0) continue;
    weir_proto_put_packed_double(limits, f->limits[i]);
    weir_proto_put_packed_double(counts, (double)f->counts[i]);
  }
}

static void put_histogram(weir_event_file *f, const float *data,
                          int64_t count) {
  double low = 0, high = 0, sum = 0, squares = 0;
  int64_t seen = 0;
  memset(f->counts, 0, sizeof f->counts);
  for (int64_t i = 0; i < count; i++) {
    double v = (double)data[i];
    if (isnan(v)) continue;
    if (seen++ == 0) low = high = v;
    if (v < low) low = v;
    if (v > high) high = v;
    sum += v;
    squares += v * v;
    f->counts[bucket_of(f, data[i])]++;
  }
  weir_proto_put_double(&f->inner, kHistogramMin, low);
  weir_proto_put_double(&f->inner, kHistogramMax, high);
  weir_proto_put_double(&f->inner, kHistogramCount, (double)seen);
  weir_proto_put_double(&f->inner, kHistogramSum, sum);
  weir_proto_put_double(&f->inner, kHistogramSquares, squares);
}

weir_status weir_event_file_histogram(weir_event_file *file, int64_t time_ns,
                                      int64_t step, weir_sv tag,
                                      const float *data, int64_t count,
                                      weir_error *err) {
  weir_strbuf limits, counts;
  weir_strbuf_init(&limits, file->env->alloc);
  weir_strbuf_init(&counts, file->env->alloc);
  begin_event(file, time_ns, step);
  put_histogram(file, data, count);
  put_buckets(file, &limits, &counts);
  weir_proto_put_bytes(&file->inner, kHistogramLimits,
                       weir_strbuf_view(&limits));
  weir_proto_put_bytes(&file->inner, kHistogramBuckets,
                       weir_strbuf_view(&counts));
  weir_status s = weir_strbuf_status(&limits, err);
  if (s == WEIR_OK) s = weir_strbuf_status(&counts, err);
  if (s == WEIR_OK) s = weir_strbuf_status(&file->inner, err);
  weir_strbuf_release(&limits);
  weir_strbuf_release(&counts);
  if (s != WEIR_OK) return s;
  weir_proto_put_bytes(&file->value, kValueTag, tag);
  weir_proto_put_bytes(&file->value, kValueHistogram,
                       weir_strbuf_view(&file->inner));
  return end_summary(file, err);
}

/* --- the graph --- */

static void put_node(weir_strbuf *out, const weir_event_node *node) {
  weir_proto_put_bytes(out, kNodeName, node->name);
  weir_proto_put_bytes(out, kNodeOp, node->op);
  for (uint32_t i = 0; i < node->input_count; i++)
    weir_proto_put_bytes(out, kNodeInput, node->inputs[i]);
  if (node->device.size > 0)
    weir_proto_put_bytes(out, kNodeDevice, node->device);
}

weir_status weir_event_file_graph(weir_event_file *file, int64_t time_ns,
                                  const weir_event_node *nodes, size_t count,
                                  weir_error *err) {
  begin_event(file, time_ns, 0);
  for (size_t i = 0; i < count; i++) {
    weir_strbuf_clear(&file->inner);
    put_node(&file->inner, &nodes[i]);
    WEIR_TRY(weir_strbuf_status(&file->inner, err));
    weir_proto_put_bytes(&file->value, kGraphNode,
                         weir_strbuf_view(&file->inner));
  }
  weir_strbuf_clear(&file->inner);
  weir_proto_put_int(&file->inner, kVersionsProducer, kProducer);
  weir_proto_put_bytes(&file->value, kGraphVersions,
                       weir_strbuf_view(&file->inner));
  weir_proto_put_bytes(&file->event, kEventGraph,
                       weir_strbuf_view(&file->value));
  return end_event(file, err);
}

/* --- the file --- */

/* Takes a name that no file has. */
static weir_status make_file(weir_event_file *f, const char *root,
                             const char *dir, int64_t time_ns, const char *name,
                             weir_error *err) {
  const weir_fs *fs = f->env->fs;
  char text[kNameBytes];
  WEIR_TRY(fs->folders->open(fs->self, root, dir, true, &f->folder, err));
  for (int i = 0; i < kNameTries; i++) {
    snprintf(text, sizeof text, "events.out.tfevents.%010" PRId64 ".%.150s",
             time_ns / 1000000000, name);
    size_t size = strlen(text);
    if (i > 0) snprintf(text + size, sizeof text - size, ".%d", i);
    WEIR_TRY(fs->folders->create(fs->self, f->folder, text, &f->file, err));
    if (f->file != NULL) return WEIR_OK;
  }
  return weir_fail(err, WEIR_W5009, NULL,
                   "'%.200s' holds too many event files of this second", dir);
}

static weir_status put_version(weir_event_file *f, int64_t time_ns,
                               weir_error *err) {
  begin_event(f, time_ns, 0);
  weir_proto_put_bytes(&f->event, kEventVersion, WEIR_SV_LIT("brain.Event:2"));
  WEIR_TRY(end_event(f, err));
  return write_out(f, err);
}

weir_status weir_event_file_create(const weir_env *env, const char *root,
                                   const char *dir, int64_t time_ns,
                                   const char *name, weir_event_file **out_file,
                                   weir_error *err) {
  *out_file = NULL;
  if (env->fs->folders == NULL)
    return weir_fail(err, WEIR_W0004, NULL,
                     "this file system cannot be written to");
  weir_event_file *f = weir_alloc_array(env->alloc, 1, sizeof *f);
  if (f == NULL) return weir_fail_memory(err, sizeof *f);
  f->env = env;
  weir_strbuf_init(&f->out, env->alloc);
  weir_strbuf_init(&f->event, env->alloc);
  weir_strbuf_init(&f->value, env->alloc);
  weir_strbuf_init(&f->inner, env->alloc);
  fill_limits(f->limits);
  fill_firsts(f);
  weir_status s = make_file(f, root, dir, time_ns, name, err);
  if (s == WEIR_OK) s = put_version(f, time_ns, err);
  if (s == WEIR_OK)
    *out_file = f;
  else
    weir_event_file_close(f);
  return s;
}

weir_status weir_event_file_flush(weir_event_file *file, weir_error *err) {
  return write_out(file, err);
}

void weir_event_file_close(weir_event_file *file) {
  if (file == NULL) return;
  const weir_fs *fs = file->env->fs;
  if (file->file != NULL) (void)write_out(file, NULL);
  (void)fs->folders->end(fs->self, file->file, NULL);
  fs->folders->close(fs->self, file->folder);
  weir_strbuf_release(&file->out);
  weir_strbuf_release(&file->event);
  weir_strbuf_release(&file->value);
  weir_strbuf_release(&file->inner);
  weir_free(file->env->alloc, file);
}
