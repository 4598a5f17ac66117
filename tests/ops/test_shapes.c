/* SPDX-License-Identifier: Apache-2.0 */
/* Shape rules on symbols, on known integers, and on hostile attributes. */
#include "tests/check.h"
#include "tests/ops/shape_case.h"

#define CHECK_ALL(cases)                                      \
  do {                                                        \
    (void)state;                                              \
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) \
      shape_case_check(&cases[i]);                            \
  } while (0)

static void broadcasting(void **state) {
  static const shape_case kCases[] = {
      {"add", "f32[n,3] f32[3]", NULL, "f32[n, 3]", NULL},
      {"add", "f32[n,1] f32[1,m]", NULL, "f32[n, m]", NULL},
      {"add", "f32[n] f32[5]", NULL, "f32[5]", NULL},
      {"add", "f32[n] f32[n+1]", NULL, "W2011", "n and n + 1 at dimension 0"},
      {"add", "f32[2,3] f32[4]", NULL, "W2011", "[2, 3] and [4]"},
      {"add", "f32[0,3] f32[1,1]", NULL, "f32[0, 3]", NULL},
      {"add", "bool[2] bool[2]", NULL, "W2005", NULL},
      {"add", "f32[2] i32[2]", NULL, "W2005", NULL},
      {"where", "bool[2,1] f32[3] f32[]", NULL, "f32[2, 3]", NULL},
      {"expand", "f32[n,1]", "shape=[n,4]", "f32[n, 4]", NULL},
      {"expand", "f32[2]", "shape=[1]", "W2011", NULL},
      {"expand", "f32[2,2]", "shape=[2]", "W2011", NULL},
      {"less", "f32[n] f32[1]", NULL, "bool[n]", NULL}};
  CHECK_ALL(kCases);
}

static void products(void **state) {
  static const shape_case kCases[] = {
      {"matmul", "f32[b,n,3] f32[3,4]", NULL, "f32[b, n, 4]", NULL},
      {"matmul", "f32[2,3] f32[4,5]", NULL, "W2012",
       "inner dimensions differ, 3 and 4, of [2, 3] and [4, 5]"},
      {"matmul", "f32[3,2,2] f32[4,2,2]", NULL, "W2011", "[3] and [4]"},
      {"matmul", "f32[3] f32[3]", NULL, "f32[]", NULL},
      {"matmul", "f32[3] f32[3,n]", NULL, "f32[n]", NULL},
      {"matmul", "f32[3] f32[3,2]", "transpose_a=true", "W2004", "vector"},
      {"matmul", "f32[3,n] f32[4,3]", "transpose_a=true transpose_b=true",
       "f32[n, 4]", NULL},
      {"matmul", "f32[] f32[3]", NULL, "W2004", "expected rank 1 or more"},
      {"einsum", "f32[b,n,3] f32[b,3,4]", "equation=bmk,bkn->bmn",
       "f32[b, n, 4]", NULL},
      {"einsum", "f32[2,3]", "equation=ij->ji", "f32[3, 2]", NULL},
      {"einsum", "f32[2,3]", "equation=ii->i", "W2015", "twice"},
      {"einsum", "f32[2,3]", "equation=ij->k", "W2015", "no operand"},
      {"einsum", "f32[2,3]", "equation=i->i", "W2015", "names 1 dimensions"},
      {"einsum", "f32[2,3]", "equation=ij,jk->ik", "W2015", "2 operands"},
      {"einsum", "f32[2,3]", "equation=ij,jk,kl->il", "W2015", "third"},
      {"einsum", "f32[2,3]", "equation=ij->i->j", "W2015", "neither"},
      {"einsum", "f32[2,3]", "equation=abcdefghi->a", "W2015", "8 indices"}};
  CHECK_ALL(kCases);
}

