/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_DEVICE_GEMM_H_
#define WEIR_DEVICE_GEMM_H_

#include "runtime/device/device.h"

/* Products of matrices by a library of the device.
 *
 *   D[i] = epilogue(alpha * op(A[i]) op(B[i]) + beta * C[i] + bias)
 *
 * for each i of a batch; op(A) is m x k, op(B) is k x n, C and D are m x n. A
 * device that has such a library says so in its vtable; for others |gemm| is
 * NULL. A product is described and planned once, for all runs of a program:
 * the library chooses its algorithm then, and says how many bytes of scratch it
 * needs. The caller takes these from its own memory, so a run allocates nothing
 * of the device.
 *
 *   const weir_gemm_vtable *gemm = d->vt->gemm;
 *   s = gemm->plan(d, &desc, &plan, &workspace_bytes, err);
 *   const weir_gemm_operands o = {.a = {&a, 0}, .b = {&b, 0}, .d = {&d, 0},
 *                                 .workspace = {&scratch, 0}};
 *   s = gemm->run(d, plan, queue, &o, err);   ... more runs ...
 *   gemm->release(d, plan);
 *
 * Matrices are row-major, like weir's tensors: a leading dimension is the
 * number of elements from a row to the next. A run puts work into a queue, like
 * a copy; buffers stay until an event recorded after it has happened. The plan
 * itself may go as soon as the last run has returned.
 *
 * The library chooses by a heuristic. A caller that runs a product often may
 * let it time several algorithms instead, or take one that was found so before,
 * by its own numbers; both come before the plan's first run.
 *
 *   s = gemm->tune(d, plan, &tuned, &choice, &workspace_bytes, err);
 *   s = gemm->choose(d, plan, &choice, &chosen, &workspace_bytes, err);
 *
 * Any thread may call. A plan does not change after that, so several
 * threads may run one, each with a workspace and a queue of its own.
 *
 * Where nothing is to be computed: with m, n or |batch| 0, D has no element, so
 * a plan has no algorithm and a run puts no work into the queue. With k 0, the
 * sum is 0: D is epilogue(beta * C + bias), whatever |alpha| is, and A and B
 * are not read.
 *
 * Callers: kernels of GPUs; tune and choose by kernels/tune. */

/* Elements of all matrices and of the bias, and what sums are made of. */
typedef enum weir_gemm_type {
  WEIR_GEMM_F32,      /* sums and factors of f32 */
  WEIR_GEMM_F32_TF32, /* f32; factors may be rounded to TF32's 11 bits */
  WEIR_GEMM_F64,
  WEIR_GEMM_BF16, /* sums of f32, rounded once, at the end */
  WEIR_GEMM_F16,  /* the same */
  WEIR_GEMM_TYPE_COUNT
} weir_gemm_type;

typedef enum weir_gemm_epilogue {
  WEIR_GEMM_NONE,
  WEIR_GEMM_BIAS, /* one value for each column of D */
  WEIR_GEMM_RELU,
  WEIR_GEMM_RELU_BIAS, /* the bias is added first */
  /* With the library's tanh, which may be a quick one: of f64 too it is good to
   * some 2^-17. */
  WEIR_GEMM_GELU_TANH, /* x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) */
  WEIR_GEMM_GELU_TANH_BIAS,
  WEIR_GEMM_EPILOGUE_COUNT
} weir_gemm_epilogue;

/* A matrix of each product of the batch. */
typedef struct weir_gemm_matrix {
  int64_t ld;     /* elements from a row to the next, as it lies in memory */
  int64_t stride; /* elements from a matrix to the next; 0: the same one for
                     all, not for D */
} weir_gemm_matrix;

typedef struct weir_gemm_desc {
  weir_gemm_type type;
  weir_gemm_epilogue epilogue;
  int64_t m, n, k;
  bool a_transposed, b_transposed; /* in memory: A is k x m, B is n x k */
  int64_t batch;                   /* 1: one product; strides are not read */
  weir_gemm_matrix a, b, c, d;     /* C's is not read when |beta| is 0 */
  double alpha, beta;              /* rounded to f32 but for f64 */
  uint32_t align_bytes; /* of the addresses of A, B, C, D and the bias: a power
                           of two, up to 256; more is quicker, 16 is usual for
                           the best; 0: an element's */
} weir_gemm_desc;

