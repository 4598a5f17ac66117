/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_KERNEL_H_
#define KERNELS_KERNEL_H_

#include "ops/op.h"
#include "ops/registry.h"
#include "runtime/base/alloc.h"
#include "runtime/device/kind.h"

struct weir_body_fault;
struct weir_device;
struct weir_gpu_run;

/* Kernels.
 *
 * A kernel is one const struct: its op, device and dtypes, the test whether it
 * accepts a call, with the reason in words if not; its preparation, which is
 * done once; and the function that runs. Kernels are asked in the order of the
 * list; kernels/ref comes last and accepts everything its op accepts. It is
 * asked once per node, when the whole graph is known, and sees shapes only:
 * never thread counts, so the same graph gives the same bits on any number of
 * threads.
 *
 *   accepts(call)  -> prepare(call) -> run, run, ... (any threads) -> release
 *
 * run() must not allocate. It may call weir_parallel_for; blocks must be cut at
 * edges that follow from shapes alone, and a sum over blocks must be added in
 * block order. Several runs of one state may be under way at once, so state is
 * read-only there; scratch memory belongs to the run. A kernel does not
 * repeat the checks of the op's shape rule; it checks data (indices).
 *
 * A kernel for GPUs runs in another sense: run() puts work into the queue of
 * ctx->gpu (kernels/gpu/gpu.h) and returns before it has begun. |io| and
 * |scratch| are addresses of that device, which the host must not read, and
 * data that it refuses is told by |fault| after the work has ended. */

/* Why a kernel said no. */
typedef struct weir_why {
  char text[160];
} weir_why;

/* The executor's services to a run; lent for its time. */
typedef void (*weir_block_fn)(void *arg, int64_t block, int worker);
typedef struct weir_run_ctx {
  void *self;
  /* Calls fn(arg, b, worker) for every b in [0, blocks), on several threads,
   * and returns when all have. worker < workers names the thread. */
  void (*parallel_for)(void *self, int64_t blocks, weir_block_fn fn, void *arg);
  int workers;
  uint64_t step; /* random ops: which step this is */
  /* Holds this device for a time (`task`): sleeps on the clock. */
  void (*hold)(void *self, int64_t ns, bool spin);
  /* Whether the run is over before its time, so that nobody will read the
   * outputs; NULL: it is not. Blocks need not ask: they are left out. */
  bool (*over)(void *self);
  const struct weir_gpu_run *gpu; /* of a kernel for GPUs; else NULL */
} weir_run_ctx;

/* One run's memory. */
typedef struct weir_args {
  void *const *io;   /* inputs, then outputs; NULL: missing */
  const void *state; /* made by prepare */
  void *scratch;     /* of the size prepare asked for, 64-byte aligned */
  const weir_run_ctx *ctx;
  weir_error *err; /* for failures on data */
} weir_args;

static inline void weir_parallel_for(const weir_args *args, int64_t blocks,
                                     weir_block_fn fn, void *arg) {
  if (blocks == 1)
    fn(arg, 0, 0);
  else
    args->ctx->parallel_for(args->ctx->self, blocks, fn, arg);
}

/* For long loops that are not cut into blocks: true when the kernel may return
 * at once, its outputs unfinished. */
static inline bool weir_run_over(const weir_args *args) {
  return args->ctx != NULL && args->ctx->over != NULL &&
         args->ctx->over(args->ctx->self);
}

/* The result of prepare. */
typedef struct weir_prepared {
  weir_arena *arena;           /* in: for state; lives as long as the program */
  const weir_allocator *alloc; /* in: for memory that release frees */
  struct weir_device *device;  /* in: of a kernel for GPUs, for what it plans
                                  there; NULL: with |sizes_only| too */
  bool tf32; /* in: products of f32 on a GPU may round their factors to TF32 */
  struct weir_tuning *tuning;  /* in: choices that were timed; may be NULL */
  bool sizes_only;             /* in: sizes are wanted, for a plan: constants
                                  are not read nor packed, run is not called */
  void *state;                 /* out; may stay NULL */
  size_t scratch_bytes;        /* out: per run */
  bool unchecked;              /* out: of a kernel with |fault|: its bodies
                                  check no data of this call */
  size_t kept_bytes;           /* out: packed constants, held by the program */
  size_t worker_scratch_bytes; /* out: per worker; scratch holds
                                  scratch_bytes, then workers times this,
                                  each rounded up to 64 */
  const char *algorithm;       /* out: for dumps, static text; may stay NULL */
} weir_prepared;

