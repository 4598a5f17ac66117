/* SPDX-License-Identifier: Apache-2.0 */
/* Structs of callers, read and written by size (weir_opts.h).
 *
 * Invariant: not a byte beyond the caller's struct_size is read or written, and
 * an inner copy is always whole, with zeros for fields that the caller's header
 * did not have. A field that a newer caller sets and this library does not know
 * is an error: silence would drop a request. */
#include "runtime/api/weir_opts.h"

#include <assert.h>
#include <string.h>

#include "runtime/base/status.h"

/* struct_size comes first, everywhere. */
#define WEIR_SIZE_FIRST(type, last) \
  static_assert(offsetof(type, struct_size) == 0, #type);
WEIR_PUBLIC_STRUCTS(WEIR_SIZE_FIRST)

weir_status weir_fail_null(weir_error *err, const char *what) {
  return weir_fail(err, WEIR_W0004, NULL, "%s is NULL", what);
}

static bool all_zero(const char *data, size_t size) {
  for (size_t i = 0; i < size; i++)
    if (data[i] != 0) return false;
  return true;
}

static weir_status check_size(uint32_t given, size_t size_0, const char *what,
                              weir_error *err) {
  if (given >= size_0) return WEIR_OK;
  return weir_fail(err, WEIR_W0004, NULL,
                   "%s: struct_size is %u, which is less than %zu", what, given,
                   size_0);
}

weir_status weir_opts_read(void *dst, size_t size, const void *src,
                           size_t size_0, const char *what, weir_error *err) {
  memset(dst, 0, size);
  if (src == NULL) return WEIR_OK;
  uint32_t given = *(const uint32_t *)src;
  WEIR_TRY(check_size(given, size_0, what, err));
  if (given > size && !all_zero((const char *)src + size, given - size))
    return weir_fail(err, WEIR_W0004, NULL,
                     "%s: struct_size is %u, and fields past the %zu bytes "
                     "that this version knows are set",
                     what, given, size);
  memcpy(dst, src, given < size ? given : size);
  return WEIR_OK;
}

weir_status weir_opts_write(void *dst, const void *src, size_t size,
                            size_t size_0, const char *what, weir_error *err) {
  if (dst == NULL) return weir_fail_null(err, what);
  uint32_t given = *(const uint32_t *)dst;
  WEIR_TRY(check_size(given, size_0, what, err));
  memset(dst, 0, given);
  memcpy(dst, src, given < size ? given : size);
  *(uint32_t *)dst = given;
  return WEIR_OK;
}
