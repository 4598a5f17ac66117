/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_WEIR_OP_H_
#define WEIR_WEIR_OP_H_

#include "runtime/weir/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Ops of a host program.
 *
 * An op that a program registers with its runtime is called in graphs by its
 * name, like a built-in one; it runs on CPUs.
 *
 *   static bool run(void *self, const weir_op_use *use, char *why,
 *                   size_t why_size) {
 *     const float *x = use->in[0]->data;
 *     float *y = use->out[0]->data, by = (float)use->attrs[0]->f;
 *     for (int64_t i = 0; i < use->out[0]->elements; i++) y[i] = by * x[i];
 *     return true;
 *   }
 *
 *   weir_op_port x = {.struct_size = sizeof x, .name = "x"};
 *   weir_op_port y = {.struct_size = sizeof y, .name = "y"};
 *   weir_op_attr_spec by = {.struct_size = sizeof by, .name = "by",
 *                           .kind = WEIR_OP_ATTR_FLOAT, .fallback = "2"};
 *   weir_op_spec op = {.struct_size = sizeof op, .name = "scaled",
 *                      .version = 1, .types = WEIR_F32, .inputs = &x,
 *                      .input_count = 1, .outputs = &y, .output_count = 1,
 *                      .attrs = &by, .attr_count = 1, .run = run};
 *   s = weir_op_register(runtime, &op, &err);      nodes: z: scaled(x, by=3)
 *
 * An op is a function: equal inputs and attributes give equal outputs, and it
 * does nothing else. So weir may run it once for two equal uses, when the graph
 * is compiled, or not at all where nobody reads its outputs. It has no
 * gradient: a graph that needs one through it is refused (W2018).
 *
 * Over tasks: a driver's ops must be registered at each task too, with the same
 * version and signature, or its sessions are refused (W7085). A task may have
 * more of them.
 *
 * Threads: shape and cost are called by the threads that load, place and
 * compile graphs, run by any thread of the runtime; all of them several at
 * once. They may call weir, but not use the session or the graph that they are
 * called for. */

enum {
  WEIR_OP_MOST_INPUTS = 8,
  WEIR_OP_MOST_OUTPUTS = 6,
  WEIR_OP_MOST_ATTRS = 10,
  WEIR_OP_MOST_REGISTERED = 256 /* of a runtime */
};

/* An input or output of an op. */
typedef struct weir_op_port {
  uint32_t struct_size;
  weir_dtype dtype; /* WEIR_DTYPE_NONE: that of all such ports, of op.types */
  bool optional;    /* inputs after which none is needed; may be left out */
  const char *name;
} weir_op_port;

typedef enum weir_op_attr_kind {
  WEIR_OP_ATTR_NONE = 0, /* of a use: not given, and the default is "none" */
  WEIR_OP_ATTR_INT = 1,
  WEIR_OP_ATTR_FLOAT = 2,
  WEIR_OP_ATTR_BOOL = 3,
  WEIR_OP_ATTR_STRING = 4,
  WEIR_OP_ATTR_INTS = 5, /* a list of dimensions */
  WEIR_OP_ATTR_FLOATS = 6
} weir_op_attr_kind;

typedef struct weir_op_attr_spec {
  uint32_t struct_size;
  weir_op_attr_kind kind;
  const char *name;
  /* The default, as a graph would write it: "2", "[1, 1]", "none"; NULL: the
   * attribute must be given. */
  const char *fallback;
} weir_op_attr_spec;

/* A dimension. It never grows. Copy it whole to say "the same one". */
typedef struct weir_op_dim {
  int64_t size;
  /* 0: |size| is the size. Else the size is not known yet, and is that of this
   * symbol plus |size|: equal dimensions are equal sizes. Shape rules only. */
  uint32_t symbol;
  uint32_t name; /* weir's */
} weir_op_dim;

#define WEIR_OP_DIM_NEW UINT32_MAX /* .symbol: a size of its own, not known */

