/* SPDX-License-Identifier: Apache-2.0 */
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kernels/philox.h"
#include "runtime/base/yaml/yaml_scalar.h"
#include "tests/ops/case.h"

/* A nested list's shape, by its first items. */
static bool shape_of(const weir_yaml *y, weir_shape *out) {
  *out = (weir_shape){0};
  while (y->kind == WEIR_YAML_LIST) {
    if (out->rank == WEIR_MAX_RANK) return false;
    out->dims[out->rank++] = weir_dim_of(y->count);
    if (y->count == 0) return true;
    y = y->items[0];
  }
  return y->kind == WEIR_YAML_SCALAR;
}

/* Calls |fn| for every scalar of a nested list; depth is at most 8. False when
 * one call was or the list is not rectangular. */
typedef bool (*scalar_fn)(void *arg, const weir_yaml *scalar);
static bool each_scalar(const weir_yaml *y, const weir_shape *shape, int depth,
                        scalar_fn fn, void *arg) {
  if (depth == shape->rank) return y->kind == WEIR_YAML_SCALAR && fn(arg, y);
  if (y->kind != WEIR_YAML_LIST || y->count != shape->dims[depth].value)
    return false;
  for (uint32_t i = 0; i < y->count; i++)
    if (!each_scalar(y->items[i], shape, depth + 1, fn, arg)) return false;
  return true;
}

static bool is_bool(void *arg, const weir_yaml *scalar) {
  bool value;
  (void)arg;
  return weir_yaml_bool(scalar, &value);
}

typedef struct filling {
  weir_tensor *tensor;
  int64_t at;
} filling;

static bool put(void *arg, const weir_yaml *scalar) {
  filling *f = arg;
  int64_t i;
  double d;
  bool b;
  if (weir_yaml_bool(scalar, &b))
    weir_tensor_set_i64(f->tensor, f->at++, b);
  else if (weir_yaml_int(scalar, &i) && !weir_dtype_is_float(f->tensor->dtype))
    weir_tensor_set_i64(f->tensor, f->at++, i);
  else if (weir_yaml_float(scalar, &d))
    weir_tensor_set_f64(f->tensor, f->at++, d);
  else
    return false;
  return true;
}

static weir_tensor *create(weir_dtype dtype, const weir_shape *shape) {
  weir_tensor *tensor = NULL;
  weir_error err = WEIR_ERROR_INIT;
  if (weir_tensor_create_shaped(weir_allocator_system(), dtype, shape, &tensor,
                                &err) != WEIR_OK)
    return NULL;
  return tensor;
}

/* A number or nested list; |shape| (may be NULL) overrides the list's own. */
static weir_tensor *literal(const weir_yaml *y, weir_dtype dtype,
                            const weir_shape *shape) {
  weir_shape own;
  weir_tensor *tensor;
  if (!shape_of(y, &own)) return NULL;
  if (dtype == WEIR_DTYPE_NONE)
    dtype =
        weir_shape_elements(&own) > 0 && each_scalar(y, &own, 0, is_bool, NULL)
            ? WEIR_BOOL
            : WEIR_F32;
  if (shape != NULL && weir_shape_elements(shape) != weir_shape_elements(&own))
    return NULL;
  tensor = create(dtype, shape != NULL ? shape : &own);
  filling f = {tensor, 0};
  if (tensor != NULL && !each_scalar(y, &own, 0, put, &f)) {
    weir_tensor_unref(tensor);
    return NULL;
  }
  return tensor;
}

/* Element |i| lies in [low, high), the same for the same |seed|. */
static void randomize(weir_tensor *tensor, uint64_t seed, double low,
                      double high) {
  int64_t elements = weir_shape_elements(&tensor->shape);
  for (int64_t i = 0; i < elements; i++) {
    weir_philox p = weir_philox_block(seed, 0, (uint64_t)i);
    double u = low + (high - low) * weir_uniform_f64(p.word[0], p.word[1]);
    weir_tensor_set_f64(tensor, i,
                        weir_dtype_is_float(tensor->dtype) ? u : floor(u));
  }
}

static bool read_shape(const weir_yaml *y, weir_shape *out) {
  *out = (weir_shape){0};
  if (y->kind != WEIR_YAML_LIST || y->count > WEIR_MAX_RANK) return false;
  for (uint32_t i = 0; i < y->count; i++)
    if (!weir_yaml_int(y->items[i], &out->dims[i].value)) return false;
  out->rank = (int32_t)y->count;
  return true;
}

static double number(const weir_yaml *map, const char *key, double fallback) {
  const weir_yaml *y = weir_yaml_get(map, key);
  double value = fallback;
  if (y != NULL) weir_yaml_float(y, &value);
  return value;
}

