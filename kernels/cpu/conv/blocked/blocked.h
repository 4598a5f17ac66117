/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_KERNELS_CPU_CONV_BLOCKED_BLOCKED_H_
#define WEIR_KERNELS_CPU_CONV_BLOCKED_BLOCKED_H_

#include "kernels/cpu/conv/conv_dims.h"
#include "kernels/cpu/ew/ew.h"
#include "kernels/cpu/onednn/onednn_conv.h"

enum { WEIR_CONV_TAPS = 49 }; /* of a window for own tiles, at most */

/* Convolution in layouts of 8 or 16 channels side by side (C8, C16).
 *
 * One primitive of oneDNN computes some output channels of one image, a piece.
 * Pieces are even, so that one primitive serves all; a piece of one image is a
 * block of work. Own tiles take strips of pixels of a piece too. x and y are
 * blocked or plain each: a plain x is turned into scratch for some images at a
 * time, a plain y piece by piece. A piece's followers run while it is in the
 * second cache: its elements lie together in either layout, at the same place.
 * The last block of channels may have empty lanes. Here they are channels whose
 * filters and bias are 0, so oneDNN sees whole blocks. They hold 0 in x, since
 * an infinity there times 0 would reach every sum, and in y: a piece clears
 * them, as its x may hold an infinity elsewhere.
 * Depthwise pieces read their own input channels alone. Windows of one pixel
 * with a stride above 1 are turned into such without by leaving out pixels of
 * x, as tiles.h lays it out. */
typedef struct weir_conv_blocked {
  const weir_isa *isa;
  const weir_allocator *alloc;
  weir_conv_dims dims;
  bool depthwise;
  bool flat; /* x has 1 to 3 channels and is read as it lies */
  bool thin; /* 1 x 1 windows with a stride: pixels are left out */
  bool x_plain, y_plain;
  bool tiles;    /* by own tiles, not by oneDNN (tiles.h) */
  bool turns_x;  /* into scratch, for all pieces of an image */
  bool by_strip; /* a strip's x gets its border in the worker's scratch */
  bool fetches;  /* tiles fetch the next panel's weights */
  int lanes;
  int32_t x_io, w_io, bias_io, y_io; /* operands of the run; bias -1: none */
  int64_t channels, out_channels;    /* of all groups */
  int64_t padded, out_padded; /* the same with the empty lanes in blocks */
  int64_t pixels, out_pixels; /* as the primitive sees them */
  int64_t piece, pieces; /* output channels of a piece; pieces of an image */
  int64_t strip, strips; /* pixels of a strip, strips of an image: each piece
                            of each strip is a block of work */
  /* For own tiles: what a pixel reads of x, elements from its own place on; how
   * far apart rows lie in x; pixels of a row of y. Where x is laid out
   * anew (tiles.h): its rows, and the pixels of each. */
  int64_t taps[WEIR_CONV_TAPS], tap_count, x_row, row;
  int64_t border_rows, border_row;
  /* Of x it keeps the rows that windows read, and of a row every |stride|-th
   * pixel: rows from a window to the next below, parts of a row. */
  int64_t row_step, row_parts;
  int64_t part;   /* blocks of lanes of x that are turned as one job */
  int64_t images; /* turned at a time */
  bool small;     /* not worth a second thread */
  size_t packed_bytes, x_bytes;    /* of a piece; of |images| turned images */
  size_t own_x_bytes, own_y_bytes; /* of a worker's scratch, */
  size_t own_w_bytes; /* for a piece's filters or bias with the empty lanes, */
  size_t own_bytes;   /* with oneDNN's, then |epilogue|'s */
  weir_onednn_conv *conv;
  void *packed;            /* of constant weights, else NULL */
  const weir_ew *epilogue; /* or NULL */
} weir_conv_blocked;

/* Both kernels, alone and with followers, call these. |p| is planned and has
 * its epilogue. |w|: the weights if they are constant, else NULL. Errors:
 * W6001, W5001.
 */
WEIR_MUST_USE weir_status weir_conv_blocked_prepare(weir_conv_blocked *p,
                                                    const float *w,
                                                    weir_prepared *out,
                                                    weir_error *err);
/* |state|: the plan. NULL-safe. */
void weir_conv_blocked_release(void *state);
weir_status weir_conv_blocked_run(const weir_args *args);

#endif
