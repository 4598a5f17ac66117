/* SPDX-License-Identifier: Apache-2.0 */
/* Products of matrices against plain loops in double: the tables of every
 * instruction set this processor has, then cpu.matmul and cpu.einsum over many
 * shapes. Numbers are multiples of 1/64, so that sums of f32 are exact and
 * every order of summation must give the same. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cpu/isa/choose.h"
#include "kernels/cpu/isa/gemm.h"
#include "kernels/profile.h"
#include "tests/kernels/bed.h"

static double get(const void *x, weir_dtype dtype, int64_t i) {
  return dtype == WEIR_F64 ? ((const double *)x)[i] : ((const float *)x)[i];
}

/* n numbers of |dtype|. Free them. */
static void *numbers(weir_dtype dtype, int64_t n, uint64_t seed) {
  float *x = bed_numbers(n, seed);
  if (dtype == WEIR_F32) return x;
  double *y = bed_memory((size_t)n * sizeof *y);
  for (int64_t i = 0; i < n; i++) y[i] = x[i];
  free(x);
  return y;
}

/* ---- Tables */

typedef struct table_case {
  const weir_gemm_table *table;
  weir_dtype dtype;
  void *a, *b, *c;
} table_case;

enum { DEEP = 37, WIDE = 80, TALL = 12 };

static double product(const table_case *t, int64_t i, int64_t j, int64_t k) {
  double sum = 0;
  for (int64_t p = 0; p < k; p++)
    sum +=
        get(t->a, t->dtype, i * DEEP + p) * get(t->b, t->dtype, p * WIDE + j);
  return sum;
}

static void check_tile(const table_case *t, int64_t m, int64_t n, bool add) {
  int64_t size = t->dtype == WEIR_F64 ? 8 : 4, c_row = t->table->columns + 3;
  memset(t->c, 0, (size_t)(TALL * c_row * size));
  weir_gemm_tile tile = {.a = t->a,
                         .b = t->b,
                         .c = t->c,
                         .a_row = DEEP,
                         .a_k = 1,
                         .b_k = WIDE,
                         .c_row = c_row,
                         .m = m,
                         .n = n,
                         .k = DEEP};
  t->table->tile(&tile);
  tile.add = add;
  if (add) t->table->tile(&tile);
  for (int64_t i = 0; i < m; i++)
    for (int64_t j = 0; j < c_row; j++) {
      double want = j < n ? (add ? 2 : 1) * product(t, i, j, DEEP) : 0;
      assert_true(get(t->c, t->dtype, i * c_row + j) == want);
    }
}

static void check_pack(const table_case *t, int64_t k, int64_t n, bool turned) {
  int64_t columns = t->table->columns, k_step = turned ? 1 : WIDE;
  int64_t column_step = turned ? DEEP : 1;
  const void *from = turned ? t->a : t->b;
  t->table->pack(t->c, from, k_step, column_step, k, n);
  for (int64_t p = 0; p < k; p++)
    for (int64_t j = 0; j < columns; j++) {
      double want =
          j < n ? get(from, t->dtype, p * k_step + j * column_step) : 0;
      assert_true(get(t->c, t->dtype, p * columns + j) == want);
    }
}

/* a's panel has the rows of a tile side by side; those past |m| hold anything.
 */
static void check_pack_a(const table_case *t, int64_t k, int64_t m,
                         bool turned) {
  int64_t rows = t->table->rows;
  int64_t row = turned ? 1 : DEEP, step = turned ? WIDE : 1;
  const void *from = turned ? t->b : t->a;
  t->table->pack_a(t->c, from, row, step, k, m);
  for (int64_t p = 0; p < k; p++)
    for (int64_t i = 0; i < m; i++)
      assert_true(get(t->c, t->dtype, p * rows + i) ==
                  get(from, t->dtype, i * row + p * step));
}

