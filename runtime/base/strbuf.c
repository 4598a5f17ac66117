/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/base/strbuf.h"

#include <stdarg.h>
#include <stdio.h>

#include "runtime/base/size.h"
#include "runtime/base/vec.h"

/* Capacity grows by half (weir_vec_grow), so n bytes appended one by one cost
 * O(n). A failure sticks: later calls do nothing, and weir_strbuf_status
 * reports it. */

void weir_strbuf_init(weir_strbuf *s, const weir_allocator *alloc) {
  *s = (weir_strbuf){.alloc = alloc};
}

void weir_strbuf_release(weir_strbuf *s) {
  weir_free(s->alloc, s->data);
  weir_strbuf_init(s, s->alloc);
}

void weir_strbuf_clear(weir_strbuf *s) {
  s->size = 0;
  s->failed = false;
  if (s->data != NULL) s->data[0] = '\0';
}

/* Room for |extra| more bytes and the NUL. */
static bool reserve(weir_strbuf *s, size_t extra) {
  size_t need;
  if (!s->failed)
    s->failed = !weir_size_add(extra, 1, &need) ||
                !weir_vec_grow(s->alloc, (void **)&s->data, &s->capacity,
                               s->size, need, 1);
  return !s->failed;
}

bool weir_strbuf_append(weir_strbuf *s, const char *data, size_t size) {
  if (!reserve(s, size)) return false;
  if (size > 0) memcpy(s->data + s->size, data, size);
  s->size += size;
  s->data[s->size] = '\0';
  return true;
}

bool weir_strbuf_text(weir_strbuf *s, const char *text) {
  return weir_strbuf_append(s, text, strlen(text));
}

bool weir_strbuf_sv(weir_strbuf *s, weir_sv text) {
  return weir_strbuf_append(s, text.data, text.size);
}

bool weir_strbuf_repeat(weir_strbuf *s, char c, size_t count) {
  if (!reserve(s, count)) return false;
  memset(s->data + s->size, c, count);
  s->size += count;
  s->data[s->size] = '\0';
  return true;
}

bool weir_strbuf_printf(weir_strbuf *s, const char *fmt, ...) {
  char text[256];
  va_list args, again;
  va_start(args, fmt);
  va_copy(again, args);
  int n = vsnprintf(text, sizeof text, fmt, args);
  bool ok = n >= 0 && reserve(s, (size_t)n);
  if (ok && (size_t)n < sizeof text) {
    ok = weir_strbuf_append(s, text, (size_t)n);
  } else if (ok) {
    vsnprintf(s->data + s->size, (size_t)n + 1, fmt, again);
    s->size += (size_t)n;
  }
  va_end(again);
  va_end(args);
  return ok;
}

weir_status weir_strbuf_status(const weir_strbuf *s, weir_error *err) {
  return s->failed ? weir_fail_memory(err, s->size + 1) : WEIR_OK;
}

weir_sv weir_strbuf_view(const weir_strbuf *s) {
  return (weir_sv){s->data != NULL ? s->data : "", s->size};
}

static bool write_to_strbuf(void *self, const char *data, size_t size) {
  return weir_strbuf_append(self, data, size);
}

weir_writer weir_strbuf_writer(weir_strbuf *s) {
  return (weir_writer){s, write_to_strbuf};
}
