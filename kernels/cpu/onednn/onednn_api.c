/* SPDX-License-Identifier: Apache-2.0 */
/* One thread for each call of oneDNN. Builds of it without OpenMP need no care,
 * so OpenMP's functions are stand-ins there. */
#include "kernels/cpu/onednn/onednn_api.h"

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

int weir_onednn_enter(void) {
  int threads = omp_get_max_threads();
  if (threads != 1) omp_set_num_threads(1);
  return threads;
}

void weir_onednn_leave(int threads) {
  if (threads != 1) omp_set_num_threads(threads);
}

weir_status weir_onednn_check(dnnl_status_t s, const char *what,
                              weir_error *err) {
  if (s == dnnl_success) return WEIR_OK;
  if (s == dnnl_out_of_memory)
    return weir_fail(err, WEIR_W6001, NULL, "oneDNN: no memory for %s", what);
  return weir_fail(err, WEIR_W5001, NULL, "oneDNN: %s failed with status %d",
                   what, (int)s);
}
