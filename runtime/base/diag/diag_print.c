/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/base/diag/diag_print.h"

#include "runtime/base/diag/diag.h"
#include "runtime/base/diag/diag_draw.h"
#include "runtime/base/diag/diag_out.h"
#include "runtime/base/json/json.h"

static const char *severity_name(const weir_diag *diag) {
  return diag->severity == WEIR_SEVERITY_ERROR ? "error" : "warning";
}

/* --- for people --- */

static void print_note(weir_diag_out *out, size_t width, const char *kind,
                       weir_diag_style style, const char *text) {
  if (text[0] == '\0') return;
  weir_out_repeat(out, ' ', 2 + width);
  weir_out_style(out, WEIR_STYLE_FRAME);
  weir_out_text(out, "= ");
  weir_out_style(out, style);
  weir_out_text(out, kind);
  weir_out_style(out, WEIR_STYLE_NONE);
  weir_out_text(out, ": ");
  weir_out_safe(out, weir_sv_from(text), "\n     ");
  weir_out_text(out, "\n");
}

static void print_human(weir_diag_out *out, const weir_diag *diag) {
  bool error = diag->severity == WEIR_SEVERITY_ERROR;
  weir_out_style(out, error ? WEIR_STYLE_ERROR : WEIR_STYLE_WARNING);
  weir_out_text(out, severity_name(diag));
  if (diag->error.id[0] != '\0') {
    weir_out_text(out, "[");
    weir_out_text(out, diag->error.id);
    weir_out_text(out, "]");
  }
  weir_out_style(out, WEIR_STYLE_NONE);
  weir_out_style(out, WEIR_STYLE_BOLD);
  weir_out_text(out, ": ");
  weir_out_safe(out, weir_sv_from(diag->error.message), "\n  ");
  weir_out_style(out, WEIR_STYLE_NONE);
  weir_out_text(out, "\n");
  size_t width = weir_diag_draw(out, diag);
  print_note(out, width, "node", WEIR_STYLE_BOLD, diag->error.node);
  for (uint32_t i = 0; i < diag->note_count; i++)
    print_note(out, width, "note", WEIR_STYLE_BOLD, diag->notes[i]);
  print_note(out, width, "help", WEIR_STYLE_HELP, diag->error.hint);
}

/* --- for editors --- */

static void print_gcc_line(weir_diag_out *out, const weir_mark *at,
                           const char *kind, const char *text, const char *id) {
  if (text[0] == '\0') return;
  if (at->file != NULL && at->file[0] != '\0') {
    weir_out_place(out, at->file, at->line, at->col);
    weir_out_text(out, ": ");
  }
  weir_out_text(out, kind);
  weir_out_text(out, ": ");
  weir_out_safe(out, weir_sv_from(text), "; ");
  if (id[0] != '\0') {
    weir_out_text(out, " [");
    weir_out_text(out, id);
    weir_out_text(out, "]");
  }
  weir_out_text(out, "\n");
}

static void print_gcc(weir_diag_out *out, const weir_diag *diag) {
  const weir_error *e = &diag->error;
  weir_mark at = {e->file, e->line, e->col, e->end_line, e->end_col};
  print_gcc_line(out, &at, severity_name(diag), e->message, e->id);
  print_gcc_line(out, &at, "note", diag->label, "");
  for (uint32_t i = 0; i < diag->label_count; i++)
    print_gcc_line(out, &diag->labels[i].at, "note", diag->labels[i].text, "");
  for (uint32_t i = 0; i < diag->note_count; i++)
    print_gcc_line(out, &at, "note", diag->notes[i], "");
  print_gcc_line(out, &at, "note", e->hint, "");
}

/* --- for programs --- */

static void json_text(weir_json_writer *w, const char *key, const char *text) {
  weir_json_key(w, key);
  weir_json_string(w, weir_sv_from(text));
}

static void json_place(weir_json_writer *w, const weir_mark *at) {
  if (at->file == NULL || at->file[0] == '\0') return;
  json_text(w, "file", at->file);
  if (at->line == 0) return;
  weir_json_key(w, "line");
  weir_json_uint(w, at->line);
  weir_json_key(w, "col");
  weir_json_uint(w, at->col);
  weir_json_key(w, "end_line");
  weir_json_uint(w, at->end_line);
  weir_json_key(w, "end_col");
  weir_json_uint(w, at->end_col);
}

static void json_labels(weir_json_writer *w, const weir_diag *diag) {
  weir_json_key(w, "labels");
  weir_json_array_begin(w, true);
  for (uint32_t i = 0; i < diag->label_count; i++) {
    weir_json_object_begin(w, true);
    json_place(w, &diag->labels[i].at);
    json_text(w, "text", diag->labels[i].text);
    weir_json_object_end(w);
  }
  weir_json_array_end(w);
}

static bool print_json(const weir_diag_printer *printer,
                       const weir_diag *diag) {
  const weir_error *e = &diag->error;
  weir_mark at = {e->file, e->line, e->col, e->end_line, e->end_col};
  weir_json_writer w;
  weir_json_writer_init(&w, printer->out, 0);
  weir_json_object_begin(&w, true);
  json_text(&w, "severity", severity_name(diag));
  json_text(&w, "id", e->id);
  json_place(&w, &at);
  json_text(&w, "node", e->node);
  json_text(&w, "message", e->message);
  json_text(&w, "label", diag->label);
  json_text(&w, "hint", e->hint);
  json_labels(&w, diag);
  weir_json_key(&w, "notes");
  weir_json_array_begin(&w, true);
  for (uint32_t i = 0; i < diag->note_count; i++)
    weir_json_string(&w, weir_sv_from(diag->notes[i]));
  weir_json_array_end(&w);
  weir_json_object_end(&w);
  return weir_json_finish(&w);
}

bool weir_diag_print(const weir_diag_printer *printer, const weir_diag *diag) {
  if (printer->format == WEIR_DIAG_JSON) return print_json(printer, diag);
  weir_diag_out out = {.printer = printer};
  if (printer->format == WEIR_DIAG_GCC)
    print_gcc(&out, diag);
  else
    print_human(&out, diag);
  weir_out_flush(&out);
  return !out.failed;
}