/* A tile that makes b's panel gives the bits of one that reads panels. */
static void check_copy(const table_case *t, int64_t m, int64_t n) {
  int64_t size = t->dtype == WEIR_F64 ? 8 : 4, columns = t->table->columns;
  int64_t rows = t->table->rows;
  char *panel = bed_memory((size_t)(DEEP * columns * size));
  char *packed_a = bed_memory((size_t)(DEEP * rows * size));
  char *first = bed_memory((size_t)(rows * columns * size));
  memset(t->c, 0, (size_t)(rows * columns * size));
  memset(first, 0, (size_t)(rows * columns * size));
  weir_gemm_tile tile = {.a = t->a,
                         .b = t->b,
                         .c = first,
                         .a_row = DEEP,
                         .a_k = 1,
                         .b_k = WIDE,
                         .c_row = columns,
                         .m = m,
                         .n = n,
                         .k = DEEP,
                         .copy = panel};
  t->table->tile(&tile);
  t->table->pack_a(packed_a, t->a, DEEP, 1, DEEP, m);
  tile.copy = NULL;
  tile.a = packed_a;
  tile.b = tile.ahead = panel;
  tile.c = t->c;
  tile.a_row = 1;
  tile.a_k = rows;
  tile.b_k = columns;
  t->table->tile(&tile);
  assert_memory_equal(first, t->c, (size_t)(rows * columns * size));
  free(panel);
  free(packed_a);
  free(first);
}

static void check_vectors(const table_case *t, int64_t k, int64_t n) {
  int64_t size = t->dtype == WEIR_F64 ? 8 : 4;
  for (int by_rows = 0; by_rows < 2; by_rows++) {
    memset(t->c, 0, (size_t)((WIDE + 1) * size));
    (by_rows ? t->table->sweep_rows : t->table->sweep)(t->c, t->a, t->b, WIDE,
                                                       k, n);
    for (int64_t j = 0; j <= n; j++)
      assert_true(get(t->c, t->dtype, j) == (j < n ? product(t, 0, j, k) : 0));
  }
  if (n > TALL) return;
  t->table->dots(t->c, t->b, t->a, DEEP, k, n);
  for (int64_t i = 0; i < n; i++) {
    double want = 0;
    for (int64_t p = 0; p < k; p++)
      want += get(t->b, t->dtype, p) * get(t->a, t->dtype, i * DEEP + p);
    assert_true(get(t->c, t->dtype, i) == want);
  }
}

static void check_table(const weir_gemm_table *table, weir_dtype dtype) {
  table_case t = {.table = table, .dtype = dtype};
  t.a = numbers(dtype, 32 * DEEP, 1);
  t.b = numbers(dtype, DEEP * WIDE, 2);
  t.c = bed_memory((size_t)(DEEP * WIDE) * 8);
  assert_true(table->rows <= TALL && table->columns <= 32);
  for (int64_t m = 1; m <= table->rows; m++)
    for (int64_t n = 1; n <= table->columns; n++)
      check_tile(&t, m, n, (m + n) % 2 == 0);
  for (int64_t m = 1; m <= table->rows; m++) {
    for (int64_t n = 1; n <= table->columns; n++) check_copy(&t, m, n);
    for (int64_t k = DEEP - 5; k <= DEEP; k++) {
      check_pack_a(&t, k, m, false);
      check_pack_a(&t, k, m, true);
    }
  }
  for (int64_t n = 1; n <= table->columns; n++) {
    check_pack(&t, DEEP - n % 18, n, false);
    check_pack(&t, DEEP - n % 18, n, true);
  }
  for (int64_t n = 1; n <= WIDE; n++) check_vectors(&t, DEEP - n % 5, n);
  free(t.a);
  free(t.b);
  free(t.c);
}

static void test_tables(void **state) {
  (void)state;
  const weir_isa *isa;
  for (int i = 0; (isa = weir_isa_at(i)) != NULL; i++) {
    check_table(isa->gemm_f32, WEIR_F32);
    check_table(isa->gemm_f64, WEIR_F64);
  }
}

/* ---- Kernels */

typedef struct shape {
  int64_t m, n, k;
  bool a_t, b_t;
} shape;

/* |x| by rows in double; |turned|: it lies by columns. Free it. */
static double *by_rows(weir_dtype dtype, const void *x, int64_t rows,
                       int64_t columns, bool turned) {
  double *out = bed_memory((size_t)(rows * columns) * sizeof *out);
  for (int64_t i = 0; i < rows; i++)
    for (int64_t j = 0; j < columns; j++)
      out[i * columns + j] =
          get(x, dtype, turned ? j * rows + i : i * columns + j);
  return out;
}

