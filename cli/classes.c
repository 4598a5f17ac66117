/* SPDX-License-Identifier: Apache-2.0 */
/* The best classes of a row are kept in order while the row is passed over
 * once: classes times kept comparisons. */
#include "cli/classes.h"

#include <math.h>

weir_tensor_info cli_info(const weir_tensor *t) {
  weir_tensor_info info = {.struct_size = sizeof info};
  if (weir_tensor_desc(t, &info) != WEIR_OK) info.rank = -1;
  return info;
}

bool cli_has_scores(const weir_tensor *t, size_t outputs) {
  weir_tensor_info info = cli_info(t);
  return outputs == 1 && info.rank == 2 && info.dtype == WEIR_F32 &&
         info.dims[1] >= 2;
}

int64_t cli_label_at(const weir_tensor *labels, int64_t i) {
  weir_tensor_info info = cli_info(labels);
  const void *data = weir_tensor_data(labels);
  switch (info.dtype) {
    case WEIR_U8:
      return ((const uint8_t *)data)[i];
    case WEIR_I32:
      return ((const int32_t *)data)[i];
    case WEIR_I64:
      return ((const int64_t *)data)[i];
    default:
      return -1;
  }
}

/* Puts class |index| at its place among |count| best. */
static int insert(cli_class *best, int count, int most, int64_t index,
                  double score) {
  if (count == most && !(score > best[count - 1].share)) return count;
  int at = count < most ? count : count - 1;
  while (at > 0 && score > best[at - 1].share) {
    best[at] = best[at - 1];
    at--;
  }
  best[at] = (cli_class){index, score};
  return count < most ? count + 1 : count;
}

/* Probabilities already: none is negative or above 1, the sum is 1. */
static bool are_shares(const float *scores, int64_t classes) {
  double sum = 0;
  for (int64_t k = 0; k < classes; k++) {
    if (!(scores[k] >= 0 && scores[k] <= 1)) return false;
    sum += (double)scores[k];
  }
  return fabs(sum - 1) < 1e-3;
}

int cli_classes_best(const float *scores, int64_t classes, int most,
                     cli_class *best) {
  int count = 0;
  double total = 0;
  for (int64_t k = 0; k < classes; k++)
    count = insert(best, count, most, k,
                   isnan(scores[k]) ? -INFINITY : (double)scores[k]);
  if (are_shares(scores, classes)) return count;
  double largest = best[0].share;
  for (int64_t k = 0; k < classes; k++)
    total += exp((double)scores[k] - largest);
  for (int i = 0; i < count; i++)
    best[i].share = exp(best[i].share - largest) / total;
  return count;
}

const char *cli_class_name(const weir_graph *graph, int64_t i) {
  return i < 0 ? NULL : weir_graph_label_at(graph, (size_t)i);
}

weir_status cli_labels_check(const weir_graph *graph, int64_t classes,
                             weir_error *err) {
  size_t count = weir_graph_label_count(graph);
  if (count == 0 || (int64_t)count == classes) return WEIR_OK;
  return cli_error(err, "W4039", "%zu labels for an output of %lld classes",
                   count, (long long)classes);
}
