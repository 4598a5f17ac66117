/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/cpu/caches.h"

#include <stdatomic.h>

#include "runtime/base/machine/machine.h"

enum { kUsual = 512 << 10 };

/* Read once: two threads that come first at the same time read the same. The
 * third cache is not here: virtual machines tell the whole socket's. */
int64_t weir_second_cache_bytes(void) {
  static _Atomic int64_t known;
  int64_t bytes = atomic_load_explicit(&known, memory_order_relaxed);
  if (bytes != 0) return bytes;
  weir_cache caches[WEIR_MACHINE_CACHES];
  weir_machine_read_caches(caches);
  bytes = caches[1].bytes;
  if (bytes < 128 << 10 || bytes > 4 << 20) bytes = kUsual;
  atomic_store_explicit(&known, bytes, memory_order_relaxed);
  return bytes;
}
