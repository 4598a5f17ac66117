/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/ops/case.h"

enum { TEXT = 512 };

static bool error_says(const weir_diag *diag, weir_sv says) {
  char all[4096];
  snprintf(all, sizeof all, "%s\n%s\n%s\n", diag->error.message,
           diag->error.hint, diag->label);
  for (uint32_t i = 0; i < diag->note_count; i++) {
    size_t used = strlen(all);
    snprintf(all + used, sizeof all - used, "%s\n", diag->notes[i]);
  }
  return memmem(all, strlen(all), says.data, says.size) != NULL;
}

bool op_case_expect_error(const op_case *c, weir_status status,
                          const weir_diag *diag, char *why, size_t capacity) {
  if (status == WEIR_OK)
    snprintf(why, capacity, "no error, want %.*s", WEIR_SV(c->error));
  else if (!weir_sv_is(c->error, diag->error.id))
    snprintf(why, capacity, "want %.*s, got %s: %s", WEIR_SV(c->error),
             diag->error.id, diag->error.message);
  else if (!error_says(diag, c->says))
    snprintf(why, capacity, "want \"%.*s\", got \"%s\"", WEIR_SV(c->says),
             diag->error.message);
  else
    return true;
  return false;
}

static double tolerance(double given, weir_dtype dtype) {
  if (given >= 0) return given;
  return dtype == WEIR_F32 ? 1e-6 : 1e-12;
}

/* Whether zeros have the same signs; names the first that has not. */
static bool same_signs(const weir_tensor *got, const weir_tensor *want,
                       char *why, size_t capacity) {
  for (int64_t k = 0; k < weir_shape_elements(&got->shape); k++) {
    double g = weir_tensor_get_f64(got, k), w = weir_tensor_get_f64(want, k);
    if (g != 0 || w != 0 || signbit(g) == signbit(w)) continue;
    snprintf(why, capacity, "element %lld: got %g, want %g", (long long)k, g,
             w);
    return false;
  }
  return true;
}

static bool within(const op_case *c, const weir_tensor *got,
                   const weir_tensor *want, char *why, size_t capacity) {
  return op_compare(got, want, tolerance(c->rtol, got->dtype),
                    c->atol >= 0 ? c->atol : 0, why, capacity);
}

bool op_case_expect_value(const op_case *c, uint32_t i, const weir_tensor *got,
                          char *why, size_t capacity) {
  const weir_yaml *y = c->out[i];
  weir_dtype dtype = got->dtype;
  char text[TEXT] = "";
  if (y == NULL) return true;
  const weir_yaml *named =
      y->kind == WEIR_YAML_MAP ? weir_yaml_get(y, "dtype") : NULL;
  if (named != NULL && !weir_sv_is(named->text, weir_dtype_name(dtype))) {
    snprintf(why, capacity, "output %u is of %s, want %.*s", i,
             weir_dtype_name(dtype), WEIR_SV(named->text));
    return false;
  }
  weir_tensor *want =
      op_case_tensor(y, weir_dtype_is_float(dtype) ? WEIR_F64 : dtype, 0);
  bool same = want != NULL;
  if (!same)
    snprintf(why, capacity, "cannot read output %u", i);
  else
    same = within(c, got, want, text, sizeof text) &&
           (!c->signed_zeros || same_signs(got, want, text, sizeof text));
  if (want != NULL && !same) snprintf(why, capacity, "output %u, %s", i, text);
  weir_tensor_unref(want);
  return same;
}

bool op_case_expect_equal(const op_case *c, const op_results *got,
                          const op_results *want, bool same_bits, char *why,
                          size_t capacity) {
  char text[TEXT] = "";
  for (uint32_t i = 0; i < got->count && i < want->count; i++) {
    const weir_tensor *g = got->out[i], *w = want->out[i];
    if (g == NULL || w == NULL) continue; /* left out */
    if (same_bits) {
      if (g->bytes == w->bytes && memcmp(g->data, w->data, g->bytes) == 0)
        continue;
      snprintf(why, capacity, "output %u has other bits", i);
      return false;
    }
    if (within(c, g, w, text, sizeof text)) continue;
    snprintf(why, capacity, "output %u differs from ref: %s", i, text);
    return false;
  }
  return true;
}
