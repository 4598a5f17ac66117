/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/cpu/onednn.h"

#include <oneapi/dnnl/dnnl.h>
#include <string.h>

#if DNNL_CPU_RUNTIME == DNNL_RUNTIME_OMP
extern void omp_set_num_threads(int threads);
extern int omp_get_max_threads(void);
#else
static void omp_set_num_threads(int threads) {
  (void)threads;
}
static int omp_get_max_threads(void) {
  return 1;
}
#endif

void weir_onednn_thread_init(void) {
  omp_set_num_threads(1);
}

static int enter(void) {
  int threads = omp_get_max_threads();
  if (threads != 1) omp_set_num_threads(1);
  return threads;
}

static void leave(int threads) {
  if (threads != 1) omp_set_num_threads(threads);
}

static weir_status check(dnnl_status_t s, const char *what, weir_error *err) {
  if (s == dnnl_success) return WEIR_OK;
  if (s == dnnl_out_of_memory)
    return weir_fail(err, WEIR_W6001, NULL, "oneDNN: no memory for %s", what);
  return weir_fail(err, WEIR_W5001, NULL, "oneDNN: %s failed with status %d",
                   what, (int)s);
}

weir_status weir_onednn_sgemm(const weir_gemm *g, const float *a,
                              const float *b, float *c, weir_error *err) {
  int threads = enter();
  dnnl_status_t s =
      dnnl_sgemm(g->a_t ? 'T' : 'N', g->b_t ? 'T' : 'N', g->m, g->n, g->k, 1.0f,
                 a, g->lda, b, g->ldb, 0.0f, c, g->ldc);
  leave(threads);
  return check(s, "sgemm", err);
}

/* ---- What 2.x and 3.x call differently */

#if DNNL_VERSION_MAJOR >= 3
typedef dnnl_memory_desc_t desc;
static dnnl_status_t desc_strided(desc *out, const dnnl_dims_t dims,
                                  const dnnl_dims_t strides) {
  return dnnl_memory_desc_create_with_strides(out, 2, dims, dnnl_f32, strides);
}
static dnnl_status_t desc_any(desc *out, const dnnl_dims_t dims) {
  return dnnl_memory_desc_create_with_tag(out, 2, dims, dnnl_f32,
                                          dnnl_format_tag_any);
}
static void desc_release(desc *d) {
  if (*d) dnnl_memory_desc_destroy(*d);
}
static dnnl_memory_desc_t desc_arg(const desc *d) {
  return *d;
}
/* A descriptor that is only lent. */
static desc desc_lent(const_dnnl_memory_desc_t md) {
  return (desc)(uintptr_t)md;
}
static dnnl_status_t matmul_desc(dnnl_primitive_desc_t *out,
                                 dnnl_engine_t engine, const desc *a,
                                 const desc *b, const desc *c,
                                 dnnl_primitive_attr_t attr) {
  return dnnl_matmul_primitive_desc_create(out, engine, *a, *b, NULL, *c, attr);
}
#else
typedef dnnl_memory_desc_t desc;
typedef const dnnl_memory_desc_t *const_dnnl_memory_desc_t;
static dnnl_status_t desc_strided(desc *out, const dnnl_dims_t dims,
                                  const dnnl_dims_t strides) {
  return dnnl_memory_desc_init_by_strides(out, 2, dims, dnnl_f32, strides);
}
static dnnl_status_t desc_any(desc *out, const dnnl_dims_t dims) {
  return dnnl_memory_desc_init_by_tag(out, 2, dims, dnnl_f32,
                                      dnnl_format_tag_any);
}
static void desc_release(desc *d) {
  (void)d;
}
static const_dnnl_memory_desc_t desc_arg(const desc *d) {
  return d;
}
static desc desc_lent(const_dnnl_memory_desc_t md) {
  return *md;
}
static dnnl_status_t matmul_desc(dnnl_primitive_desc_t *out,
                                 dnnl_engine_t engine, const desc *a,
                                 const desc *b, const desc *c,
                                 dnnl_primitive_attr_t attr) {
  dnnl_matmul_desc_t d;
  dnnl_status_t s = dnnl_matmul_desc_init(&d, a, b, NULL, c);
  if (s != dnnl_success) return s;
  return dnnl_primitive_desc_create(out, &d, attr, engine, NULL);
}
#endif

