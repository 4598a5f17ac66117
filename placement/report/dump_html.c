/* SPDX-License-Identifier: Apache-2.0 */
#include "placement/report/dump_html.h"

#include "placement/report/dump_internal.h"
#include "placement/report/dump_json.h"

/* One page: style and scripts are built in, the plan is the canonical JSON.
 *
 * Text of a graph's file reaches the page in two places. In the JSON every
 * `<` becomes \u003c, so that no name can end the element or open another; the
 * scripts put names into the page as text only. In the summary `&`, `<` and `>`
 * are entities. The page's policy forbids everything from elsewhere. */

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
static bool write_parts(const weir_writer *out, const char *name) {
  bool ok = true;
  for (const weir_embedded *e = weir_embedded_dump; e->name != NULL; e++)
    if (strcmp(e->name, name) == 0 && ok)
      ok = out->write(out->self, (const char *)e->text, e->size);
  return ok;
}

bool weir_place_write_html(const weir_place_view *v, const weir_writer *out) {
  filter json = {out, true}, text = {out, false};
  const weir_writer json_out = {&json, write_filtered};
  const weir_writer text_out = {&text, write_filtered};
  return write_text(out,
                    "<!doctype html>\n<html lang=\"en\">\n<head>\n"
                    "<meta charset=\"utf-8\">\n"
                    "<meta name=\"viewport\" content=\"width=device-width\">\n"
                    "<meta http-equiv=\"Content-Security-Policy\" content=\""
                    "default-src 'none'; style-src 'unsafe-inline'; "
                    "script-src 'unsafe-inline'\">\n") &&
         weir_place_print(out, "<title>Placement %08x</title>\n<style>\n",
                          (uint32_t)weir_place_plan_hash(v)) &&
         write_parts(out, "css") &&
         write_text(out,
                    "</style>\n</head>\n<body>\n<div id=\"page\"></div>\n"
                    "<details id=\"text\" open><summary>As text</summary>\n"
                    "<pre>") &&
         weir_place_write_summary(v, &text_out) &&
         write_text(out,
                    "</pre></details>\n"
                    "<script type=\"application/json\" id=\"plan\">\n") &&
         weir_place_write_json(v, &json_out) &&
         write_text(out, "</script>\n<script>\n") && write_parts(out, "js") &&
         write_text(out, "</script>\n</body>\n</html>\n");
}
