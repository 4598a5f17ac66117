/* SPDX-License-Identifier: Apache-2.0 */
/* Lines about progress where standard error is no terminal (log.h). */
#include "cli/term/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cli/cli.h"

/* A line goes out in one piece: other processes write to the same file. One
 * that does not fit goes out in several. */
static _Thread_local char t_line[8192];
static _Thread_local size_t t_size;

static void put_out(void) {
  if (t_size > 0) cli_note("%.*s", (int)t_size, t_line);
  t_size = 0;
}

__attribute__((format(printf, 1, 0))) static bool fits(const char *format,
                                                       va_list args) {
  size_t room = sizeof t_line - t_size;
  int n = vsnprintf(t_line + t_size, room, format, args);
  if (n < 0 || (size_t)n >= room) return false;
  t_size += (size_t)n;
  return true;
}

__attribute__((format(printf, 1, 2))) static void add(const char *format, ...) {
  va_list args;
  va_start(args, format);
  bool done = fits(format, args);
  va_end(args);
  if (done) return;
  put_out();
  va_start(args, format);
  (void)fits(format, args);
  va_end(args);
}

void cli_log_begin(const char *level, const char *event) {
  char stamp[32];
  time_t now = time(NULL);
  struct tm tm;
  gmtime_r(&now, &tm);
  strftime(stamp, sizeof stamp, "%Y-%m-%dT%H:%M:%SZ", &tm);
  add("%s %s event=%s", stamp, level, event);
}

void cli_log_uint(const char *key, uint64_t value) {
  add(" %s=%llu", key, (unsigned long long)value);
}

void cli_log_number(const char *key, double value, int digits) {
  add(" %s=%.*g", key, digits, value);
}

void cli_log_text(const char *key, const char *text) {
  bool bare = *text != '\0' && strpbrk(text, " \t\n\"=\\") == NULL;
  add(" %s=%s", key, bare ? "" : "\"");
  for (; *text != '\0'; text++)
    if (*text == '\n')
      add("\\n");
    else
      add("%s%c", strchr("\"\\", *text) != NULL ? "\\" : "", *text);
  if (!bare) add("\"");
}

void cli_log_end(void) {
  add("\n");
  put_out();
}
