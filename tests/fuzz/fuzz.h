/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_FUZZ_FUZZ_H_
#define TESTS_FUZZ_FUZZ_H_

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* A fuzz target is one file fuzz_NAME.c that defines this function, a folder
 * corpus/NAME with seeds, and its NAME in meson.build's list. It must return 0
 * for any bytes, without leaks, and FUZZ_CHECK all that holds for every input.
 * The ordinary tests replay the seeds under any compiler; -Dfuzz=true with
 * clang builds the fuzzers. Every input that once failed becomes a seed. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FUZZ_CHECK(condition)                                         \
  do {                                                                \
    if (!(condition)) {                                               \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
      abort();                                                        \
    }                                                                 \
  } while (0)

#endif
