/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_TUNE_TUNING_H_
#define KERNELS_TUNE_TUNING_H_

#include "runtime/base/env.h"
#include "runtime/device/gemm.h"

/* A file of choices in use by a process.
 *
 *   weir_tuning_create(env, &options, &tuning, err);     reads nothing yet
 *   s = gemm->plan(d, &desc, &plan, &bytes, err);
 *   s = weir_tuning_apply(tuning, d, &desc, plan, &bytes, err);
 *   weir_tuning_release(tuning);
 *
 * The file is read before the first product, looked at once more before a
 * product is timed, and written after. Processes that share one may each time a
 * product; what is in the file first counts for those that look later. */

typedef struct weir_tuning weir_tuning;

typedef struct weir_tuning_options {
  const char *path; /* copied */
  /* Gets what is no reason to fail, once for each cause; on any thread. */
  void (*warn)(void *self, const weir_error *warning);
  void *self;
} weir_tuning_options;

/* Errors: W6001. */
weir_status weir_tuning_create(const weir_env *env,
                               const weir_tuning_options *options,
                               weir_tuning **out_tuning, weir_error *err);
void weir_tuning_release(weir_tuning *tuning); /* NULL-safe */

/* Gives |plan|, which |device| has made of |desc| just now, the algorithm of
 * the file, or finds one by timing and adds it. The heuristic's stays where the
 * file is broken, of another GPU or of another library, or the choice is
 * refused: W6006, as a warning. Blocks while other threads time.
 * Errors: the file cannot be read or written (W4001, W4002, W4015, W5009,
 * W6005), the device is lost (W6004), W6001. */
weir_status weir_tuning_apply(weir_tuning *tuning, weir_device *device,
                              const weir_gemm_desc *desc, weir_gemm_plan *plan,
                              size_t *workspace_bytes, weir_error *err);

#endif
