/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_TUNE_CALLS_H_
#define KERNELS_TUNE_CALLS_H_

#include "kernels/kernel.h"
#include "runtime/base/strbuf.h"
#include "runtime/base/vec.h"

/* The part `cpu` of a file of choices: for calls, and for groups of calls, the
 * kernel that was quickest.
 *
 *   cpu:
 *     machine: 'AMD EPYC, x86-64 avx2, caches 32K 512K, oneDNN 2.6.3 avx2'
 *     calls:
 *       - {call: 'conv2d relu f32[8, 3, 28, 28] ... #8f0c...', kernel: cpu....}
 *
 * A call's text ends with a hash of all that kernels see of it: operands,
 * layouts, attributes, which inputs are constants; what stands before it is for
 * people. */

enum {
  WEIR_TUNE_CALL_BYTES = 192,
  WEIR_TUNE_KERNEL_BYTES = 48,
  WEIR_TUNE_MACHINE_BYTES = 192,
  WEIR_TUNE_CALLS = 4096 /* of a file, at most */
};

typedef struct weir_tune_call {
  char text[WEIR_TUNE_CALL_BYTES];
  char kernel[WEIR_TUNE_KERNEL_BYTES];
  int64_t ns; /* of a run on one thread */
} weir_tune_call;

/* All zero: none. */
typedef struct weir_tune_calls {
  char machine[WEIR_TUNE_MACHINE_BYTES]; /* empty: of none yet */
  WEIR_VEC(weir_tune_call) list;
} weir_tune_calls;

/* A call's text: all that kernels see of it but the machine. */
void weir_tune_text_of_call(const weir_call *call,
                            char text[WEIR_TUNE_CALL_BYTES]);
/* A group's, which also says how its calls hang together. */
void weir_tune_text_of_group(const weir_group *group,
                             char text[WEIR_TUNE_CALL_BYTES]);

/* What choices for |profile| depend on. */
void weir_tune_machine(uint64_t profile, char text[WEIR_TUNE_MACHINE_BYTES]);

/* NULL: there is none of that text. */
const weir_tune_call *weir_tune_find_call(const weir_tune_calls *calls,
                                          const char *text);

/* Appends the part to |out|. */
void weir_tune_write_calls(const weir_tune_calls *calls, weir_strbuf *out);

#endif