static void axes(void **state) {
  static const shape_case kCases[] = {
      {"reduce_sum", "f32[n,3]", "axis=[1]", "f32[n]", NULL},
      {"reduce_sum", "f32[n,3]", "axis=[-2] keepdims=true", "f32[1, 3]", NULL},
      {"reduce_sum", "f32[n,3]", NULL, "f32[]", NULL},
      {"reduce_sum", "f32[n,3]", "axis=[]", "f32[n, 3]", NULL},
      {"reduce_sum", "f32[n,3]", "axis=[2]", "W2006", "outside [-2, 2)"},
      {"reduce_sum", "f32[n,3]", "axis=[-3]", "W2006", "outside [-2, 2)"},
      {"reduce_sum", "f32[n,3]", "axis=[1,-1]", "W2006", "axis 1 twice"},
      {"reduce_sum", "f32[n,3]", "axis=[n]", "W2007", "expected numbers"},
      {"reduce_max", "f32[0]", NULL, "W2007", "zero elements"},
      {"reduce_max", "f32[0,2]", "axis=[1]", "f32[0]", NULL},
      {"argmax", "f32[2,0]", NULL, "W2007", "zero elements"},
      {"argmax", "f32[2,n]", "keepdims=true", "i64[2, 1]", NULL},
      {"softmax", "f32[]", NULL, "W2006", "scalar"},
      {"softmax", "f32[3]", "axis=9223372036854775807", "W2006", NULL},
      {"transpose", "f32[n,3,4]", "perm=[2,0,-2]", "f32[4, n, 3]", NULL},
      {"transpose", "f32[n,3]", NULL, "f32[3, n]", NULL},
      {"transpose", "f32[2,2]", "perm=[0]", "W2007", "1 numbers, expected 2"},
      {"unsqueeze", "f32[n]", "axis=[0,-1]", "f32[1, n, 1]", NULL},
      {"unsqueeze", "f32[1,1,1,1,1,1,1,1]", "axis=[0]", "W2003", NULL},
      {"squeeze", "f32[n,1]", NULL, "W2008", "give axis"},
      {"squeeze", "f32[n,1]", "axis=[1]", "f32[n]", NULL},
      {"flatten", "f32[n,3,4]", NULL, "f32[n, 12]", NULL},
      {"flatten", "f32[2,3,4]", "axis=3", "f32[24, 1]", NULL},
      {"flatten", "f32[2,3]", "axis=3", "W2006", "outside [-2, 2]"},
      {"layer_norm", "f32[n,3,4] f32[3,4] f32[3,4]", "axis=1", "f32[n, 3, 4]",
       NULL},
      {"layer_norm", "f32[n,3] f32[3] f32[3]", "epsilon=0", "W2007",
       "more than 0"},
      {"batch_norm", "f32[n,3] f32[3] f32[3] f32[2] f32[3]", NULL, "W2010",
       "mean is [2]"}};
  CHECK_ALL(kCases);
}

