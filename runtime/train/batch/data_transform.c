/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/train/batch/data_transform.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "runtime/base/map.h"
#include "runtime/base/number.h"

/* A transform is chosen when the data set is opened; a batch then runs one of
 * four loops over its elements: copy, code, conversion with a check of range,
 * or floats with mean and deviation. Codes of numbers go through the double or
 * the decimal text, so that a column of numbers and one of texts agree. */

/* ---- Codes */

static weir_status fail_unknown(const weir_code *code, weir_sv text,
                                const weir_mark *at, weir_error *err) {
  return weir_fail(err, WEIR_W4031, at,
                   "column '%.*s': '%.*s' is not in the vocabulary",
                   WEIR_SV(code->column), WEIR_SV(text));
}

/* The number of boundaries <= v, by bisection: boundaries rise. */
static weir_status bucket(const weir_code *code, double v, const weir_mark *at,
                          int32_t *out, weir_error *err) {
  if (!isfinite(v))
    return weir_fail(err, WEIR_W4027, at,
                     "column '%.*s': a bucket is for finite numbers",
                     WEIR_SV(code->column));
  int64_t low = 0, high = code->bucket_count;
  while (low < high) {
    int64_t middle = low + (high - low) / 2;
    if (code->boundaries[middle] <= v)
      low = middle + 1;
    else
      high = middle;
  }
  *out = (int32_t)low;
  return WEIR_OK;
}

weir_status weir_code_text(const weir_code *code, weir_sv text,
                           const weir_mark *at, int32_t *out_index,
                           weir_error *err) {
  double v = 0;
  if (code->kind == WEIR_CODE_HASH) {
    uint64_t h = weir_hash_bytes(text.data, text.size, 0);
    *out_index = (int32_t)(h % (uint64_t)code->bucket_count);
    return WEIR_OK;
  }
  if (code->kind == WEIR_CODE_VOCABULARY) {
    *out_index = weir_vocabulary_find(code->vocabulary, text);
    return *out_index >= 0 ? WEIR_OK : fail_unknown(code, text, at, err);
  }
  if (!weir_number_parse(text, &v))
    return weir_fail(err, WEIR_W4027, at, "column '%.*s': '%.*s' is no number",
                     WEIR_SV(code->column), WEIR_SV(text));
  return bucket(code, v, at, out_index, err);
}

weir_status weir_code_number(const weir_code *code, double value,
                             const weir_mark *at, int32_t *out_index,
                             weir_error *err) {
  char text[WEIR_NUMBER_TEXT];
  if (code->kind == WEIR_CODE_BUCKETIZE)
    return bucket(code, value, at, out_index, err);
  if (!(value >= -9007199254740992.0 && value <= 9007199254740992.0) ||
      value != floor(value))
    return weir_fail(err, WEIR_W4027, at,
                     "column '%.*s': %g is no integer below 2^53",
                     WEIR_SV(code->column), value);
  size_t n = weir_number_format(text, value);
  return weir_code_text(code, (weir_sv){text, n}, at, out_index, err);
}

/* ---- Elements */

static double load(weir_dtype dtype, const void *src, int64_t i) {
  switch (dtype) {
    case WEIR_F32:
      return ((const float *)src)[i];
    case WEIR_F64:
      return ((const double *)src)[i];
    case WEIR_I32:
      return ((const int32_t *)src)[i];
    case WEIR_I64:
      return (double)((const int64_t *)src)[i];
    default:
      return ((const uint8_t *)src)[i];
  }
}

/* Whether |v| is a value of |dtype|, an integer type. The largest double below
 * 2^63 is 2^63 - 1024. */
static bool in_range(weir_dtype dtype, double v) {
  double low = 0, high = 1; /* bool */
  if (dtype == WEIR_U8) high = UINT8_MAX;
  if (dtype == WEIR_I32) low = INT32_MIN, high = INT32_MAX;
  if (dtype == WEIR_I64) low = -0x1p63, high = 0x1p63 - 1024;
  return v >= low && v <= high && v == floor(v);
}

static bool store(weir_dtype dtype, void *dst, int64_t i, double v) {
  if (dtype == WEIR_F32)
    ((float *)dst)[i] = (float)v;
  else if (dtype == WEIR_F64)
    ((double *)dst)[i] = v;
  else if (!in_range(dtype, v))
    return false;
  else if (dtype == WEIR_I32)
    ((int32_t *)dst)[i] = (int32_t)v;
  else if (dtype == WEIR_I64)
    ((int64_t *)dst)[i] = (int64_t)v;
  else
    ((uint8_t *)dst)[i] = (uint8_t)v;
  return true;
}

static weir_status convert(const weir_transform *t, const void *src, int64_t n,
                           void *dst, weir_error *err) {
  for (int64_t i = 0; i < n; i++) {
    /* Not through a double, which has 53 bits only. */
    bool wide = t->from == WEIR_I64 && t->to == WEIR_I64;
    if (wide) {
      ((int64_t *)dst)[i] = ((const int64_t *)src)[i];
    } else if (!store(t->to, dst, i, load(t->from, src, i))) {
      return weir_fail(err, WEIR_W4027, NULL,
                       "column '%.*s': %.17g is no value of dtype %s",
                       WEIR_SV(t->code.column), load(t->from, src, i),
                       weir_dtype_name(t->to));
    }
  }
  return WEIR_OK;
}

