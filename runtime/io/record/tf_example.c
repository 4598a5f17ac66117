/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "runtime/io/record/tfrecord.h"

/* Wire types of protocol buffers. */
enum { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

typedef struct field {
  uint64_t number;
  unsigned type;
  uint64_t varint;
  weir_bytes bytes; /* kBytes, kFixed32, kFixed64 */
} field;

static uint64_t read_varint(weir_reader *r) {
  uint64_t v = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    uint8_t byte = weir_reader_u8(r);
    v |= (uint64_t)(byte & 0x7f) << shift;
    if (byte < 0x80) return v;
  }
  r->failed = true; /* longer than 10 bytes */
  return 0;
}

/* The next field; false at the end or when the message is unsound, which
 * |r->failed| tells. */
static bool next_field(weir_reader *r, field *f) {
  if (weir_reader_left(r) == 0) return false;
  uint64_t tag = read_varint(r);
  *f = (field){.number = tag >> 3, .type = (unsigned)(tag & 7)};
  if (f->type == kVarint) {
    f->varint = read_varint(r);
  } else if (f->type == kBytes || f->type == kFixed32 || f->type == kFixed64) {
    uint64_t n = f->type == kFixed32 ? 4 : 8;
    if (f->type == kBytes) n = read_varint(r);
    if (n > weir_reader_left(r)) r->failed = true;
    f->bytes.size = r->failed ? 0 : (size_t)n;
    f->bytes.data = weir_reader_bytes(r, f->bytes.size);
  } else {
    r->failed = true;
  }
  if (f->number == 0) r->failed = true;
  return !r->failed;
}

static weir_reader reader(weir_bytes b) {
  return weir_reader_of(b.data, b.size);
}

/* ---- Values */

/* Values in one packed field, or -1 when it is unsound. */
static int64_t count_packed(weir_feature_kind kind, weir_bytes b) {
  if (kind == WEIR_FEATURE_FLOAT)
    return b.size % 4 == 0 ? (int64_t)(b.size / 4) : -1;
  weir_reader r = reader(b);
  int64_t n = 0;
  for (; weir_reader_left(&r) > 0; n++) (void)read_varint(&r);
  return r.failed ? -1 : n;
}

static unsigned plain_type(weir_feature_kind kind) {
  if (kind == WEIR_FEATURE_BYTES) return kBytes;
  return kind == WEIR_FEATURE_FLOAT ? kFixed32 : kVarint;
}

static bool count_values(weir_feature *out) {
  weir_reader r = reader(out->list);
  field f;
  out->count = 0;
  while (next_field(&r, &f)) {
    if (f.number != 1) continue;
    int64_t n = 1;
    if (f.type != plain_type(out->kind))
      n = f.type == kBytes ? count_packed(out->kind, f.bytes) : -1;
    if (n < 0) return false;
    out->count += n;
  }
  return !r.failed;
}

weir_feature_values weir_feature_begin(const weir_feature *feature) {
  return (weir_feature_values){feature->kind, reader(feature->list),
                               weir_reader_of(NULL, 0)};
}

static bool next_value(weir_feature_values *v, weir_bytes *out_bytes,
                       uint64_t *out_varint) {
  field f;
  while (weir_reader_left(&v->packed) == 0) {
    if (!next_field(&v->list, &f)) return false;
    if (f.number != 1) continue;
    *out_bytes = f.bytes;
    *out_varint = f.varint;
    if (f.type == plain_type(v->kind)) return true;
    v->packed = reader(f.bytes);
  }
  if (v->kind == WEIR_FEATURE_FLOAT)
    *out_bytes = (weir_bytes){weir_reader_bytes(&v->packed, 4), 4};
  else
    *out_varint = read_varint(&v->packed);
  return !v->packed.failed;
}

bool weir_feature_next_bytes(weir_feature_values *values,
                             weir_bytes *out_value) {
  uint64_t unused;
  return next_value(values, out_value, &unused);
}

bool weir_feature_next_float(weir_feature_values *values, float *out_value) {
  weir_bytes b = {NULL, 0};
  uint64_t unused;
  if (!next_value(values, &b, &unused)) return false;
  weir_reader r = reader(b);
  uint32_t bits = weir_reader_u32le(&r);
  memcpy(out_value, &bits, sizeof bits);
  return true;
}

bool weir_feature_next_int(weir_feature_values *values, int64_t *out_value) {
  weir_bytes unused;
  uint64_t v = 0;
  if (!next_value(values, &unused, &v)) return false;
  *out_value = (int64_t)v;
  return true;
}

/* ---- Messages */

static bool read_feature(weir_bytes message, weir_feature *out) {
  weir_reader r = reader(message);
  field f;
  *out = (weir_feature){0};
  while (next_field(&r, &f)) {
    if (f.type != kBytes || f.number > 3) continue;
    out->kind = (weir_feature_kind)f.number;
    out->list = f.bytes;
  }
  return !r.failed && (out->kind == WEIR_FEATURE_NONE || count_values(out));
}

/* An entry of the map. */
static bool read_entry(weir_bytes message, const weir_sv *names, size_t count,
                       weir_feature *out_features) {
  weir_reader r = reader(message);
  field f;
  weir_sv name = {NULL, 0};
  weir_feature feature = {0};
  while (next_field(&r, &f)) {
    if (f.type == kBytes && f.number == 1)
      name = (weir_sv){(const char *)f.bytes.data, f.bytes.size};
    if (f.type == kBytes && f.number == 2 && !read_feature(f.bytes, &feature))
      return false;
  }
  for (size_t i = 0; i < count; i++)
    if (weir_sv_equal(names[i], name)) out_features[i] = feature;
  return !r.failed;
}

weir_status weir_example_read(weir_bytes example, const char *file,
                              const weir_sv *names, size_t count,
                              weir_feature *out_features, weir_error *err) {
  weir_reader r = reader(example);
  field f, entry;
  bool sound = true;
  for (size_t i = 0; i < count; i++) out_features[i] = (weir_feature){0};
  while (sound && next_field(&r, &f)) {
    if (f.type != kBytes || f.number != 1) continue;
    weir_reader features = reader(f.bytes);
    while (sound && next_field(&features, &entry))
      if (entry.type == kBytes && entry.number == 1)
        sound = read_entry(entry.bytes, names, count, out_features);
    sound = sound && !features.failed;
  }
  weir_mark at = {.file = file};
  if (sound && !r.failed) return WEIR_OK;
  return weir_fail(err, WEIR_W4029, &at,
                   "a record is not a sound tf.Example message");
}