static void windows(void **state) {
  static const shape_case kCases[] = {
      {"conv2d", "f32[n,3,8,8] f32[6,3,3,3]", "pad=[1]", "f32[n, 6, 8, 8]",
       NULL},
      {"conv2d", "f32[1,3,h,8] f32[6,3,3,3]", NULL, "f32[1, 6, h - 2, 6]",
       NULL},
      {"conv2d", "f32[1,3,9,8] f32[6,3,3,3]", "stride=[2,3] pad=[1,0,0,2]",
       "f32[1, 6, 4, 3]", NULL},
      {"conv2d", "f32[1,3,8,8] f32[6,3,3,3]", "stride=[0]", "W2013",
       "stride is 0"},
      {"conv2d", "f32[1,3,8,8] f32[6,3,3,3]", "dilation=[-1]", "W2013",
       "dilation is -1"},
      {"conv2d", "f32[1,3,8,8] f32[6,3,3,3]", "dilation=[4]", "W2013",
       "spans 9 and the padded input only 8"},
      {"conv2d", "f32[1,3,8,8] f32[6,3,3,3]", "groups=2", "W2013",
       "2 groups do not divide 3 input"},
      {"conv2d", "f32[1,4,8,8] f32[6,1,3,3]", "groups=4", "W2013",
       "4 groups do not divide 6 output"},
      {"conv2d", "f32[1,4,8,8] f32[6,3,3,3]", NULL, "W2010", "4 channels"},
      {"conv2d", "f32[1,3,8,8] f32[6,3,0,3]", NULL, "W2013", "kernel is 0"},
      {"conv2d", "f32[1,3,8,8] f32[6,3,3,3]", "stride=[1,1,1]", "W2007",
       "3 numbers, expected 1 to 2"},
      {"conv2d", "f32[1,3,8,8] f32[6,3,3,3]", "pad=[1,1,1]", "W2007", "1, 2"},
      {"conv2d", "f32[1,3,8,8] f32[6,3,3,3]", "groups=0", "W2013", "groups"},
      {"conv2d", "f32[1,3,8,8] f32[6,3,3,3]", "stride=[9223372036854775807]",
       "W2013", NULL},
      {"conv2d", "f32[1,3,8,8] f32[6,3,3,3] f32[5]", NULL, "W2010", "b is [5]"},
      {"conv2d", "f32[3,8,8] f32[6,3,3,3]", NULL, "W2004", "expected rank 4"},
      {"conv2d", "f32[0,3,8,8] f32[6,3,3,3]", NULL, "f32[0, 6, 6, 6]", NULL},
      {"conv2d", "f32[n,3,h,w] f32[6,3,5,4]", "padding=same", "f32[n, 6, h, w]",
       NULL},
      {"conv2d", "f32[n,3,h,9] f32[6,3,k,4]", "padding=same stride=[1,2]",
       "f32[n, 6, h, 5]", NULL},
      {"conv2d", "f32[1,3,h,8] f32[6,3,3,3]", "padding=same stride=[2]",
       "f32[1, 6, ?, 4]", NULL},
      {"max_pool", "f32[n,3,9,h]", "kernel=[2] stride=[2,1] padding=same",
       "f32[n, 3, 5, h]", NULL},
      {"resize", "f32[n,3,h,w]", "size=[28,30]", "f32[n, 3, 28, 30]", NULL},
      {"resize", "f32[n,3,h,w]", "size=[0]", "W2013", "0"},
      {"max_pool", "f32[n,3,9,9]", "kernel=[2]", "f32[n, 3, 4, 4]", NULL},
      {"max_pool", "f32[n,3,9,9]", "kernel=[3] pad=[3]", "W2013",
       "less than the kernel"},
      {"max_pool", "f32[n,3,9,9]", "kernel=[0]", "W2013", "kernel is 0"},
      {"max_pool", "f32[n,3,9,9]", "kernel=[-2]", "W2013", "kernel is -2"},
      {"max_pool", "f32[n,3,0,9]", "kernel=[2] pad=[1]", "W2013", "to pool"},
      {"avg_pool", "f32[n,3,9,9]", "kernel=[2,2,2]", "W2007", "1 to 2"},
      {"conv2d_grad_input", "f32[6,3,3,3] f32[n,6,6,6]", "shape=[n,3,8,8]",
       "f32[n, 3, 8, 8]", NULL},
      {"conv2d_grad_weight", "f32[n,3,8,8] f32[n,6,6,6]", "shape=[6,3,3,3]",
       "f32[6, 3, 3, 3]", NULL},
      {"conv2d_grad_weight", "f32[n,3,8,8] f32[n,6,6,6]", "shape=[6,3]",
       "W2004", NULL},
      {"max_pool_grad", "f32[n,3,9,9] f32[n,3,5,4]", "kernel=[2]", "W2010",
       "dy is [n, 3, 5, 4]"}};
  CHECK_ALL(kCases);
}

