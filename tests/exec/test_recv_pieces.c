/* SPDX-License-Identifier: Apache-2.0
 * A sum whose second input comes in pieces, cut and aligned anywhere, has the
 * bits of the kernel on all of it. */
#include <stdlib.h>
#include <string.h>

#include "runtime/base/mix.h"
#include "runtime/exec/program/recv_pieces.h"
#include "tests/kernels/bed.h"

enum { MOST_BYTES = 20011 * 8 };

typedef struct sum {
  weir_call call;
  weir_operand in[2], out;
  weir_arena arena;
  weir_take take;
  char *a, *b, *want, *got;
  size_t bytes;
} sum;

static void open_sum(sum *s, weir_dtype dtype, int64_t count) {
  const weir_kernel_def *kernel = bed_kernel("cpu.add");
  weir_error err = WEIR_ERROR_INIT;
  *s = (sum){.bytes = (size_t)count * weir_dtype_size(dtype)};
  s->in[0] = s->in[1] = s->out = bed_operand(dtype, 1, &count);
  s->call = (weir_call){.op = bed_op("add"),
                        .in = s->in,
                        .out = &s->out,
                        .in_count = 2,
                        .out_count = 1};
  s->a = bed_memory(s->bytes);
  s->b = bed_memory(s->bytes);
  s->want = bed_memory(s->bytes);
  s->got = bed_memory(s->bytes);
  float *numbers = bed_numbers(2 * count, 7);
  for (int k = 0; k < 2; k++) {
    weir_tensor view = {.dtype = dtype, .data = k == 0 ? s->a : s->b};
    for (int64_t i = 0; i < count; i++)
      weir_tensor_set_f64(&view, i, (double)numbers[k * count + i] * 1000);
  }
  free(numbers);
  void *io[] = {s->a, s->b, s->want};
  bed_run_kernel(kernel, &s->call, io, BED_SERIAL);
  weir_arena_init(&s->arena, weir_allocator_system());
  weir_prepared made = {.arena = &s->arena, .alloc = weir_allocator_system()};
  assert_ok(kernel->prepare(&s->call, &made, &err), &err);
  weir_slice_fn fn = kernel->slices(made.state, 1);
  assert_non_null(fn);
  s->take = (weir_take){fn, made.state, 1, 2, weir_dtype_size(dtype)};
}

static void close_sum(sum *s) {
  weir_arena_release(&s->arena);
  free(s->a);
  free(s->b);
  free(s->want);
  free(s->got);
}

/* Pieces of at most |most| bytes, each in a memory of its own. */
static void take_all(sum *s, uint64_t seed, size_t most) {
  void *io[] = {s->a, NULL, s->got};
  for (size_t at = 0, k = 0; at < s->bytes; k++) {
    uint64_t random = weir_mix(seed + k);
    size_t size = 1 + (size_t)(random % most), shift = (random >> 40) % 9;
    if (size > s->bytes - at) size = s->bytes - at;
    char *piece = malloc(size + shift);
    assert_non_null(piece);
    memcpy(piece + shift, s->b + at, size);
    weir_take_piece(&s->take, io, at, piece + shift, size);
    free(piece);
    at += size;
  }
}

static void pieces_make_the_same_bits(void **state) {
  static const weir_dtype kTypes[] = {WEIR_F32, WEIR_F64, WEIR_I32, WEIR_I64};
  static const size_t kMost[] = {1, 3, 5, 64, 1000, 70000, MOST_BYTES};
  (void)state;
  for (size_t t = 0; t < sizeof kTypes / sizeof kTypes[0]; t++)
    for (size_t m = 0; m < sizeof kMost / sizeof kMost[0]; m++)
      for (int64_t count = 2; count <= 20011; count = count * 7 + 1) {
        sum s;
        open_sum(&s, kTypes[t], count);
        for (uint64_t seed = 1; seed <= 5; seed++) {
          memset(s.got, 0xC5, s.bytes);
          take_all(&s, seed * 1000003, kMost[m]);
          assert_memory_equal(s.got, s.want, s.bytes);
        }
        close_sum(&s);
      }
}

/* An input that is spread over the output cannot come in pieces. */
static void a_spread_input_comes_whole(void **state) {
  const weir_kernel_def *kernel = bed_kernel("cpu.add");
  int64_t row = 100, both[] = {50, 100};
  weir_operand in[] = {bed_operand(WEIR_F32, 2, both),
                       bed_operand(WEIR_F32, 1, &row)},
               out = in[0];
  weir_call call = {.op = bed_op("add"),
                    .in = in,
                    .out = &out,
                    .in_count = 2,
                    .out_count = 1};
  weir_error err = WEIR_ERROR_INIT;
  weir_arena arena;
  (void)state;
  weir_arena_init(&arena, weir_allocator_system());
  weir_prepared made = {.arena = &arena, .alloc = weir_allocator_system()};
  assert_ok(kernel->prepare(&call, &made, &err), &err);
  assert_null(kernel->slices(made.state, 1));
  weir_arena_release(&arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(pieces_make_the_same_bits),
      cmocka_unit_test(a_spread_input_comes_whole)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
