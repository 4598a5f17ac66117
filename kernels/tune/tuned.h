/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_TUNE_TUNED_H_
#define KERNELS_TUNE_TUNED_H_

#include "kernels/tune/calls.h"
#include "runtime/base/env.h"

/* The part `cpu` of a file of choices, in use by a process. Commands read it;
 * `weir tune` makes it: then each call that more than one kernel takes is timed
 * when it is compiled (trial.h), and the file is written.
 *
 * The file is read once, and looked at once more before it is written, so that
 * what another process added stays; of two that write at the same moment one
 * loses what it added, and times it again. It is replaced whole. */

typedef struct weir_tuned weir_tuned;

typedef struct weir_tuned_options {
  const char *path; /* copied */
  uint64_t profile; /* that kernels are chosen for */
  bool times;       /* time and add; else read only */
  /* A file that is broken or of another machine is an error; else it is a
   * warning, and it is not used. With |times| it is an error always. */
  bool strict;
  void (*warn)(void *self, const weir_error *warning);
  void *self;
} weir_tuned_options;

/* Reads the file, which need not be there. |env|'s members must outlive it.
 * Errors: W6006 and those of YAML (|strict|, |times|), W4001, W4002, W6001. */
weir_status weir_tuned_create(const weir_env *env,
                              const weir_tuned_options *options,
                              weir_tuned **out_tuned, weir_error *err);
void weir_tuned_release(weir_tuned *tuned); /* NULL-safe */

/* Any thread. Copies the kernel that is chosen for |text|; false: none is. */
bool weir_tuned_kernel(weir_tuned *tuned, const char *text,
                       char kernel[WEIR_TUNE_KERNEL_BYTES]);
bool weir_tuned_times(const weir_tuned *tuned);
/* Any thread. Adds a choice, unless there is one, and writes the file. Errors:
 * W5009, W6005, W6006, W6001. */
weir_status weir_tuned_add(weir_tuned *tuned, const weir_tune_call *call,
                           weir_error *err);
/* How many there are. */
size_t weir_tuned_count(weir_tuned *tuned);

/* The choices as a number, 0 without any; |tuned| may be NULL. Processes that
 * are to compute the same bits have the same one. */
uint64_t weir_tuned_hash(weir_tuned *tuned);

#endif
