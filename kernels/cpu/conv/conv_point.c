/* SPDX-License-Identifier: Apache-2.0 */
/* Windows of one pixel in blocks of channels (kernels/cpu/conv/conv_point.h).
 *
 * Packed weights of a piece: panels of two vectors of output channels, the last
 * perhaps of one; in a panel, for each channel of x, the panel's channels side
 * by side. */
#include "kernels/cpu/conv/conv_point.h"

#include <assert.h>
#include <string.h>

#include "kernels/cpu/isa/point.h"

void weir_conv_point_pack(const weir_conv_blocked *p, const float *w, int64_t k,
                          float *packed) {
  int64_t lanes = p->lanes, c = p->channels, from = k * p->piece;
  int64_t end =
      from + p->piece < p->out_padded ? from + p->piece : p->out_padded;
  for (int64_t o = from; o < end; o += lanes) {
    int64_t v = (o - from) / lanes, first = v - v % WEIR_POINT_VECTORS;
    int64_t left = (end - from) / lanes - first;
    int64_t row =
        lanes * (left < WEIR_POINT_VECTORS ? left : WEIR_POINT_VECTORS);
    int64_t there = p->out_channels - o < lanes ? p->out_channels - o : lanes;
    float *to = packed + first * lanes * c + (v - first) * lanes;
    p->isa->rows->transpose(to, row, w + o * c, c, there, c);
    for (int64_t i = 0; i < c && there < lanes; i++)
      memset(to + i * row + there, 0, (size_t)(lanes - there) * sizeof *to);
  }
}

void weir_conv_point_run(const weir_conv_blocked *p,
                         const weir_conv_point_io *io) {
  int64_t lanes = p->lanes;
  assert(p->isa->lanes == p->lanes);
  for (int64_t v = 0; v < io->vectors; v += WEIR_POINT_VECTORS) {
    int64_t left = io->vectors - v;
    weir_point t = {
        .x = io->x + io->at * lanes,
        .x_block = p->pixels * lanes,
        .w = io->packed + v * lanes * p->channels,
        .bias = io->bias ? io->bias + v * lanes : NULL,
        .y = io->y + (v * p->out_pixels + io->at) * lanes,
        .y_block = p->out_pixels * lanes,
        .channels = p->channels,
        .pixels = io->pixels,
        .vectors = left < WEIR_POINT_VECTORS ? (int)left : WEIR_POINT_VECTORS};
    p->isa->point->run(&t);
  }
}
