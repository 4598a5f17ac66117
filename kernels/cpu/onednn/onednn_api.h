/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_KERNELS_CPU_ONEDNN_API_H_
#define WEIR_KERNELS_CPU_ONEDNN_API_H_

#include <oneapi/dnnl/dnnl.h>

#include "runtime/base/status.h"

/* oneDNN's headers, and what differs between its versions: in 2.x a description
 * of memory is a struct, in 3.x a handle that is destroyed; a primitive is
 * described in two steps in 2.x and in one in 3.x. For this folder only. */

/* Takes the calling thread's OpenMP setting to one thread, and back. */
int weir_onednn_enter(void);
void weir_onednn_leave(int threads);

/* Turns a status of oneDNN into ours: W6001, W5001. */
WEIR_MUST_USE weir_status weir_onednn_check(dnnl_status_t s, const char *what,
                                            weir_error *err);

#if DNNL_VERSION_MAJOR >= 3

#define WEIR_DNNL_ISA_ALL dnnl_cpu_isa_default

typedef const_dnnl_memory_desc_t weir_dnnl_md;

static inline dnnl_status_t weir_dnnl_md_create(dnnl_memory_desc_t *md,
                                                int rank,
                                                const dnnl_dims_t dims,
                                                dnnl_format_tag_t tag) {
  return dnnl_memory_desc_create_with_tag(md, rank, dims, dnnl_f32, tag);
}

static inline void weir_dnnl_md_destroy(dnnl_memory_desc_t *md) {
  (void)dnnl_memory_desc_destroy(*md);
}

static inline weir_dnnl_md weir_dnnl_md_of(const dnnl_memory_desc_t *md) {
  return *md;
}

#else

#define WEIR_DNNL_ISA_ALL dnnl_cpu_isa_all

typedef const dnnl_memory_desc_t *weir_dnnl_md;

static inline dnnl_status_t weir_dnnl_md_create(dnnl_memory_desc_t *md,
                                                int rank,
                                                const dnnl_dims_t dims,
                                                dnnl_format_tag_t tag) {
  return dnnl_memory_desc_init_by_tag(md, rank, dims, dnnl_f32, tag);
}

static inline void weir_dnnl_md_destroy(dnnl_memory_desc_t *md) {
  (void)md;
}

static inline weir_dnnl_md weir_dnnl_md_of(const dnnl_memory_desc_t *md) {
  return md;
}

#endif

#endif
