/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_CUDA_STANDIN_LT_STANDIN_LT_H_
#define TESTS_CUDA_STANDIN_LT_STANDIN_LT_H_

#include <stddef.h>
#include <stdint.h>

/* A stand-in for cuBLASLt, on the stand-in for CUDA's runtime library.
 *
 * It has the name of the real one, libcublasLt.so.13, and the functions of
 * lt.def. Products are plain loops, done by the stream they were put into. It
 * refuses what cuBLASLt's documentation calls invalid, also where the real one
 * might get by, and knows no setting that the module does not use. Where
 * cuBLASLt may be inexact, it is: TF32 rounds factors, and a reduction in the
 * output's type, where it is allowed, rounds the halves of a sum. It has a few
 * algorithms, which differ in that and in the time they take by the clock of a
 * stream. Tests steer it through the one symbol `standin_lt_functions`; those
 * of commands by STANDIN_QUICKEST=id, which is set_quickest. */

typedef struct standin_lt_counts {
  uint64_t calls;    /* of all functions that can fail */
  uint64_t refused;  /* of these, for what they were given */
  uint64_t products; /* put into streams */
  uint64_t handles, ops, layouts, preferences; /* that live */
} standin_lt_counts;

typedef struct standin_lt_control {
  /* As at the start: version 13.1, nothing fails. What lives stays, and is
   * counted. */
  void (*reset)(void);
  /* The k-th call from now (from 1) fails with |status|, once; one that
   * destroys does so all the same. 0: none. */
  void (*fail_at)(uint64_t k, int status);
  void (*set_version)(size_t version); /* 130100: 13.1 */
  void (*set_algorithms)(int count);   /* 0: the heuristic finds none */
  void (*set_quickest)(int id); /* the algorithm that takes half the time of
                                   any other, by a stream's clock; -1: none */
  standin_lt_counts (*counts)(void);
} standin_lt_control;

#endif
