/* SPDX-License-Identifier: Apache-2.0 */
#include "placement/report/dump_html.h"

#include <stdio.h>
#include <string.h>

#include "placement/report/dump_internal.h"
#include "placement/report/dump_json.h"

/* ---- Any page */

typedef struct filter {
  const weir_writer *out;
  bool json;
} filter;

static const char *replacement(const filter *f, char c) {
  if (c == '<') return f->json ? "\\u003c" : "&lt;";
  if (f->json) return NULL;
  return c == '&' ? "&amp;" : c == '>' ? "&gt;" : NULL;
}

static bool write_filtered(void *self, const char *data, size_t size) {
  const filter *f = self;
  size_t from = 0;
  for (size_t i = 0; i < size; i++) {
    const char *text = replacement(f, data[i]);
    if (text == NULL) continue;
    if (i > from && !f->out->write(f->out->self, data + from, i - from))
      return false;
    if (!f->out->write(f->out->self, text, strlen(text))) return false;
    from = i + 1;
  }
  return from == size || f->out->write(f->out->self, data + from, size - from);
}

static bool write_text(const weir_writer *out, const char *text) {
  return out->write(out->self, text, strlen(text));
}

/* The parts called |name|, one after the other. */
static bool write_parts(const weir_embedded *parts, const char *name,
                        const weir_writer *out) {
  bool ok = true;
  for (const weir_embedded *e = parts; e->name != NULL; e++)
    if (strcmp(e->name, name) == 0 && ok)
      ok = out->write(out->self, (const char *)e->text, e->size);
  return ok;
}

bool weir_page_write(const weir_page *page, const weir_writer *out) {
  filter json = {out, true}, text = {out, false};
  const weir_writer json_out = {&json, write_filtered};
  const weir_writer text_out = {&text, write_filtered};
  return write_text(out,
                    "<!doctype html>\n<html lang=\"en\">\n<head>\n"
                    "<meta charset=\"utf-8\">\n"
                    "<meta name=\"viewport\" content=\"width=device-width\">\n"
                    "<meta http-equiv=\"Content-Security-Policy\" content=\""
                    "default-src 'none'; style-src 'unsafe-inline'; "
                    "script-src 'unsafe-inline'\">\n<title>") &&
         write_text(&text_out, page->title) &&
         write_text(out, "</title>\n<style>\n") &&
         write_parts(weir_embedded_dump, "css", out) &&
         (page->parts == weir_embedded_dump ||
          write_parts(page->parts, "css", out)) &&
         write_text(out,
                    "</style>\n</head>\n<body>\n<div id=\"page\"></div>\n"
                    "<details id=\"text\" open><summary>As text</summary>\n"
                    "<pre>") &&
         page->text(page->self, &text_out) &&
         write_text(out,
                    "</pre></details>\n"
                    "<script type=\"application/json\" id=\"") &&
         write_text(out, page->id) && write_text(out, "\">\n") &&
         page->json(page->self, &json_out) &&
         write_text(out, "</script>\n<script>\n") &&
         write_parts(page->parts, "js", out) &&
         write_text(out, "</script>\n</body>\n</html>\n");
}

/* ---- The plan's */

static bool write_summary(const void *self, const weir_writer *out) {
  return weir_place_write_summary(self, out);
}

/* The canonical JSON. */
static bool write_plan(const void *self, const weir_writer *out) {
  return weir_place_write_json(self, out);
}

bool weir_place_write_html(const weir_place_view *v, const weir_writer *out) {
  char title[32];
  snprintf(title, sizeof title, "Placement %08x",
           (uint32_t)weir_place_plan_hash(v));
  const weir_page page = {.title = title,
                          .parts = weir_embedded_dump,
                          .id = "plan",
                          .self = v,
                          .text = write_summary,
                          .json = write_plan};
  return weir_page_write(&page, out);
}
