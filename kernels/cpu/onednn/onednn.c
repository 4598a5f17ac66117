/* SPDX-License-Identifier: Apache-2.0 */
/* The door to oneDNN. A call uses the calling thread alone: the executor's pool
 * shares blocks out, and a second pool below it would compete for the cores and
 * make sums depend on its size. */
#include "kernels/cpu/onednn/onednn.h"

#include <assert.h>
#include <stdio.h>

#include "kernels/cpu/onednn/onednn_api.h"

void weir_onednn_version(char *text, size_t capacity) {
  const dnnl_version_t *v = dnnl_version();
  snprintf(text, capacity, "%d.%d.%d", v->major, v->minor, v->patch);
}

uint32_t weir_onednn_number(void) {
  const dnnl_version_t *v = dnnl_version();
  return (uint32_t)v->major | (uint32_t)v->minor << 8 |
         (uint32_t)v->patch << 16;
}

/* Asking oneDNN for its set fixes it: so the limit comes first. */
bool weir_onednn_limit(int level) {
  static const dnnl_cpu_isa_t kLimits[] = {
      dnnl_cpu_isa_sse41, dnnl_cpu_isa_sse41, dnnl_cpu_isa_avx2,
      WEIR_DNNL_ISA_ALL};
  assert(level >= 0 && level <= 3);
  (void)dnnl_set_max_cpu_isa(kLimits[level]);
  unsigned now = (unsigned)dnnl_get_effective_cpu_isa();
  int has = (now & dnnl_cpu_isa_avx512_core) == dnnl_cpu_isa_avx512_core ? 3
            : (now & dnnl_cpu_isa_avx2) == dnnl_cpu_isa_avx2             ? 2
                                                                         : 1;
  return has == level;
}

weir_status weir_onednn_sgemm(const weir_sgemm *g, const float *a,
                              const float *b, float *c, weir_error *err) {
  int threads = weir_onednn_enter();
  dnnl_status_t s =
      dnnl_sgemm(g->a_t ? 'T' : 'N', g->b_t ? 'T' : 'N', g->m, g->n, g->k, 1.0f,
                 a, g->lda, b, g->ldb, 0.0f, c, g->ldc);
  weir_onednn_leave(threads);
  return weir_onednn_check(s, "sgemm", err);
}
