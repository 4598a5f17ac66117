/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/base/diag/diag_out.h"

#include <inttypes.h>
#include <stdio.h>

#include "runtime/base/table.h"
#include "runtime/base/utf8.h"

void weir_out_flush(weir_diag_out *out) {
  const weir_writer *to = &out->printer->out;
  if (out->used > 0 && !out->failed)
    out->failed = !to->write(to->self, out->buffer, out->used);
  out->used = 0;
}

void weir_out_bytes(weir_diag_out *out, const char *data, size_t size) {
  while (size > 0 && !out->failed) {
    if (out->used == sizeof out->buffer) weir_out_flush(out);
    size_t n = sizeof out->buffer - out->used;
    if (n > size) n = size;
    memcpy(out->buffer + out->used, data, n);
    out->used += n;
    data += n;
    size -= n;
  }
}

void weir_out_text(weir_diag_out *out, const char *text) {
  weir_out_bytes(out, text, strlen(text));
}

void weir_out_repeat(weir_diag_out *out, char c, size_t count) {
  for (size_t i = 0; i < count; i++) weir_out_bytes(out, &c, 1);
}

static void out_number(weir_diag_out *out, uint64_t value) {
  char text[24];
  int n = snprintf(text, sizeof text, "%" PRIu64, value);
  weir_out_bytes(out, text, (size_t)n);
}

void weir_out_safe(weir_diag_out *out, weir_sv text, const char *line_break) {
  while (text.size > 0) {
    uint32_t point = 0;
    size_t n = weir_utf8_decode(text, &point);
    char escape[8];
    if (n == 1 && point == '\n') {
      weir_out_text(out, line_break);
    } else if (n == 1 && weir_utf8_unsafe(point)) {
      snprintf(escape, sizeof escape, "\\x%02x", (unsigned)point);
      weir_out_text(out, escape);
    } else if (n == 0 || weir_utf8_unsafe(point)) {
      weir_out_text(out, "\xef\xbf\xbd"); /* U+FFFD */
    } else {
      weir_out_bytes(out, text.data, n);
    }
    n = n > 0 ? n : 1;
    text = (weir_sv){text.data + n, text.size - n};
  }
}

void weir_out_style(weir_diag_out *out, weir_diag_style style) {
  static const char *const kCodes[] = {
      [WEIR_STYLE_NONE] = "\x1b[0m",     [WEIR_STYLE_BOLD] = "\x1b[1m",
      [WEIR_STYLE_ERROR] = "\x1b[1;31m", [WEIR_STYLE_WARNING] = "\x1b[1;33m",
      [WEIR_STYLE_FRAME] = "\x1b[1;34m", [WEIR_STYLE_HELP] = "\x1b[1;36m"};
  WEIR_TABLE_OF(kCodes, WEIR_STYLE_COUNT);
  if (out->printer->color) weir_out_text(out, kCodes[style]);
}

void weir_out_place(weir_diag_out *out, const char *file, uint32_t line,
                    uint32_t col) {
  weir_out_safe(out, weir_sv_from(file), " ");
  if (line == 0) return;
  weir_out_text(out, ":");
  out_number(out, line);
  weir_out_text(out, ":");
  out_number(out, col);
}