static void reshapes(void **state) {
  static const shape_case kCases[] = {
      {"reshape", "f32[n,3,4]", "shape=[n,-1]", "f32[n, 12]", NULL},
      {"reshape", "f32[n,12]", "shape=[-1,12]", "f32[n, 12]", NULL},
      {"reshape", "f32[2,6]", "shape=[-1,5]", "W2014", "[2, 6]"},
      {"reshape", "f32[2,6]", "shape=[13]", "W2014", "[13]"},
      {"reshape", "f32[2,6]", "shape=[-1,-1]", "W2014", "twice"},
      {"reshape", "f32[0,6]", "shape=[-1,0]", "W2014", "not determined"},
      {"reshape", "f32[0,6]", "shape=[0,7]", "f32[0, 7]", NULL},
      {"reshape", "f32[2,6]", "shape=[-2,6]", "W2002", NULL},
      {"reshape", "f32[1]", "shape=[1,1,1,1,1,1,1,1,1]", "W2003", "9"},
      {"reshape", "f32[0]", "shape=[4611686018427387904,4611686018427387904,0]",
       "W2001", NULL},
      {"concat", "f32[n,3] f32[n,4]", "axis=1", "f32[n, 7]", NULL},
      {"concat", "f32[n,3] f32[2,3]", NULL, "f32[n + 2, 3]", NULL},
      {"concat", "f32[] f32[]", NULL, "W2006", "scalar"},
      {"concat", "u8[9223372036854775807] u8[1]", NULL, "W2001", NULL},
      {"split", "f32[n,6]", "parts=3 axis=1", "f32[n, 2]", NULL},
      {"split", "f32[6]", "sizes=[1,4]", "W2016", "add up to 6"},
      {"split", "f32[6]", NULL, "W2007", "either"},
      {"split", "f32[6]", "parts=1000000", "W2007", "1 to 65536"},
      {"split", "f32[6]", "parts=-1", "W2007", NULL},
      {"split", "f32[6]", "sizes=[-1,7]", "W2002", NULL},
      {"stack", "f32[n,3] f32[n,3]", "axis=-1", "f32[n, 3, 2]", NULL},
      {"slice", "f32[n,9]", "start=[1,-3] stop=[9223372036854775807,9]",
       "f32[n - 1, 3]", NULL},
      {"slice", "f32[9]", "start=[8] stop=[-100] step=[-3]", "f32[3]", NULL},
      {"slice", "f32[9]",
       "start=[-9223372036854775808] stop=[9223372036854775807]", "f32[9]",
       NULL},
      {"slice", "f32[9]", "start=[0] stop=[9] step=[-9223372036854775808]",
       "f32[0]", NULL},
      {"slice", "f32[9]", "start=[0,0] stop=[1,1]", "W2016", "2 starts"},
      {"slice", "f32[n+7]", "start=[1] stop=[4]", "f32[3]", NULL},
      {"slice", "f32[n+7]", "start=[1] stop=[8]", "f32[?]", NULL},
      {"slice", "f32[n+7]", "start=[-4] stop=[-1]", "f32[3]", NULL},
      {"slice", "f32[n+7]", "start=[-8] stop=[-1]", "f32[?]", NULL},
      {"slice", "f32[n]", "start=[-9223372036854775808] stop=[-1]", "f32[?]",
       NULL},
      {"slice", "f32[n+7]", "start=[3] stop=[-4]", "f32[n]", NULL},
      {"pad", "f32[n,2]", "pads=[1,0,1,2]", "f32[n + 2, 4]", NULL},
      {"pad", "f32[2]", "pads=[-1,0]", "W2016", NULL},
      {"pad", "f32[2]", "pads=[9223372036854775807,1]", "W2001", NULL},
      {"pad", "f32[0]", "pads=[1,0] mode=edge", "W2016", NULL},
      {"tile", "u8[4611686018427387904]", "repeats=[4]", "W2001", NULL},
      {"tile", "f32[n,2]", "repeats=[1,3]", "f32[n, 6]", NULL},
      {"gather", "f32[10,4] i32[n,2]", NULL, "f32[n, 2, 4]", NULL},
      {"gather", "f32[10,4] f32[2]", NULL, "W2005", NULL},
      {"gather", "f32[] i32[2]", NULL, "W2006", "scalar"}};
  CHECK_ALL(kCases);
}

