/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/train/spec/parse_value.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "runtime/base/number.h"

/* Texts and numbers as elements. An integer type takes integers only, through
 * 64-bit integers and never through a double, so large ids keep all digits; a
 * value that does not fit is an error, not clamped. */

static weir_dtype input_dtype(const weir_graph *g, weir_sv name) {
  for (uint32_t i = 0; i < g->input_count; i++)
    if (weir_sv_equal(g->inputs[i].name, name))
      return g->values[g->inputs[i].value].dtype;
  return WEIR_F32;
}

weir_status weir_value_parser_init(const weir_source_context *context,
                                   const weir_column_spec *spec, weir_sv column,
                                   weir_value_parser *out, weir_error *err) {
  *out = (weir_value_parser){.column = column, .code.column = column};
  bool scales = spec != NULL && spec->mean_count + spec->std_count > 0;
  if (spec != NULL) {
    out->code.kind = spec->code;
    out->code.boundaries = spec->boundaries;
    out->code.bucket_count = spec->bucket_count;
    out->dtype = spec->dtype;
  }
  bool coded = out->code.kind != WEIR_CODE_NONE;
  if (out->dtype == WEIR_DTYPE_NONE)
    out->dtype = coded    ? WEIR_I32
                 : scales ? WEIR_F32
                          : input_dtype(context->graph, column);
  if (!coded || out->dtype == WEIR_I32 || out->dtype == WEIR_I64)
    return WEIR_OK;
  return weir_fail(err, WEIR_W4024, &spec->mark,
                   "column '%.*s' becomes an index: its dtype is i32 or i64",
                   WEIR_SV(column));
}

static weir_status bad(const weir_value_parser *p, weir_sv text,
                       const weir_mark *at, weir_error *err) {
  if (text.size > 64) text.size = 64;
  return weir_fail(
      err, WEIR_W4027, at, "column '%.*s': '%.*s' is no value of dtype %s",
      WEIR_SV(p->column), WEIR_SV(text), weir_dtype_name(p->dtype));
}

static weir_status store_int(const weir_value_parser *p, int64_t v,
                             weir_sv text, const weir_mark *at, void *dst,
                             int64_t i, weir_error *err) {
  bool fits = true;
  switch (p->dtype) {
    case WEIR_F32:
      ((float *)dst)[i] = (float)v;
      break;
    case WEIR_F64:
      ((double *)dst)[i] = (double)v;
      break;
    case WEIR_I32:
      fits = v >= INT32_MIN && v <= INT32_MAX;
      if (fits) ((int32_t *)dst)[i] = (int32_t)v;
      break;
    case WEIR_I64:
      ((int64_t *)dst)[i] = v;
      break;
    default:
      fits = v >= 0 && v <= (p->dtype == WEIR_BOOL ? 1 : UINT8_MAX);
      if (fits) ((uint8_t *)dst)[i] = (uint8_t)v;
  }
  return fits ? WEIR_OK : bad(p, text, at, err);
}

static weir_sv trimmed(weir_sv t) {
  while (t.size > 0 && (t.data[0] == ' ' || t.data[0] == '\t'))
    t = (weir_sv){t.data + 1, t.size - 1};
  while (t.size > 0 &&
         (t.data[t.size - 1] == ' ' || t.data[t.size - 1] == '\t'))
    t.size--;
  return t;
}

static weir_status parse_number(const weir_value_parser *p, weir_sv text,
                                const weir_mark *at, void *dst, int64_t i,
                                weir_error *err) {
  weir_sv t = trimmed(text);
  int64_t n = 0;
  double v = 0;
  if (weir_dtype_is_float(p->dtype)) {
    if (!weir_number_parse(t, &v)) return bad(p, text, at, err);
    if (p->dtype == WEIR_F32)
      ((float *)dst)[i] = (float)v;
    else
      ((double *)dst)[i] = v;
    return WEIR_OK;
  }
  if (p->dtype == WEIR_BOOL && weir_sv_is(t, "true")) t = WEIR_SV_LIT("1");
  if (p->dtype == WEIR_BOOL && weir_sv_is(t, "false")) t = WEIR_SV_LIT("0");
  if (!weir_number_parse_int(t, &n)) return bad(p, text, at, err);
  return store_int(p, n, text, at, dst, i, err);
}

weir_status weir_value_parse(const weir_value_parser *p, weir_sv text,
                             const weir_mark *at, void *dst, int64_t i,
                             weir_error *err) {
  int32_t index = 0;
  if (p->code.kind == WEIR_CODE_NONE)
    return parse_number(p, text, at, dst, i, err);
  bool number = p->code.kind == WEIR_CODE_BUCKETIZE;
  WEIR_TRY(
      weir_code_text(&p->code, number ? trimmed(text) : text, at, &index, err));
  return store_int(p, index, text, at, dst, i, err);
}

weir_status weir_value_from_double(const weir_value_parser *p, double value,
                                   const weir_mark *at, void *dst, int64_t i,
                                   weir_error *err) {
  int32_t index = 0;
  char text[WEIR_NUMBER_TEXT];
  if (p->code.kind != WEIR_CODE_NONE) {
    WEIR_TRY(weir_code_number(&p->code, value, at, &index, err));
    return store_int(p, index, WEIR_SV_LIT("an index"), at, dst, i, err);
  }
  if (p->dtype == WEIR_F32) {
    ((float *)dst)[i] = (float)value;
    return WEIR_OK;
  }
  if (p->dtype == WEIR_F64) {
    ((double *)dst)[i] = value;
    return WEIR_OK;
  }
  weir_sv shown = {text, weir_number_format(text, value)};
  if (!(value >= -0x1p63 && value < 0x1p63) || value != floor(value))
    return bad(p, shown, at, err);
  return store_int(p, (int64_t)value, shown, at, dst, i, err);
}

weir_status weir_value_from_int(const weir_value_parser *p, int64_t value,
                                const weir_mark *at, void *dst, int64_t i,
                                weir_error *err) {
  char text[WEIR_NUMBER_TEXT];
  weir_sv shown = {text,
                   (size_t)snprintf(text, sizeof text, "%" PRId64, value)};
  if (p->code.kind == WEIR_CODE_NONE)
    return store_int(p, value, shown, at, dst, i, err);
  return weir_value_parse(p, shown, at, dst, i, err);
}
