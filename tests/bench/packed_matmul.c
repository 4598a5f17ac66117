/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/bench/packed_matmul.h"

#include <oneapi/dnnl/dnnl.h>
#include <stdio.h>
#include <stdlib.h>

struct packed_matmul {
  dnnl_engine_t engine;
  dnnl_stream_t stream;
  dnnl_primitive_t primitive;
  dnnl_memory_t a, b, c;
};

static void check(dnnl_status_t s, const char *what) {
  if (s == dnnl_success) return;
  fprintf(stderr, "oneDNN: %s: status %d\n", what, (int)s);
  exit(1);
}

/* Descriptions are values in 2.x and handles in 3.x. */
#if DNNL_VERSION_MAJOR >= 3
typedef dnnl_memory_desc_t md;
typedef const_dnnl_memory_desc_t const_md;

static md describe(int64_t rows, int64_t columns, dnnl_format_tag_t tag) {
  md out;
  dnnl_dims_t dims = {rows, columns};
  check(dnnl_memory_desc_create_with_tag(&out, 2, dims, dnnl_f32, tag),
        "description");
  return out;
}

static const_md handle(const md *d) {
  return *d;
}

static dnnl_primitive_desc_t plan(dnnl_engine_t e, const md *a, const md *b,
                                  const md *c) {
  dnnl_primitive_desc_t out;
  check(dnnl_matmul_primitive_desc_create(&out, e, *a, *b, NULL, *c, NULL),
        "matmul");
  return out;
}

static void release_md(md *d) {
  dnnl_memory_desc_destroy(*d);
}
#else
typedef dnnl_memory_desc_t md;
typedef const dnnl_memory_desc_t *const_md;

static md describe(int64_t rows, int64_t columns, dnnl_format_tag_t tag) {
  md out;
  dnnl_dims_t dims = {rows, columns};
  check(dnnl_memory_desc_init_by_tag(&out, 2, dims, dnnl_f32, tag),
        "description");
  return out;
}

static const_md handle(const md *d) {
  return d;
}

static dnnl_primitive_desc_t plan(dnnl_engine_t e, const md *a, const md *b,
                                  const md *c) {
  dnnl_matmul_desc_t what;
  dnnl_primitive_desc_t out;
  check(dnnl_matmul_desc_init(&what, a, b, NULL, c), "matmul");
  check(dnnl_primitive_desc_create(&out, &what, NULL, e, NULL), "matmul");
  return out;
}

static void release_md(md *d) {
  (void)d;
}
#endif

static dnnl_memory_t memory(packed_matmul *p, const_md d, void *data) {
  dnnl_memory_t out;
  check(dnnl_memory_create(&out, d, p->engine, data), "memory");
  return out;
}

static void reorder(packed_matmul *p, const_md from, float *b, const_md to) {
  dnnl_primitive_desc_t pd;
  dnnl_primitive_t primitive;
  dnnl_memory_t plain = memory(p, from, b);
  check(dnnl_reorder_primitive_desc_create(&pd, from, p->engine, to, p->engine,
                                           NULL),
        "reorder");
  check(dnnl_primitive_create(&primitive, pd), "reorder");
  dnnl_exec_arg_t args[2] = {{DNNL_ARG_FROM, plain}, {DNNL_ARG_TO, p->b}};
  check(dnnl_primitive_execute(primitive, p->stream, 2, args), "reorder");
  check(dnnl_stream_wait(p->stream), "reorder");
  dnnl_primitive_destroy(primitive);
  dnnl_primitive_desc_destroy(pd);
  dnnl_memory_destroy(plain);
}

packed_matmul *packed_matmul_create(int64_t m, int64_t n, int64_t k, float *a,
                                    float *b, float *c) {
  packed_matmul *p = calloc(1, sizeof *p);
  if (!p) exit(1);
  check(dnnl_engine_create(&p->engine, dnnl_cpu, 0), "engine");
  check(dnnl_stream_create(&p->stream, p->engine, dnnl_stream_default_flags),
        "stream");
  md am = describe(m, k, dnnl_ab), bm = describe(k, n, dnnl_ab);
  md any = describe(k, n, dnnl_format_tag_any), cm = describe(m, n, dnnl_ab);
  dnnl_primitive_desc_t pd = plan(p->engine, &am, &any, &cm);
  const_md best = dnnl_primitive_desc_query_md(pd, dnnl_query_weights_md, 0);
  check(dnnl_primitive_create(&p->primitive, pd), "matmul");
  p->a = memory(p, handle(&am), a);
  p->b = memory(p, best, DNNL_MEMORY_ALLOCATE);
  p->c = memory(p, handle(&cm), c);
  reorder(p, handle(&bm), b, best);
  dnnl_primitive_desc_destroy(pd);
  release_md(&am);
  release_md(&bm);
  release_md(&any);
  release_md(&cm);
  return p;
}

void packed_matmul_run(packed_matmul *p) {
  dnnl_exec_arg_t args[3] = {
      {DNNL_ARG_SRC, p->a}, {DNNL_ARG_WEIGHTS, p->b}, {DNNL_ARG_DST, p->c}};
  check(dnnl_primitive_execute(p->primitive, p->stream, 3, args), "run");
  check(dnnl_stream_wait(p->stream), "run");
}

void packed_matmul_release(packed_matmul *p) {
  dnnl_memory_destroy(p->a);
  dnnl_memory_destroy(p->b);
  dnnl_memory_destroy(p->c);
  dnnl_primitive_destroy(p->primitive);
  dnnl_stream_destroy(p->stream);
  dnnl_engine_destroy(p->engine);
  free(p);
}
