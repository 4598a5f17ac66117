/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_EXEC_GENERATED_H_
#define TESTS_EXEC_GENERATED_H_

#include <stdbool.h>

#include "kernels/kernel.h"
#include "runtime/exec/session/session.h"

/* Runs a graph in several ways and compares the results. */

enum { RUN_OUTPUTS = 16, RUN_INPUTS = 8 };

/* One way to run. */
typedef struct run_way {
  const char *name;
  weir_pool *pool;
  weir_session_options options;
  const char *placer; /* of ps=1,worker=3; NULL: one device */
  uint64_t seed;      /* of the placer */
} run_way;

typedef struct run_result {
  weir_status status;
  weir_error error;
  weir_tensor *outputs[RUN_OUTPUTS];
  uint32_t count;
} run_result;

/* Loads |text|; |why| (512 bytes) gets the reason of a failure. */
bool run_load(const weir_env *env, const char *text, size_t size,
              weir_graph **out_graph, char *why);
/* The graph's inputs, uniform in [-1, 1] and the same each time. Inputs with a
 * default that are no f32 stay NULL. False: no memory. */
bool run_inputs(const weir_env *env, const weir_graph *graph,
                weir_tensor *inputs[RUN_INPUTS]);
/* Runs all outputs once. */
void run_once(const weir_env *env, const weir_graph *graph,
              weir_tensor *const inputs[RUN_INPUTS], const run_way *way,
              run_result *out);
void run_release(run_result *result);
/* Status, number, shapes and bits; why (512 bytes) names the first difference.
 */
bool run_same_bits(const weir_graph *graph, const run_result *a,
                   const run_result *b, char *why);
/* The same but for rounding: f32 may differ by |tolerance| of the output's
 * largest value or of 1. A value not finite in one must be so in both. */
bool run_near(const weir_graph *graph, const run_result *want,
              const run_result *got, double tolerance, char *why);

#endif
