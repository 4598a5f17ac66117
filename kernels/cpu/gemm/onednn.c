/* SPDX-License-Identifier: Apache-2.0 */
/* The door to oneDNN. A call uses the calling thread alone: the executor's pool
 * shares blocks out, and a second pool below it would compete for the cores and
 * make sums depend on its size. Builds of oneDNN without OpenMP need no care,
 * so the two functions are stand-ins there. */
#include "kernels/cpu/gemm/onednn.h"

#include <assert.h>
#include <oneapi/dnnl/dnnl.h>
#include <stdio.h>

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

void weir_onednn_version(char *text, size_t capacity) {
  const dnnl_version_t *v = dnnl_version();
  snprintf(text, capacity, "%d.%d.%d", v->major, v->minor, v->patch);
}

uint32_t weir_onednn_number(void) {
  const dnnl_version_t *v = dnnl_version();
  return (uint32_t)v->major | (uint32_t)v->minor << 8 |
         (uint32_t)v->patch << 16;
}

/* dnnl_cpu_isa_all of oneDNN 2, dnnl_cpu_isa_default of oneDNN 3. */
static const dnnl_cpu_isa_t kNoLimit = 0;

/* Asking oneDNN for its set fixes it: so the limit comes first. */
bool weir_onednn_limit(int level) {
  const dnnl_cpu_isa_t kLimits[] = {dnnl_cpu_isa_sse41, dnnl_cpu_isa_sse41,
                                    dnnl_cpu_isa_avx2, kNoLimit};
  assert(level >= 0 && level <= 3);
  (void)dnnl_set_max_cpu_isa(kLimits[level]);
  unsigned now = (unsigned)dnnl_get_effective_cpu_isa();
  int has = (now & dnnl_cpu_isa_avx512_core) == dnnl_cpu_isa_avx512_core ? 3
            : (now & dnnl_cpu_isa_avx2) == dnnl_cpu_isa_avx2             ? 2
                                                                         : 1;
  return has == level;
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

weir_status weir_onednn_sgemm(const weir_sgemm *g, const float *a,
                              const float *b, float *c, weir_error *err) {
  int threads = enter();
  dnnl_status_t s =
      dnnl_sgemm(g->a_t ? 'T' : 'N', g->b_t ? 'T' : 'N', g->m, g->n, g->k, 1.0f,
                 a, g->lda, b, g->ldb, 0.0f, c, g->ldc);
  leave(threads);
  return check(s, "sgemm", err);
}