static weir_status encode(const weir_transform *t, const void *src, int64_t n,
                          void *dst, weir_error *err) {
  for (int64_t i = 0; i < n; i++) {
    int32_t index = 0;
    WEIR_TRY(
        weir_code_number(&t->code, load(t->from, src, i), NULL, &index, err));
    (void)store(t->to, dst, i, index);
  }
  return WEIR_OK;
}

/* ---- normalise */

#define WIDEN(T) \
  for (int64_t i = 0; i < n; i++) dst[i] = (float)((const T *)src)[i]

static void to_float(weir_dtype from, const void *src, int64_t n, float *dst) {
  if (from == WEIR_U8 || from == WEIR_BOOL) {
    WIDEN(uint8_t);
  } else if (from == WEIR_I32) {
    WIDEN(int32_t);
  } else if (from == WEIR_I64) {
    WIDEN(int64_t);
  } else if (from == WEIR_F64) {
    WIDEN(double);
  } else {
    memcpy(dst, src, (size_t)n * sizeof *dst);
  }
}

static void normalise(const weir_transform *t, int64_t count, float *dst) {
  int64_t n = t->elements / t->slices;
  for (int64_t r = 0; r < count; r++)
    for (int64_t c = 0; c < t->slices; c++, dst += n) {
      float mean = t->mean[c], std = t->std[c];
      if (t->scaled)
        for (int64_t i = 0; i < n; i++) dst[i] = dst[i] * std + mean;
      else
        for (int64_t i = 0; i < n; i++) dst[i] = (dst[i] - mean) / std;
    }
}

weir_status weir_transform_run(const weir_transform *t, const void *src,
                               int64_t count, void *dst, weir_error *err) {
  int64_t n = t->elements * count;
  if (n == 0) return WEIR_OK;
  if (t->identity) {
    memcpy(dst, src, t->to_bytes * (size_t)count);
    return WEIR_OK;
  }
  if (t->code.kind != WEIR_CODE_NONE) return encode(t, src, n, dst, err);
  if (t->to != WEIR_F32) return convert(t, src, n, dst, err);
  to_float(t->from, src, n, dst);
  if (t->mean != NULL) normalise(t, count, dst);
  return WEIR_OK;
}

/* ---- Making one */

static weir_status fill_floats(const double *from, uint32_t count,
                               int64_t slices, double otherwise,
                               weir_arena *arena, const float **out,
                               weir_error *err) {
  float *to = weir_arena_array(arena, (size_t)slices, sizeof *to);
  if (to == NULL) return weir_fail_memory(err, (size_t)slices * sizeof *to);
  for (int64_t i = 0; i < slices; i++)
    to[i] = (float)(count == 0 ? otherwise : from[count == 1 ? 0 : i]);
  *out = to;
  return WEIR_OK;
}

static weir_status init_normalise(const weir_source_column *column,
                                  const weir_column_spec *spec,
                                  weir_arena *arena, weir_transform *out,
                                  weir_error *err) {
  uint32_t most =
      spec->mean_count > spec->std_count ? spec->mean_count : spec->std_count;
  int64_t first = column->rank > 0 ? column->dims[0] : 1;
  bool fits = (spec->mean_count <= 1 || spec->mean_count == first) &&
              (spec->std_count <= 1 || spec->std_count == first);
  if (!fits)
    return weir_fail(err, WEIR_W4024, &spec->mark,
                     "column '%.*s': normalise has %u numbers, an example's "
                     "first dimension is %" PRId64,
                     WEIR_SV(column->name), most, first);
  if (out->to != WEIR_F32)
    return weir_fail(err, WEIR_W4024, &spec->mark,
                     "column '%.*s': normalize needs f32",
                     WEIR_SV(column->name));
  out->slices = most > 1 ? first : 1;
  out->scaled = spec->scaled;
  WEIR_TRY(fill_floats(spec->mean, spec->mean_count, out->slices, 0, arena,
                       &out->mean, err));
  return fill_floats(spec->std, spec->std_count, out->slices, 1, arena,
                     &out->std, err);
}

weir_status weir_transform_init(const weir_source_column *column,
                                const weir_column_spec *spec,
                                const weir_vocabulary *vocabulary,
                                weir_arena *arena, weir_transform *out,
                                weir_error *err) {
  bool scales = spec != NULL && spec->mean_count + spec->std_count > 0;
  *out = (weir_transform){.from = column->dtype,
                          .to = column->dtype,
                          .elements = column->elements,
                          .code.column = column->name};
  if (spec != NULL && !column->converted) {
    out->code.kind = spec->code;
    out->code.boundaries = spec->boundaries;
    out->code.bucket_count = spec->bucket_count;
    out->code.vocabulary = vocabulary;
    if (spec->code != WEIR_CODE_NONE) out->to = WEIR_I32;
    if (spec->dtype != WEIR_DTYPE_NONE) out->to = spec->dtype;
  }
  if (scales && (spec->dtype == WEIR_DTYPE_NONE || column->converted))
    out->to = WEIR_F32;
  if (out->code.kind != WEIR_CODE_NONE && out->to != WEIR_I32 &&
      out->to != WEIR_I64)
    return weir_fail(err, WEIR_W4024, &spec->mark,
                     "column '%.*s' becomes an index: its dtype is i32 or i64",
                     WEIR_SV(column->name));
  out->from_bytes = column->bytes;
  out->to_bytes = (size_t)column->elements * weir_dtype_size(out->to);
  if (scales) WEIR_TRY(init_normalise(column, spec, arena, out, err));
  out->identity = out->code.kind == WEIR_CODE_NONE && out->from == out->to &&
                  out->mean == NULL;
  return WEIR_OK;
}
