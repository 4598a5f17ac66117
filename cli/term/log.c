/* SPDX-License-Identifier: Apache-2.0 */
/* Lines about progress where standard error is no terminal (log.h). */
#include "cli/term/log.h"

#include <string.h>
#include <time.h>

#include "cli/cli.h"

void cli_log_begin(const char *level, const char *event) {
  char stamp[32];
  time_t now = time(NULL);
  struct tm tm;
  gmtime_r(&now, &tm);
  strftime(stamp, sizeof stamp, "%Y-%m-%dT%H:%M:%SZ", &tm);
  cli_note("%s %s event=%s", stamp, level, event);
}

void cli_log_uint(const char *key, uint64_t value) {
  cli_note(" %s=%llu", key, (unsigned long long)value);
}

void cli_log_number(const char *key, double value, int digits) {
  cli_note(" %s=%.*g", key, digits, value);
}

void cli_log_text(const char *key, const char *text) {
  bool bare = *text != '\0' && strpbrk(text, " \t\n\"=\\") == NULL;
  cli_note(" %s=%s", key, bare ? "" : "\"");
  for (; *text != '\0'; text++)
    if (*text == '\n')
      cli_note("\\n");
    else
      cli_note("%s%c", strchr("\"\\", *text) != NULL ? "\\" : "", *text);
  if (!bare) cli_note("\"");
}

void cli_log_end(void) {
  cli_note("\n");
}