static const_dnnl_memory_desc_t query(const_dnnl_primitive_desc_t pd,
                                      dnnl_query_t what) {
  return dnnl_primitive_desc_query_md(pd, what, 0);
}
static dnnl_status_t reorder_desc(dnnl_primitive_desc_t *out,
                                  const_dnnl_memory_desc_t src,
                                  const_dnnl_memory_desc_t dst,
                                  dnnl_engine_t engine) {
  return dnnl_reorder_primitive_desc_create(out, src, engine, dst, engine,
                                            NULL);
}

/* ---- Products with a packed b */

struct weir_onednn_packed {
  const weir_allocator *alloc;
  dnnl_engine_t engine;
  dnnl_stream_t stream;
  dnnl_primitive_desc_t pd;
  dnnl_primitive_t primitive;
  desc a, c;
  dnnl_memory_t b;   /* its own, or NULL */
  dnnl_memory_t use; /* the packed b, maybe another's */
};

static dnnl_status_t make_primitive(weir_onednn_packed *p, const weir_gemm *g,
                                    const desc *b) {
  dnnl_dims_t a_dims = {g->m, g->k}, c_dims = {g->m, g->n};
  dnnl_dims_t a_plain = {g->lda, 1}, a_turned = {1, g->lda};
  dnnl_dims_t c_strides = {g->ldc, 1};
  dnnl_primitive_attr_t attr = NULL;
  dnnl_status_t s = dnnl_engine_create(&p->engine, dnnl_cpu, 0);
  if (s == dnnl_success)
    s = dnnl_stream_create(&p->stream, p->engine, dnnl_stream_default_flags);
  if (s == dnnl_success)
    s = desc_strided(&p->a, a_dims, g->a_t ? a_turned : a_plain);
  if (s == dnnl_success) s = desc_strided(&p->c, c_dims, c_strides);
  if (s == dnnl_success) s = dnnl_primitive_attr_create(&attr);
  if (s == dnnl_success)
    s = dnnl_primitive_attr_set_scratchpad_mode(attr,
                                                dnnl_scratchpad_mode_user);
  if (s == dnnl_success)
    s = matmul_desc(&p->pd, p->engine, &p->a, b, &p->c, attr);
  if (s == dnnl_success) s = dnnl_primitive_create(&p->primitive, p->pd);
  if (attr) dnnl_primitive_attr_destroy(attr);
  return s;
}

/* Executes |primitive| on two or three operands. */
static dnnl_status_t execute(dnnl_primitive_t primitive, dnnl_stream_t stream,
                             int count, const dnnl_exec_arg_t *args) {
  dnnl_status_t s = dnnl_primitive_execute(primitive, stream, count, args);
  if (s == dnnl_success) s = dnnl_stream_wait(stream);
  return s;
}

static dnnl_status_t pack(weir_onednn_packed *p, const weir_gemm *g,
                          const float *b) {
  dnnl_dims_t dims = {g->k, g->n}, plain = {g->ldb, 1}, turned = {1, g->ldb};
  desc from;
  memset(&from, 0, sizeof from);
  dnnl_memory_t src = NULL;
  dnnl_primitive_desc_t pd = NULL;
  dnnl_primitive_t reorder = NULL;
  const_dnnl_memory_desc_t to = query(p->pd, dnnl_query_weights_md);
  dnnl_status_t s = desc_strided(&from, dims, g->b_t ? turned : plain);
  if (s == dnnl_success)
    s = dnnl_memory_create(&src, desc_arg(&from), p->engine,
                           (void *)(uintptr_t)b);
  if (s == dnnl_success)
    s = dnnl_memory_create(&p->b, to, p->engine, DNNL_MEMORY_ALLOCATE);
  if (s == dnnl_success) s = reorder_desc(&pd, desc_arg(&from), to, p->engine);
  if (s == dnnl_success) s = dnnl_primitive_create(&reorder, pd);
  if (s == dnnl_success) {
    dnnl_exec_arg_t args[2] = {{DNNL_ARG_SRC, src}, {DNNL_ARG_DST, p->b}};
    s = execute(reorder, p->stream, 2, args);
  }
  p->use = p->b;
  if (reorder) dnnl_primitive_destroy(reorder);
  if (pd) dnnl_primitive_desc_destroy(pd);
  if (src) dnnl_memory_destroy(src);
  desc_release(&from);
  return s;
}

