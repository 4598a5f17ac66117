/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/base/vec.h"

#include <string.h>

#include "runtime/base/size.h"

/* By half, not by doubling: the bytes given back by earlier growths can then
 * serve a later one. */
bool weir_vec_grow(const weir_allocator *alloc, void **items, size_t *capacity,
                   size_t count, size_t extra, size_t elem_bytes) {
  size_t need, bytes;
  if (!weir_size_add(count, extra, &need)) return false;
  if (need <= *capacity) return true;
  size_t wanted = *capacity < 4 ? 8 : *capacity + *capacity / 2;
  if (wanted < need) wanted = need;
  if (!weir_size_mul(wanted, elem_bytes, &bytes)) return false;
  void *grown = weir_alloc(alloc, bytes);
  if (grown == NULL) return false;
  if (count > 0) memcpy(grown, *items, count * elem_bytes);
  weir_free(alloc, *items);
  *items = grown;
  *capacity = wanted;
  return true;
}
