/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_EXEC_COMPILE_INTERNAL_H_
#define WEIR_EXEC_COMPILE_INTERNAL_H_

#include "runtime/base/map.h"
#include "runtime/base/vec.h"
#include "runtime/exec/compile/compile.h"
#include "runtime/exec/program/program_internal.h"
#include "runtime/graph/pass/cut.h"

#define WEIR_SEVERAL (UINT32_MAX - 1)

/* What one device's part of the program has. */
typedef struct weir_compile_part {
  weir_program_builder *builder;
  uint32_t *values, *instrs;
  uint8_t *layouts;
} weir_compile_part;

/* State of one compilation. Kernels are chosen on the whole graph in one walk,
 * whatever parts there are; |builder|, |values|, |instrs| and |layouts| are
 * those of the part that is being written. */
typedef struct weir_compiler {
  const weir_env *env;
  const weir_compile_request *request;
  const weir_graph *graph; /* simplified and fused */
  weir_program_builder *builder;
  weir_arena *arena;
  weir_cut *cut;                /* of the request; NULL: a body */
  weir_value_id *feeds;         /* ids in |graph| */
  const weir_value_id *fetches; /* likewise */
  const weir_node_id *targets;  /* the request's, and updates */
  uint32_t target_count;
  uint32_t *values; /* per graph value: the program's */
  uint32_t *instrs; /* per node: its instruction, or WEIR_NO_INDEX; of a node
                       in another part: the one that receives from it */
  weir_partition *partition; /* NULL: one part */
  weir_compile_part *parts;  /* NULL: one part */
  uint32_t part;             /* that is being written */
  uint32_t *home;            /* per graph value: the part that makes it */
  bool *frozen;              /* per graph value: bytes are known already */
  weir_var_use *vars;
  uint32_t *var_of; /* per node: its place in |vars| + 1 */
  uint32_t var_count, external_count, group_count;
  uint32_t *group_size;                  /* per group: members not met yet */
  weir_node_id *group_next, *group_head; /* members, last first */
  bool *needed;         /* per node: carried out by the program */
  uint8_t *layouts;     /* per graph value: weir_layout */
  weir_node_id *reader; /* per graph value: its only one, WEIR_SEVERAL or
                           WEIR_NO_INDEX; outputs have several */
  bool writes;
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
  bool in_place;
  const char *kernel, *reason;
} weir_emit;

/* compile.c */
/* Compiles a body, which is simplified and fused already; feeds are all its
 * inputs. |known_feeds|: one for each. Nests as deep as bodies. */
weir_status weir_compile_body(weir_compiler *outer,
                              const weir_compile_request *request,
                              const void *const *known_feeds,
                              const weir_program **out_program,
                              weir_error *err);
/* compile_control.c: the instruction of a node with bodies. */
weir_status weir_compile_control(weir_compiler *c, weir_node_id id,
                                 weir_error *err);

/* compile_outputs.c: points what is fetched or committed to its external, or
 * copies it there. */
weir_status weir_compile_outputs(weir_compiler *c, weir_error *err);

/* compile_parts.c */
/* Places the graph: fills c->partition if more than one device has work. */
weir_status weir_compile_place(weir_compiler *c, weir_error *err);
/* Begins the parts, once layouts are known. */
weir_status weir_compile_parts_begin(weir_compiler *c, weir_error *err);
/* From here on part |part| is written. */
void weir_compile_enter(weir_compiler *c, uint32_t part);
/* Enters the part of node |id| and brings what it needs there. */
weir_status weir_compile_arrive(weir_compiler *c, weir_node_id id,
                                weir_error *err);
/* Finishes the other parts and hangs them behind |head|. */
weir_status weir_compile_parts_end(weir_compiler *c, weir_program *head,
                                   const weir_program_options *options,
                                   weir_error *err);
/* Gives all builders back. */
void weir_compile_parts_release(weir_compiler *c);
/* compile_comm.c: one rank's part, over the frame's channel. */
weir_status weir_compile_collective(weir_compiler *c, weir_node_id id,
                                    weir_error *err);

/* compile_kernel.c */
/* Emits node |id| alone. */
weir_status weir_compile_node(weir_compiler *c, weir_node_id id,
                              weir_error *err);
/* Emits all members of |group| as one; |*done| is false when no group kernel
 * takes them, then |*reason| says why. */
weir_status weir_compile_group(weir_compiler *c, uint32_t group, bool *done,
                               const char **reason, weir_error *err);
/* The call of node |id| in the arena. */
weir_status weir_compile_call(weir_compiler *c, weir_node_id id,
                              const weir_op_def *op, const weir_attr *attrs,
                              weir_call **out_call, weir_error *err);
/* Chooses a kernel for |emit|'s only call and prepares it. */
weir_status weir_compile_choose(weir_compiler *c, weir_emit *emit,
                                const char *also, weir_error *err);

/* Whether the kernel that node |id|, or its group, would get looks at layouts
 * itself, as c->layouts are now. */
weir_status weir_compile_takes_layouts(weir_compiler *c, weir_node_id id,
                                       bool *out_takes, weir_error *err);

/* compile_layout.c */
/* Fills c->reader. */
void weir_compile_find_readers(weir_compiler *c);
/* Bytes of a value in its layout. */
size_t weir_compile_bytes(const weir_compiler *c, weir_value_id id);
/* Gives all values their layouts, once readers and groups are known. */
weir_status weir_compile_layouts(weir_compiler *c, weir_error *err);
/* Sees to it that |id| is plain from here on, by a COPY if it is not. */
weir_status weir_compile_plain(weir_compiler *c, weir_value_id id,
                               weir_error *err);

/* compile_emit.c */
/* Adds the instruction of |emit|, or computes its outputs now. Takes over the
 * prepared state, also on failure. */
weir_status weir_compile_emit(weir_compiler *c, weir_emit *emit,
                              weir_error *err);
/* Adds the program's value for graph value |id|. */
weir_status weir_compile_value(weir_compiler *c, weir_value_id id,
                               weir_value_spec *spec, weir_error *err);
/* What one call costs by estimate. */
int64_t weir_compile_cost(const weir_call *call, weir_cost *cost);

#endif
