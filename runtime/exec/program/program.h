/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_EXEC_PROGRAM_H_
#define WEIR_EXEC_PROGRAM_H_

#include "kernels/kernel.h"
#include "runtime/base/env.h"
#include "runtime/exec/channel/channel.h"
#include "runtime/exec/worker.h"

/* Programs.
 *
 * A Program is a list of instructions over values. Instructions of every kind
 * are run alike, by one function pointer and a row of operand pointers; the
 * meaning of a kind is in its function. A value has a storage: planned memory
 * of the run (TEMP), memory of the program (CONST), memory that each run brings
 * along (EXTERNAL: a fed tensor, an output, a variable), or another value's
 * (ALIAS).
 *
 * Instructions are grouped into tasks: runs of instructions that one thread
 * does in order. A program of little work has one task and runs in the calling
 * thread, without locks or atomics; else tasks count down the tasks that they
 * wait for, and go to the pool. Immutable once built; any number of frames
 * (frame.h) run it at once.
 *
 * The program of a GPU's part puts work into a queue (exec/gpu): its planned
 * values and constants are in that GPU's memory, but for those that are staged,
 * which lie in memory of the host that the GPU's copies are quick from and to.
 *
 * A program may have parts, one for each device: further programs that run
 * beside it, a thread each, joined by SEND and RECV. A reference to the first
 * holds all; frames, outputs and externals are numbered alike in all of them.
 *
 * Programs are made by a builder, from a graph (compile.h) or by hand:
 *
 *   weir_program_builder *b = NULL;
 *   weir_program_builder_create(env, &b, err);
 *   x = weir_program_add_value(b, &(weir_value_spec){.storage = EXTERNAL...});
 *   weir_program_add_instr(b, &(weir_instr_spec){...});
 *   weir_program_finish(b, &options, &program, err);
 *   weir_program_builder_release(b); */

#define WEIR_NO_INDEX UINT32_MAX

typedef struct weir_program weir_program;
typedef struct weir_program_builder weir_program_builder;

typedef enum weir_storage {
  WEIR_STORAGE_TEMP,
  WEIR_STORAGE_CONST,
  WEIR_STORAGE_EXTERNAL,
  WEIR_STORAGE_ALIAS
} weir_storage;

typedef struct weir_value_spec {
  weir_storage storage;
  const void *data;  /* CONST: lent, must outlive the program */
  uint32_t external; /* EXTERNAL: number of the run's pointer */
  uint32_t alias;    /* ALIAS: the value that has the bytes */
  size_t bytes;
  weir_dtype dtype;
  weir_layout layout;
  int32_t rank; /* for messages and checks of numbers */
  const int64_t *dims;
  bool staged;  /* TEMP of a GPU's part that lies in the host's memory */
  bool all_run; /* its memory is its own as long as the run */
} weir_value_spec;

/* Of a GPU's part: instructions are queued, but for copies of the host, from
 * feeds before anything of the task is queued, and to outputs after all of it
 * has ended. Copies from other GPUs are queued before, and not kept. */
typedef enum weir_instr_when {
  WEIR_QUEUED,
  WEIR_BEFORE,
  WEIR_AFTER
} weir_instr_when;

/* One instruction. Nested programs of LOOP and BRANCH number their
 * externals so: inputs in order, then outputs. */
typedef struct weir_instr_spec {
  weir_instr_kind kind;
  uint32_t stream;
  const uint32_t *in, *out; /* values; WEIR_NO_INDEX: input left out */
  const uint32_t *after;    /* earlier instructions that must have ended */
  uint32_t in_count, out_count, after_count;
  uint32_t body_count;
  weir_run_fn run; /* KERNEL; other kinds bring their own */
  const void *state;
  void (*release)(void *state);
  size_t scratch_bytes, worker_scratch_bytes;
  size_t kept_bytes; /* that |state| holds beside itself: packed constants */
  /* An earlier instruction + 1, from which on the memory of new outputs is
   * theirs; 0: from this one on. */
  uint32_t room_from;
  uint32_t node_order;  /* failures are reported in this order */
  uint32_t calls;       /* of kernels, by bodies, an estimate; 0: one */
  uint8_t when;         /* weir_instr_when */
  bool in_place : 1;    /* out[0] may be in[0]'s memory */
  bool over_inputs : 1; /* an output may be that of any input of its shape */
  bool checks : 1;      /* see fault */
  bool async : 1;       /* SEND, RECV, COLLECTIVE: set by instr_comm.c */
  bool any_time : 1;    /* |cost_ns| is a guess that may be far too low */
  bool draws : 1;       /* random numbers, of the step; of bodies too */
  bool asks : 1;        /* of a GPU: its run waits for data of this run */
  int64_t cost_ns;      /* estimate; decides about tasks */
  int64_t flops, bytes;
  weir_sv node; /* lent, like the texts below */
  weir_mark mark;
  const char *op, *kernel, *algorithm, *reason;
  /* Of a kernel for GPUs: whether its bodies check data, and what it says of
   * what they refuse. */
  weir_status (*fault)(const void *state, const struct weir_body_fault *fault,
                       weir_error *err);
  const weir_program *const *bodies; /* taken: released with the program */
  uint32_t *child; /* gets the number of the first body's frame; or NULL */
} weir_instr_spec;

