// SPDX-License-Identifier: Apache-2.0
// All bodies, compiled for the host, and their list: one that stands in
// bodies.def and in no .cu file does not compile.
#include "tests/cuda/simt/kernel.h"

// The next ones need the words above.
#include "kernels/cuda/apply.cu"
#include "kernels/cuda/cast.cu"
#include "kernels/cuda/cells.cu"
#include "kernels/cuda/conv.cu"
#include "kernels/cuda/ew.cu"
#include "kernels/cuda/index.cu"
#include "kernels/cuda/loss.cu"
#include "kernels/cuda/move.cu"
#include "kernels/cuda/norm.cu"
#include "kernels/cuda/pool.cu"
#include "kernels/cuda/product.cu"
#include "kernels/cuda/random.cu"
#include "kernels/cuda/reduce.cu"
#include "kernels/cuda/resize.cu"
#include "kernels/cuda/rows.cu"
#include "kernels/cuda/series.cu"
#include "kernels/cuda/sort.cu"
#include "kernels/cuda/tape.cu"
#include "tests/cuda/simt/planted.cu"

#define WEIR_CUDA_BODY(file, name, args_type)     \
  static void run_##name(const void *args) {      \
    args_type own; /* each thread has its copy */ \
    memcpy(&own, args, sizeof own);               \
    weir_body_##name(own);                        \
  }
#define PLANTED(name) WEIR_CUDA_BODY(planted, planted_##name, planted_args)
#define ALL_PLANTED       \
  PLANTED(sound)          \
  PLANTED(no_barrier)     \
  PLANTED(shared_element) \
  PLANTED(half_barrier)   \
  PLANTED(diverged)       \
  PLANTED(past_the_end)
#include "kernels/cuda/bodies.def"
ALL_PLANTED
#undef WEIR_CUDA_BODY

#define WEIR_CUDA_BODY(file, name, args_type) \
  {"weir_body_" #name, sizeof(args_type), run_##name},
extern "C" const simt_body simt_bodies[] = {
#include "kernels/cuda/bodies.def"
    ALL_PLANTED{nullptr, 0, nullptr}};
