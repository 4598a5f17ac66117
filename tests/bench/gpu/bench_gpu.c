/* SPDX-License-Identifier: Apache-2.0 */
/* A GPU's speed under weir beside what CUDA's libraries give:
 *
 *   bench_gpu [--small]
 *
 * WEIR_BUILD_ROOT is the folder of libweir_cuda.so, WEIR_CUDA_FOLDER that of
 * CUDA's libraries, where the loader does not find them. --small is for the
 * stand-in, whose figures say nothing. Prints a table, then the same as JSON.
 */
#include <stdio.h>
#include <string.h>

#include "tests/bench/gpu/bench.h"

int main(int argc, char **argv) {
  static bench b;
  bool small = argc == 2 && strcmp(argv[1], "--small") == 0;
  if (argc > 1 && !small) {
    fprintf(stderr, "usage: bench_gpu [--small]\n");
    return 2;
  }
  bench_open(&b, small);
  bench_memory(&b);
  bench_bodies(&b);
  bench_products(&b);
  bench_print_json(&b);
  bench_close(&b);
  return 0;
}
