/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/io/record/tf_example.h"

#include "runtime/base/bytes/proto.h"
#include "runtime/io/record/tfrecord.h"

/* tf.Example without a tree: a first pass checks each wanted feature and counts
 * its values, a second one, value by value, then cannot fail. Features are
 * compared with all wanted names: O(features * names), and names are few. */

static weir_reader reader(weir_bytes b) {
  return weir_reader_of(b.data, b.size);
}

/* ---- Values */

/* Values in one packed field, or -1 when it is unsound. */
static int64_t count_packed(weir_feature_kind kind, weir_reader packed) {
  if (kind == WEIR_FEATURE_FLOAT)
    return packed.size % 4 == 0 ? (int64_t)(packed.size / 4) : -1;
  int64_t n = 0;
  for (; weir_reader_left(&packed) > 0; n++) (void)weir_proto_varint(&packed);
  return packed.failed ? -1 : n;
}

static weir_proto_wire plain_wire(weir_feature_kind kind) {
  if (kind == WEIR_FEATURE_BYTES) return WEIR_PROTO_BYTES;
  return kind == WEIR_FEATURE_FLOAT ? WEIR_PROTO_FIXED32 : WEIR_PROTO_VARINT;
}

static bool count_values(weir_feature *out) {
  weir_reader r = reader(out->list);
  weir_proto_field f;
  out->count = 0;
  while (weir_proto_next(&r, &f)) {
    if (f.number != 1) continue;
    int64_t n = 1;
    if (f.wire != plain_wire(out->kind))
      n = f.wire == WEIR_PROTO_BYTES ? count_packed(out->kind, f.sub) : -1;
    if (n < 0) return false;
    out->count += n;
  }
  return !r.failed;
}

weir_feature_values weir_feature_begin(const weir_feature *feature) {
  return (weir_feature_values){feature->kind, reader(feature->list),
                               weir_reader_of(NULL, 0)};
}

/* The next value as a field of the plain form: packed ones are looked up in
 * the field that holds them. */
static bool next_value(weir_feature_values *v, weir_proto_field *out) {
  while (weir_reader_left(&v->packed) == 0) {
    if (!weir_proto_next(&v->list, out)) return false;
    if (out->number != 1) continue;
    if (out->wire == plain_wire(v->kind)) return true;
    v->packed = out->sub;
  }
  out->value = v->kind == WEIR_FEATURE_FLOAT ? weir_reader_u32le(&v->packed)
                                             : weir_proto_varint(&v->packed);
  return !v->packed.failed;
}

bool weir_feature_next_bytes(weir_feature_values *values,
                             weir_bytes *out_value) {
  weir_proto_field f;
  if (!next_value(values, &f)) return false;
  *out_value = (weir_bytes){f.sub.data, f.sub.size};
  return true;
}

bool weir_feature_next_float(weir_feature_values *values, float *out_value) {
  weir_proto_field f;
  if (!next_value(values, &f)) return false;
  *out_value = weir_proto_as_float(f.value);
  return true;
}

bool weir_feature_next_int(weir_feature_values *values, int64_t *out_value) {
  weir_proto_field f;
  if (!next_value(values, &f)) return false;
  *out_value = (int64_t)f.value;
  return true;
}

/* ---- Messages */

static bool read_feature(weir_reader r, weir_feature *out) {
  weir_proto_field f;
  *out = (weir_feature){0};
  while (weir_proto_next(&r, &f)) {
    if (f.wire != WEIR_PROTO_BYTES || f.number > 3) continue;
    out->kind = (weir_feature_kind)f.number;
    out->list = (weir_bytes){f.sub.data, f.sub.size};
  }
  return !r.failed && (out->kind == WEIR_FEATURE_NONE || count_values(out));
}

/* An entry of the map. */
static bool read_entry(weir_reader r, const weir_sv *names, size_t count,
                       weir_feature *out_features) {
  weir_proto_field f;
  weir_sv name = {NULL, 0};
  weir_feature feature = {0};
  while (weir_proto_next(&r, &f)) {
    if (f.wire != WEIR_PROTO_BYTES) continue;
    if (f.number == 1) name = (weir_sv){(const char *)f.sub.data, f.sub.size};
    if (f.number == 2 && !read_feature(f.sub, &feature)) return false;
  }
  for (size_t i = 0; i < count; i++)
    if (weir_sv_equal(names[i], name)) out_features[i] = feature;
  return !r.failed;
}

weir_status weir_example_read(weir_bytes example, const char *file,
                              const weir_sv *names, size_t count,
                              weir_feature *out_features, weir_error *err) {
  weir_reader r = reader(example);
  weir_proto_field f, entry;
  bool sound = true;
  for (size_t i = 0; i < count; i++) out_features[i] = (weir_feature){0};
  while (sound && weir_proto_next(&r, &f)) {
    if (f.wire != WEIR_PROTO_BYTES || f.number != 1) continue;
    while (sound && weir_proto_next(&f.sub, &entry))
      if (entry.wire == WEIR_PROTO_BYTES && entry.number == 1)
        sound = read_entry(entry.sub, names, count, out_features);
    sound = sound && !f.sub.failed;
  }
  weir_mark at = {.file = file};
  if (sound && !r.failed) return WEIR_OK;
  return weir_fail(err, WEIR_W4029, &at,
                   "a record is not a sound tf.Example message");
}
