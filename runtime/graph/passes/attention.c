/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/graph/pass/pass_attention.h"
#include "runtime/graph/pass/pass_def.h"

static weir_status note(const weir_graph *graph, weir_strbuf *text,
                        weir_error *err) {
  weir_graph *simple = NULL;
  WEIR_TRY(weir_pass_outputs(graph, &simple, err));
  weir_status s = weir_graph_attend_note(simple, text, err);
  weir_graph_unref(simple);
  return s;
}

const weir_pass_def weir_pass_attention = {
    .name = "attention",
    .summary = "one node in place of attention that is written in parts",
    .run = weir_pass_attended,
    .note = note,
};