/* Where the operands begin. D overlaps no other, but for C when both begin at
 * the same byte and have the same leading dimension and stride. */
typedef struct weir_gemm_operands {
  weir_device_place a, b; /* no buffer when k is 0 */
  weir_device_place c;    /* no buffer, and not read, when |beta| is 0 */
  weir_device_place d;
  weir_device_place bias;      /* no buffer when the epilogue has none */
  weir_device_place workspace; /* 256-byte aligned; no buffer when it needs 0
                                  bytes */
} weir_gemm_operands;

enum {
  /* The most that an algorithm may ask for. With k 0 a row of zeros and up to
   * 255 bytes come on top. */
  WEIR_GEMM_WORKSPACE_BYTES = 32 << 20,
  WEIR_GEMM_MOST_ALIGN_BYTES = 256,
  WEIR_GEMM_TRIES = 8 /* algorithms that are timed */
};

typedef struct weir_gemm_plan weir_gemm_plan; /* the device's own */

/* An algorithm in the library's own numbers, of which each means something to
 * one version of it on one kind of device alone. X(name) */
#define WEIR_GEMM_NUMBER_LIST(X) \
  X(id)                          \
  X(tile)                        \
  X(stages)                      \
  X(split_k)                     \
  X(reduction)                   \
  X(swizzling)                   \
  X(custom)                      \
  X(inner_shape)                 \
  X(cluster_shape)

enum {
#define WEIR_GEMM_NUMBER_ROW(name) WEIR_GEMM_NUMBER_##name,
  WEIR_GEMM_NUMBER_LIST(WEIR_GEMM_NUMBER_ROW)
#undef WEIR_GEMM_NUMBER_ROW
      WEIR_GEMM_NUMBERS
};

typedef struct weir_gemm_choice {
  int64_t numbers[WEIR_GEMM_NUMBERS];
} weir_gemm_choice;

/* What a choice is good for. */
enum { WEIR_GEMM_NAME_BYTES = 64 };
typedef struct weir_gemm_library {
  char device[WEIR_GEMM_NAME_BYTES];  /* "NVIDIA H100 80GB HBM3" */
  char library[WEIR_GEMM_NAME_BYTES]; /* "cuBLASLt 13.1.0" */
} weir_gemm_library;

/* Blocks: plan and library while the library begins its work, tune until all is
 * timed, run, choose and release never.
 * Errors: W6004: no library, or the device is lost; W6001; W5001 in the
 * library's words; W9001: a description that no matrices fit, operands outside
 * of their buffers, not aligned as promised, missing, or overlapping. */
typedef struct weir_gemm_vtable {
  weir_status (*plan)(weir_device *device, const weir_gemm_desc *desc,
                      weir_gemm_plan **out_plan, size_t *out_workspace_bytes,
                      weir_error *err);
  weir_status (*run)(weir_device *device, const weir_gemm_plan *plan,
                     weir_queue *queue, const weir_gemm_operands *operands,
                     weir_error *err);
  /* Before the device. NULL-safe. */
  void (*release)(weir_device *device, weir_gemm_plan *plan);
  weir_status (*library)(weir_device *device, weir_gemm_library *out,
                         weir_error *err);
  /* Times up to WEIR_GEMM_TRIES algorithms that the heuristic proposes, takes
   * the quickest for |plan|, and tells which it is and what workspace it needs.
   * All that plan may choose gives the same bits in each run. Takes memory of
   * the device for the time, as much as the operands have. After a failure the
   * plan is as it was. |out_tuned| false: there is no algorithm to choose. */
  weir_status (*tune)(weir_device *device, weir_gemm_plan *plan,
                      bool *out_tuned, weir_gemm_choice *out_choice,
                      size_t *out_workspace_bytes, weir_error *err);
  /* Takes |choice| for |plan|. |out_chosen| false: the library refuses it for
   * this product, and the plan is as it was. */
  weir_status (*choose)(weir_device *device, weir_gemm_plan *plan,
                        const weir_gemm_choice *choice, bool *out_chosen,
                        size_t *out_workspace_bytes, weir_error *err);
} weir_gemm_vtable;

#endif
