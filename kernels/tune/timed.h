/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_TUNE_TIMED_H_
#define KERNELS_TUNE_TIMED_H_

#include "kernels/registry.h"
#include "kernels/tune/tuned.h"

/* The kernel that env->tuned, which is not NULL, has for a call or a group.
 *
 * |*kernel| is the one that is chosen without it, and stays unless the file has
 * another that accepts. Where the file is made (weir_tuned_times) and |may_run|
 * holds, a call that it lacks, and that several kernels take, is timed now.
 * |*out_word| says that the choice was timed; else NULL. Errors: W6001, those
 * of weir_tuned_add. */
weir_status weir_timed_kernel(const weir_env *env,
                              const weir_registry *registry, bool may_run,
                              const weir_call *call,
                              const weir_kernel_def **kernel,
                              const char **out_word, weir_error *err);
weir_status weir_timed_group(const weir_env *env, const weir_registry *registry,
                             bool may_run, const weir_group *group,
                             const weir_group_kernel_def **kernel,
                             const char **out_word, weir_error *err);

#endif
