/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "placement/check.h"
#include "placement/place_details.h"
#include "placement/place_find.h"
#include "placement/plan_read.h"
#include "placement/report/dump_critical.h"
#include "placement/report/dump_diff.h"
#include "placement/report/dump_dot.h"
#include "placement/report/dump_explain.h"
#include "placement/report/dump_html.h"
#include "placement/report/dump_json.h"
#include "placement/report/dump_moves.h"
#include "placement/report/dump_parts.h"
#include "placement/report/dump_parts_dot.h"
#include "placement/report/dump_parts_json.h"
#include "runtime/api/weir_plan.h"
#include "runtime/base/table.h"

/* Plans as text, and texts beside plans. Each form is a row of a table; a form
 * that needs more than the plan (alternatives, parts) makes it first. */

static weir_status written(bool ok, const char *what, weir_error *err) {
  if (ok) return WEIR_OK;
  return weir_fail(err, WEIR_W5009, NULL, "the %s could not be written", what);
}

/* ---- Forms */

/* Writes one form. |what| is its subject, where it has one: a node, a device.
 */
typedef weir_status (*form_fn)(const weir_plan *plan, const char *what,
                               const weir_writer *out, weir_error *err);

static weir_status write_summary(const weir_plan *plan, const char *what,
                                 const weir_writer *out, weir_error *err) {
  (void)what;
  return written(weir_place_write_summary(&plan->view, out), "plan", err);
}

static weir_status write_table(const weir_plan *plan, const char *what,
                               const weir_writer *out, weir_error *err) {
  weir_place_view view = plan->view;
  if (what != NULL) view.nodes = weir_sv_from(what);
  return written(weir_place_write_table(&view, out), "plan", err);
}

/* The parts' rows; NULL for an instance's plan, which has none. */
static weir_status find_parts(const weir_plan *plan,
                              const weir_place_parts **out, weir_error *err) {
  const weir_plan_details *d = NULL;
  WEIR_TRY(weir_plan_details_get(plan, &d, err));
  *out = d != NULL ? d->parts : NULL;
  return WEIR_OK;
}

static weir_status with_alternatives(const weir_plan *plan, const char *what,
                                     bool (*write)(const weir_place_view *,
                                                   const weir_writer *),
                                     const weir_writer *out, weir_error *err) {
  weir_place_view view = plan->view;
  weir_place_alternative *all = NULL;
  if (what != NULL) view.nodes = weir_sv_from(what);
  /* Some nodes only: their parts would say too much. */
  if (what == NULL) WEIR_TRY(find_parts(plan, &view.parts, err));
  WEIR_TRY(weir_place_alternatives_create(&view, &all, err));
  view.alternatives = all;
  bool ok = write(&view, out);
  weir_free(view.alloc, all);
  return written(ok, "plan", err);
}

static weir_status write_json(const weir_plan *plan, const char *what,
                              const weir_writer *out, weir_error *err) {
  return with_alternatives(plan, what, weir_place_write_json, out, err);
}

static weir_status write_html(const weir_plan *plan, const char *what,
                              const weir_writer *out, weir_error *err) {
  (void)what;
  return with_alternatives(plan, NULL, weir_place_write_html, out, err);
}

static weir_status write_dot(const weir_plan *plan, const char *what,
                             const weir_writer *out, weir_error *err) {
  (void)what;
  return written(weir_place_write_dot(&plan->view, out), "plan", err);
}

static weir_status write_trace(const weir_plan *plan, const char *what,
                               const weir_writer *out, weir_error *err) {
  (void)what;
  return written(weir_place_write_trace(&plan->view, out), "plan", err);
}

static weir_status write_critical(const weir_plan *plan, const char *what,
                                  const weir_writer *out, weir_error *err) {
  (void)what;
  return weir_place_write_critical(&plan->view, out, err);
}

static weir_status write_explain(const weir_plan *plan, const char *what,
                                 const weir_writer *out, weir_error *err) {
  uint32_t at;
  if (what == NULL) return weir_fail_null(err, "what, a node's name,");
  WEIR_TRY(weir_place_find_node(plan, what, &at, err));
  return weir_place_write_explain(&plan->view, at, out, err);
}

static weir_status write_memory(const weir_plan *plan, const char *what,
                                const weir_writer *out, weir_error *err) {
  uint32_t at;
  if (what == NULL) return weir_fail_null(err, "what, a device's name,");
  WEIR_TRY(weir_place_find_device(plan, what, &at, err));
  return weir_place_write_memory(&plan->view, at, out, err);
}

static weir_status write_parts(const weir_plan *plan, const char *what,
                               const weir_writer *out, weir_error *err) {
  const weir_place_parts *parts;
  (void)what;
  WEIR_TRY(find_parts(plan, &parts, err));
  return written(weir_place_write_parts(parts, out), "parts", err);
}

static weir_status write_parts_json(const weir_plan *plan, const char *what,
                                    const weir_writer *out, weir_error *err) {
  const weir_place_parts *parts;
  (void)what;
  WEIR_TRY(find_parts(plan, &parts, err));
  return written(weir_place_write_parts_json(parts, out), "parts", err);
}

