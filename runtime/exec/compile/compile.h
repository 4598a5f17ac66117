/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_EXEC_COMPILE_H_
#define WEIR_EXEC_COMPILE_H_

#include "placement/parts/tasks.h"
#include "placement/place.h"
#include "runtime/exec/program/program.h"

/* From a graph whose shapes are known to a program.
 *
 * The graph is cut down to the nodes that the request needs, its groups are
 * formed, a kernel is chosen for each group and node, values that depend on
 * constants alone are computed at once, views become aliases; the builder
 * (program.h) does the rest. The reason for each kernel, and against those that
 * were passed over, is kept in words.
 *
 * Externals of the program: feeds, then fetches, then for each variable used
 * the value read and, if it is assigned, the value to be. */

typedef struct weir_compile_options {
  bool no_fusion, no_fold, ref_kernels, no_layout;
  bool tf32;      /* products of f32 on a GPU may round their factors to TF32 */
  bool with_gpus; /* the cluster has some: weir_cut_request */
  bool one_task;  /* one instruction at a time; without a plan of parts */
  /* A program that assigns: its feeds' memory is given up to the run, and new
   * values of variables may take it, or that of old ones (compile_over.h).
   * Without a plan of parts. */
  bool overwrite;
  size_t memory_limit;
  int threads;
  uint64_t seed;
} weir_compile_options;

/* Whose memory a feed is in. */
typedef struct weir_fed_at {
  bool on_gpu; /* of GPU |gpu|; else the host's, and the rest is zero */
  bool whole;  /* aligned as planned memory is: that GPU's kernels read it where
                  it is */
  int32_t gpu;
} weir_fed_at;

typedef struct weir_compile_request {
  const weir_graph *graph;    /* shapes of wanted nodes have no symbols left */
  const weir_value_id *feeds; /* output 0 of `input` nodes */
  const weir_fed_at *fed_at;  /* per feed; NULL: all are the host's */
  const weir_value_id *fetches;
  const bool *stays; /* per fetch: where a GPU makes it, its external is memory
                        of that GPU; NULL: all are the host's */
  const weir_node_id *targets; /* wanted for their effect */
  uint32_t feed_count, fetch_count, target_count;
  /* Leave out the graph's own updates. Else an `update` is a target too if its
   * variable is read and no other node wanted assigns it. */
  bool no_updates;
  weir_compile_options options;
  /* Of a placed program (compile_cut.h, then weir_placing_plan): its nodes
   * and their devices; each device that has work gets a part (program.h). The
   * values have the same bits as on one device. NULL: one device. */
  const weir_cut *cut;
  const weir_plan *plan; /* of |cut| */
  /* Of a process that owns some tasks of the plan's cluster: per task, whether
   * it does; lent. Only their parts become programs, and values to and from
   * other tasks take the frame's channel to other tasks, by the numbers of
   * weir_task_cut. All choices are those of one process. NULL: all tasks. */
  const bool *tasks;
  /* The bytes of a variable that nothing in the graph assigns: they count as
   * a constant. Lent, must outlive the program; NULL: it is read by each run.
   * |bytes| false: it is another task's, and nothing here needs its bytes;
   * weir_compile_no_bytes stands for them. The function may be NULL. */
  const void *(*constant_var)(void *self, weir_sv name, bool bytes);
  void *constant_self;
} weir_compile_request;

/* A variable as one program uses it. */
typedef struct weir_var_use {
  weir_sv name; /* its node's */
  weir_dtype dtype;
  size_t bytes;
  uint32_t read;   /* external */
  uint32_t write;  /* external, or WEIR_NO_INDEX */
  uint32_t commit; /* the program's value that is committed */
  bool elsewhere;  /* its home is another process: neither read nor written */
  struct weir_exec_gpu *gpu; /* its values are there; NULL: the host's memory */
  /* With |overwrite|: the new value may be written over the old one; over that
   * feed, or WEIR_NO_INDEX. */
  bool over_own;
  uint32_t over_feed;
} weir_var_use;

typedef struct weir_compiled {
  const weir_env *env;
  const weir_graph *graph; /* the cut-down one; holds constants and texts */
  const weir_program *program;
  const weir_plan *plan;           /* held; or NULL */
  const weir_partition *partition; /* of |plan|; NULL: one part */
  weir_task_cut *tasks;            /* held; NULL: one process */
  weir_var_use *vars;
  uint32_t var_count, node_count, group_count;
  bool writes; /* assigns variables */
} weir_compiled;

/* Errors: W2008 (a shape is not known), W3001, W4012, W2020, W6001, W6002 and
 * those of kernels' prepare. */
weir_status weir_compile(const weir_env *env,
                         const weir_compile_request *request,
                         weir_compiled **out_compiled, weir_error *err);
void weir_compiled_release(weir_compiled *compiled); /* NULL-safe */

#endif
