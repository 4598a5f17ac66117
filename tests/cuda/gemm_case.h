/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_CUDA_GEMM_CASE_H_
#define TESTS_CUDA_GEMM_CASE_H_

#include "runtime/device/gemm.h"
#include "tests/cuda/cuda_world.h"
#include "tests/cuda/standin_lt/standin_lt.h"

/* A product of matrices on a device, against plain loops.
 *
 * Factors are multiples of a quarter, so sums are exact in f32 and only the
 * last rounding is left. What lies between rows and matrices is NaN, and must
 * be as it was in D. */

typedef struct gemm_case {
  weir_gemm_desc desc;
  bool in_place;  /* C is D */
  int64_t before; /* elements of a buffer before its operand */
  uint64_t seed;  /* of the values */
} gemm_case;

extern const standin_lt_control *standin_lt; /* NULL: a real library */

/* cuda_world_open, and cuBLASLt, which is of the same folder. */
int gemm_case_open(void **state);

/* A case without an epilogue, alpha 1 and beta 0; rows and matrices have gaps,
 * by |seed|. |sizes|: m, n, k and the batch. */
gemm_case gemm_case_make(weir_gemm_type type, const int64_t sizes[4],
                         bool a_transposed, bool b_transposed, uint64_t seed);

/* Plans and runs it. A wrong result is an error W9001 that says "wrong". Any
 * thread. */
weir_status gemm_case_run(weir_device *device, const gemm_case *c,
                          weir_error *err);

/* The same by a plan that is there. */
weir_status gemm_case_run_plan(weir_device *device, const gemm_case *c,
                               const weir_gemm_plan *plan,
                               size_t workspace_bytes, weir_error *err);

/* cuda_world_check_clean, and nothing of cuBLASLt lives or was refused. */
void gemm_case_check_clean(void);

#endif
