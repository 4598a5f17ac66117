/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_CUDA_POOL_H_
#define KERNELS_CUDA_POOL_H_

#include "kernels/cuda/window.h"

/* Arguments of the bodies of pool.cu, for f32 and f64, of which each uses some.
 * x and dx are |images| images of window.in, y and dy have window.out each.
 * Grids: any number of blocks in x.
 *
 * max_pool, avg_pool: y of x. max_pool_places: |places|, for each
 * element of y the number of its largest element within its image of x.
 * max_pool_grad: dx of places and dy. avg_pool_grad: dx of dy. */
typedef struct weir_pool_args {
  void *y, *dx;
  const void *x, *dy;
  int32_t *places;
  weir_body_window window;
  int32_t images;
  int32_t with_pad; /* a mean divides by the padded image's elements */
} weir_pool_args;

#endif
