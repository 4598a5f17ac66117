/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"

/* Literals: "f32:2x2=1,2,3,4", "i64:=7", "f32:4=0" (one value for all), and the
 * graph file's own spelling, "[[1, 2], [3, 4]]" or "1.5", whose dtype is that
 * of the input.
 *
 * Nested brackets are read twice without recursion: once for the shape, which
 * all rows must agree on, once for the values. */

enum { ELEMENTS = 1 << 20 };

static weir_status bad(weir_error *err, const char *text, const char *why) {
  return cli_error(err, "W4014", "literal \"%.80s\": %s", text, why);
}

/* Stores the number or word at |*at| as element |i|; moves on. */
static bool store(weir_dtype dtype, void *data, int64_t i, const char **at) {
  char *end = NULL;
  const char *text = *at;
  bool is_true = strncmp(text, "true", 4) == 0;
  bool is_false = strncmp(text, "false", 5) == 0;
  if (is_true || is_false) {
    *at = text + (is_true ? 4 : 5);
    if (dtype == WEIR_BOOL) ((uint8_t *)data)[i] = is_true;
    return dtype == WEIR_BOOL;
  }
  if (weir_dtype_is_float(dtype)) {
    if (*text == '.' && (text[1] == 'i' || text[1] == 'n')) text++;
    double value = strtod(text, &end);
    if (end == text) return false;
    if (dtype == WEIR_F32)
      ((float *)data)[i] = (float)value;
    else
      ((double *)data)[i] = value;
    *at = end;
    return true;
  }
  errno = 0;
  long long value = strtoll(text, &end, 10);
  if (end == text || errno != 0 || *end == '.' || *end == 'e') return false;
  *at = end;
  switch (dtype) {
    case WEIR_I64:
      ((int64_t *)data)[i] = value;
      return true;
    case WEIR_I32:
      ((int32_t *)data)[i] = (int32_t)value;
      return value >= INT32_MIN && value <= INT32_MAX;
    case WEIR_U8:
      ((uint8_t *)data)[i] = (uint8_t)value;
      return value >= 0 && value <= 255;
    default:
      ((uint8_t *)data)[i] = value != 0;
      return value == 0 || value == 1;
  }
}

static const char *skip_space(const char *at) {
  while (*at == ' ' || *at == '\t' || *at == '\n') at++;
  return at;
}

/* Fills |tensor| from values between commas; one value fills all. */
static weir_status fill(weir_tensor *tensor, const char *at, const char *text,
                        weir_error *err) {
  weir_tensor_info info = {.struct_size = sizeof info};
  WEIR_TRY(weir_tensor_desc(tensor, &info));
  char *data = weir_tensor_mutable_data(tensor);
  size_t size = weir_dtype_size(info.dtype);
  int64_t i = 0;
  at = skip_space(at);
  while (*at != '\0') {
    if (i == info.elements)
      return bad(err, text, "more values than the shape has elements");
    if (!store(info.dtype, data, i++, &at))
      return bad(err, text, "a value is not one of its dtype");
    at = skip_space(at);
    if (*at == ',' && at[1] != '\0')
      at = skip_space(at + 1);
    else if (*at != '\0')
      return bad(err, text, "values are written with commas between them");
  }
  if (i == 1)
    for (; i < info.elements; i++) memcpy(data + (size_t)i * size, data, size);
  if (i < info.elements)
    return bad(err, text, "fewer values than the shape has elements");
  return WEIR_OK;
}

/* "2x3" up to |end|; "" is a scalar. */
static bool read_dims(const char *at, const char *end, int32_t *out_rank,
                      int64_t dims[WEIR_RANK_LIMIT]) {
  *out_rank = 0;
  while (at < end) {
    char *next = NULL;
    if (*at < '0' || *at > '9' || *out_rank == WEIR_RANK_LIMIT) return false;
    errno = 0;
    dims[(*out_rank)++] = strtoll(at, &next, 10);
    if (errno != 0 || next > end) return false;
    if (next < end && (*next != 'x' || next + 1 == end)) return false;
    at = next + 1;
  }
  return true;
}

