/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_BENCH_PACKED_MATMUL_H_
#define TESTS_BENCH_PACKED_MATMUL_H_

#include <stdint.h>

/* oneDNN's matmul with b in the layout that it likes best, as a peer of
 * products with a constant b: c[m][n] = a[m][k] b[k][n]. */
typedef struct packed_matmul packed_matmul;

/* Borrows a and c; copies b into oneDNN's layout. Ends the program on errors.
 */
packed_matmul *packed_matmul_create(int64_t m, int64_t n, int64_t k, float *a,
                                    float *b, float *c);
void packed_matmul_run(packed_matmul *p);
void packed_matmul_release(packed_matmul *p);

#endif
