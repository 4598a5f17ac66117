/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/base/status.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/table.h"

/* Errors are copied into fixed fields, so reporting lack of memory takes none.
 * Texts from outside are escaped on the way in: a message can be printed
 * anywhere. A caller may have been built with another version of the struct;
 * fields are only ever added at its end, so the bytes that both know come
 * first. */

typedef struct error_row {
  const char *id;
  weir_status status;
} error_row;

/* The size of weir_error in the first version: never changes. */
enum {
  WEIR_ERROR_SIZE_0 =
      offsetof(weir_error, hint) + sizeof(((weir_error *)0)->hint)
};

static const error_row kErrors[] = {
    [WEIR_W_NONE] = {"", WEIR_OK},
#define WEIR_ERROR(id, status, exit_code, title, text) \
  [WEIR_##id] = {#id, WEIR_##status},
#include "runtime/base/errors.def"
#undef WEIR_ERROR
};
WEIR_TABLE_OF(kErrors, WEIR_W_COUNT);

/* Copies |src| into dst[capacity], escaping control bytes and dropping a code
 * point that was cut in half. */
static void copy_escaped(char *dst, size_t capacity, const char *src) {
  size_t n = 0;
  for (; *src != '\0'; src++) {
    unsigned char c = (unsigned char)*src;
    bool control = c < 0x20 && c != '\n';
    if (n + (control ? 5 : 2) > capacity) break;
    if (control || c == 0x7f) {
      if (n + 5 > capacity) break;
      n += (size_t)snprintf(dst + n, 5, "\\x%02x", c);
    } else {
      dst[n++] = (char)c;
    }
  }
  if (*src != '\0') { /* cut: back up to the start of a code point */
    while (n > 0 && ((unsigned char)*src & 0xc0) == 0x80) {
      src--;
      n--;
    }
  }
  dst[n] = '\0';
}

weir_status weir_fail(weir_error *err, weir_error_id id, const weir_mark *at,
                      const char *fmt, ...) {
  const error_row *row = &kErrors[id];
  if (err == NULL) return row->status;
  err->code = row->status;
  snprintf(err->id, sizeof err->id, "%s", row->id);
  err->file[0] = err->node[0] = err->hint[0] = '\0';
  err->line = err->col = err->end_line = err->end_col = 0;
  if (at != NULL) {
    copy_escaped(err->file, sizeof err->file, at->file ? at->file : "");
    err->line = at->line;
    err->col = at->col;
    err->end_line = at->end_line;
    err->end_col = at->end_col;
  }
  char text[2 * sizeof err->message];
  va_list args;
  va_start(args, fmt);
  vsnprintf(text, sizeof text, fmt, args);
  va_end(args);
  copy_escaped(err->message, sizeof err->message, text);
  return row->status;
}

/* The bytes of |err| that its owner and we both know. Without a size it is
 * taken for the first version's. */
static size_t known_size(const weir_error *err) {
  if (err->struct_size < WEIR_ERROR_SIZE_0) return WEIR_ERROR_SIZE_0;
  return err->struct_size < sizeof *err ? err->struct_size : sizeof *err;
}

void weir_error_copy(weir_error *dst, const weir_error *src) {
  if (dst == NULL || dst == src) return;
  size_t size = known_size(dst), given = known_size(src);
  if (given < size) size = given;
  memcpy((char *)dst + sizeof dst->struct_size,
         (const char *)src + sizeof src->struct_size,
         size - sizeof dst->struct_size);
}

void weir_hint(weir_error *err, const char *fmt, ...) {
  if (err == NULL) return;
  char text[2 * sizeof err->hint];
  va_list args;
  va_start(args, fmt);
  vsnprintf(text, sizeof text, fmt, args);
  va_end(args);
  copy_escaped(err->hint, sizeof err->hint, text);
}

void weir_error_set_node(weir_error *err, const char *name, size_t size) {
  if (err == NULL || err->node[0] != '\0') return;
  char text[sizeof err->node];
  snprintf(text, sizeof text, "%.*s", (int)(size < 1024 ? size : 1024), name);
  copy_escaped(err->node, sizeof err->node, text);
}
