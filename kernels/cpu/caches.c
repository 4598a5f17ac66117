/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/cpu/caches.h"

#include <unistd.h>

/* The C library asks the processor once and remembers. The third cache is not
 * here: virtual machines tell the whole socket's. */
int64_t weir_second_cache_bytes(void) {
#ifdef _SC_LEVEL2_CACHE_SIZE
  int64_t bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);
  if (bytes >= 128 << 10 && bytes <= 4 << 20) return bytes;
#endif
  return 512 << 10;
}

int64_t weir_processors(void) {
  int64_t count = sysconf(_SC_NPROCESSORS_ONLN);
  return count < 2 ? 2 : count > 64 ? 64 : count;
}
