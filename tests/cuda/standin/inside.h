/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_CUDA_STANDIN_INSIDE_H_
#define TESTS_CUDA_STANDIN_INSIDE_H_

/* Whether processes have work on the GPUs at the same time: each that has
 * launches or products in its streams, from their call until they are done, is
 * inside. The file STANDIN_INSIDE, of 12 bytes that are zero at first, counts
 * how often one came in, and how often another was there. */

void standin_inside_open(void);
void standin_inside_look(void); /* after each call; the lock is held */

#endif