static void makers(void **state) {
  static const shape_case kCases[] = {
      {"range", "", "start=0 limit=10 delta=3", "i64[4]", NULL},
      {"range", "", "start=0 limit=-1", "i64[0]", NULL},
      {"range", "", "start=0 limit=1 delta=0", "W2007", "delta is 0"},
      {"range", "", "start=0 limit=1e300", "W2001", NULL},
      {"range", "", "start=0 limit=nan", "W2007", "finite"},
      {"range", "", "start=0 limit=1 delta=1e-300", "W2001", NULL},
      {"range", "", "start=-1.7e308 limit=1.7e308", "W2001", NULL},
      {"linspace", "", "start=0 stop=1 num=-1", "W2007", NULL},
      {"eye", "", "n=-1", "W2002", NULL},
      {"zeros", "", "shape=[9223372036854775807,2]", "W2001", NULL},
      {"zeros", "", "shape=[0,4611686018427387904,4611686018427387904]",
       "W2001", NULL},
      {"zeros", "", "shape=[1152921504606846976] dtype=f64", "W2001", NULL},
      {"zeros", "", "shape=[-2]", "W2002", NULL},
      {"zeros", "", "shape=[1,1,1,1,1,1,1,1,1]", "W2003", NULL},
      {"zeros", "", "shape=[n,2] dtype=i32", "i32[n, 2]", NULL},
      {"one_hot", "i32[n]", "depth=2147483648", "W2007", NULL},
      {"one_hot", "i32[n]", "depth=-1", "W2007", NULL},
      {"uniform", "", "shape=[2] low=nan", "W2007", "finite"},
      {"glorot_uniform", "", "shape=[n,3]", "f32[n, 3]", NULL},
      {"task", "f32[2] bool[3]", "cost_ns=1 out_bytes=5", "u8[5]", NULL},
      {"task", "", "cost_ns=1 out_bytes=-5", "W2007", NULL},
      {"sparse_softmax_xent", "f32[n,10] i32[n]", NULL, "f32[n]", NULL},
      {"sparse_softmax_xent", "f32[n,0] i32[n]", NULL, "W2007", "no classes"},
      {"assign", "f32[2] f32[3]", NULL, "W2010", NULL}};
  CHECK_ALL(kCases);
}

static void known_integers_fold(void **state) {
  static const shape_case kCases[] = {
      {"shape", "f32[2,3]", NULL, "i64[2]=[2, 3]", NULL},
      {"shape", "f32[n,3]", NULL, "i64[2]", NULL},
      {"dim", "f32[n,3]", "axis=-1", "i64[]=[3]", NULL},
      {"size", "f32[0,3]", NULL, "i64[]=[0]", NULL},
      {"add", "i64=[2,3] i64=[10,20]", NULL, "i64[2]=[12, 23]", NULL},
      {"sub", "i64=[2,3] i64=5", NULL, "i64[2]=[-3, -2]", NULL},
      {"mul", "i64=[4611686018427387904,1] i64=[2,1]", NULL, "i64[2]", NULL},
      {"div", "i64=[7,9] i64=2", NULL, "i64[2]=[3, 4]", NULL},
      {"div", "i64=[7,9] i64=0", NULL, "i64[2]", NULL},
      {"max", "i64=[7,1] i64=4", NULL, "i64[2]=[7, 4]", NULL},
      {"min", "i64=[7,1] i64=4", NULL, "i64[2]=[4, 1]", NULL},
      {"neg", "i64=[7,1]", NULL, "i64[2]=[-7, -1]", NULL},
      {"cast", "i64=[7,300]", "dtype=u8", "u8[2]=[7, 255]", NULL},
      {"concat", "i64=[2,3] i64=[4]", NULL, "i64[3]=[2, 3, 4]", NULL},
      {"stack", "i64=2 i64=3", NULL, "i64[2]=[2, 3]", NULL},
      {"slice", "i64=[2,3,4]", "start=[-1] stop=[-100] step=[-2]",
       "i64[2]=[4, 2]", NULL},
      {"gather", "i64=[2,3,4] i64=[0,2]", NULL, "i64[2]=[2, 4]", NULL},
      {"gather", "i64=[2,3,4] i64=3", NULL, "i64[]", NULL},
      {"reshape", "i64=[2,3,4,5]", "shape=[2,-1]", "i64[2, 2]=[2, 3, 4, 5]",
       NULL},
      {"unsqueeze", "i64=7", "axis=[0]", "i64[1]=[7]", NULL},
      {"squeeze", "i64=[7]", NULL, "i64[]=[7]", NULL},
      {"identity", "i64=[7]", NULL, "i64[1]=[7]", NULL}};
  CHECK_ALL(kCases);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(broadcasting),
                                     cmocka_unit_test(products),
                                     cmocka_unit_test(axes),
                                     cmocka_unit_test(windows),
                                     cmocka_unit_test(reshapes),
                                     cmocka_unit_test(makers),
                                     cmocka_unit_test(known_integers_fold)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