typedef struct weir_program_options {
  int threads;         /* that share a loop: scratch is planned for so many */
  int64_t grain_ns;    /* least work worth a hand-over; 0: 10 us */
  bool body;           /* one task: instructions of another program run it */
  bool one_task;       /* one instruction at a time, on all threads;
                          where collectives meet in it, tasks as without */
  bool stream;         /* a device: one instruction at a time, in order, and
                          sends and receives beside them */
  size_t memory_limit; /* of planned memory; 0: none */
  /* The GPU whose part it is, lent, outlives the program: planned memory and
   * constants are there. NULL: the host's. */
  struct weir_exec_gpu *gpu;
  /* Whose nodes |node_order| numbers, lent, for displays; NULL: none. */
  const struct weir_graph *graph;
} weir_program_options;

/* |alloc| gives the program itself its memory, and frames take theirs from
 * |env|; NULL: both from |env|. Errors: W6001. */
weir_status weir_program_builder_create(const weir_env *env,
                                        const weir_allocator *alloc,
                                        weir_program_builder **out_builder,
                                        weir_error *err);
void weir_program_builder_release(weir_program_builder *builder);
/* Makes room for so many more: a hint that saves copying. false: no memory. */
bool weir_program_reserve(weir_program_builder *builder, uint32_t values,
                          uint32_t instrs);
/* Memory that lives as long as the program: states, constants, texts. */
weir_arena *weir_program_builder_arena(weir_program_builder *builder);
/* Adds a value; its number. Out of memory sticks and is reported by finish. */
uint32_t weir_program_add_value(weir_program_builder *builder,
                                const weir_value_spec *spec);
/* Adds an instruction after all others; its number. Its state and bodies belong
 * to the builder from here on. */
uint32_t weir_program_add_instr(weir_program_builder *builder,
                                const weir_instr_spec *spec);
/* Changes where a value that is TEMP so far lives. */
void weir_program_set_external(weir_program_builder *builder, uint32_t value,
                               uint32_t external);
/* Says that external |external| is output |fetch| of the run, so that failures
 * of |value| are reported for it. */
void weir_program_add_fetch(weir_program_builder *builder, uint32_t value);
/* Orders tasks, plans memory. Errors: W6001, W6002, W2001. */
weir_status weir_program_finish(weir_program_builder *builder,
                                const weir_program_options *options,
                                weir_program **out_program, weir_error *err);

void weir_program_release(const weir_program *program); /* NULL-safe */

/* ---- Kinds other than KERNEL: they fill in |spec|'s run and state. */

/* How a value is cut into slices: slice t is |outer| runs of |inner| bytes,
 * the o-th at (o * count + t) * inner. outer 1: slices are views. */
typedef struct weir_slices {
  size_t outer, inner;
} weir_slices;

/* LOOP. Inputs: the number of turns (i64) if |counted|, carried values, sliced
 * values, captured values. Outputs: carried values, the turns made (i64) if
 * |conditional|, stacks. The last body is run with carried values, slices and
 * captured values, and gives the next carried values and the slices of those
 * stacks that collect no carried value (|stack_from|). A conditional loop
 * has a first body, of carried and captured values, that gives a bool: whether
 * to go on. Nothing is copied from turn to turn: a body reads carried values
 * where the turn before wrote them. */
typedef struct weir_loop_spec {
  uint32_t carried, scanned, captured, stacked;
  const size_t *carried_bytes;
  const weir_slices *slices;  /* of the scanned, then of the stacks */
  const uint32_t *stack_from; /* per stack: the carried value that it collects,
                                 or WEIR_NO_INDEX */
  int64_t length;             /* slices of each value; turns at most */
  bool reverse, counted, conditional;
  bool aligned; /* values begin at multiples of 16 bytes, slices in them too */
} weir_loop_spec;

#endif
