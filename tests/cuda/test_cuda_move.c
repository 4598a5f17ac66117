/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/gpu/move/move.h"

#include <stdlib.h>

#include "tests/cuda/cuda_bench.h"

/* Copies with strides, as they are planned, at sizes that need several tiles
 * and several elements a thread: against loops over the same strides. */

static const char *const kBodies[] = {
#define WEIR_CUDA_BODY(file, name, args) #name,
#include "kernels/cuda/bodies.def"
#undef WEIR_CUDA_BODY
};

static void divides_by_products(void **state) {
  static const int64_t kDivisors[] = {
      1,   2,   3,     5,     7,       255,           256,
      257, 641, 65535, 65537, 1 << 30, (1 << 30) + 1, INT32_MAX};
  (void)state;
  for (size_t k = 0; k < sizeof kDivisors / sizeof kDivisors[0]; k++) {
    int64_t d = kDivisors[k];
    weir_walk w;
    weir_gpu_walk(1, &d, &w);
    assert_int_equal(w.narrow, 1);
    for (int64_t i = 0; i < 4000; i++) {
      /* Around multiples of d, from 0 to the most. */
      int64_t u = INT32_MAX / d * (i / 4) / 999 * d + i % 4 - 2;
      if (u < 0 || u > INT32_MAX) continue;
      uint64_t high = (uint64_t)u * w.factors[0] >> 32;
      assert_int_equal((high + (uint64_t)u) >> w.shifts[0], u / d);
    }
  }
  weir_walk wide;
  weir_gpu_walk(2, (int64_t[]){1 << 16, 1 << 15}, &wide);
  assert_int_equal(wide.narrow, 0);
}

typedef struct span {
  int64_t least, most; /* elements that a view touches, from its address on */
} span;

static span span_of(const weir_gpu_view *v, const int64_t *strides,
                    int64_t at) {
  span s = {at, at};
  for (int32_t d = 0; d < v->rank; d++) {
    int64_t way = (v->dims[d] - 1) * strides[d];
    if (way < 0) s.least += way;
    if (way > 0) s.most += way;
  }
  return s;
}

static void copy_by_loops(const weir_gpu_view *v, char *dst, const char *src) {
  int64_t index[WEIR_WALK_RANK] = {0};
  for (;;) {
    int64_t from = v->src_at, to = v->dst_at;
    for (int32_t d = 0; d < v->rank; d++) {
      from += index[d] * v->src[d];
      to += index[d] * v->dst[d];
    }
    memcpy(dst + to * (int64_t)v->size, src + from * (int64_t)v->size, v->size);
    int32_t d = v->rank - 1;
    while (d >= 0 && ++index[d] == v->dims[d]) index[d--] = 0;
    if (d < 0) return;
  }
}

/* Runs the plan of |v| by |blocks| blocks at most; it is of |body|. */
static void check_move(cuda_bench *b, const weir_gpu_view *v, const char *body,
                       uint32_t blocks, bool narrow) {
  weir_gpu_move move;
  weir_gpu_move_plan(v, &move);
  span src = span_of(v, v->src, v->src_at), dst = span_of(v, v->dst, v->dst_at);
  assert_true(src.least >= 0 && dst.least >= 0);
  size_t src_bytes = (size_t)(src.most + 1) * v->size;
  size_t dst_bytes = (size_t)(dst.most + 1) * v->size;
  unsigned char *x = malloc(src_bytes), *got = malloc(dst_bytes);
  unsigned char *want = malloc(dst_bytes);
  for (size_t i = 0; i < src_bytes; i++)
    x[i] = (unsigned char)(i * 2654435761u >> 13);
  memset(want, 0x11, dst_bytes);
  weir_move_args args = move.args;
  assert_int_equal(move.kind, WEIR_MOVE_BODY);
  assert_string_equal(kBodies[move.body], body);
  args.x = (char *)cuda_bench_in(b, x, src_bytes) + move.src_at;
  args.y = (char *)cuda_bench_inout(b, want, dst_bytes) + move.dst_at;
  if (!narrow) args.walk.narrow = 0;
  cuda_bench_run(b, body, move.blocks < blocks ? move.blocks : blocks, &args,
                 sizeof args);
  cuda_bench_take(b, got, dst_bytes);
  copy_by_loops(v, (char *)want, (const char *)x);
  assert_memory_equal(got, want, dst_bytes);
  free(x);
  free(got);
  free(want);
}