/* A literal with its own dtype and shape: |colon| and |equals| in |text|. */
static weir_status read_typed(weir_runtime *runtime, const char *text,
                              const char *colon, const char *equals,
                              weir_tensor **out_tensor, weir_error *err) {
  int64_t dims[WEIR_RANK_LIMIT];
  int32_t rank = 0;
  weir_dtype dtype = weir_dtype_from_name(text, (size_t)(colon - text));
  if (dtype == WEIR_DTYPE_NONE)
    return bad(err, text, "it begins with no dtype (f32 f64 i32 i64 u8 bool)");
  if (!read_dims(colon + 1, equals, &rank, dims))
    return bad(err, text,
               "the shape is written 2x3, with at most 8 dimensions");
  WEIR_TRY(weir_tensor_create(runtime, dtype, rank, dims, out_tensor, err));
  return fill(*out_tensor, equals + 1, text, err);
}

/* ---- [[1, 2], [3, 4]] */

/* Finds the shape of nested brackets; checks that rows are equally long. */
static weir_status nested_shape(const char *text, int32_t *out_rank,
                                int64_t dims[WEIR_RANK_LIMIT],
                                weir_error *err) {
  int64_t count[WEIR_RANK_LIMIT] = {0};
  int depth = 0, deepest = 0, value_depth = -1;
  bool known[WEIR_RANK_LIMIT] = {false};
  bool value = false; /* a value began at this level */
  for (const char *at = text; *at != '\0'; at++) {
    if (*at == '[') {
      if (depth == WEIR_RANK_LIMIT) return bad(err, text, "nested too deeply");
      count[depth++] = 0;
      if (depth > deepest) deepest = depth;
      value = false;
    } else if (*at == ']' || *at == ',') {
      if (depth == 0) return bad(err, text, "brackets do not match");
      if (value) count[depth - 1]++;
      value = *at == ']';
      if (*at == ',') continue;
      depth--;
      if (known[depth] && dims[depth] != count[depth])
        return bad(err, text, "rows differ in length");
      known[depth] = true;
      dims[depth] = count[depth];
    } else if (*at != ' ') {
      if (value_depth >= 0 && value_depth != depth)
        return bad(err, text, "rows differ in depth");
      value_depth = depth;
      value = true;
    }
  }
  *out_rank = deepest;
  if (value_depth >= 0 && value_depth != deepest)
    return bad(err, text, "rows differ in depth");
  return depth == 0 ? WEIR_OK : bad(err, text, "brackets do not match");
}

static weir_status read_nested(weir_runtime *runtime, const char *text,
                               weir_dtype dtype, weir_tensor **out_tensor,
                               weir_error *err) {
  int64_t dims[WEIR_RANK_LIMIT] = {0};
  int32_t rank = 0;
  WEIR_TRY(nested_shape(text, &rank, dims, err));
  WEIR_TRY(weir_tensor_create(runtime, dtype, rank, dims, out_tensor, err));
  weir_tensor_info info = {.struct_size = sizeof info};
  WEIR_TRY(weir_tensor_desc(*out_tensor, &info));
  void *data = weir_tensor_mutable_data(*out_tensor);
  int64_t i = 0;
  for (const char *at = text; *at != '\0';) {
    if (strchr("[], ", *at) != NULL)
      at++;
    else if (i == info.elements || !store(dtype, data, i++, &at))
      return bad(err, text, "a value is not one of its dtype");
  }
  return i == info.elements ? WEIR_OK : bad(err, text, "rows are ragged");
}

weir_status cli_literal_read(weir_runtime *runtime, const char *text,
                             const weir_io_desc *like, weir_tensor **out_tensor,
                             weir_error *err) {
  *out_tensor = NULL;
  weir_status s;
  const char *colon = strchr(text, ':');
  const char *equals = colon != NULL ? strchr(colon, '=') : NULL;
  if (strlen(text) > (size_t)ELEMENTS * 32)
    s = bad(err, text, "too long; use a file");
  else if (equals != NULL)
    s = read_typed(runtime, text, colon, equals, out_tensor, err);
  else if (like == NULL)
    s = bad(err, text, "expected dtype:shape=values");
  else
    s = read_nested(runtime, text, like->dtype, out_tensor, err);
  if (s != WEIR_OK) {
    weir_tensor_release(*out_tensor);
    *out_tensor = NULL;
  }
  return s;
}