/* One input or output of a use. */
typedef struct weir_op_value {
  uint32_t struct_size;
  weir_dtype dtype; /* WEIR_DTYPE_NONE: an optional input was left out */
  int32_t rank;     /* -1: not known yet; shape rules only */
  weir_op_dim dims[WEIR_RANK_LIMIT];
  int64_t elements; /* -1 where a dimension is not known */
  /* Row-major. Run: all are there, inputs must not be written. Shape and cost:
   * of an input whose value is known already, else NULL. */
  void *data;
} weir_op_value;

typedef struct weir_op_attr {
  uint32_t struct_size;
  weir_op_attr_kind kind;
  int64_t i;
  double f;
  bool b;
  weir_text s;
  size_t count; /* of |ints| or |floats| */
  const weir_op_dim *ints;
  const double *floats;
} weir_op_attr;

/* |block| of a loop that is cut into some; |worker| names the thread. */
typedef void (*weir_op_block_fn)(void *arg, int64_t block, int worker);

/* One use of an op; lent for the call, with all that it points to. */
typedef struct weir_op_use weir_op_use;
struct weir_op_use {
  uint32_t struct_size;
  uint32_t in_count, out_count, attr_count;
  const weir_op_value *const *in;
  weir_op_value *const *out;
  const weir_op_attr *const *attrs; /* in the order of the op's */
  /* Run: calls fn(arg, b, worker) for every b in [0, blocks), on several
   * threads, and returns when all have. Cut blocks by shapes alone and add sums
   * in block order, and the bits do not depend on the number of threads. */
  void (*parallel_for)(const weir_op_use *use, int64_t blocks,
                       weir_op_block_fn fn, void *arg);
  const void *inner; /* weir's */
};

/* The work of a use, for placing. */
typedef struct weir_op_cost {
  uint32_t struct_size;
  int64_t flops; /* arithmetic operations */
  int64_t bytes; /* read and written; starts as those of inputs and outputs */
} weir_op_cost;

/* All text is copied. After false, |why| says the reason in words, which go to
 * the caller's error: "x has rank 3, want 2". */
typedef struct weir_op_spec {
  uint32_t struct_size;
  /* Yours to raise when results change: driver and tasks must agree. */
  uint32_t version;
  uint32_t types; /* set of dtypes, WEIR_F32 | WEIR_F64; 0: all */
  /* As graphs call it: a small letter, then those, digits and _; at most 63.
   * So are names of ports and attributes. */
  const char *name;
  const char *summary; /* one sentence; may be NULL */
  const weir_op_port *inputs;
  size_t input_count; /* 1 to WEIR_OP_MOST_INPUTS */
  const weir_op_port *outputs;
  size_t output_count; /* 1 to WEIR_OP_MOST_OUTPUTS */
  const weir_op_attr_spec *attrs;
  size_t attr_count;
  /* Checks the inputs' shapes and sets rank and dims of each output; rank -1
   * where they cannot be known yet. It is asked again when more is known. NULL:
   * outputs have the shape of the first input. */
  bool (*shape)(void *self, const weir_op_use *use, char *why, size_t why_size);
  /* Fills the outputs' data. It may fail on data alone (W5001). */
  bool (*run)(void *self, const weir_op_use *use, char *why, size_t why_size);
  /* NULL: one operation for each element of the first output. */
  void (*cost)(void *self, const weir_op_use *use, weir_op_cost *out);
  void *self; /* must outlive all that is made with the runtime */
} weir_op_spec;

/* Adds an op to the runtime, before its first graph is loaded and its first
 * task is made. Any thread. Errors: W0002 (a name, count or default that is not
 * sound, or a name that another op has), W0004 (NULL, or too late), W6001. */
WEIR_API weir_status weir_op_register(weir_runtime *runtime,
                                      const weir_op_spec *spec,
                                      weir_error *err);

#ifdef __cplusplus
}
#endif

#endif
