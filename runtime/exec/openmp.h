/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_EXEC_OPENMP_H_
#define WEIR_EXEC_OPENMP_H_

#include <stddef.h>

/* OpenMP's thread number of the calling thread, set to 1 until put back, so
 * that libraries built on OpenMP never open a team. Found at run time; without
 * OpenMP in the process these do nothing. */
typedef struct weir_openmp {
  int (*get)(void);
  void (*set)(int);
} weir_openmp;

/* Looks OpenMP up in the process. */
weir_openmp weir_openmp_find(void);

/* Sets the thread's number to 1; the number before. */
static inline int weir_openmp_single(const weir_openmp *omp) {
  if (omp->set == NULL) return 0;
  int before = omp->get();
  if (before != 1) omp->set(1);
  return before;
}

/* Puts |before| back. */
static inline void weir_openmp_restore(const weir_openmp *omp, int before) {
  if (before > 1) omp->set(before);
}

#endif
