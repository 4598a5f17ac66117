/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_CPU_ONEDNN_H_
#define KERNELS_CPU_ONEDNN_H_

#include "runtime/base/alloc.h"
#include "runtime/base/status.h"

/* The door to oneDNN: no file outside this folder knows its headers. Builds
 * against 2.x and 3.x. Every call runs on the calling thread alone and leaves
 * the thread's OpenMP setting as it was, so results depend on the arguments
 * only. oneDNN allocates for itself; when it cannot, the call fails with W6001.
 */

/* "2.6.3": the version that runs. */
void weir_onednn_version(char *text, size_t capacity);
/* The same in bits: major in 0-7, minor in 8-15, patch in 16-23. */
uint32_t weir_onednn_number(void);

/* Limits oneDNN to the instruction set |level| of kernels/profile.h, for good
 * and for the whole process. false: it uses another one, since a call came
 * before, or the machine, the environment or an earlier limit says so. */
bool weir_onednn_limit(int level);

/* A matrix product c = a b, all row-major with leading dimensions in elements;
 * |a_t|: a is stored k x m, |b_t|: b is stored n x k. */
typedef struct weir_sgemm {
  bool a_t, b_t;
  int64_t m, n, k;
  int64_t lda, ldb, ldc;
} weir_sgemm;

/* Thread-safe. Errors: W6001, W5001. */
WEIR_MUST_USE weir_status weir_onednn_sgemm(const weir_sgemm *g, const float *a,
                                            const float *b, float *c,
                                            weir_error *err);

#endif
