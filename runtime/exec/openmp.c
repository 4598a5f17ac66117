/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/exec/openmp.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

/* By name in the process: no OpenMP is linked or loaded for this. memcpy, since
 * ISO C has no conversion of an object pointer to a function pointer. */
weir_openmp weir_openmp_find(void) {
  weir_openmp omp = {NULL, NULL};
  void *get = dlsym(RTLD_DEFAULT, "omp_get_max_threads");
  void *set = dlsym(RTLD_DEFAULT, "omp_set_num_threads");
  if (get == NULL || set == NULL) return omp;
  memcpy(&omp.get, &get, sizeof get);
  memcpy(&omp.set, &set, sizeof set);
  return omp;
}
