/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_CUDA_FED_H_
#define TESTS_CUDA_FED_H_

#include "tests/cuda/scene.h"

/* A graph that is fed a tensor on GPU 0, whose memory is somebody else's.
 *
 *   snprintf(text, sizeof text, "%s%s", fed_text, rules);
 *   scene_open(&s, text, "worker=1,gpu=1", 2);
 *   assert_ok(foreign_make(&x, &s, 0), &s.err);
 *   assert_ok(fed_run(&s, x.tensor, true, fetches), &s.err);
 *   scene_drop(&s, fetches);
 *   foreign_drop(&x); */

enum { FED_ROWS = 5, FED_COLS = 7, FED_COUNT = FED_ROWS * FED_COLS };

/* Outputs y = x + 1, z = x + 2, x, y; the rules of its placement come next. */
extern const char fed_text[];

/* Element |i| of what is fed in |round|: small integers. */
float fed_value(int round, int i);

typedef struct foreign {
  weir_exec_gpu *gpu;
  weir_device_buffer buffer;
  weir_tensor *tensor;
  int released;
} foreign;

/* A tensor |offset| bytes into new memory of GPU 0, with the values of round 0.
 * Drop it also after a failure. */
weir_status foreign_make(foreign *f, scene *s, size_t offset);
/* The values of |round|, for a tensor at |offset|. */
weir_status foreign_write(foreign *f, int round, size_t offset,
                          weir_error *err);
/* Fails the test unless the tensor was given back, once. */
void foreign_drop(foreign *f);

/* The graph's first input. */
weir_value_id fed_input(const scene *s);
/* All outputs, of |x|, which all stay or none does. */
weir_status fed_run(scene *s, weir_tensor *x, bool stays,
                    weir_exec_fetch *fetches);

#endif