/* [batch][rows][cols] to [batch][cols][rows]. */
static weir_gpu_view transposed(size_t size, int64_t batch, int64_t rows,
                                int64_t cols) {
  weir_gpu_view v = {.size = size};
  weir_gpu_view_add(&v, batch, rows * cols, rows * cols);
  weir_gpu_view_add(&v, cols, 1, rows);
  weir_gpu_view_add(&v, rows, cols, 1);
  return v;
}

static void transposes(void **state) {
  static const int64_t kSides[] = {8, 31, 32, 33, 64, 255, 257};
  static const char *const kNames[] = {"transpose_1", "transpose_4",
                                       "transpose_8"};
  static const size_t kSizes[] = {1, 4, 8};
  cuda_bench b;
  (void)state;
  cuda_bench_open(&b);
  for (int i = 0; i < 7; i++)
    for (int k = 0; k < 7; k += 2) {
      weir_gpu_view v =
          transposed(kSizes[i % 3], 1 + k % 3, kSides[i], kSides[k]);
      check_move(&b, &v, kNames[i % 3], 5, i % 2 == 0);
    }
  /* A permutation of four, whose tiles are two of its dimensions. */
  weir_gpu_view v = {.size = 4};
  weir_gpu_view_add(&v, 3, 40 * 9 * 5, 9);
  weir_gpu_view_add(&v, 40, 1, 3 * 5 * 9);
  weir_gpu_view_add(&v, 5, 9 * 40, 3 * 9 * 40 * 5);
  weir_gpu_view_add(&v, 9, 40, 1);
  check_move(&b, &v, "transpose_4", 7, true);
  cuda_bench_close(&b);
}

static void moves_elements(void **state) {
  cuda_bench b;
  (void)state;
  cuda_bench_open(&b);
  /* Rows with gaps: 16 bytes at a time, 4 where a place is odd. */
  weir_gpu_view v = {.size = 4};
  weir_gpu_view_add(&v, 300, 64, 40);
  weir_gpu_view_add(&v, 40, 1, 1);
  check_move(&b, &v, "move_16", 3, true);
  v.src_at = 8;
  check_move(&b, &v, "move_16", 3, false);
  v.src_at = 2;
  check_move(&b, &v, "move_8", 3, true);
  v.dst_at = 3;
  check_move(&b, &v, "move_4", 3, true);
  v.size = 1;
  v.dst_at = v.src_at = 8;
  check_move(&b, &v, "move_8", 3, true);
  /* Backwards, repeated, and by steps. */
  weir_gpu_view back = {.size = 1, .src_at = 1000 * 3};
  weir_gpu_view_add(&back, 1001, -3, 4);
  weir_gpu_view_add(&back, 3, 0, 1);
  check_move(&b, &back, "move_1", 2, true);
  /* Eight dimensions, of which none joins another; 16 as tile has them. */
  weir_gpu_view deep = {.size = 8};
  int64_t src = 1, dims[8] = {2, 3, 1, 2, 3, 2, 3, 5};
  for (int d = 0; d < 8; d++) src *= dims[d];
  int64_t dst = src * 256;
  for (int d = 0; d < 8; d++) {
    src /= dims[d];
    weir_gpu_view_add(&deep, 2, 0, dst /= 2);
    weir_gpu_view_add(&deep, dims[d], src, dst /= dims[d]);
  }
  check_move(&b, &deep, "move_8", 4, true);
  check_move(&b, &deep, "move_8", 4, false);
  cuda_bench_close(&b);
}

static void plans_copies(void **state) {
  weir_gpu_view v = {.size = 4};
  weir_gpu_move move;
  (void)state;
  weir_gpu_move_plan(&v, &move); /* a scalar */
  assert_int_equal(move.kind, WEIR_MOVE_COPY);
  assert_int_equal(move.bytes, 4);
  weir_gpu_view_add(&v, 3, 20, 20);
  weir_gpu_view_add(&v, 4, 5, 5);
  weir_gpu_view_add(&v, 5, 1, 1);
  v.src_at = 2;
  weir_gpu_move_plan(&v, &move);
  assert_int_equal(move.kind, WEIR_MOVE_COPY);
  assert_int_equal(move.bytes, 240);
  assert_int_equal(move.src_at, 8);
  weir_gpu_view_add(&v, 0, 1, 1);
  weir_gpu_move_plan(&v, &move);
  assert_int_equal(move.bytes, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(divides_by_products),
      cmocka_unit_test(transposes),
      cmocka_unit_test(moves_elements),
      cmocka_unit_test(plans_copies),
  };
  return cmocka_run_group_tests(tests, cuda_world_open, NULL);
}