static weir_status write_parts_dot(const weir_plan *plan, const char *what,
                                   const weir_writer *out, weir_error *err) {
  const weir_place_parts *parts;
  (void)what;
  WEIR_TRY(find_parts(plan, &parts, err));
  return written(weir_place_write_parts_dot(parts, out), "parts", err);
}

weir_status weir_plan_write(const weir_plan *plan, weir_plan_form form,
                            const char *what, weir_write_fn write,
                            void *write_self, weir_error *err) {
  static const form_fn forms[] = {[WEIR_PLAN_SUMMARY] = write_summary,
                                  [WEIR_PLAN_TABLE] = write_table,
                                  [WEIR_PLAN_JSON] = write_json,
                                  [WEIR_PLAN_DOT] = write_dot,
                                  [WEIR_PLAN_TRACE] = write_trace,
                                  [WEIR_PLAN_CRITICAL] = write_critical,
                                  [WEIR_PLAN_EXPLAIN] = write_explain,
                                  [WEIR_PLAN_MEMORY] = write_memory,
                                  [WEIR_PLAN_HTML] = write_html,
                                  [WEIR_PLAN_PARTS_TEXT] = write_parts,
                                  [WEIR_PLAN_PARTS_JSON] = write_parts_json,
                                  [WEIR_PLAN_PARTS_DOT] = write_parts_dot};
  WEIR_TABLE_OF(forms, WEIR_PLAN_PARTS_DOT + 1);
  weir_writer out = {write_self, write};
  if (plan == NULL) return weir_fail_null(err, "plan");
  if (write == NULL) return weir_fail_null(err, "write");
  if ((size_t)form >= sizeof forms / sizeof *forms)
    return weir_fail(err, WEIR_W0004, NULL, "a plan has no form %d", (int)form);
  return forms[form](plan, what, &out, err);
}

/* ---- Texts beside a plan */

static weir_status read_beside(const weir_plan *plan,
                               const weir_plan_text *text,
                               weir_place_plan **out, weir_error *err) {
  weir_plan_text t;
  if (plan == NULL) return weir_fail_null(err, "plan");
  if (text == NULL) return weir_fail_null(err, "text");
  WEIR_TRY(WEIR_OPTS_READ(weir_plan_text, &t, text, err));
  if (t.json == NULL) return weir_fail_null(err, "weir_plan_text: json");
  return weir_place_plan_read(plan->alloc, plan->view.problem,
                              (weir_sv){t.json, t.size},
                              t.name != NULL ? t.name : "plan", out, err);
}

weir_status weir_plan_verify(const weir_plan *plan, const weir_plan_text *text,
                             weir_error *err) {
  weir_place_plan *other = NULL;
  WEIR_TRY(read_beside(plan, text, &other, err));
  weir_status s =
      weir_place_check(plan->alloc, plan->view.problem, other, NULL, err);
  weir_place_plan_release(other);
  return s;
}

weir_status weir_plan_diff(const weir_plan *plan, const weir_plan_text *before,
                           bool *out_same, weir_write_fn write,
                           void *write_self, weir_error *err) {
  weir_writer out = {write_self, write};
  weir_place_plan *other = NULL;
  bool same = false;
  if (plan == NULL) return weir_fail_null(err, "plan");
  if (write == NULL) return weir_fail_null(err, "write");
  const weir_allocator *a = plan->alloc;
  const weir_place_problem *problem = plan->view.problem;
  WEIR_TRY(read_beside(plan, before, &other, err));
  weir_place_view then = plan->view;
  int64_t *peaks = weir_alloc_array(a, problem->device_count, sizeof *peaks);
  if (peaks == NULL) {
    weir_place_plan_release(other);
    return weir_fail_memory(err, problem->device_count * sizeof *peaks);
  }
  then.plan = other;
  /* An unsound plan has no peaks. */
  then.peaks = weir_place_check(a, problem, other, peaks, NULL) == WEIR_OK
                   ? peaks
                   : NULL;
  bool ok = weir_place_write_diff(&then, &plan->view, &out, &same);
  weir_free(a, peaks);
  weir_place_plan_release(other);
  if (out_same != NULL) *out_same = same;
  return written(ok, "difference", err);
}

weir_status weir_plan_compare(const weir_plan *before, const weir_plan *after,
                              bool *out_same, weir_write_fn write,
                              void *write_self, weir_error *err) {
  weir_writer out = {write_self, write};
  bool same = false;
  if (before == NULL || after == NULL)
    return weir_fail_null(err, "before or after");
  if (write == NULL) return weir_fail_null(err, "write");
  if (before->view.problem->node_count != after->view.problem->node_count)
    return weir_fail(err, WEIR_W3016, NULL, "the plans have other nodes");
  bool ok = weir_place_write_diff(&before->view, &after->view, &out, &same);
  if (out_same != NULL) *out_same = same;
  return written(ok, "difference", err);
}
