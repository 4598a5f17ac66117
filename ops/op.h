/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OPS_OP_H_
#define OPS_OP_H_

#include "runtime/base/status.h"
#include "runtime/base/sv.h"
#include "runtime/tensor/dtype.h"
#include "runtime/tensor/shape.h"
#include "runtime/tensor/tensor.h"

/* Operations.
 *
 * An op is one const weir_op_def in one file: its name, its inputs and outputs,
 * the rule for shapes, its gradient, its cost, prose, source. It
 * never computes and never names a device; kernels do (kernels/kernel.h). Its
 * rules see a graph through two contexts alone, shape_ctx.h and grad_ctx.h.
 *
 *   const weir_op_def weir_op_relu = {
 *       .name = "relu", .summary = "Larger of x and 0, element by element.",
 *       .inputs = {{"x", "T"}}, .outputs = {{"y", "T"}},
 *       .types = {{"T", WEIR_NUMBERS}},
 *       .flags = WEIR_OP_ELEMENTWISE,
 *       .shape = weir_rule_unary, .grad = relu_grad, .cost = weir_cost_unary};
 *
 * A new op is that file, its line in ops/meson.build, a ref kernel and a case
 * file tests/ops/<name>.yaml; without the case file the build does not
 * configure. */

typedef struct weir_op_def weir_op_def;
typedef struct weir_shape_ctx weir_shape_ctx; /* ops/shape_ctx.h */
typedef struct weir_grad_ctx weir_grad_ctx;   /* ops/grad_ctx.h */

enum {
  WEIR_OP_INPUTS = 8,
  WEIR_OP_OUTPUTS = 6,
  WEIR_OP_TYPES = 3,
  WEIR_OP_ATTRS = 10,
  WEIR_OP_REFUSALS = 12
};

/* An input or output. |type| is a type variable of the op ("T"), a dtype name
 * ("i64"), or NULL: every dtype, each input its own. |shape| is prose for the
 * manual ("[..., m, k]"). An optional output is made only where it is read:
 * outputs for a gradient cost nothing where there is none. */
typedef struct weir_port {
  const char *name; /* NULL ends the list */
  const char *type;
  const char *shape;
  bool variadic; /* last input only: one or more */
  bool optional; /* trailing inputs; outputs */
  bool listed;   /* a variadic input that is written as a list: f(x, [a, b]) */
} weir_port;

/* A type variable: all ports that name it have the same dtype, one of |types|.
 * |attr|: the dtype comes from this attribute (const, zeros, cast's target). */
typedef struct weir_type_var {
  const char *name; /* NULL ends the list */
  unsigned types;
  const char *attr;
} weir_type_var;

typedef enum weir_attr_kind {
  WEIR_ATTR_NONE, /* not given, and there is no default */
  WEIR_ATTR_INT,
  WEIR_ATTR_FLOAT,
  WEIR_ATTR_BOOL,
  WEIR_ATTR_STRING,
  WEIR_ATTR_DTYPE,
  WEIR_ATTR_INTS, /* a list of dimensions; one integer is a list of one */
  WEIR_ATTR_FLOATS,
  WEIR_ATTR_TENSOR, /* a literal: number or nested list */
  WEIR_ATTR_NUMBER, /* of a definition only: an INT or a FLOAT, as written */
  WEIR_ATTR_KIND_COUNT
} weir_attr_kind;

/* An attribute's value. Data it points to lives as long as its graph. */
typedef struct weir_attr {
  weir_attr_kind kind;
  uint32_t count; /* of dims or floats */
  union {
    int64_t i;
    double f;
    bool b;
    weir_sv s;
    weir_dtype dtype;
    const weir_dim *dims; /* symbols are gone once a program is compiled */
    const double *floats;
    weir_tensor *tensor;
  };
} weir_attr;

/* The number of an INT or FLOAT, rounded where it is an integer above 2^53. */
static inline double weir_attr_number(const weir_attr *attr) {
  return attr->kind == WEIR_ATTR_INT ? (double)attr->i : attr->f;
}

/* Attributes by name; an entry with name NULL ends the list. */
typedef struct weir_named_attr {
  const char *name;
  weir_attr value;
} weir_named_attr;

/* A value of a graph, by number; WEIR_NO_VALUE: none. */
typedef uint32_t weir_ref;
#define WEIR_NO_VALUE UINT32_MAX

/* The values of an attribute. |fallback| is its default as written in the graph
 * language ("-1", "[1, 1]", "f32", "none"); NULL: it must be given. */
typedef struct weir_attr_def {
  const char *name; /* NULL ends the list */
  weir_attr_kind kind;
  const char *fallback;
  const char *doc;
  const char *choices; /* strings: "half_to_even|half_up", else NULL */
} weir_attr_def;

/* How a program carries an op out (runtime/exec). Most are KERNEL. */
typedef enum weir_instr_kind {
  WEIR_INSTR_KERNEL,
  WEIR_INSTR_COPY,
  WEIR_INSTR_SEND,
  WEIR_INSTR_RECV,
  WEIR_INSTR_COLLECTIVE,
  WEIR_INSTR_VAR_READ,
  WEIR_INSTR_VAR_COMMIT,
  WEIR_INSTR_LOOP,
  WEIR_INSTR_BRANCH,
  WEIR_INSTR_FEED,
  WEIR_INSTR_FETCH,
  WEIR_INSTR_CONST, /* its value is known when the program is compiled */
  WEIR_INSTR_NONE,  /* control only: group, no_op */
  WEIR_INSTR_KIND_COUNT
} weir_instr_kind;

