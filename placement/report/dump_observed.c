/* SPDX-License-Identifier: Apache-2.0 */
/* Predictions beside measurements, in three forms. All forms take their numbers
 * from row_of, so they cannot disagree. Rows are sorted by absolute difference:
 * the error of a step is made by a few nodes, and those come first. */
#include "placement/report/dump_observed.h"

#include <stdlib.h>

#include "placement/report/dump_internal.h"
#include "runtime/base/json/json_trace.h"

enum { SHOWN = 12 };

/* A node or copy: its predicted and its measured time. */
typedef struct row {
  int64_t predicted_ns, measured_ns, differs_ns;
  uint32_t node; /* that runs, or whose tensor moves */
  uint32_t device;
  bool copy;
} row;

static int64_t away(int64_t a, int64_t b) {
  return a > b ? a - b : b - a;
}

static row row_of(const weir_place_view *v, const weir_place_observed *seen,
                  uint32_t i) {
  const weir_place_plan *plan = v->plan;
  row r = {.node = i, .copy = i >= plan->node_count};
  if (r.copy) {
    const weir_place_copy *c = &plan->copies[i - plan->node_count];
    r.node = v->problem->tensor_node[c->tensor];
    r.device = c->to;
    r.predicted_ns = c->end_ns - c->start_ns;
    r.measured_ns = seen->copies[i - plan->node_count].median_ns;
  } else {
    r.device = plan->device[i];
    r.predicted_ns = plan->end_ns[i] - plan->start_ns[i];
    r.measured_ns = seen->nodes[i].median_ns;
  }
  r.differs_ns = away(r.predicted_ns, r.measured_ns);
  return r;
}

static int by_difference(const void *a, const void *b) {
  const row *x = a, *y = b;
  if (x->differs_ns != y->differs_ns)
    return x->differs_ns < y->differs_ns ? 1 : -1;
  if (x->copy != y->copy) return x->copy ? 1 : -1;
  return (x->node > y->node) - (x->node < y->node);
}

/* "-5.6 %" of |measured|. */
static const char *error_text(int64_t predicted, int64_t measured,
                              char text[32]) {
  if (measured == 0)
    snprintf(text, 32, predicted == 0 ? "0.0 %%" : "-");
  else
    snprintf(text, 32, "%+.1f %%",
             100.0 * (double)(predicted - measured) / (double)measured);
  return text;
}

/* ---- Text */

static bool write_step(const weir_place_view *v,
                       const weir_place_observed *seen,
                       const weir_writer *out) {
  char a[32], b[32], c[32], e[32];
  int64_t predicted = v->plan->makespan_ns + seen->beside_ns;
  return weir_place_print(
             out,
             "step: predicted %s, measured %s, error %s (median of %u, spread "
             "%u.%u %%)\n",
             weir_quantity_print_time(predicted, a),
             weir_quantity_print_time(seen->step.median_ns, b),
             error_text(predicted, seen->step.median_ns, e), seen->step.count,
             seen->step.spread_permille / 10,
             seen->step.spread_permille % 10) &&
         weir_place_print(out, "  of the prediction %s beside the units\n",
                          weir_quantity_print_time(seen->beside_ns, c));
}

static bool write_memory(const weir_place_view *v,
                         const weir_place_observed *seen,
                         const weir_writer *out) {
  char a[32], b[32];
  bool ok = true;
  for (uint32_t d = 0; d < v->problem->device_count && ok; d++)
    if (v->peaks[d] > 0 || seen->device_bytes[d] > 0)
      ok =
          weir_place_print(out, "memory of %.*s: predicted peak %s, taken %s\n",
                           WEIR_SV(v->problem->devices[d].name),
                           weir_quantity_print_bytes(v->peaks[d], a),
                           weir_quantity_print_bytes(seen->device_bytes[d], b));
  return ok;
}

/* How far off all together are, weighted by time. */
static bool write_total(const row *rows, uint32_t count, const char *what,
                        bool copies, const weir_writer *out) {
  double off = 0, all = 0;
  uint32_t n = 0;
  for (uint32_t i = 0; i < count; i++) {
    if (rows[i].copy != copies) continue;
    off += (double)rows[i].differs_ns;
    all += (double)rows[i].measured_ns;
    n++;
  }
  return weir_place_print(out, "%s: %u, error weighted by time %.1f %%\n", what,
                          n, all == 0 ? 0 : 100.0 * off / all);
}

static bool write_row(const weir_place_view *v, const row *r,
                      const weir_writer *out) {
  char name[300], a[32], b[32], e[32];
  return weir_place_print(out, "%-32s %-14s %-38.*s %12s %12s %10s\n",
                          weir_place_node_text(v->problem, r->node, name),
                          r->copy ? "copy to" : weir_place_op_text(v, r->node),
                          WEIR_SV(v->problem->devices[r->device].name),
                          weir_quantity_print_time(r->predicted_ns, a),
                          weir_quantity_print_time(r->measured_ns, b),
                          error_text(r->predicted_ns, r->measured_ns, e));
}

