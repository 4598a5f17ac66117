/* SPDX-License-Identifier: Apache-2.0 */
/* Plans of copies. What walks both operands without a gap is the device's own
 * copy. Where the dimension that lies together in x is not the one that does in
 * y, tiles are transposed; all else goes element by element in y's order, an
 * element being as wide as strides, places and lengths allow. */
#include "kernels/gpu/move/move.h"

#include <assert.h>
#include <string.h>

enum {
  WIDEST = 16,   /* bytes that a thread moves at once */
  LEAST_SIDE = 8 /* of a tile that is worth its two barriers */
};

void weir_gpu_view_add(weir_gpu_view *v, int64_t dim, int64_t src,
                       int64_t dst) {
  int32_t last = v->rank - 1;
  if (dim == 1) return;
  if (dim > 0 && last >= 0 && v->src[last] == dim * src &&
      v->dst[last] == dim * dst) {
    v->dims[last] *= dim;
    v->src[last] = src;
    v->dst[last] = dst;
    return;
  }
  assert(v->rank < WEIR_WALK_RANK);
  v->dims[v->rank] = dim;
  v->src[v->rank] = src;
  v->dst[v->rank++] = dst;
}

weir_gpu_body weir_gpu_sized(weir_gpu_body first, size_t size) {
  return (weir_gpu_body)(first + (size == 8 ? 2 : size == 4 ? 1 : 0));
}

/* Whether elements can be |times| times as wide. */
static bool can_widen(const weir_gpu_view *v, int64_t times) {
  int32_t last = v->rank - 1;
  if (last < 0 || v->src[last] != 1 || v->dst[last] != 1) return false;
  bool fits = v->dims[last] % times == 0 && v->src_at % times == 0 &&
              v->dst_at % times == 0;
  for (int32_t d = 0; d < last; d++)
    fits = fits && v->src[d] % times == 0 && v->dst[d] % times == 0;
  return fits;
}

static void widen(weir_gpu_view *v) {
  while (v->size < WIDEST) {
    int64_t times = v->size == 1 ? 4 : 2;
    if (!can_widen(v, times)) return;
    for (int32_t d = 0; d < v->rank - 1; d++) {
      v->src[d] /= times;
      v->dst[d] /= times;
    }
    v->dims[v->rank - 1] /= times;
    v->src_at /= times;
    v->dst_at /= times;
    v->size *= (size_t)times;
  }
}

/* The dimension that lies together in x and is not the last one, which lies
 * together in y; -1: there is none, or tiles are not worth it. */
static int32_t turned(const weir_gpu_view *v) {
  int32_t last = v->rank - 1;
  if (last < 1 || v->dst[last] != 1 || v->dims[last] < LEAST_SIDE) return -1;
  for (int32_t d = 0; d < last; d++)
    if (v->src[d] == 1 && v->dims[d] >= LEAST_SIDE) return d;
  return -1;
}

static int64_t tiles_of(int64_t n) {
  return n / WEIR_TILE + (n % WEIR_TILE != 0);
}

/* A walk over tiles: the other dimensions, then tiles along b and along a. */
static void plan_tiles(const weir_gpu_view *v, int32_t along,
                       weir_gpu_move *out) {
  weir_move_args *a = &out->args;
  int32_t last = v->rank - 1, n = 0;
  int64_t dims[WEIR_WALK_RANK];
  for (int32_t d = 0; d < last; d++) {
    if (d == along) continue;
    dims[n] = v->dims[d];
    a->strides[0][n] = v->src[d];
    a->strides[1][n++] = v->dst[d];
  }
  a->a = v->dims[along];
  a->b = v->dims[last];
  a->y_stride = v->dst[along];
  a->x_stride = v->src[last];
  dims[n] = tiles_of(a->b);
  a->strides[0][n] = WEIR_TILE * a->x_stride;
  a->strides[1][n] = a->strides[3][n] = WEIR_TILE;
  n++;
  dims[n] = tiles_of(a->a);
  a->strides[1][n] = WEIR_TILE * a->y_stride;
  a->strides[0][n] = a->strides[2][n] = WEIR_TILE;
  n++;
  a->n = 1;
  for (int32_t d = 0; d < n; d++) a->n *= dims[d];
  weir_gpu_walk(n, dims, &a->walk);
  out->body = weir_gpu_sized(WEIR_GPU_transpose_1, v->size);
  out->blocks = weir_gpu_blocks(a->n * WEIR_BODY_THREADS);
}

static void plan_elements(const weir_gpu_view *v, int64_t elements,
                          weir_gpu_move *out) {
  weir_move_args *a = &out->args;
  for (int32_t d = 0; d < v->rank; d++) {
    a->strides[0][d] = v->src[d];
    a->strides[1][d] = v->dst[d];
  }
  a->n = elements;
  weir_gpu_walk(v->rank, v->dims, &a->walk);
  out->body = v->size == WIDEST ? WEIR_GPU_move_16
                                : weir_gpu_sized(WEIR_GPU_move_1, v->size);
  out->blocks = weir_gpu_blocks(elements);
}

void weir_gpu_move_plan(const weir_gpu_view *v, weir_gpu_move *out) {
  int64_t elements = 1;
  weir_gpu_view wide = *v;
  for (int32_t d = 0; d < v->rank; d++) elements *= v->dims[d];
  *out = (weir_gpu_move){.kind = WEIR_MOVE_COPY};
  if (elements == 0) return;
  bool whole =
      v->rank == 0 || (v->rank == 1 && v->src[0] == 1 && v->dst[0] == 1);
  int32_t along = turned(v);
  out->src_at = v->src_at * (int64_t)v->size;
  out->dst_at = v->dst_at * (int64_t)v->size;
  if (whole) {
    out->bytes = (size_t)elements * v->size;
    return;
  }
  out->kind = WEIR_MOVE_BODY;
  if (along >= 0) {
    plan_tiles(v, along, out);
    return;
  }
  widen(&wide);
  plan_elements(&wide, elements * (int64_t)v->size / (int64_t)wide.size, out);
}

weir_status weir_gpu_move_run(const weir_args *args, const weir_gpu_move *move,
                              void *dst, const void *src) {
  char *y = (char *)dst + move->dst_at;
  const char *x = (const char *)src + move->src_at;
  if (move->kind == WEIR_MOVE_COPY)
    return weir_gpu_copy(args, y, x, move->bytes);
  weir_move_args a = move->args;
  a.y = y;
  a.x = x;
  return weir_gpu_launch(args, move->body, move->blocks, &a, sizeof a);
}