/* Stores the number |attr| as element |i| of any dtype: integers exactly and
 * clamped to the dtype's range, bools as value != 0. */
static inline void weir_put_attr(weir_dtype dtype, void *data, int64_t i,
                                 const weir_attr *attr) {
  weir_tensor view = {.dtype = dtype, .data = data};
  if (attr->kind == WEIR_ATTR_INT)
    weir_tensor_set_i64(&view, i, attr->i);
  else
    weir_tensor_set_f64(&view, i, attr->f);
}

/* Bytes of scratch that come before the workers' parts. */
static inline size_t weir_scratch_align(size_t bytes) {
  return (bytes + 63) & ~(size_t)63;
}

typedef weir_status (*weir_run_fn)(const weir_args *args);

/* Computes elements [first, first + count) of a run's output, and reads no
 * other elements of its inputs; |io| as in weir_args. The output may be the
 * memory of any input that has an element for each of its own. */
typedef void (*weir_slice_fn)(const void *state, void *const *io, int64_t first,
                              int64_t count);

typedef struct weir_kernel_def {
  const char *op;
  const char *name; /* "cpu.matmul.onednn", unique */
  weir_device_kind device;
  unsigned types; /* dtype set of input 0 (or of output 0 without inputs) */
  /* NULL: accepts all. Operands' layouts are plain unless |layouts|. */
  bool (*accepts)(const weir_call *call, weir_why *why);
  bool layouts;  /* looks at operands' layouts itself */
  bool in_place; /* output 0 may be input 0's memory; of an element-wise op
                    also where another input is the same value */
  /* An output may be the memory of any input of its shape: all that is read of
   * an element is read before that element is written. */
  bool over_inputs;
  /* NULL: nothing to prepare; then state is the weir_call itself. */
  weir_status (*prepare)(const weir_call *call, weir_prepared *out,
                         weir_error *err);
  void (*release)(void *state); /* NULL: the arena has it all */
  weir_run_fn run;
  /* How the kernel that prepare made |state| for does a part of its output, so
   * that input |in| may come in pieces; NULL: it cannot. NULL: it never can. */
  weir_slice_fn (*slices)(const void *state, uint32_t in);
  /* Of a kernel for GPUs whose bodies check data, unless prepare says that they
   * do not: fails with what the CPU's kernel says of that element. NULL: they
   * never do. */
  weir_status (*fault)(const void *state, const struct weir_body_fault *fault,
                       weir_error *err);
} weir_kernel_def;

/* ---- Groups: calls that run as one kernel, in one pass over their data. The
 * calls are in topological order; the first may be an anchor (matmul, conv2d),
 * the rest are element-wise, and a pooling may be last. */

/* Where an input of a member comes from. */
typedef struct weir_group_ref {
  bool member;    /* else an input of the group */
  uint32_t index; /* of the member call (its output 0) or of the input */
} weir_group_ref;

typedef struct weir_group {
  uint32_t call_count, in_count, out_count;
  const weir_call *calls;
  const weir_group_ref *const *refs; /* refs[c][i]: input i of call c */
  const weir_operand *in;            /* the group's inputs */
  const weir_operand *out;           /* and outputs */
  const uint32_t *out_calls;         /* out i is output 0 of this call */
} weir_group;

typedef struct weir_group_kernel_def {
  const char *name;
  weir_device_kind device;
  bool (*accepts)(const weir_group *group, weir_why *why);
  bool layouts;     /* looks at operands' layouts itself */
  bool over_inputs; /* as in weir_kernel_def; with one output */
  weir_status (*prepare)(const weir_group *group, weir_prepared *out,
                         weir_error *err);
  void (*release)(void *state);
  weir_run_fn run; /* io: group inputs, then group outputs */
} weir_group_kernel_def;

/* The generated tables (kernels/meson.build), in order of preference. */
extern const weir_kernel_def *const weir_builtin_kernels[];
extern const size_t weir_builtin_kernel_count;
extern const weir_group_kernel_def *const weir_builtin_group_kernels[];
extern const size_t weir_builtin_group_kernel_count;

/* The built-in ops and kernels together. Static, immutable. */
const weir_registry *weir_builtin_registry(void);

#endif
