/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_CUDA_CUDA_BENCH_H_
#define TESTS_CUDA_CUDA_BENCH_H_

#include "kernels/cpu/isa/choose.h"
#include "kernels/cuda/body.h"
#include "tests/cuda/cuda_world.h"

/* Runs of one body: operands in, launch, result out. All
 * functions fail the test. Around the result lie bytes that must stay.
 *
 *   cuda_bench_open(&b);
 *   args.x = cuda_bench_in(&b, x, sizeof x);
 *   args.y = cuda_bench_out(&b, sizeof y);
 *   cuda_bench_run(&b, "unary_f32", blocks, &args, sizeof args);
 *   cuda_bench_take(&b, y, sizeof y);     frees the operands too
 *   cuda_bench_close(&b); */

enum { CUDA_BENCH_BUFFERS = 8, CUDA_BENCH_GUARD = 64 };

typedef struct cuda_bench {
  weir_device *device;
  weir_queue *queue;
  weir_event *event;
  weir_device_buffer buffers[CUDA_BENCH_BUFFERS];
  unsigned char guards[2 * CUDA_BENCH_GUARD];
  int count, out[CUDA_BENCH_BUFFERS], out_count;
} cuda_bench;

void cuda_bench_open(cuda_bench *b);
void cuda_bench_close(cuda_bench *b);

/* The GPU's address of a copy of |data|; no bytes are an address too. */
void *cuda_bench_in(cuda_bench *b, const void *data, size_t bytes);

/* The same of an output, which begins with the bytes of |data|, or with any
 * when |data| is NULL. */
void *cuda_bench_inout(cuda_bench *b, const void *data, size_t bytes);
void *cuda_bench_out(cuda_bench *b, size_t bytes);

/* Launches |blocks| blocks of 256 threads, on the stand-in in both orders of
 * threads, and waits for them. */
void cuda_bench_run(cuda_bench *b, const char *body, uint32_t blocks,
                    const void *args, size_t bytes);

/* Copies the k-th output out; its surroundings are as they were. */
void cuda_bench_get(cuda_bench *b, int k, void *data, size_t bytes);

/* Lets all operands go. */
void cuda_bench_clear(cuda_bench *b);

/* The first output, and lets all go. */
void cuda_bench_take(cuda_bench *b, void *data, size_t bytes);

/* The CPU's AVX2 set, where it has the bits that bodies have; NULL: it is not
 * there, or was not built by GCC for release: which products are joined is that
 * compiler's choice. */
const weir_isa *cuda_bench_avx2(void);

#endif
