/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/exec/control_cases.h"

#include <math.h>

#include "tests/exec/support.h"

#define ENDS NAN

const control_case control_cases[] = {
    {"cumulative sums, on both axes and backwards",
     "weir: 1\n"
     "inputs: {x: 'f32[2, 3] = const([[1, 2, 3], [4, 5, 6]], dtype=f32)'}\n"
     "nodes:\n"
     "  rows:\n"
     "    scan:\n"
     "      over: {xt: x}\n"
     "      carry: {s: 'zeros([3])'}\n"
     "      next: {s: 'add(s, xt)'}\n"
     "      stack: {y: 'add(s, xt)'}\n"
     "  cols:\n"
     "    scan:\n"
     "      over: {xt: x}\n"
     "      axis: -1\n"
     "      carry: {s: 'zeros([2])'}\n"
     "      nodes: {t: 'add(s, xt)'}\n"
     "      next: {s: t}\n"
     "      stack: {y: t, before: s}\n"
     "  back:\n"
     "    scan:\n"
     "      over: {xt: x}\n"
     "      axis: 1\n"
     "      reverse: true\n"
     "      carry: {s: 'zeros([2])'}\n"
     "      nodes: {t: 'add(s, xt)'}\n"
     "      next: {s: t}\n"
     "      stack: {y: t}\n"
     "outputs: {a: rows.y, b: cols.y, c: cols.before, d: back.y}\n",
     {{1, 2, 3, 5, 7, 9, ENDS},
      {1, 3, 6, 4, 9, 15, ENDS},
      {0, 1, 3, 0, 4, 9, ENDS},
      {6, 5, 3, 15, 11, 6, ENDS}},
     0},
    {"values that only pass through, empty scans, an unused carry",
     "weir: 1\n"
     "inputs: {x: 'f32[3] = const([1, 2, 4], dtype=f32)', e: 'f32[0, 2] = "
     "zeros([0, 2])'}\n"
     "nodes:\n"
     "  keep:\n"
     "    scan:\n"
     "      over: {xt: x}\n"
     "      carry: {a: 7, b: x}\n"
     "      nodes: {unused: relu(b)}\n"
     "      next: {a: a, b: unused}\n"
     "      stack: {y: xt, w: x}\n"
     "  none:\n"
     "    scan:\n"
     "      over: {et: e}\n"
     "      carry: {s: 'const([5, 6], dtype=f32)'}\n"
     "      next: {s: 'add(s, et)'}\n"
     "      stack: {y: 'mul(s, et)'}\n"
     "  swap:\n"
     "    scan:\n"
     "      length: 3\n"
     "      carry: {a: 1, b: 2}\n"
     "      next: {a: b, b: a}\n"
     "outputs: {a: 'stack(keep.a, swap.a, swap.b)', b: keep.y, c: none.s, d: "
     "keep.w}\n",
     {{7, 2, 1, ENDS},
      {1, 2, 4, ENDS},
      {5, 6, ENDS},
      {1, 2, 4, 1, 2, 4, 1, 2, 4, ENDS}},
     0},
    {"Newton's square root, and a while that makes no turn",
     "weir: 1\n"
     "inputs: {a: 'f64[] = 2'}\n"
     "nodes:\n"
     "  root:\n"
     "    while:\n"
     "      carry: {x: a, n: 'const(0, dtype=i64)'}\n"
     "      cond: greater(abs(sub(square(x), a)), 1e-12)\n"
     "      next: {x: 'mul(0.5, add(x, div(a, x)))', n: 'add(n, 1)'}\n"
     "  never:\n"
     "    while:\n"
     "      carry: {x: a}\n"
     "      cond: less(x, 0)\n"
     "      next: {x: neg(x)}\n"
     "  bound:\n"
     "    while:\n"
     "      carry: {x: a}\n"
     "      cond: greater(x, 0)\n"
     "      next: {x: 'add(x, 1)'}\n"
     "      limit: 6\n"
     "  zero:\n"
     "    while:\n"
     "      carry: {x: a}\n"
     "      cond: greater(x, 0)\n"
     "      next: {x: 'add(x, 1)'}\n"
     "      limit: 0\n"
     "outputs: {a: root.x, b: 'stack(root.n, root.turns, never.turns, "
     "bound.turns, zero.turns)', c: 'stack(never, bound.x, zero)'}\n",
     {{1.4142135623730951, ENDS}, {5, 5, 0, 6, 0, ENDS}, {2, 8, 2, ENDS}},
     1e-12},
    {"an if takes one body; results by name and by place",
     "weir: 1\n"
     "inputs: {a: 'f32[] = 3', x: 'f32[2] = const([1, -2], dtype=f32)'}\n"
     "nodes:\n"
     "  one: {if: {cond: 'greater(a, 2)', then: {out: {u: 'mul(x, a)', v: "
     "a}},\n"
     "    else: {out: {v: 'neg(a)', u: x}}}}\n"
     "  p, q:\n"
     "    if:\n"
     "      cond: less(a, 2)\n"
     "      then: {out: [x, a]}\n"
     "      else:\n"
     "        nodes: {m: relu(x), n: 'div(a, 0.5)'}\n"
     "        out: [m, n]\n"
     "outputs: {a: one.u, b: one.v, c: p, d: q}\n",
     {{3, -6, ENDS}, {3, ENDS}, {1, 0, ENDS}, {6, ENDS}},
     0},
    {"a scan in a scan, an if in a scan, a while in an if",
     "weir: 1\n"
     "inputs: {a: 'f32[] = 2'}\n"
     "nodes:\n"
     "  table:\n"
     "    scan:\n"
     "      length: 3\n"
     "      carry: {r: 'zeros([2])'}\n"
     "      nodes:\n"
     "        inner:\n"
     "          scan:\n"
     "            over: {e: r}\n"
     "            carry: {s: a}\n"
     "            nodes:\n"
     "              m: {if: {cond: 'greater(s, 3)', then: {out: 'sub(s, e)'},\n"
     "                else: {out: 'add(s, 1)'}}}\n"
     "            next: {s: m}\n"
     "            stack: {all: s}\n"
     "      next: {r: 'add(r, inner.all)'}\n"
     "      stack: {rows: r, tot: inner.s}\n"
     "  grow:\n"
     "    if:\n"
     "      cond: greater(a, 0)\n"
     "      then:\n"
     "        nodes:\n"
     "          w:\n"
     "            while:\n"
     "              carry: {x: a}\n"
     "              cond: less(x, 100)\n"
     "              next: {x: 'mul(x, a)'}\n"
     "        out: w\n"
     "      else: {out: a}\n"
     "outputs: {a: table.rows, b: table.tot, c: table.r, d: grow}\n",
     {{0, 0, 2, 3, 4, 6, ENDS}, {4, 4, 4, ENDS}, {6, 9, ENDS}, {128, ENDS}},
     0},
    {"blocks and variables in a body: made once, outside",
     "weir: 1\n"
     "inputs: {x: 'f32[3, 2] = const([[1, 2], [3, 4], [5, 6]], dtype=f32)'}\n"
     "blocks:\n"
     "  half:\n"
     "    in: [v]\n"
     "    attrs: {by: float = 0.5}\n"
     "    nodes:\n"
     "      k: var([dim(v, 0)], init=fill(value=by))\n"
     "      s:\n"
     "        scan:\n"
     "          over: {e: v}\n"
     "          carry: {t: 'zeros([])'}\n"
     "          next: {t: 'add(t, mul(e, by))'}\n"
     "    out: add(mul(v, k), s.t)\n"
     "nodes:\n"
     "  run:\n"
     "    scan:\n"
     "      over: {xt: x}\n"
     "      nodes:\n"
     "        w: var([dim(xt, 0)], init=mul(ones([2]), 2))\n"
     "        y: half(mul(xt, w), by=1)\n"
     "      stack: {y: y}\n"
     "outputs: {a: run.y}\n",
     {{8, 10, 20, 22, 32, 34, ENDS}},
     0},
    {"gradients of a body's own values: descent by a scan",
     "weir: 1\n"
     "inputs: {t: 'f32[2] = const([3, -1], dtype=f32)'}\n"
     "nodes:\n"
     "  run:\n"
     "    scan:\n"
     "      length: 3\n"
     "      carry: {w: 'zeros([2])'}\n"
     "      nodes:\n"
     "        loss: reduce_sum(square(sub(w, t)))\n"
     "        g: gradients(loss, [w])\n"
     "      next: {w: 'sub(w, mul(g, 0.25))'}\n"
     "      stack: {l: loss}\n"
     "outputs: {w: run.w, l: run.l}\n",
     {{2.625, -0.875, ENDS}, {10, 2.5, 0.625, ENDS}},
     0},
    {"repeats around and in a body",
     "weir: 1\n"
     "inputs: {x: 'f32[3] = const([1, 2, 3], dtype=f32)'}\n"
     "nodes:\n"
     "  h[0]: identity(x)\n"
     "  steps:\n"
     "    repeat: {i: 0..2}\n"
     "    nodes:\n"
     "      run:\n"
     "        scan:\n"
     "          over: {e: 'h[i]'}\n"
     "          carry: {s: 0}\n"
     "          nodes:\n"
     "            p[0]: add(s, e)\n"
     "            more: {repeat: {k: 0..2}, nodes: {'p[k+1]': 'add(p[k], "
     "i)'}}\n"
     "          next: {s: 'p[2]'}\n"
     "          stack: {y: 'p[2]'}\n"
     "      h[i+1]: add(run.y, 0)\n"
     "outputs: {a: 'h[1]', b: 'h[2]', c: 'run[1].s'}\n",
     {{1, 3, 6, ENDS}, {3, 8, 16, ENDS}, {16, ENDS}},
     0},
};
const size_t control_case_count = sizeof control_cases / sizeof *control_cases;

void control_case_check(const control_case *c, const char *way, uint32_t output,
                        const weir_tensor *got) {
  int n = 0;
  while (!isnan(c->want[output][n])) n++;
  if (weir_shape_elements(&got->shape) != n)
    fail_msg("%s, %s: output %u has %d values", c->name, way, output,
             (int)weir_shape_elements(&got->shape));
  for (int k = 0; k < n; k++) {
    double v = weir_dtype_is_float(got->dtype)
                   ? weir_tensor_get_f64(got, k)
                   : (double)weir_tensor_get_i64(got, k);
    if (!(fabs(v - c->want[output][k]) <= c->tolerance))
      fail_msg("%s, %s: output %u[%d] is %.17g, not %.17g", c->name, way,
               output, k, v, c->want[output][k]);
  }
}
