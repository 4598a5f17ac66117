/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_CLASSES_H_
#define CLI_CLASSES_H_

#include "cli/cli.h"

/* Scores of classes: an output of f32[examples, classes]. */

enum { CLI_TOP_MOST = 100 };

typedef struct cli_class {
  int64_t index;
  double share; /* its probability */
} cli_class;

/* The tensor's description; rank -1 for none. */
weir_tensor_info cli_info(const weir_tensor *t);
/* Whether |t|, one of |outputs| outputs, is taken for scores. */
bool cli_has_scores(const weir_tensor *t, size_t outputs);
/* The |most| (1 to CLI_TOP_MOST) best of |classes| scores, the best first, of
 * equals the first; returns how many there are. Scores that are no
 * probabilities go through softmax. NaN is the least. */
int cli_classes_best(const float *scores, int64_t classes, int most,
                     cli_class *best);
/* Number |i| of a column of integers, or -1. */
int64_t cli_label_at(const weir_tensor *labels, int64_t i);
/* The name of class |i| by the graph's `labels`, or NULL. */
const char *cli_class_name(const weir_graph *graph, int64_t i);
/* Refuses labels that are not as many as the |classes|: W4039. */
weir_status cli_labels_check(const weir_graph *graph, int64_t classes,
                             weir_error *err);

#endif