/* Row by row of b, as that is what the test spends its time on. */
static void want_product(const shape *s, weir_dtype dtype, const void *a,
                         const void *b, double *y) {
  double *x = by_rows(dtype, a, s->m, s->k, s->a_t);
  double *z = by_rows(dtype, b, s->k, s->n, s->b_t);
  for (int64_t i = 0; i < s->m; i++) {
    double *to = y + i * s->n;
    for (int64_t j = 0; j < s->n; j++) to[j] = 0;
    for (int64_t p = 0; p < s->k; p++) {
      double factor = x[i * s->k + p];
      const double *from = z + p * s->n;
      for (int64_t j = 0; j < s->n; j++) to[j] += factor * from[j];
    }
  }
  free(x);
  free(z);
}

static void check_matmul(const shape *s, weir_dtype dtype, bool constant) {
  int64_t ad[2] = {s->a_t ? s->k : s->m, s->a_t ? s->m : s->k};
  int64_t bd[2] = {s->b_t ? s->n : s->k, s->b_t ? s->k : s->n};
  int64_t yd[2] = {s->m, s->n}, n = s->m * s->n;
  weir_operand in[2] = {bed_operand(dtype, 2, ad), bed_operand(dtype, 2, bd)};
  weir_operand out = bed_operand(dtype, 2, yd);
  weir_attr attrs[2] = {{.kind = WEIR_ATTR_BOOL, .b = s->a_t},
                        {.kind = WEIR_ATTR_BOOL, .b = s->b_t}};
  weir_call call = {.op = bed_op("matmul"),
                    .attrs = attrs,
                    .in = in,
                    .out = &out,
                    .in_count = 2,
                    .out_count = 1};
  void *a = numbers(dtype, in[0].elements, 1);
  void *b = numbers(dtype, in[1].elements, 2);
  double *want = bed_memory((size_t)n * sizeof *want);
  void *y = bed_memory((size_t)n * 8), *io[3] = {a, b, y};
  if (constant) in[1].value = b;
  want_product(s, dtype, a, b, want);
  for (bed_order order = BED_SERIAL; order <= BED_SCRAMBLED; order++) {
    memset(y, 0xC5, (size_t)n * 8);
    bed_run_kernel(bed_kernel("cpu.matmul"), &call, io, order);
    for (int64_t i = 0; i < n; i++)
      if (get(y, dtype, i) != want[i])
        fail_msg("%ldx%ldx%ld %d%d: element %ld is %g, want %g", (long)s->m,
                 (long)s->n, (long)s->k, s->a_t, s->b_t, (long)i,
                 get(y, dtype, i), want[i]);
  }
  free(a);
  free(b);
  free(y);
  free(want);
}

/* With the address sanitizer the sets below the best are built without
 * optimisation, and take minutes for what the best one takes seconds. */
static bool is_slow(void) {
#if defined(__SANITIZE_ADDRESS__)
  return bed_profile() != weir_profile_best();
#elif defined(BED_SLOW) /* QEMU */
  return true;
#else
  return false;
#endif
}

static void check_all_ways(int64_t m, int64_t n, int64_t k) {
  for (int way = 0; way < 4; way++) {
    shape s = {m, n, k, way & 1, way >> 1};
    check_matmul(&s, WEIR_F32, false);
    check_matmul(&s, WEIR_F32, true);
    check_matmul(&s, WEIR_F64, way & 1);
  }
}

static void test_small(void **state) {
  static const int64_t sizes[] = {0, 1, 2, 5, 12, 13, 33}, deep[] = {0, 1, 19};
  (void)state;
  for (int m = 0; m < 7; m++)
    for (int n = 0; n < 7; n++)
      for (int k = 0; k < 3; k++) check_all_ways(sizes[m], sizes[n], deep[k]);
}

/* Several blocks, several slices, parts of a sum, vectors, oneDNN. */
static void test_larger(void **state) {
  (void)state;
  if (is_slow()) return;
  check_all_ways(130, 150, 600);
  check_all_ways(7, 9, 5000);
  check_all_ways(1, 700, 900);
  check_all_ways(700, 1, 900);
  check_all_ways(3, 300, 520);
  check_all_ways(250, 70, 1030);
}

