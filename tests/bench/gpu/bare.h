/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_BENCH_GPU_BARE_H_
#define TESTS_BENCH_GPU_BARE_H_

#include "tests/bench/gpu/bench.h"

/* CUDA's libraries without weir: what a program would call itself. They are
 * those of the folder that weir's module opened, so work goes to the same GPU,
 * memory and stream. */

/* A square product of row-major matrices, n by n, that lie in |memory|. */
typedef struct bare_product bare_product;

/* Asks cuBLASLt for its first choice with 32 MiB of workspace. */
bare_product *bare_product_make(bench *b, weir_gemm_type type, int64_t n,
                                void *const memory[3]);
void bare_product_run(const bare_product *p);
void bare_product_release(bench *b, bare_product *p);

/* A copy between the device and the host, in the queue. */
void bare_copy_in(bench *b, void *device, const void *host, size_t bytes);
void bare_copy_out(bench *b, void *host, const void *device, size_t bytes);

#endif
