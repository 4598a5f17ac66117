/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_IO_PNG_H_
#define WEIR_IO_PNG_H_

#include "runtime/base/env.h"
#include "runtime/tensor/tensor.h"

/* .png: one picture, as u8[height, width, channels].
 *
 * Channels are 1 (gray), 2 (gray, alpha), 3 (red, green, blue) or 4 (and
 * alpha), row after row from the top. A palette becomes colours, fewer than 8
 * bits a sample are spread over 0 to 255, 16 bits are rounded to 8, a colour
 * that stands for "transparent" becomes alpha 0. Gamma, colour profiles and
 * texts are not read: the numbers are those of the file. Interlaced pictures
 * are read too. Scaling and normalising are the graph's business.
 * Source: PNG (Portable Network Graphics), W3C Recommendation, 2nd ed. */

enum { WEIR_PNG_SIDE = 65535 }; /* the highest and widest that is read */

/* The first bytes of the file are those of this format. */
bool weir_png_is(weir_bytes bytes);

/* Reads |bytes|, all of a file; |file| is its name in messages. Memory is
 * bounded by what so many bytes can stand for. Errors: W4017, W6001. */
weir_status weir_png_read(const weir_allocator *alloc, weir_bytes bytes,
                          const char *file, weir_tensor **out_tensor,
                          weir_error *err);

#endif
