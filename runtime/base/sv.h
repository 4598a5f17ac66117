/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_BASE_SV_H_
#define WEIR_BASE_SV_H_

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* A borrowed piece of text, not NUL-terminated. Print with WEIR_SV(s):
 *   printf("%.*s", WEIR_SV(name)); */
typedef struct weir_sv {
  const char *data;
  size_t size;
} weir_sv;

#define WEIR_SV(s) (int)((s).size < 4096 ? (s).size : 4096), (s).data
#define WEIR_SV_LIT(text) ((weir_sv){(text), sizeof(text) - 1})

static inline weir_sv weir_sv_from(const char *text) {
  return (weir_sv){text, text != NULL ? strlen(text) : 0};
}

static inline bool weir_sv_equal(weir_sv a, weir_sv b) {
  return a.size == b.size &&
         (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

static inline bool weir_sv_is(weir_sv a, const char *text) {
  return weir_sv_equal(a, weir_sv_from(text));
}

static inline bool weir_sv_starts_with(weir_sv a, const char *prefix) {
  size_t n = strlen(prefix);
  return n == 0 || (a.size >= n && memcmp(a.data, prefix, n) == 0);
}

/* The separator before name |i| of |count| in a list: "a, b or c". */
static inline const char *weir_sv_before(size_t i, size_t count) {
  return i == 0 ? "" : i + 1 == count ? " or " : ", ";
}

#endif
