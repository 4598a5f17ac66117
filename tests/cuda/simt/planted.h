/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_CUDA_SIMT_PLANTED_H_
#define TESTS_CUDA_SIMT_PLANTED_H_

#include "kernels/cuda/body.h"

typedef struct planted_args {
  float *y;
} planted_args;

#endif