/* Few rows of a on a b from afar, by whole rows of b. */
static void test_few_rows(void **state) {
  (void)state;
  if (is_slow()) return;
  check_all_ways(7, 801, 1030);
  check_all_ways(16, 1030, 801);
}

static void test_library(void **state) {
  (void)state;
  if (is_slow()) return;
  shape s = {.m = 400, .n = 640, .k = 520};
  shape turned = {.m = 256, .n = 1030, .k = 1024, .a_t = true};
  check_matmul(&turned, WEIR_F32, false);
  check_matmul(&s, WEIR_F32, false);
}

/* Panels that all blocks share: made by the first tile of each or before, rows
 * of a that share cache sets, edges on every side, several parts. */
static void test_shared(void **state) {
  (void)state;
  if (is_slow()) return;
  check_all_ways(7, 261, 4096);
  check_all_ways(49, 256, 769);
  check_all_ways(601, 260, 65);
  check_all_ways(2050, 257, 33);
  check_all_ways(50, 2065, 90);
}

/* Rows times numbers by strips: more of b than they are for, and ends; sums in
 * parts of whole rows, and of rows in pieces. */
static void test_strips(void **state) {
  (void)state;
  check_all_ways(1, 1030, 131);
  check_all_ways(1, 61, 2050);
  if (is_slow()) return;
  check_all_ways(1, 1030, 803);
  check_all_ways(1031, 1, 801);
  check_all_ways(1, 9001, 97);
}

/* A NaN or an infinity reaches its row or column, and only that. */
static void test_not_a_number(void **state) {
  (void)state;
  enum { N = 40, K = 30 };
  int64_t ad[2] = {N, K}, bd[2] = {K, N}, yd[2] = {N, N};
  weir_operand in[2] = {bed_operand(WEIR_F32, 2, ad),
                        bed_operand(WEIR_F32, 2, bd)};
  weir_operand out = bed_operand(WEIR_F32, 2, yd);
  weir_attr attrs[2] = {{.kind = WEIR_ATTR_BOOL}, {.kind = WEIR_ATTR_BOOL}};
  weir_call call = {.op = bed_op("matmul"),
                    .attrs = attrs,
                    .in = in,
                    .out = &out,
                    .in_count = 2,
                    .out_count = 1};
  float *a = bed_numbers(N * K, 1), *b = bed_numbers(K * N, 2);
  float *y = bed_memory(N * N * sizeof *y);
  void *io[3] = {a, b, y};
  a[5 * K + 29] = NAN;
  for (int i = 0; i < N; i++) b[29 * N + i] = 0; /* 0 times NaN is NaN */
  for (int i = 0; i < N; i++) a[i * K + 3] = 1;
  b[3 * N + 38] = INFINITY;
  bed_run_kernel(bed_kernel("cpu.matmul"), &call, io, BED_SERIAL);
  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++) {
      float v = y[i * N + j];
      assert_true(i == 5 ? isnan(v) : j == 38 ? isinf(v) : isfinite(v));
    }
  free(a);
  free(b);
  free(y);
}

/* Integers wrap around; beside the reference kernel. */
static void check_integers(weir_dtype dtype, int64_t size, bool a_t, bool b_t) {
  int64_t ad[3] = {2, a_t ? 20 : 35, a_t ? 35 : 20};
  int64_t bd[2] = {b_t ? 50 : 20, b_t ? 20 : 50}, yd[3] = {2, 35, 50};
  weir_operand in[2] = {bed_operand(dtype, 3, ad), bed_operand(dtype, 2, bd)};
  weir_operand out = bed_operand(dtype, 3, yd);
  weir_attr attrs[2] = {{.kind = WEIR_ATTR_BOOL, .b = a_t},
                        {.kind = WEIR_ATTR_BOOL, .b = b_t}};
  weir_call call = {.op = bed_op("matmul"),
                    .attrs = attrs,
                    .in = in,
                    .out = &out,
                    .in_count = 2,
                    .out_count = 1};
  /* The bits of floats make large numbers. */
  void *a = bed_numbers(2 * in[0].elements, 1);
  void *b = bed_numbers(2 * in[1].elements, 2);
  size_t bytes = (size_t)(out.elements * size);
  void *y = bed_memory(bytes), *want = bed_memory(bytes);
  void *io[3] = {a, b, want};
  bed_run_ref(&call, io);
  io[2] = y;
  bed_run_kernel(bed_kernel("cpu.matmul_int"), &call, io, BED_SCRAMBLED);
  assert_memory_equal(y, want, bytes);
  free(a);
  free(b);
  free(y);
  free(want);
}

