/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_KERNELS_BED_H_
#define TESTS_KERNELS_BED_H_

#include <stdbool.h>

#include "kernels/kernel.h"
#include "tests/check.h"

/* Shared by tests of single kernels: operands, calls and runs. Everything
 * fails the test when it fails. */

/* Blocks in order on one worker, or out of order on three. */
typedef enum bed_order { BED_SERIAL, BED_SCRAMBLED } bed_order;

weir_operand bed_operand(weir_dtype dtype, int rank, const int64_t *dims);
const weir_op_def *bed_op(const char *name);

/* Numbers in [-1, 1] in steps of 1/64, the same for a seed. Free it. */
float *bed_numbers(int64_t n, uint64_t seed);
/* 64-byte aligned, filled with 0xC5. Free it. */
void *bed_memory(size_t bytes);

/* Prepares, runs once and releases. Inputs stay the caller's. */
void bed_run_kernel(const weir_kernel_def *kernel, const weir_call *call,
                    void *const *io, bed_order order);
void bed_run_group(const weir_group_kernel_def *kernel, const weir_group *group,
                   void *const *io, bed_order order);
/* The profile that both run calls under; of this machine's, best first. */
uint64_t bed_profile(void);
/* Takes the |i|-th one; false: there are no more. */
bool bed_take_profile(int i);
/* The end of main(): the tests under each profile. */
#define BED_RUN(tests)                                      \
  do {                                                      \
    int failed_ = 0;                                        \
    for (int i_ = 0; bed_take_profile(i_); i_++)            \
      failed_ += cmocka_run_group_tests(tests, NULL, NULL); \
    return failed_;                                         \
  } while (0)

/* By name; they must exist. */
const weir_kernel_def *bed_kernel(const char *name);
const weir_group_kernel_def *bed_group(const char *name);
/* Runs the reference kernel of |call|. */
void bed_run_ref(const weir_call *call, void *const *io);

/* Fails unless |y| is |want| within |rtol| of the largest |want|. */
void bed_check_near(const float *y, const float *want, int64_t n, float rtol);

#endif
