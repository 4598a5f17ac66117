/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/fit.h"

#include <stdlib.h>
#include <string.h>

#include "cli/classes.h"
#include "cli/system.h"

/* The ways to see a tensor, tried in this order. */
typedef enum view {
  AS_IT_IS,
  WITHOUT_LAST,
  WITH_FIRST,
  WITH_FIRST_WITHOUT_LAST,
  VIEWS
} view;

/* |info| seen so; false when it cannot be. */
static bool see(const weir_tensor_info *info, view how, weir_tensor_info *out) {
  bool last = how == WITHOUT_LAST || how == WITH_FIRST_WITHOUT_LAST;
  int first = how == WITH_FIRST || how == WITH_FIRST_WITHOUT_LAST;
  int32_t rank = info->rank - last;
  if (last && (info->rank != 3 || info->dims[2] != 1)) return false;
  if (first && (rank < 1 || rank == WEIR_RANK_LIMIT)) return false;
  *out = *info;
  out->rank = rank + first;
  for (int32_t i = 0; i < rank; i++) out->dims[i + first] = info->dims[i];
  if (first) out->dims[0] = 1;
  return true;
}

/* Whether |t| is a value of |like|, or, with |fewer|, one of fewer examples. */
static bool fits(const weir_tensor_info *t, const weir_io_desc *like,
                 bool fewer) {
  if (t->rank != like->rank || t->dtype != like->dtype) return false;
  for (int32_t i = 0; i < t->rank; i++) {
    int64_t want = like->dims[i], have = t->dims[i];
    if (want < 0 || want == have) continue;
    if (!(fewer && i == 0 && have > 0 && have < want)) return false;
  }
  return true;
}

static weir_status reject(const weir_tensor_info *t, const weir_io_desc *like,
                          const char *name, weir_error *err) {
  char shape[256] = "";
  size_t n = 0;
  for (int32_t i = 0; i < t->rank && n < sizeof shape; i++)
    n += (size_t)snprintf(shape + n, sizeof shape - n, "%s%lld",
                          i == 0 ? "" : ", ", (long long)t->dims[i]);
  weir_status s = cli_error(err, "W4009", "input %s is %s, the value is %s[%s]",
                            name, like->type, weir_dtype_name(t->dtype), shape);
  if (t->dtype != like->dtype)
    cli_hint(err, "pictures are u8: declare the input so, and cast(%s, %s)",
             name, weir_dtype_name(like->dtype));
  else if (t->dtype == WEIR_U8 && t->rank == 3)
    cli_hint(err,
             "a picture is u8[height, width, channels]: an input with free "
             "dimensions takes any, and resize(x, size=[h, w]) makes it fit");
  return s;
}

/* |info|'s data as a tensor of that shape, |rows| of its first dimension: past
 * those that there are, the last one again. */
static weir_status copy_rows(weir_runtime *runtime,
                             const weir_tensor_info *info, const void *data,
                             int64_t rows, weir_tensor **out, weir_error *err) {
  int64_t dims[WEIR_RANK_LIMIT] = {0};
  for (int32_t i = 0; i < info->rank; i++) dims[i] = info->dims[i];
  int64_t there = info->rank > 0 ? dims[0] : 1;
  if (info->rank > 0) dims[0] = rows;
  WEIR_TRY(
      weir_tensor_create(runtime, info->dtype, info->rank, dims, out, err));
  size_t row = there > 0 ? info->bytes / (size_t)there : 0;
  char *to = weir_tensor_mutable_data(*out);
  for (int64_t i = 0; row > 0 && i < rows; i++)
    memcpy(to + (size_t)i * row,
           (const char *)data + (size_t)(i < there ? i : there - 1) * row, row);
  return WEIR_OK;
}

static weir_status fit_one(const cli_job *job, const weir_io_desc *like,
                           const char *name, weir_tensor **tensor, cli_fit *fit,
                           weir_error *err) {
  weir_tensor_info info = cli_info(*tensor), seen = info;
  weir_tensor *made = NULL;
  bool found = like->rank < 0 || fits(&info, like, false), fewer = false;
  if (found) return WEIR_OK;
  for (int pass = 0; pass < 2 && !found; pass++)
    for (int how = 0; how < VIEWS && !found; how++) {
      fewer = pass == 1;
      found = see(&info, (view)how, &seen) && fits(&seen, like, fewer);
    }
  if (!found) return reject(&info, like, name, err);
  int64_t rows = fewer ? like->dims[0] : seen.rank > 0 ? seen.dims[0] : 1;
  if (fewer && fit->rows != 0 && fit->rows != seen.dims[0])
    return cli_error(err, "W4009", "input %s has %lld examples, another %lld",
                     name, (long long)seen.dims[0], (long long)fit->rows);
  WEIR_TRY(copy_rows(job->runtime, &seen, weir_tensor_data(*tensor), rows,
                     &made, err));
  if (fewer) *fit = (cli_fit){.rows = seen.dims[0], .batch = rows};
  weir_tensor_release(*tensor);
  *tensor = made;
  return WEIR_OK;
}

weir_status cli_fit_inputs(const cli_job *job, cli_tensors *inputs,
                           cli_fit *out_fit, weir_error *err) {
  size_t count = weir_graph_io_count(job->graph, WEIR_INPUT);
  *out_fit = (cli_fit){0, 0};
  for (size_t i = 0; i < inputs->count; i++)
    for (size_t k = 0; k < count; k++) {
      weir_io_desc like = {.struct_size = sizeof like};
      const char *name = inputs->names[i];
      WEIR_TRY(weir_graph_io(job->graph, WEIR_INPUT, k, &like, err));
      if (like.name_size != strlen(name) ||
          memcmp(like.name, name, like.name_size) != 0)
        continue;
      WEIR_TRY(fit_one(job, &like, name, &inputs->items[i], out_fit, err));
    }
  return WEIR_OK;
}

weir_status cli_fit_output(const cli_job *job, const cli_fit *fit,
                           const char *name, weir_tensor **tensor,
                           weir_error *err) {
  weir_tensor_info info = cli_info(*tensor);
  weir_tensor *made = NULL;
  if (fit->rows == 0) return WEIR_OK;
  if (info.rank < 1 || info.dims[0] != fit->batch)
    return cli_error(err, "W4009",
                     "output %s has no row for each of %lld examples: give as "
                     "many",
                     name, (long long)fit->batch);
  info.bytes = info.bytes / (size_t)fit->batch * (size_t)fit->rows;
  info.dims[0] = fit->rows;
  WEIR_TRY(copy_rows(job->runtime, &info, weir_tensor_data(*tensor), fit->rows,
                     &made, err));
  weir_tensor_release(*tensor);
  *tensor = made;
  return WEIR_OK;
}