static void test_integers(void **state) {
  (void)state;
  for (int way = 0; way < 4; way++) {
    check_integers(WEIR_I32, 4, way & 1, way >> 1);
    check_integers(WEIR_I64, 8, way & 1, way >> 1);
  }
}

/* ---- einsum */

static void check_einsum(const char *equation, int a_rank, const int64_t *ad,
                         int b_rank, const int64_t *bd, int y_rank,
                         const int64_t *yd, bool accepted) {
  weir_operand in[2] = {bed_operand(WEIR_F32, a_rank, ad),
                        bed_operand(WEIR_F32, b_rank, bd)};
  weir_operand out = bed_operand(WEIR_F32, y_rank, yd);
  weir_attr attr = {.kind = WEIR_ATTR_STRING,
                    .s = {equation, strlen(equation)}};
  weir_call call = {.op = bed_op("einsum"),
                    .attrs = &attr,
                    .in = in,
                    .out = &out,
                    .in_count = 2,
                    .out_count = 1};
  const weir_kernel_def *kernel = bed_kernel("cpu.einsum");
  weir_why why = {{0}};
  if (kernel->accepts(&call, &why) != accepted)
    fail_msg("%s: %s", equation, why.text);
  if (!accepted) return;
  float *a = bed_numbers(in[0].elements, 1),
        *b = bed_numbers(in[1].elements, 2);
  size_t bytes = (size_t)out.elements * sizeof(float);
  float *y = bed_memory(bytes), *want = bed_memory(bytes);
  void *io[3] = {a, b, want};
  bed_run_ref(&call, io);
  io[2] = y;
  bed_run_kernel(kernel, &call, io, BED_SCRAMBLED);
  assert_memory_equal(y, want, bytes);
  free(a);
  free(b);
  free(y);
  free(want);
}

#define DIMS(...)                                           \
  sizeof((int64_t[]){__VA_ARGS__}) / 8, (const int64_t[]) { \
    __VA_ARGS__                                             \
  }

static void test_einsum(void **state) {
  (void)state;
  check_einsum("mk,kn->mn", DIMS(5, 7), DIMS(7, 3), DIMS(5, 3), true);
  check_einsum("mk,kn->nm", DIMS(5, 7), DIMS(7, 3), DIMS(3, 5), true);
  check_einsum("km,nk->mn", DIMS(7, 5), DIMS(3, 7), DIMS(5, 3), true);
  check_einsum("bqhd,bkhd->bhqk", DIMS(2, 4, 3, 5), DIMS(2, 6, 3, 5),
               DIMS(2, 3, 4, 6), true);
  check_einsum("bsd,dh->bsh", DIMS(2, 4, 6), DIMS(6, 5), DIMS(2, 4, 5), true);
  check_einsum("abc,bcd->ad", DIMS(2, 4, 6), DIMS(4, 6, 5), DIMS(2, 5), true);
  check_einsum("i,j->ij", DIMS(4), DIMS(6), DIMS(4, 6), true);
  check_einsum("abc,cbd->ad", DIMS(2, 4, 6), DIMS(6, 4, 5), DIMS(2, 5), false);
  check_einsum("mkj,kn->mn", DIMS(5, 7, 2), DIMS(7, 3), DIMS(5, 3), false);
  check_einsum("mkb,knb->bmn", DIMS(5, 7, 2), DIMS(7, 3, 2), DIMS(2, 5, 3),
               false);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_tables),   cmocka_unit_test(test_small),
      cmocka_unit_test(test_larger),   cmocka_unit_test(test_library),
      cmocka_unit_test(test_shared),   cmocka_unit_test(test_strips),
      cmocka_unit_test(test_few_rows), cmocka_unit_test(test_not_a_number),
      cmocka_unit_test(test_integers), cmocka_unit_test(test_einsum),
  };
  BED_RUN(tests);
}