static weir_status fail_write(weir_error *err) {
  return weir_fail(err, WEIR_W5009, NULL, "the trace could not be written");
}

weir_status weir_place_write_observed(const weir_place_view *v,
                                      const weir_place_observed *seen,
                                      uint32_t most, const weir_writer *out,
                                      weir_error *err) {
  uint32_t count = v->plan->node_count + v->plan->copy_count;
  if (seen->step.count == 0)
    return write_memory(v, seen, out) ? WEIR_OK : fail_write(err);
  row *rows = weir_alloc_array(v->alloc, (size_t)count + 1, sizeof *rows);
  if (rows == NULL) return weir_fail_memory(err, count * sizeof *rows);
  for (uint32_t i = 0; i < count; i++) rows[i] = row_of(v, seen, i);
  bool ok = write_step(v, seen, out) && write_memory(v, seen, out) &&
            write_total(rows, count, "units", false, out) &&
            write_total(rows, count, "copies", true, out) &&
            weir_place_print(out, "%-32s %-14s %-38s %12s %12s %10s\n", "node",
                             "op", "device", "predicted", "measured", "error");
  qsort(rows, count, sizeof *rows, by_difference);
  if (most == 0) most = SHOWN;
  for (uint32_t i = 0; i < count && i < most && ok; i++)
    ok = write_row(v, &rows[i], out);
  if (ok && count > most)
    ok = weir_place_print(out, "... and %u that differ less\n", count - most);
  weir_free(v->alloc, rows);
  return ok ? WEIR_OK : fail_write(err);
}

/* ---- JSON */

static void write_times(weir_json_writer *w, const row *r,
                        const weir_cost_sample *sample, int64_t start_ns,
                        int64_t end_ns) {
  weir_json_key_int(w, "predicted_ns", r->predicted_ns);
  weir_json_key_int(w, "measured_ns", r->measured_ns);
  weir_json_key_int(w, "spread_permille", sample->spread_permille);
  weir_json_key_int(w, "start_ns", start_ns);
  weir_json_key_int(w, "end_ns", end_ns);
}

static void write_node(weir_json_writer *w, const weir_place_view *v,
                       const weir_place_observed *seen, uint32_t n) {
  char name[300];
  row r = row_of(v, seen, n);
  weir_json_object_begin(w, true);
  weir_json_key_int(w, "id", n);
  weir_json_key_text(w, "name",
                     weir_sv_from(weir_place_node_text(v->problem, n, name)));
  weir_json_key_text(w, "op", weir_sv_from(weir_place_op_text(v, n)));
  weir_json_key_text(w, "device", v->problem->devices[r.device].name);
  write_times(w, &r, &seen->nodes[n], seen->node_start_ns[n],
              seen->node_end_ns[n]);
  weir_json_object_end(w);
}

static void write_copy(weir_json_writer *w, const weir_place_view *v,
                       const weir_place_observed *seen, uint32_t i) {
  const weir_place_copy *c = &v->plan->copies[i];
  row r = row_of(v, seen, v->plan->node_count + i);
  weir_json_object_begin(w, true);
  weir_json_key_int(w, "tensor", c->tensor);
  weir_json_key_int(w, "node", r.node);
  weir_json_key_text(w, "from", v->problem->devices[c->from].name);
  weir_json_key_text(w, "to", v->problem->devices[c->to].name);
  weir_json_key_int(w, "bytes", v->problem->tensor_bytes[c->tensor]);
  write_times(w, &r, &seen->copies[i], seen->copy_start_ns[i],
              seen->copy_end_ns[i]);
  weir_json_object_end(w);
}

static void write_devices(weir_json_writer *w, const weir_place_view *v,
                          const weir_place_observed *seen) {
  weir_json_key(w, "devices");
  weir_json_array_begin(w, false);
  for (uint32_t d = 0; d < v->problem->device_count; d++) {
    weir_json_object_begin(w, true);
    weir_json_key_text(w, "name", v->problem->devices[d].name);
    weir_json_key_int(w, "predicted_peak_bytes", v->peaks[d]);
    weir_json_key_int(w, "memory_bytes", seen->device_bytes[d]);
    weir_json_object_end(w);
  }
  weir_json_array_end(w);
}

