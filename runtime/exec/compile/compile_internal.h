/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_EXEC_COMPILE_INTERNAL_H_
#define WEIR_EXEC_COMPILE_INTERNAL_H_

#include "runtime/base/map.h"
#include "runtime/base/vec.h"
#include "runtime/exec/compile/compile.h"
#include "runtime/exec/program/program_internal.h"
#include "runtime/graph/pass/cut.h"

#define WEIR_SEVERAL (UINT32_MAX - 1)

/* One device's part of the program, while it is written. */
typedef struct weir_compile_part {
  weir_program_builder *builder;
  uint32_t *values, *instrs;
  uint8_t *layouts;
  struct weir_exec_gpu *gpu; /* of a GPU's part of this process; else NULL */
  /* The last unit that takes time: its first instruction, its end in the plan.
   */
  uint32_t unit, unit_first; /* |unit| + 1; 0: none yet */
  int64_t unit_end_ns;
} weir_compile_part;

/* State of one compilation. Kernels are chosen on the whole graph in one walk,
 * with any number of parts; |builder|, |values|, |instrs| and |layouts| are
 * those of the part that is being written. */
typedef struct weir_compiler {
  const weir_env *env;
  const weir_compile_request *request;
  const weir_graph *graph; /* simplified and fused */
  weir_device_kind kind;   /* of the part that is being written */
  weir_program_builder *builder;
  weir_arena *arena;
  weir_cut *cut;                /* its own; NULL: a body's, or given */
  weir_value_id *feeds;         /* ids in |graph| */
  const weir_value_id *fetches; /* likewise */
  const weir_node_id *targets;  /* the request's, and updates */
  uint32_t target_count;
  uint32_t *values; /* per graph value: the program's */
  uint32_t *instrs; /* per node: its instruction, or WEIR_NO_INDEX; of a node
                       in another part: the one that receives from it */
  const weir_partition *partition; /* NULL: one part, no plan */
  weir_compile_part *parts;        /* NULL: one part */
  uint32_t part;                   /* that is being written */
  uint32_t head;    /* the first part of this process; 0: there is none */
  const bool *own;  /* per part: of this process; NULL: all of them */
  bool elsewhere;   /* the part that is being written is another process's */
  bool *bytes_here; /* per graph value: if it is constant, its bytes are needed
                       in this process; NULL: all are */
  uint32_t *made;   /* per graph value: its number in the part that makes it */
  uint8_t *made_layouts; /* and its layout there */
  weir_task_cut *tasks;  /* NULL: one process */
  uint32_t *copies;      /* of the plan, by start: those that are not begun are
                            behind the first |copies_begun| */
  uint32_t copies_begun;
  uint32_t *home; /* per graph value: the part that makes it */
  bool *frozen;   /* per graph value: bytes are known already */
  weir_var_use *vars;
  uint32_t *var_of; /* per node: its place in |vars| + 1 */
  uint32_t var_count, external_count, group_count;
  uint32_t *group_size;                  /* per group: members not met yet */
  weir_node_id *group_next, *group_head; /* members, last first */
  bool *needed;           /* per node: carried out by the program */
  uint8_t *layouts;       /* per graph value: weir_layout */
  weir_node_id *reader;   /* per graph value: its only one, WEIR_SEVERAL or
                             WEIR_NO_INDEX; outputs have several */
  const char *reasons[8]; /* the last ones, which many nodes share */
  uint32_t reason_count;
  bool writes;
  struct weir_exec_gpu *gpu; /* of a body in a GPU's part; else NULL */
  bool sizes_only; /* for a plan (compile_needs.h): nothing will be run */
  /* Of a body: per feed its bytes when they are known, else NULL. */
  const void *const *known_feeds;
} weir_compiler;

/* One call or group on its way to an instruction. */
typedef struct weir_emit {
  const weir_call *calls;
  uint32_t call_count;
  const weir_node *node; /* the one that names it: the last */
  weir_node_id node_id;
  const weir_value_id *in, *out; /* of the graph */
  uint32_t in_count, out_count;
  weir_run_fn run;
  weir_prepared prepared;
  void (*release)(void *state);
  bool in_place, over_inputs;
  weir_slice_fn (*slices)(const void *state, uint32_t in); /* or NULL */
  weir_status (*fault)(const void *state, const struct weir_body_fault *fault,
                       weir_error *err); /* or NULL */
  const char *kernel, *reason;
} weir_emit;

/* Walks over c->graph, all of whose nodes are wanted, for the sizes of its
 * instructions: c->builder, which is the caller's, then has them. */
weir_status weir_compile_sizes(weir_compiler *c, weir_error *err);

/* Compiles a body, which is simplified and fused already; feeds are all its
 * inputs. |known_feeds|: one for each. Nests as deep as bodies. */
weir_status weir_compile_body(weir_compiler *outer,
                              const weir_compile_request *request,
                              const void *const *known_feeds,
                              const weir_program **out_program,
                              weir_error *err);

#endif