/* {shape: [2, 3], dtype: f32, fill: 0} or without fill: random values. */
static weir_tensor *made(const weir_yaml *y, weir_dtype dtype,
                         const weir_shape *shape, uint64_t seed) {
  weir_tensor *tensor = create(dtype, shape);
  bool is_float = weir_dtype_is_float(dtype);
  double low = is_float ? -2 : dtype == WEIR_U8 || dtype == WEIR_BOOL ? 0 : -9;
  double high = is_float ? 2 : dtype == WEIR_BOOL ? 2 : 10;
  double fill = number(y, "fill", 0);
  if (tensor == NULL) return NULL;
  if (weir_yaml_get(y, "fill") == NULL) {
    randomize(tensor, seed, number(y, "low", low), number(y, "high", high));
    return tensor;
  }
  for (int64_t i = 0; i < weir_shape_elements(shape); i++)
    weir_tensor_set_f64(tensor, i, fill);
  return tensor;
}

weir_tensor *op_case_random(weir_dtype dtype, const weir_shape *shape,
                            uint64_t seed) {
  weir_tensor *tensor = create(dtype, shape);
  if (tensor != NULL) randomize(tensor, seed, -2, 2);
  return tensor;
}

static bool has_only_known_keys(const weir_yaml *map) {
  static const char *const keys[] = {"dtype", "data", "shape",
                                     "fill",  "low",  "high"};
  for (uint32_t i = 0; i < map->count; i++) {
    bool known = false;
    for (size_t k = 0; k < sizeof keys / sizeof keys[0]; k++)
      known = known || weir_sv_is(map->entries[i].key, keys[k]);
    if (!known) return false;
  }
  return true;
}

weir_tensor *op_case_tensor(const weir_yaml *yaml, weir_dtype dtype,
                            uint64_t seed) {
  weir_shape shape;
  if (yaml->kind != WEIR_YAML_MAP) return literal(yaml, dtype, NULL);
  const weir_yaml *named = weir_yaml_get(yaml, "dtype");
  const weir_yaml *data = weir_yaml_get(yaml, "data");
  const weir_yaml *shaped = weir_yaml_get(yaml, "shape");
  if (!has_only_known_keys(yaml)) return NULL;
  if (named != NULL && dtype != WEIR_F64)
    dtype = weir_dtype_from_name(named->text.data, named->text.size);
  if (shaped != NULL && !read_shape(shaped, &shape)) return NULL;
  if (data != NULL) return literal(data, dtype, shaped ? &shape : NULL);
  if (shaped == NULL) return NULL;
  return made(yaml, dtype == WEIR_DTYPE_NONE ? WEIR_F32 : dtype, &shape, seed);
}

static void print_place(const weir_shape *shape, int64_t i, char *text,
                        size_t capacity) {
  size_t used = (size_t)snprintf(text, capacity, "[");
  int64_t left = weir_shape_elements(shape);
  for (int32_t d = 0; d < shape->rank && used < capacity; d++) {
    left /= shape->dims[d].value;
    used +=
        (size_t)snprintf(text + used, capacity - used, "%s%" PRId64,
                         d > 0 ? ", " : "", i / left % shape->dims[d].value);
  }
  if (used < capacity) snprintf(text + used, capacity - used, "]");
}

/* A result that the dtype rounds to infinity or to 0 may be that. */
static bool is_close(weir_dtype dtype, double got, double want, double rtol,
                     double atol) {
  bool single = dtype == WEIR_F32;
  if (single && isfinite(want) && isinf((float)want)) want = (float)want;
  if (isnan(want) || isnan(got)) return isnan(want) && isnan(got);
  if (isinf(want) || isinf(got)) return got == want;
  atol += single ? (double)FLT_MIN : DBL_MIN;
  return fabs(got - want) <= atol + rtol * fabs(want);
}

bool op_compare(const weir_tensor *got, const weir_tensor *want, double rtol,
                double atol, char *why, size_t capacity) {
  bool is_float = weir_dtype_is_float(got->dtype);
  char a[128], b[128];
  if (!weir_shape_equal(&got->shape, &want->shape)) {
    weir_shape_print(&got->shape, NULL, NULL, a, sizeof a);
    weir_shape_print(&want->shape, NULL, NULL, b, sizeof b);
    snprintf(why, capacity, "got shape %s, want %s", a, b);
    return false;
  }
  for (int64_t i = 0; i < weir_shape_elements(&got->shape); i++) {
    double g = weir_tensor_get_f64(got, i), w = weir_tensor_get_f64(want, i);
    bool same =
        is_float ? is_close(got->dtype, g, w, rtol, atol)
                 : weir_tensor_get_i64(got, i) == weir_tensor_get_i64(want, i);
    if (same) continue;
    print_place(&got->shape, i, a, sizeof a);
    snprintf(why, capacity, "%s: got %.9g, want %.9g", a, g, w);
    return false;
  }
  return true;
}