static void write_rows(weir_json_writer *w, const weir_place_view *v,
                       const weir_place_observed *seen) {
  weir_json_key(w, "nodes");
  weir_json_array_begin(w, false);
  for (uint32_t n = 0; n < v->plan->node_count; n++) write_node(w, v, seen, n);
  weir_json_array_end(w);
  weir_json_key(w, "edges");
  weir_json_array_begin(w, false);
  for (uint32_t i = 0; i < v->plan->copy_count; i++) write_copy(w, v, seen, i);
  weir_json_array_end(w);
}

bool weir_place_write_observed_json(const weir_place_view *v,
                                    const weir_place_observed *seen,
                                    const weir_writer *out) {
  weir_json_writer w;
  int64_t peak = 0, taken = 0;
  for (uint32_t d = 0; d < v->problem->device_count; d++) {
    peak += v->peaks[d];
    taken += seen->device_bytes[d];
  }
  weir_json_writer_init(&w, *out, 1);
  weir_json_object_begin(&w, false);
  weir_json_key_int(&w, "schema", 1);
  weir_json_key_int(&w, "makespan_ns", v->plan->makespan_ns);
  weir_json_key_int(&w, "beside_ns", seen->beside_ns);
  weir_json_key_int(&w, "predicted_ns", v->plan->makespan_ns + seen->beside_ns);
  weir_json_key_int(&w, "measured_ns", seen->step.median_ns);
  weir_json_key_int(&w, "low_ns", seen->step.low_ns);
  weir_json_key_int(&w, "spread_permille", seen->step.spread_permille);
  weir_json_key_int(&w, "runs", seen->step.count);
  weir_json_key_int(&w, "predicted_peak_bytes", peak);
  weir_json_key_int(&w, "memory_bytes", taken);
  write_devices(&w, v, seen);
  if (seen->step.count > 0) write_rows(&w, v, seen);
  weir_json_object_end(&w);
  return weir_json_finish(&w);
}

/* ---- Chrome trace: complete events, times in microseconds */

static void write_event(weir_json_writer *w, const weir_place_view *v,
                        const row *r, uint32_t lane, int64_t start_ns,
                        int64_t end_ns) {
  char name[300], error[32];
  if (start_ns < 0) return;
  weir_json_span_begin(
      w,
      &(weir_json_span){
          .name = weir_sv_from(weir_place_node_text(v->problem, r->node, name)),
          .category = r->copy ? "copy" : weir_place_op_text(v, r->node),
          .lane = lane,
          .start_ns = start_ns,
          .end_ns = end_ns});
  weir_json_key(w, "args");
  weir_json_object_begin(w, true);
  weir_json_key_int(w, "predicted_ns", r->predicted_ns);
  weir_json_key_int(w, "measured_ns", r->measured_ns);
  weir_json_key_text(
      w, "error",
      weir_sv_from(error_text(r->predicted_ns, r->measured_ns, error)));
  weir_json_object_end(w);
  weir_json_object_end(w);
}

static void write_lanes(weir_json_writer *w, const weir_place_problem *p) {
  static const char *const lanes[] = {
      "predicted ", "measured ", "predicted copies to ", "measured copies to "};
  char name[320];
  for (uint32_t d = 0; d < p->device_count; d++)
    for (uint32_t k = 0; k < 4; k++) {
      snprintf(name, sizeof name, "%s%.*s", lanes[k],
               WEIR_SV(p->devices[d].name));
      weir_json_lane(w, 4 * d + k, weir_sv_from(name));
    }
}

bool weir_place_write_observed_trace(const weir_place_view *v,
                                     const weir_place_observed *seen,
                                     const weir_writer *out) {
  weir_json_writer w;
  const weir_place_plan *plan = v->plan;
  weir_json_writer_init(&w, *out, 0);
  weir_json_object_begin(&w, false);
  weir_json_key_text(&w, "displayTimeUnit", WEIR_SV_LIT("ns"));
  weir_json_key(&w, "traceEvents");
  weir_json_array_begin(&w, false);
  write_lanes(&w, v->problem);
  for (uint32_t n = 0; n < plan->node_count; n++) {
    row r = row_of(v, seen, n);
    write_event(&w, v, &r, 4 * r.device, plan->start_ns[n], plan->end_ns[n]);
    write_event(&w, v, &r, 4 * r.device + 1, seen->node_start_ns[n],
                seen->node_end_ns[n]);
  }
  for (uint32_t i = 0; i < plan->copy_count; i++) {
    row r = row_of(v, seen, plan->node_count + i);
    write_event(&w, v, &r, 4 * r.device + 2, plan->copies[i].start_ns,
                plan->copies[i].end_ns);
    write_event(&w, v, &r, 4 * r.device + 3, seen->copy_start_ns[i],
                seen->copy_end_ns[i]);
  }
  weir_json_array_end(&w);
  weir_json_object_end(&w);
  return weir_json_finish(&w);
}
