/* SPDX-License-Identifier: Apache-2.0 */
/* Text broken into lines of 80 columns, word by word. */
#include <stdio.h>
#include <string.h>

#include "runtime/tools/tools.h"

/* Columns of |size| bytes of UTF-8. */
static size_t columns(const char *text, size_t size) {
  size_t count = 0;
  for (size_t i = 0; i < size; i++)
    count += ((unsigned char)text[i] & 0xc0) != 0x80;
  return count;
}

static bool blanks(size_t count, weir_write_fn write, void *self) {
  bool ok = true;
  while (ok && count-- > 0) ok = write(self, " ", 1);
  return ok;
}

bool weir_tools_wrap(const char *text, size_t at, size_t left,
                     weir_write_fn write, void *self) {
  bool first = true, ok = true; /* first: of its line */
  while (ok && *text != '\0') {
    size_t gap = strspn(text, " \n");
    bool paragraph = strncmp(text, "\n\n", 2) == 0;
    text += gap;
    size_t size = strcspn(text, " \n"), width = columns(text, size);
    if (size == 0) break;
    bool full = !first && at + 1 + width > WEIR_TOOLS_COLUMNS;
    if (paragraph || full) {
      ok = write(self, "\n\n", paragraph ? 2 : 1) && blanks(left, write, self);
      at = left;
      first = true;
    }
    ok = ok && blanks(!first, write, self) && write(self, text, size);
    at += width + !first;
    first = false;
    text += size;
  }
  return ok && write(self, "\n", 1);
}
