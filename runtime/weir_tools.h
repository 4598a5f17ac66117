/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_TOOLS_H_
#define WEIR_TOOLS_H_

#include "runtime/weir.h"

/* What the weir command needs beside weir.h: dumps, manuals, formatting.
 *
 * Not stable: these functions carry the version node WEIR_TOOLS and may change
 * with every release. Write functions return false when writing failed. */

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Ops. */

/* Number of ops; the i-th one's name and one-sentence summary. */
WEIR_API size_t weir_tools_op_count(void);
WEIR_API const char *weir_tools_op_name(size_t i);
WEIR_API const char *weir_tools_op_summary(size_t i);
/* Index of the op with that name or alias, or -1. */
WEIR_API int64_t weir_tools_op_find(const char *name);
/* The manual of the i-th op as text, or as a JSON object. */
WEIR_API bool weir_tools_op_write(size_t i, bool json, weir_write_fn write,
                                  void *self);

/* Index of the one of |names| that is nearest to |name|, or -1. */
WEIR_API int64_t weir_tools_nearest(const char *name, size_t count,
                                    const char *const *names);

/* ---- Graphs. */

/* The stages a graph can be shown after: "load", "simplify", "fuse". Static
 * text; NULL past the end. */
WEIR_API const char *weir_tools_pass_name(size_t i);
/* Writes the nodes with their types, after the named pass (NULL: the first), as
 * text or as one JSON object. Errors: W0002 (no such pass), the pass's own;
 * W5009 when writing failed. */
WEIR_API weir_status weir_tools_graph_write(const weir_graph *graph,
                                            const char *pass, bool json,
                                            weir_write_fn write, void *self,
                                            weir_error *err);
/* How many nodes, inputs left out, the |count| values called |names| need when
 * the |fed_count| inputs |fed_names| are fed. */
WEIR_API weir_status weir_tools_needed_nodes(
    const weir_graph *graph, size_t count, const char *const *names,
    size_t fed_count, const char *const *fed_names, size_t *out_count,
    weir_error *err);
/* Number of nodes. */
WEIR_API size_t weir_tools_graph_node_count(const weir_graph *graph);

/* ---- Compiled programs. */

/* Figures of one run; see weir_program_stats of runtime/exec. */
typedef struct weir_tools_stats {
  uint32_t struct_size;
  uint32_t nodes, instructions, groups;
  int64_t flops, bytes;
  uint64_t arena_bytes, arena_bound_bytes, constant_bytes;
} weir_tools_stats;

/* Fills |out_stats|, whose struct_size is set. */
WEIR_API void weir_tools_bound_stats(const weir_bound *bound,
                                     weir_tools_stats *out_stats);
/* One line per instruction: what was chosen and why. */
WEIR_API bool weir_tools_bound_describe(const weir_bound *bound,
                                        weir_write_fn write, void *self);

/* Many runs of a bound, several of them under way at once. */
typedef struct weir_tools_steps {
  uint32_t struct_size;
  int32_t inflight; /* 1 to 64 */
  uint64_t first, steps;
  void *self;
  /* As a step starts, and once it has succeeded, on its thread, several at
   * once; |outputs| are lent. May be NULL. */
  void (*begin)(void *self, uint64_t step);
  void (*end)(void *self, uint64_t step, weir_tensor *const *outputs);
} weir_tools_steps;

/* Runs steps first, first + 1, ...; stops at the first failure. Results are
 * those of one step after the other. */
WEIR_API weir_status weir_tools_bound_steps(weir_bound *bound,
                                            const weir_tools_steps *steps,
                                            weir_error *err);

/* ---- Traces: pass one in weir_run_opts, write it when no run uses it. */

WEIR_API weir_status weir_tools_trace_create(weir_runtime *runtime,
                                             size_t max_events,
                                             weir_trace **out_trace,
                                             weir_error *err);
/* Chrome's JSON form, which Perfetto opens. */
WEIR_API bool weir_tools_trace_write(const weir_trace *trace,
                                     weir_write_fn write, void *self);
WEIR_API void weir_tools_trace_release(weir_trace *trace);

/* ---- Tensors as text. */

/* "c  f32[2, 2]" and rows, the middle of long dimensions left out unless
 * |full|. */
WEIR_API bool weir_tools_tensor_print(const char *name,
                                      const weir_tensor *tensor, bool full,
                                      weir_write_fn write, void *self);
/* {"outputs": {name: {"dtype", "shape", "data"}}} and a line end. */
WEIR_API bool weir_tools_outputs_json(size_t count, const char *const *names,
                                      const weir_tensor *const *tensors,
                                      weir_write_fn write, void *self);

/* How far |a| is from |b|: |a - b| <= atol + rtol |b|, NaN equals NaN. */
typedef struct weir_tools_compare {
  uint32_t struct_size;
  bool same_type;    /* dtype and shape; if not, nothing else is filled */
  int64_t differing; /* elements beyond the tolerance */
  int64_t first;     /* row-major index of the first of them, or -1 */
  double first_a, first_b;
  double max_abs, max_rel; /* the largest errors, over all elements */
} weir_tools_compare;

/* Fills |out|, whose struct_size is set. */
WEIR_API void weir_tools_tensor_compare(const weir_tensor *a,
                                        const weir_tensor *b, double rtol,
                                        double atol, weir_tools_compare *out);

/* ---- The build and the machine. */

/* A fact about the build or machine: name and value, static or lent by
 * |buffer|. False past the end. */
WEIR_API bool weir_tools_fact(size_t i, const char **out_name, char *buffer,
                              size_t buffer_size);

#ifdef __cplusplus
}
#endif

#endif