enum {
  WEIR_OP_ELEMENTWISE = 1u << 0, /* NumPy broadcasting, can be fused */
  WEIR_OP_COMMUTATIVE = 1u << 1,
  WEIR_OP_VIEW = 1u << 2,     /* output 0 has the bytes of input 0 */
  WEIR_OP_RANDOM = 1u << 3,   /* depends on (seed, node, step) */
  WEIR_OP_EFFECT = 1u << 4,   /* changes a variable or holds a device */
  WEIR_OP_ANCHOR = 1u << 5,   /* element-wise followers may join its group */
  WEIR_OP_WINDOW = 1u << 6,   /* pooling: may end a convolution's group */
  WEIR_OP_MAY_FAIL = 1u << 7, /* at run time, on data (indices, division) */
  WEIR_OP_FOREIGN = 1u << 8,  /* of the host program: it may take any time */
  WEIR_OP_ROWS = 1u << 9      /* a row of its outputs follows from that row of
                                 the inputs of their shape, and from numbers */
};

/* How an operand's elements lie in memory. */
typedef enum weir_layout {
  WEIR_LAYOUT_PLAIN, /* row-major */
  /* [ceil(n/16)][c][h][w][16 images]; lanes of images that are not there hold
   * anything. */
  WEIR_LAYOUT_N16,
  /* [n][ceil(c / 8)][h][w][8 channels]; lanes of channels that are not there
   * hold 0. The other with 16. */
  WEIR_LAYOUT_C8,
  WEIR_LAYOUT_C16
} weir_layout;

/* Channels that lie side by side; 0: it is no layout of blocks of channels. */
static inline int weir_layout_channels(weir_layout layout) {
  return layout == WEIR_LAYOUT_C8 ? 8 : layout == WEIR_LAYOUT_C16 ? 16 : 0;
}

/* |channels| rounded up to whole blocks of |lanes|. */
static inline int64_t weir_layout_padded(int64_t channels, int lanes) {
  return (channels + lanes - 1) / lanes * lanes;
}

/* Whether so few lanes of the last block are empty that blocks pay: a quarter
 * of all at most. */
static inline bool weir_layout_pays(int64_t channels, int lanes) {
  int64_t padded = weir_layout_padded(channels, lanes);
  return channels > 0 && padded - channels <= padded / 4;
}

/* One operand of a call: known shape, and its data when that is constant. */
typedef struct weir_operand {
  weir_dtype dtype;
  weir_layout layout;
  int32_t rank;
  int64_t dims[WEIR_MAX_RANK];
  int64_t elements;
  const void *value; /* plain layout; NULL unless constant */
} weir_operand;

/* One use of an op with everything known before it runs. |attrs| has one entry
 * for each of the op's attribute definitions, in their order, defaults filled
 * in. A missing optional input, and an optional output that is not read, have
 * dtype WEIR_DTYPE_NONE, and no memory when the call is run. */
typedef struct weir_call {
  const weir_op_def *op;
  const weir_attr *attrs;
  const weir_operand *in;
  const weir_operand *out;
  uint32_t in_count, out_count;
  weir_sv node;  /* its name, for messages */
  uint64_t seed; /* of (graph seed, node name), for random ops */
  /* The machine that kernels are chosen for (kernels/profile.h); 0: this one.
   */
  uint64_t profile;
} weir_call;

/* The attribute called |name|; NULL if the op has none of that name. */
const weir_attr *weir_call_attr(const weir_call *call, const char *name);

/* The cost of a call: arithmetic and memory traffic, at least. */
typedef struct weir_cost {
  int64_t flops;
  int64_t bytes;
  int64_t hold_ns; /* synthetic tasks: the time the device is held */
} weir_cost;

struct weir_op_def {
  const char *name;
  const char *aliases[5]; /* NULL-ended */
  const char *summary;    /* one sentence */
  const char *doc;        /* more prose, or NULL */
  const char *source;     /* paper or standard, or NULL */
  const char *example;    /* a call in the graph language */
  /* Of an op of a host program: its version, ports and attributes in one line,
   * which a driver and its tasks compare. NULL: the library's. */
  const char *signature;
  weir_port inputs[WEIR_OP_INPUTS];
  weir_port outputs[WEIR_OP_OUTPUTS];
  weir_type_var types[WEIR_OP_TYPES];
  weir_attr_def attrs[WEIR_OP_ATTRS];
  /* Its refusals, in words, for the manual; each has a case. */
  const char *refuses[WEIR_OP_REFUSALS];
  unsigned flags;
  weir_instr_kind instr;
  /* Number of outputs from the attributes (split); NULL: as listed. */
  uint32_t (*output_count)(const weir_attr *attrs, uint32_t in_count);
  weir_status (*shape)(weir_shape_ctx *ctx);
  weir_status (*grad)(weir_grad_ctx *ctx); /* NULL: not differentiable */
  void (*cost)(const weir_call *call, weir_cost *out); /* NULL: bytes only */
};

#endif
