/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/cuda/apply.h"
#include "kernels/cuda/cells.h"
#include "kernels/cuda/conv.h"
#include "kernels/cuda/ew.h"
#include "kernels/cuda/index.h"
#include "kernels/cuda/loss.h"
#include "kernels/cuda/move.h"
#include "kernels/cuda/norm.h"
#include "kernels/cuda/pool.h"
#include "kernels/cuda/product.h"
#include "kernels/cuda/random.h"
#include "kernels/cuda/reduce.h"
#include "kernels/cuda/resize.h"
#include "kernels/cuda/rows.h"
#include "kernels/cuda/series.h"
#include "kernels/cuda/tape.h"
#include "runtime/device/cuda/body.h"

/* The list of the module's bodies, for its device. */

#define WEIR_CUDA_BODY(file, name, args) \
  {#file, #name, "weir_body_" #name, sizeof(args)},
const weir_cuda_body_def weir_cuda_bodies[] = {
#include "kernels/cuda/bodies.def"
    {0}};
#undef WEIR_CUDA_BODY
