/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_GRAPH_REPORT_H_
#define WEIR_GRAPH_REPORT_H_

#include "runtime/graph/load/loader.h"

/* Findings of the loader. */

/* Findings. All return false, so that callers can return them; |at| may be
 * NULL. */
bool weir_report(weir_loader *l, weir_error_id id, const weir_mark *at,
                 const char *fmt, ...) WEIR_PRINTF(4, 5);

/* The same in two steps: fill l->diag, add to it, send it. */
void weir_report_begin(weir_loader *l, weir_error_id id, const weir_mark *at,
                       const char *fmt, ...) WEIR_PRINTF(4, 5);

/* Sends l->diag. */
bool weir_report_send(weir_loader *l);

/* Reports that memory ran out. */
bool weir_report_memory(weir_loader *l);

/* A filled error of another room. */
bool weir_report_error(weir_loader *l, const weir_error *err);

/* True while more errors may be reported. */
bool weir_loader_going(const weir_loader *l);

/* Adds "did you mean" for |name| among |count| names to l->diag. */
void weir_report_nearest(weir_loader *l, weir_sv name, size_t count,
                         weir_sv (*name_at)(const void *self, size_t i),
                         const void *self);

/* W1014: more than |most| of |what|, with the option that allows more. Ends
 * loading; returns false. */
bool weir_report_too_many(weir_loader *l, const weir_mark *at, uint64_t most,
                          const char *what);

#endif
