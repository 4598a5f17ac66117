/* SPDX-License-Identifier: Apache-2.0 */
/* Products of matrices of integers. A block makes a tile of outputs, a thread
 * one: as many columns of a and rows of b as the tile is wide lie in shared
 * memory at a time, so that an element is read once for each tile. Sums wrap,
 * in any order the same. */
#include "kernels/cuda/product.h"

enum { TILE = WEIR_PRODUCT_TILE };

/* Elements before batch |i| of a and of b. */
static __device__ __forceinline__ void product_batch(
    const weir_product_args &args, int64_t i, int64_t *at) {
  at[0] = at[1] = 0;
  WEIR_BODY_UNROLL(1)
  for (int32_t d = args.batch_rank - 1; d >= 0; d--) {
    int64_t here = i % args.batch_dims[d];
    i /= args.batch_dims[d];
    for (int k = 0; k < 2; k++) at[k] += here * args.batch_strides[k][d];
  }
}

template <class U>
static __device__ __forceinline__ void product_all(
    const weir_product_args &args, U *left, U *right) {
  int64_t rows = (args.m + TILE - 1) / TILE,
          columns = (args.n + TILE - 1) / TILE;
  int64_t jobs = args.batches * rows * columns;
  int32_t r = (int32_t)threadIdx.x / TILE, c = (int32_t)threadIdx.x % TILE;
  for (int64_t job = blockIdx.x; job < jobs; job += gridDim.x) {
    int64_t tile = job / columns, batch = tile / rows, at[2];
    int64_t i = (tile - batch * rows) * TILE + r;
    int64_t j = (job - tile * columns) * TILE + c;
    product_batch(args, batch, at);
    const U *a = (const U *)args.a + at[0], *b = (const U *)args.b + at[1];
    U sum = 0;
    for (int64_t first = 0; first < args.k; first += TILE) {
      int64_t ka = first + c, kb = first + r;
      left[threadIdx.x] =
          i < args.m && ka < args.k ? a[i * args.a_row + ka * args.a_k] : 0;
      right[threadIdx.x] =
          j < args.n && kb < args.k ? b[kb * args.b_k + j * args.b_column] : 0;
      __syncthreads();
      for (int32_t k = 0; k < TILE; k++)
        sum += left[r * TILE + k] * right[k * TILE + c];
      __syncthreads();
    }
    if (i < args.m && j < args.n)
      ((U *)args.y)[(batch * args.m + i) * args.n + j] = sum;
  }
}

WEIR_BODY(product_i32, weir_product_args) {
  __shared__ uint32_t left[TILE * TILE], right[TILE * TILE];
  product_all<uint32_t>(args, left, right);
}

WEIR_BODY(product_i64, weir_product_args) {
  __shared__ uint64_t left[TILE * TILE], right[TILE * TILE];
  product_all<uint64_t>(args, left, right);
}
