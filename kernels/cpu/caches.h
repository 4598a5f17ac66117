/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_KERNELS_CPU_CACHES_H_
#define WEIR_KERNELS_CPU_CACHES_H_

#include <stdint.h>

/* Bytes of a core's second cache on this machine; a usual size where the system
 * does not tell, or tells one out of all reason. For the sizes of blocks alone:
 * a choice that decides about bits follows from the profile
 * (kernels/profile.h), which machines with other caches share. */
int64_t weir_second_cache_bytes(void);

/* Hardware threads of this machine, at least 2 and at most 64. It decides about
 * sizes of blocks alone too. */
int64_t weir_processors(void);

#endif
