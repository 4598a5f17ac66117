/* SPDX-License-Identifier: Apache-2.0 */
/* Text for people, in lines of 80 columns (text.h). */
#include "cli/term/text.h"

#include <string.h>

#include "cli/cli.h"

void cli_wrap(size_t at, size_t left, const char *text) {
  (void)weir_tools_wrap(text, at, left, cli_out, NULL); /* cli_out keeps why */
}

void cli_indent(const char *before, const char *text) {
  while (*text != '\0') {
    size_t size = strcspn(text, "\n");
    cli_print("%s%.*s\n", before, (int)size, text);
    text += size + (text[size] == '\n');
  }
}
