/* SPDX-License-Identifier: Apache-2.0 */
/* --expect: compares an output with a value and names the first difference. */
#include <string.h>

#include "cli/cli.h"

/* "[1, 0, 3]": the place of the i-th element. */
static void place_text(const weir_tensor_info *info, int64_t i, char *text,
                       size_t size) {
  int64_t at[WEIR_RANK_LIMIT];
  for (int d = info->rank - 1; d >= 0; d--) {
    at[d] = i % info->dims[d];
    i /= info->dims[d];
  }
  size_t used = (size_t)snprintf(text, size, "[");
  for (int d = 0; d < info->rank && used < size; d++)
    used += (size_t)snprintf(text + used, size - used, "%s%lld",
                             d != 0 ? ", " : "", (long long)at[d]);
  if (used < size) snprintf(text + used, size - used, "]");
}

static void type_text(const weir_tensor_info *info, char *text, size_t size) {
  size_t used =
      (size_t)snprintf(text, size, "%s[", weir_dtype_name(info->dtype));
  for (int d = 0; d < info->rank && used < size; d++)
    used += (size_t)snprintf(text + used, size - used, "%s%lld",
                             d != 0 ? ", " : "", (long long)info->dims[d]);
  if (used < size) snprintf(text + used, size - used, "]");
}

static weir_status differs(const char *name, const weir_tensor_info *a,
                           const weir_tensor_info *b,
                           const weir_tools_compare *c, const cli_args *args,
                           weir_error *err) {
  char one[256], two[256];
  if (!c->same_type) {
    type_text(a, one, sizeof one);
    type_text(b, two, sizeof two);
    return cli_error(err, "W0010", "%s is %s, expected %s", name, one, two);
  }
  place_text(a, c->first, one, sizeof one);
  return cli_error(
      err, "W0010",
      "%s: %lld of %lld elements differ; the first is %s%s: %.9g, expected "
      "%.9g. Largest error %.3g absolute, %.3g relative (rtol %g, atol %g)",
      name, (long long)c->differing, (long long)a->elements, name, one,
      c->first_a, c->first_b, c->max_abs, c->max_rel, args->rtol, args->atol);
}

int cli_expect(const cli_job *job, const cli_args *args, const char *text,
               const weir_tensor *tensor) {
  weir_error err = WEIR_ERROR_INIT;
  weir_tensor *want = NULL;
  char name[128];
  size_t size = strcspn(text, "=");
  weir_tensor_info a = {.struct_size = sizeof a}, b = a;
  snprintf(name, sizeof name, "%.*s", (int)(size < 120 ? size : 120), text);
  weir_status s = weir_tensor_desc(tensor, &a);
  weir_io_desc like = {
      .struct_size = sizeof like, .dtype = a.dtype, .rank = a.rank};
  memcpy(like.dims, a.dims, sizeof like.dims);
  s = cli_value_read(job->runtime, args->data_root, text + size + 1, &like,
                     &want, &err);
  if (s == WEIR_OK) s = weir_tensor_desc(want, &b);
  if (s == WEIR_OK) {
    weir_tools_compare c;
    weir_tools_tensor_compare(tensor, want, args->rtol, args->atol, &c);
    if (!c.same_type || c.differing != 0)
      s = differs(name, &a, &b, &c, args, &err);
    else if (!args->quiet)
      cli_note(
          "%s is as expected: largest error %.3g absolute, %.3g relative\n",
          name, c.max_abs, c.max_rel);
  }
  weir_tensor_release(want);
  return s == WEIR_OK ? 0 : cli_fail(&err);
}
