/* SPDX-License-Identifier: Apache-2.0 */
/* A line of progress on standard error (terminal.h). */
#include "cli/term/terminal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/cli.h"

enum { USUAL_WIDTH = 80, MOST_WIDTH = 10000 };

bool cli_terminal(void) {
  const char *term = getenv("TERM");
  return isatty(2) && term != NULL && strcmp(term, "dumb") != 0;
}

int cli_terminal_width(void) {
  struct winsize size;
  int64_t columns = 0;
  const char *text = getenv("COLUMNS");
  if (ioctl(2, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  if (text != NULL && cli_parse_int(text, &columns) && columns > 0 &&
      columns <= MOST_WIDTH)
    return (int)columns;
  return USUAL_WIDTH;
}

void cli_terminal_draw(const char *text) {
  size_t room = (size_t)cli_terminal_width() - 1, columns = 0, size = 0;
  for (; text[size] != '\0'; size++) {
    bool starts = ((unsigned char)text[size] & 0xc0) != 0x80;
    if (starts && columns == room) break;
    columns += starts;
  }
  cli_note("\r%.*s\033[K", (int)size, text);
}

void cli_terminal_clear(void) {
  cli_note("\r\033[K");
}
