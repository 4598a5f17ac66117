/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_TOOLS_FMT_H_
#define WEIR_TOOLS_FMT_H_

#include "runtime/base/strbuf.h"

/* Inside `weir fmt` only: the values of a graph file. Every function takes text
 * that ends with NUL and gives the place behind what it read. */

/* How values are written where they stand. */
typedef struct weir_fmt_place {
  long shift;      /* columns by which the lines move to the right */
  bool calls;      /* scalars may be calls and types: blanks mean nothing */
  const char *row; /* start of the line, for the columns of comments */
} weir_fmt_place;

/* A flow collection, from its bracket to the one that closes it. */
const char *weir_fmt_flow(const char *p, const weir_fmt_place *place,
                          weir_strbuf *out);
/* A quoted scalar. */
const char *weir_fmt_quoted(const char *p, bool calls, weir_strbuf *out);
/* A plain scalar of |size| bytes. */
void weir_fmt_plain(const char *p, size_t size, bool calls, weir_strbuf *out);
/* A comment behind |size| columns of a line that began |before| bytes into
 * |out|: two blanks or more, where it stood if it can. */
const char *weir_fmt_comment(const char *p, const weir_fmt_place *place,
                             size_t before, weir_strbuf *out);

#endif
