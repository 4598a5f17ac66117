/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/base/join.h"

#include <string.h>

void weir_join_name(char *text, size_t size, const char *name) {
  size_t used = strlen(text), gap = used > 0 ? 2 : 0, n = strlen(name);
  if (used + gap + n >= size) return;
  memcpy(text + used, ", ", gap);
  memcpy(text + used + gap, name, n + 1);
}
