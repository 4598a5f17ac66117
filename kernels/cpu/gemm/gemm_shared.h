/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_KERNELS_CPU_GEMM_SHARED_H_
#define WEIR_KERNELS_CPU_GEMM_SHARED_H_

#include "kernels/cpu/gemm/gemm_job.h"

/* Runs a product whose plan has parts (tall > 0): a's panels, and b's if copy_b
 * is SHARED, are made by all threads before all share the blocks out. */
void weir_gemm_run_shared(weir_gemm_job *j, const weir_args *args);

#endif
