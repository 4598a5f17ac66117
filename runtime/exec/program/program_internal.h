/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_EXEC_PROGRAM_INTERNAL_H_
#define WEIR_EXEC_PROGRAM_INTERNAL_H_

#include "placement/memory/memory_plan.h"
#include "runtime/base/vec.h"
#include "runtime/device/device.h"
#include "runtime/exec/program/program.h"

/* A finished program, as frames and dumps see it. */

/* The part of an instruction that the hot loop reads; the rest is cold. */
typedef struct weir_code {
  weir_run_fn run;
  const void *state;
  size_t scratch; /* offset into the run's memory */
  uint32_t io;    /* first operand in the frame's table */
  /* Instructions from here on that a run with a deadline does without a look
   * at the clock; 1 for a long one, which is looked at in between too. */
  uint32_t span;
} weir_code;

typedef struct weir_pvalue {
  weir_storage storage;
  uint32_t root; /* itself unless ALIAS; storage is the root's */
  uint32_t external;
  int32_t rank;
  weir_dtype dtype;
  uint8_t layout; /* weir_layout */
  bool staged, all_run;
  const void *data;
  size_t offset, bytes;
  int64_t dims[WEIR_MAX_RANK];
} weir_pvalue;

typedef struct weir_instr {
  weir_instr_spec spec; /* arrays live in the program */
  uint32_t task;
  uint32_t first_child; /* in the frame's children, for bodies */
  size_t scratch_total;
} weir_instr;

typedef struct weir_ptask {
  uint32_t first, last; /* instructions [first, last) */
  uint32_t waits;       /* tasks before it */
  const uint32_t *next; /* tasks after it */
  uint32_t next_count;
  bool async; /* its one instruction ends by a callback */
} weir_ptask;

/* Table entries of an external pointer. */
typedef struct weir_external {
  const uint32_t *slots;
  uint32_t slot_count;
} weir_external;

struct weir_program {
  const weir_env *env;
  const weir_allocator *alloc;     /* of the program's own memory */
  void *value_block, *instr_block; /* the builder's lists; or NULL */
  weir_arena arena;
  int threads;
  const weir_code *code;
  weir_instr *instrs;
  weir_pvalue *values;
  weir_ptask *tasks;
  weir_external *externals;
  const uint32_t *slot_values; /* the value of each table entry */
  const uint32_t *fetches;     /* values */
  const weir_program **children;
  uint32_t instr_count, value_count, task_count, external_count, slot_count,
      fetch_count, child_count;
  int64_t flops, bytes, cost_ns;
  size_t memory_bytes, bound_bytes, constant_bytes;
  struct weir_exec_gpu *gpu;    /* NULL: the host */
  size_t staged_bytes;          /* of staged values */
  weir_device_buffer constants; /* the GPU's copy of constants */
  bool cheap;                   /* not worth telling the pool about */
  bool stream;                  /* a device: one instruction at a time */
  bool brief;    /* the same as cheap, of a stream that is one task */
  bool body;     /* instructions of another program run it */
  bool any_time; /* an instruction of it, or of a body, may take any time */
  bool draws;    /* an instruction of it, or of a body, draws numbers */
  bool comm;     /* it sends, receives or reduces; in bodies too: */
  bool channel;  /* over the frame's own channel */
  bool outer;    /* over the one that the frame was given */
  const struct weir_graph *graph; /* as weir_program_options has it */
  /* The next part; released with this one. */
  weir_program *next_part;
  uint32_t part;
  weir_sv device; /* empty: the only one */
};

enum { WEIR_GPU_ALIGN = 256 }; /* of values and scratch in a GPU's memory */

/* |bytes| of scratch and what makes the memory behind them aligned too. */
static inline size_t weir_program_scratch_align(const weir_program *p,
                                                size_t bytes) {
  return p->gpu == NULL
             ? weir_scratch_align(bytes)
             : (bytes + WEIR_GPU_ALIGN - 1) & ~(size_t)(WEIR_GPU_ALIGN - 1);
}

/* The calls of kernels that a run of |p| makes, in bodies too: an estimate. */
uint32_t weir_program_calls(const weir_program *p);

/* Whether the blocks of an instruction's loops are asked about the deadline,
 * by the estimate of its time. */
bool weir_code_is_long(const weir_program *p, uint32_t instr);

struct weir_program_builder {
  const weir_allocator *alloc;
  weir_program *program; /* being made; its arena is the builder's */
  WEIR_VEC(weir_pvalue) values;
  WEIR_VEC(weir_instr) instrs;
  WEIR_VEC(uint32_t) fetches;
  bool no_memory;
};

/* The order between tasks: pairs, lower to higher. */
typedef struct weir_task_edge {
  uint32_t from, to;
} weir_task_edge;
typedef struct weir_task_graph {
  WEIR_VEC(weir_task_edge) edges;
  const weir_allocator *alloc;
} weir_task_graph;

#endif