static weir_status create(const weir_allocator *alloc, const weir_gemm *g,
                          const float *b, const weir_onednn_packed *like,
                          weir_onednn_packed **out_packed, weir_error *err) {
  weir_onednn_packed *p = weir_alloc_array(alloc, 1, sizeof *p);
  *out_packed = NULL;
  if (!p) return weir_fail_memory(err, sizeof *p);
  p->alloc = alloc;
  int threads = enter();
  dnnl_dims_t dims = {g->k, g->n};
  desc any;
  memset(&any, 0, sizeof any);
  dnnl_status_t s = dnnl_success;
  if (like) {
    desc lent = desc_lent(query(like->pd, dnnl_query_weights_md));
    s = make_primitive(p, g, &lent);
    p->use = like->use;
  } else {
    s = desc_any(&any, dims);
    if (s == dnnl_success) s = make_primitive(p, g, &any);
    if (s == dnnl_success) s = pack(p, g, b);
    desc_release(&any);
  }
  leave(threads);
  weir_status status = check(s, "packing a matrix", err);
  if (status == WEIR_OK)
    *out_packed = p;
  else
    weir_onednn_packed_release(p);
  return status;
}

weir_status weir_onednn_packed_create(const weir_allocator *alloc,
                                      const weir_gemm *g, const float *b,
                                      weir_onednn_packed **out_packed,
                                      weir_error *err) {
  return create(alloc, g, b, NULL, out_packed, err);
}

weir_status weir_onednn_packed_share(const weir_allocator *alloc,
                                     const weir_gemm *g,
                                     const weir_onednn_packed *like,
                                     weir_onednn_packed **out_packed,
                                     weir_error *err) {
  return create(alloc, g, NULL, like, out_packed, err);
}

void weir_onednn_packed_release(weir_onednn_packed *p) {
  if (!p) return;
  if (p->b) dnnl_memory_destroy(p->b);
  if (p->primitive) dnnl_primitive_destroy(p->primitive);
  if (p->pd) dnnl_primitive_desc_destroy(p->pd);
  desc_release(&p->a);
  desc_release(&p->c);
  if (p->stream) dnnl_stream_destroy(p->stream);
  if (p->engine) dnnl_engine_destroy(p->engine);
  weir_free(p->alloc, p);
}

size_t weir_onednn_packed_scratch_bytes(const weir_onednn_packed *p) {
  return dnnl_memory_desc_get_size(query(p->pd, dnnl_query_scratchpad_md));
}

weir_status weir_onednn_packed_run(const weir_onednn_packed *p, const float *a,
                                   float *c, void *scratch, weir_error *err) {
  int threads = enter();
  dnnl_memory_t ma = NULL, mc = NULL, ms = NULL;
  dnnl_status_t s =
      dnnl_memory_create(&ma, desc_arg(&p->a), p->engine, (void *)(uintptr_t)a);
  if (s == dnnl_success)
    s = dnnl_memory_create(&mc, desc_arg(&p->c), p->engine, c);
  if (s == dnnl_success)
    s = dnnl_memory_create(&ms, query(p->pd, dnnl_query_scratchpad_md),
                           p->engine, scratch);
  if (s == dnnl_success) {
    dnnl_exec_arg_t args[4] = {{DNNL_ARG_SRC, ma},
                               {DNNL_ARG_WEIGHTS, p->use},
                               {DNNL_ARG_DST, mc},
                               {DNNL_ARG_SCRATCHPAD, ms}};
    s = execute(p->primitive, p->stream, 4, args);
  }
  if (ms) dnnl_memory_destroy(ms);
  if (mc) dnnl_memory_destroy(mc);
  if (ma) dnnl_memory_destroy(ma);
  leave(threads);
  return check(s, "matmul", err);
}
