/* SPDX-License-Identifier: Apache-2.0 */
/* Text for people, in lines of 80 columns (text.h). */
#include "cli/text.h"

#include <string.h>

#include "cli/cli.h"

/* Columns of |size| bytes of UTF-8. */
static size_t columns(const char *text, size_t size) {
  size_t count = 0;
  for (size_t i = 0; i < size; i++)
    count += ((unsigned char)text[i] & 0xc0) != 0x80;
  return count;
}

void cli_wrap(size_t at, size_t left, const char *text) {
  bool first = true; /* of its line */
  while (*text != '\0') {
    size_t blanks = strspn(text, " \n");
    bool paragraph = blanks >= 2 && strncmp(text, "\n\n", 2) == 0;
    text += blanks;
    size_t size = strcspn(text, " \n"), width = columns(text, size);
    if (size == 0) break;
    bool full = !first && at + 1 + width > CLI_COLUMNS;
    if (paragraph || full) {
      cli_print(paragraph ? "\n\n%*s" : "\n%*s", (int)left, "");
      at = left;
      first = true;
    }
    cli_print("%s%.*s", first ? "" : " ", (int)size, text);
    at += width + !first;
    first = false;
    text += size;
  }
  cli_print("\n");
}

void cli_indent(const char *before, const char *text) {
  while (*text != '\0') {
    size_t size = strcspn(text, "\n");
    cli_print("%s%.*s\n", before, (int)size, text);
    text += size + (text[size] == '\n');
  }
}
