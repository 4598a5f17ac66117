/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/cpu/caches.h"

#include <unistd.h>

/* The C library asks the processor once and remembers. The third cache is not
 * here: virtual machines tell the whole socket's. */
static long told(int level) {
#if defined(_SC_LEVEL1_DCACHE_SIZE) && defined(_SC_LEVEL2_CACHE_SIZE)
  return sysconf(level == 1 ? _SC_LEVEL1_DCACHE_SIZE : _SC_LEVEL2_CACHE_SIZE);
#else
  (void)level;
  return -1;
#endif
}

int64_t weir_cache_bytes(int level) {
  static const int64_t kUsual[] = {32 << 10, 512 << 10};
  static const int64_t kLeast[] = {16 << 10, 128 << 10};
  static const int64_t kMost[] = {128 << 10, 4 << 20};
  int at = level == 1 ? 0 : 1;
  int64_t bytes = told(level);
  return bytes < kLeast[at] || bytes > kMost[at] ? kUsual[at] : bytes;
}
