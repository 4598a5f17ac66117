/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_OPS_CASE_H_
#define TESTS_OPS_CASE_H_

#include "kernels/kernel.h"
#include "runtime/base/diag/diag.h"
#include "runtime/base/yaml/yaml.h"
#include "runtime/graph/graph.h"

/* Op cases: one use of an op each, as data (README.md has the format).
 *
 *   read -> build a graph of one node -> run on every kernel -> compare */

enum {
  CASE_INPUTS = 16,
  CASE_OUTPUTS = 16,
  CASE_STEP = 3 /* of random numbers */
};

typedef struct op_case {
  const weir_op_def *op;
  const weir_yaml *yaml;        /* for its place */
  weir_tensor *in[CASE_INPUTS]; /* NULL: optional input left out */
  weir_sv in_names[CASE_INPUTS];
  uint32_t in_count;
  weir_attr attrs[WEIR_OP_ATTRS];
  const weir_yaml *out[CASE_OUTPUTS]; /* expected, by output; NULL: not said */
  uint32_t out_count;                 /* how many are said */
  weir_sv error, says;                /* a bad-input case when not empty */
  double rtol, atol;                  /* negative: the dtype's default */
  bool against_ref;  /* other kernels are compared with ref's result */
  bool signed_zeros; /* 0 is not -0 */
  bool grad;         /* finite differences are asked for */
} op_case;

/* Reads entry |index| of a case file. Lists and text go to |arena|. On failure
 * |why| gets the error in the case itself. Release |out| with op_case_release.
 */
bool op_case_read(const weir_op_def *op, const weir_yaml *yaml, uint32_t index,
                  weir_arena *arena, op_case *out, char *why, size_t capacity);
void op_case_release(op_case *c);

/* ---- Grids: `grid: {m: [1, 2], k: [0, 3]}` beside the case's other keys, in
 * which `$m` and `$k` stand for a value each. */
enum { GRID_AXES = 8 };
typedef struct op_grid {
  const weir_yaml *yaml, *axes;
  uint32_t at[GRID_AXES];
} op_grid;

/* Begins with the first combination; false when |yaml| is no grid. */
bool op_grid_begin(const weir_yaml *yaml, op_grid *grid);
/* False when the combinations are through. */
bool op_grid_next(op_grid *grid);
/* This combination as an ordinary case, in |arena|; NULL without memory. */
const weir_yaml *op_grid_case(const op_grid *grid, weir_arena *arena);
/* This combination as text, "m=1 k=0". */
void op_grid_print(const op_grid *grid, char *text, size_t capacity);

/* Calls |fn| for each case of the file |path|, those of grids too; |grid| is
 * NULL outside of one. |why| of a call: the case cannot be read; NULL: it was.
 * False and |why| when the file cannot be. */
typedef void (*op_case_fn)(void *arg, const op_case *c, const op_grid *grid,
                           const char *why);
bool op_case_each(const weir_op_def *op, const char *path, op_case_fn fn,
                  void *arg, char *why, size_t capacity);

/* A tensor written as number, list or map {dtype, data, shape, fill, low,
 * high}. |dtype|: of a tensor that names none; WEIR_DTYPE_NONE: f32, or bool if
 * all its elements are. |seed| makes the values of {shape} alone. NULL when
 * it cannot be read. */
weir_tensor *op_case_tensor(const weir_yaml *yaml, weir_dtype dtype,
                            uint64_t seed);

/* Values in [-2, 2). NULL when out of memory. */
weir_tensor *op_case_random(weir_dtype dtype, const weir_shape *shape,
                            uint64_t seed);

/* The graph of one node on inputs that are fed, or on constants; |*out_node| is
 * the node. |diag| has the failure. */
weir_status op_case_build(const op_case *c, bool constants,
                          weir_graph **out_graph, weir_node_id *out_node,
                          weir_diag *diag);

/* Whether output |i| is made only where it is read. */
bool op_case_may_leave_out(const weir_op_def *op, uint32_t i);

/* That graph on fed inputs, |in|, and the number sum(weights * outputs), which
 * leaves out optional outputs. */
weir_status op_case_build_loss(const op_case *c, weir_graph **out_graph,
                               weir_value_id *in, weir_value_id *out_loss,
                               weir_diag *diag);

/* Compares the gradients of the case's float inputs with central differences
 * of that number, in f64; and those in the case's own dtype with these. False
 * and |why| when they differ. */
bool op_case_check_grad(const op_case *c, char *why, size_t capacity);

/* The node as a call, its operands in memory of |arena|. */
bool op_case_call(const weir_graph *graph, weir_node_id node, weir_arena *arena,
                  weir_call *out);

/* ---- Running one kernel */

/* Where a kernel's results go; NULL: outputs the call leaves out. */
typedef struct op_results {
  uint32_t count;
  weir_tensor *out[CASE_OUTPUTS];
} op_results;

void op_results_release(op_results *results);

/* A kernel, or a group kernel for a group of this call alone. */
typedef struct op_runner {
  const weir_kernel_def *kernel;
  const weir_group_kernel_def *group;
} op_runner;

const char *op_runner_name(const op_runner *runner);
bool op_runner_accepts(const op_runner *runner, const weir_call *call);

/* How a kernel is run: with one worker, blocks in order, or with more, in a
 * mixed order. |in_place|: output 0 is input 0's memory. */
typedef struct op_how {
  int workers;
  bool in_place;
  int64_t *looks; /* NULL: there is time; else it is over, and each look adds */
} op_how;

/* Runs |runner| on copies of |in|; one tensor given twice has one copy. Names
 * in |why| the memory that a kernel broke: past an output's end, or an input.
 */
weir_status op_run(const op_runner *runner, const weir_call *call,
                   weir_tensor *const *in, op_how how, op_results *out,
                   weir_error *err, char *why, size_t capacity);

/* Fails every allocation of prepare in turn; false and |why| when something is
 * lost or another status than W6001's comes back. */
bool op_run_sweep(const op_runner *runner, const weir_call *call, char *why,
                  size_t capacity);

/* Runs a kernel whose time is over at its first look; its output is thrown
 * away. Returns how often it looked; -1 and |why| when it failed. */
int64_t op_run_late(const op_runner *runner, const weir_call *call,
                    weir_tensor *const *in, char *why, size_t capacity);

/* ---- Comparing */

/* |got| against |want| (of f64 when got is of floats): shape, then elements.
 * NaN equals NaN. On a difference |why| names the first. */
bool op_compare(const weir_tensor *got, const weir_tensor *want, double rtol,
                double atol, char *why, size_t capacity);

/* Whether a run ended with the case's error. */
bool op_case_expect_error(const op_case *c, weir_status status,
                          const weir_diag *diag, char *why, size_t capacity);

/* Whether |got| is the case's output |i|, within its bounds; also where it says
 * nothing of it. */
bool op_case_expect_value(const op_case *c, uint32_t i, const weir_tensor *got,
                          char *why, size_t capacity);

/* Whether outputs that both have agree: within the case's bounds, or in all
 * bits. */
bool op_case_expect_equal(const op_case *c, const op_results *got,
                          const op_results *want, bool same_bits, char *why,
                          size_t capacity);

#endif
