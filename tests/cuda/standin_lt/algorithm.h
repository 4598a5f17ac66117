/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_CUDA_STANDIN_LT_ALGORITHM_H_
#define TESTS_CUDA_STANDIN_LT_ALGORITHM_H_

#include "tests/cuda/standin_lt/lt_internal.h"

/* Algorithms: a handful of each kind that cuBLASLt has, behind the bytes of
 * cublasLtMatmulAlgo_t. All compute by the same loops; they differ in how a sum
 * is split, and so in bits, in the workspace and alignment that they need, and
 * in the time that a stream's clock counts for them. */

enum { LT_ALGORITHM = 0x1705, LT_ALGORITHMS = 6, LT_ALIGN = 256 };

typedef struct lt_algorithm {
  uint32_t kind;
  int32_t id; /* of the table */
  uint32_t tile, stages;
  int32_t split_k;
  uint32_t reduction, swizzling, custom;
  uint16_t inner_shape, cluster_shape;
  uint16_t compute, type; /* that it was made for */
  uint64_t print; /* of the operation and the layouts that the heuristic chose
                     it for; 0: it was made by its id */
  uint8_t align_log[5]; /* of A, B, C, D and the bias, that it counts on */
} lt_algorithm;
_Static_assert(sizeof(lt_algorithm) <= sizeof(cublasLtMatmulAlgo_t), "");

/* Algorithm |id| as the heuristic sets it; false: there is none. */
bool lt_algorithm_of(int id, cublasComputeType_t compute, cudaDataType type,
                     lt_algorithm *out);

/* Whether its settings are those of an algorithm of the table, for sums of |k|
 * terms. */
bool lt_algorithm_is_sound(const lt_algorithm *a, uint64_t k);

/* Bytes of alignment that it needs of each matrix. */
uint32_t lt_algorithm_align(const lt_algorithm *a);

/* Bytes of workspace for a D of |bytes| as f64. */
uint64_t lt_algorithm_workspace(const lt_algorithm *a, uint64_t bytes);

/* Nanoseconds of a product by it. */
uint64_t lt_algorithm_cost(const lt_algorithm *a);

#endif
