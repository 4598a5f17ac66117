/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_GRAPH_PASS_DEF_H_
#define WEIR_GRAPH_PASS_DEF_H_

#include "runtime/base/strbuf.h"
#include "runtime/graph/graph.h"

/* Passes by name.
 *
 * A pass makes a graph of a graph. Programs call the passes' own functions,
 * for their feeds and fetches; a row here shows the result of one pass, or of
 * all up to one, for a graph file: `weir show graph --after NAME`. A row is one
 * const struct in passes/NAME.c and a word in the list of meson.build;
 * passes/null.c is one to copy. */

typedef struct weir_pass_def {
  const char *name;
  const char *summary; /* the graph after it, in words */
  const char *needs;   /* the section that the graph must have; NULL: none */
  /* Errors: the pass's own, W6001. */
  weir_status (*run)(const weir_graph *graph, weir_graph **out_graph,
                     weir_error *err);
  /* Appends lines on where the pass leaves |graph| as it is, and when programs
   * leave it out; NULL: there is nothing to say. Errors: W6001. */
  weir_status (*note)(const weir_graph *graph, weir_strbuf *text,
                      weir_error *err);
} weir_pass_def;

/* Pass |i|, in the order in which a graph goes through them; NULL past the last
 * one. */
const weir_pass_def *weir_pass_at(size_t i);

/* The graph after the pass that is called |name|. Errors: W0002 (no such pass,
 * or the graph lacks the section), the pass's own, W6001. */
weir_status weir_pass_run(const weir_graph *graph, const char *name,
                          weir_graph **out_graph, weir_error *err);

/* Appends the note of the pass that is called |name|, if it has one. Errors: as
 * weir_pass_run. */
weir_status weir_pass_note(const weir_graph *graph, const char *name,
                           weir_strbuf *text, weir_error *err);

/* The nodes that the graph's outputs need, simplified; for rows. Errors: W6001.
 */
weir_status weir_pass_outputs(const weir_graph *graph, weir_graph **out_graph,
                              weir_error *err);
/* The same with one node in place of attention in parts. Errors: W6001. */
weir_status weir_pass_attended(const weir_graph *graph, weir_graph **out_graph,
                               weir_error *err);
/* That with batch norms folded into their convolutions. Errors: W6001. */
weir_status weir_pass_norms_folded(const weir_graph *graph,
                                   weir_graph **out_graph, weir_error *err);

#endif
