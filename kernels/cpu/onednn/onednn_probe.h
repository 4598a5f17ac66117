/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_KERNELS_CPU_ONEDNN_PROBE_H_
#define WEIR_KERNELS_CPU_ONEDNN_PROBE_H_

#include <stdbool.h>
#include <stddef.h>

/* What oneDNN has for this machine, for people: nothing is chosen by it. */

typedef struct weir_onednn_primitive {
  char name[32]; /* "convolution f32" */
  char impl[48]; /* oneDNN's name of what runs, "jit:avx2"; "": it has none */
} weir_onednn_primitive;

/* The |i|-th of the primitives that weir has a use for, with layouts that
 * oneDNN chooses; false past the last. Fixes oneDNN's instruction set
 * (weir_onednn_limit). */
bool weir_onednn_probe(size_t i, weir_onednn_primitive *out);

/* The instruction set of oneDNN from here on: "avx2". Fixes it likewise. */
const char *weir_onednn_set(void);

#endif
