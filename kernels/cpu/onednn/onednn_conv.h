/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_CPU_ONEDNN_CONV_H_
#define KERNELS_CPU_ONEDNN_CONV_H_

#include "runtime/base/alloc.h"
#include "runtime/base/status.h"

/* Convolutions of one image in f32 by oneDNN's primitives.
 *
 * y is [oc / lanes][oh][ow][lanes], and so is x, but for images of up to three
 * channels, which are [c][h][w]. Callers take a convolution apart themselves,
 * by images, groups and output channels, and use one primitive for all parts
 * of a shape.
 *
 *   weir_onednn_conv_create(&spec, alloc, &conv, err)    in prepare
 *   weir_onednn_conv_pack(conv, w, packed, scratch, err) once, or in each run
 *   weir_onednn_conv_run(conv, &io, err)                 any threads at once
 *   weir_onednn_conv_release(conv)
 *
 * oneDNN allocates for itself in each of them; without memory they fail with
 * W6001. */

typedef struct weir_onednn_conv_spec {
  bool depthwise; /* each output channel sees its own input channel, c == oc */
  bool plain_x;   /* x is [c][h][w] */
  bool bias;
  int lanes; /* 8 or 16 */
  int64_t c, oc, h, w, oh, ow;
  int64_t kernel[2], stride[2], dilation[2];
  int64_t pad[4]; /* top, left, bottom, right */
} weir_onednn_conv_spec;

typedef struct weir_onednn_conv weir_onednn_conv;

/* Whether oneDNN was built with convolutions; known when weir is built. */
bool weir_onednn_has_conv(void);

/* Makes the primitives. Errors: W6001, W5001. */
WEIR_MUST_USE weir_status weir_onednn_conv_create(
    const weir_onednn_conv_spec *spec, const weir_allocator *alloc,
    weir_onednn_conv **out_conv, weir_error *err);
/* NULL-safe. */
void weir_onednn_conv_release(weir_onednn_conv *conv);

/* Bytes of packed weights, and of the scratch memory of one call. */
size_t weir_onednn_conv_packed_bytes(const weir_onednn_conv *conv);
size_t weir_onednn_conv_scratch_bytes(const weir_onednn_conv *conv);

/* |w|: [oc][c][kh][kw], depthwise [c][kh][kw]. All pointers 64-byte aligned but
 * |w|. */
WEIR_MUST_USE weir_status weir_onednn_conv_pack(const weir_onednn_conv *conv,
                                                const float *w, void *packed,
                                                void *scratch, weir_error *err);

typedef struct weir_onednn_conv_io {
  const float *x;
  const void *packed;
  const float *bias; /* [oc]; NULL without one */
  float *y;
  void *scratch;
} weir_onednn_conv_io;

/* Convolves one image. Thread-safe. Errors: W6001, W5001. */
WEIR_MUST_USE weir_status weir_onednn_conv_run(const weir_onednn_conv *conv,
                                               const weir_onednn_conv_io *io,
                                               weir_error *err);

#endif
