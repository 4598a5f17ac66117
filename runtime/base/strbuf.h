/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_BASE_STRBUF_H_
#define WEIR_BASE_STRBUF_H_

#include "runtime/base/alloc.h"
#include "runtime/base/status.h"
#include "runtime/base/sv.h"
#include "runtime/base/writer.h"

/* Text that grows, on an allocator. The first failure is kept: later appends do
 * nothing, so a dump is written straight through and asked once at the end:
 *
 *   weir_strbuf text;
 *   weir_strbuf_init(&text, alloc);
 *   weir_strbuf_printf(&text, "%zu nodes\n", count);
 *   weir_status s = weir_strbuf_status(&text, err);
 *   ...
 *   weir_strbuf_release(&text); */
typedef struct weir_strbuf {
  const weir_allocator *alloc;
  char *data; /* NUL-terminated once something was appended, else NULL */
  size_t size, capacity;
  bool failed;
} weir_strbuf;

void weir_strbuf_init(weir_strbuf *s, const weir_allocator *alloc);
/* Frees the text; |s| is empty, without failure, and may be used again. */
void weir_strbuf_release(weir_strbuf *s);
/* Empties the text but keeps its memory; clears a failure. */
void weir_strbuf_clear(weir_strbuf *s);

/* Append. Each returns false when out of memory; then the text is as it was. */
bool weir_strbuf_append(weir_strbuf *s, const char *data, size_t size);
bool weir_strbuf_text(weir_strbuf *s, const char *text);
bool weir_strbuf_sv(weir_strbuf *s, weir_sv text);
bool weir_strbuf_repeat(weir_strbuf *s, char c, size_t count);
bool weir_strbuf_printf(weir_strbuf *s, const char *fmt, ...) WEIR_PRINTF(2, 3);

/* WEIR_OK, or W6001 when an append has failed. */
weir_status weir_strbuf_status(const weir_strbuf *s, weir_error *err);

/* The text so far; lent until the next append. Never NULL. */
weir_sv weir_strbuf_view(const weir_strbuf *s);

/* A writer that appends to |s|, which must outlive it. */
weir_writer weir_strbuf_writer(weir_strbuf *s);

#endif
