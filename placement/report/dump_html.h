/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_PLACEMENT_DUMP_HTML_H_
#define WEIR_PLACEMENT_DUMP_HTML_H_

#include "placement/report/dump.h"
#include "runtime/graph/std/embedded.h"

/* Pages: one file, style and scripts built in, data as JSON, no network.
 *
 * Text of a graph's file reaches a page in two places. In the JSON every `<`
 * becomes \u003c, so that no name can end the element or open another; the
 * scripts put names into the page as text only. In the text `&`, `<` and `>`
 * are entities. The page's policy forbids everything from elsewhere. */

/* One page, in order. */
typedef struct weir_page {
  const char *title;
  /* Parts called "css" and "js", ended by a NULL name; the style of the plan's
   * page (dump_html.css) comes before them. */
  const weir_embedded *parts;
  const char *id; /* of the element with the JSON */
  const void *self;
  bool (*text)(const void *self, const weir_writer *out); /* the fold at the
                                                             bottom */
  bool (*json)(const void *self, const weir_writer *out);
} weir_page;

/* false: |out| failed. */
bool weir_page_write(const weir_page *page, const weir_writer *out);

/* One page that needs no network and holds the JSON: graph, timeline, memory,
 * search, table, explanations. */
bool weir_place_write_html(const weir_place_view *view, const weir_writer *out);

#endif
