/* SPDX-License-Identifier: Apache-2.0 */
#include "placement/dump_observed.h"
#include "runtime/weir_tools_costs.h"
#include "runtime/weir_tools_plan.h"

/* A plan carried out here, beside what it foretold. */

struct weir_tools_observed {
  weir_runtime *runtime;
  const weir_tools_plan *plan;
  weir_measured *measured;
  weir_cost_sample *copies;
  int64_t *copy_start_ns, *copy_end_ns;
  weir_place_observed seen;
};

void weir_tools_observed_release(weir_tools_observed *o) {
  if (o == NULL) return;
  weir_runtime *runtime = o->runtime;
  weir_measured_release(o->measured);
  weir_free(runtime->env.alloc, o->copies);
  weir_free(runtime->env.alloc, o->copy_start_ns);
  weir_free(runtime->env.alloc, o->copy_end_ns);
  weir_free(runtime->env.alloc, o);
  weir_runtime_release(runtime);
}

static weir_status make_room(weir_tools_observed *o, weir_error *err) {
  const weir_allocator *a = o->runtime->env.alloc;
  const weir_place_plan *plan = weir_tools_plan_view(o->plan)->plan;
  size_t n = (size_t)plan->copy_count + 1;
  o->copies = weir_alloc_array(a, n, sizeof *o->copies);
  o->copy_start_ns = weir_alloc_array(a, n, sizeof *o->copy_start_ns);
  o->copy_end_ns = weir_alloc_array(a, n, sizeof *o->copy_end_ns);
  if (o->copies == NULL || o->copy_start_ns == NULL || o->copy_end_ns == NULL)
    return weir_fail_memory(err, n * sizeof *o->copies);
  return WEIR_OK;
}

/* The devices that the plan uses must be in this process. */
static weir_status check_devices(const weir_place_view *view, weir_error *err) {
  uint32_t used = 0;
  for (uint32_t n = 0; n < view->plan->node_count; n++) {
    if (view->plan->device[n] > used) used = view->plan->device[n];
    if (view->problem->devices[view->plan->device[n]].cls != 0)
      return weir_fail(
          err, WEIR_W3047, NULL, "%.*s is no device of this process",
          WEIR_SV(view->problem->devices[view->plan->device[n]].name));
  }
  if (used > 0 || view->placement == NULL)
    return weir_fail(err, WEIR_W3047, NULL,
                     "the plan uses more than one device");
  return WEIR_OK;
}

static weir_status observe(weir_tools_observed *o, const weir_graph *graph,
                           bool inference, weir_error *err) {
  const weir_place_view *view = weir_tools_plan_view(o->plan);
  const weir_costs *costs = weir_tools_plan_costs(o->plan);
  const weir_graph *fixed = NULL;
  weir_plan_wanted w = {0};
  weir_status s = weir_tools_fix_batch(graph, &fixed, err);
  if (s == WEIR_OK) s = weir_want(fixed, inference, &w, err);
  if (s == WEIR_OK) {
    weir_measure_request request =
        weir_want_measured(fixed, &w, view->placement);
    s = weir_measure(&o->runtime->env, &request, &o->measured, err);
  }
  if (fixed != NULL) weir_want_end(fixed, &w);
  weir_graph_unref(fixed);
  if (s != WEIR_OK) return s;
  const weir_measured *m = o->measured;
  o->seen = (weir_place_observed){
      .step = m->step,
      .beside_ns = costs == NULL ? 0 : costs->step[0].median_ns,
      .nodes = m->units,
      .copies = o->copies,
      .node_start_ns = m->start_ns,
      .node_end_ns = m->end_ns,
      .copy_start_ns = o->copy_start_ns,
      .copy_end_ns = o->copy_end_ns,
      .memory_bytes = (int64_t)m->memory_bytes};
  return WEIR_OK;
}

weir_status weir_tools_plan_observe(const weir_tools_plan *plan,
                                    weir_runtime *runtime,
                                    const weir_graph *graph, bool inference,
                                    weir_tools_observed **out_observed,
                                    weir_error *err) {
  *out_observed = NULL;
  WEIR_TRY(check_devices(weir_tools_plan_view(plan), err));
  weir_tools_observed *o = weir_alloc_array(runtime->env.alloc, 1, sizeof *o);
  if (o == NULL) return weir_fail_memory(err, sizeof *o);
  o->runtime = weir_runtime_ref(runtime);
  o->plan = plan;
  weir_status s = make_room(o, err);
  if (s == WEIR_OK) s = observe(o, graph, inference, err);
  if (s == WEIR_OK)
    *out_observed = o;
  else
    weir_tools_observed_release(o);
  return s;
}

weir_status weir_tools_observed_write(const weir_tools_observed *o,
                                      weir_tools_plan_form form, size_t most,
                                      weir_write_fn write, void *self,
                                      weir_error *err) {
  const weir_place_view *view = weir_tools_plan_view(o->plan);
  weir_writer out = {self, write};
  if (form != WEIR_PLAN_JSON && form != WEIR_PLAN_TRACE)
    return weir_place_write_observed(
        view, &o->seen, most > UINT32_MAX ? UINT32_MAX : (uint32_t)most, &out,
        err);
  bool ok = form == WEIR_PLAN_JSON
                ? weir_place_write_observed_json(view, &o->seen, &out)
                : weir_place_write_observed_trace(view, &o->seen, &out);
  return ok ? WEIR_OK
            : weir_fail(err, WEIR_W5009, NULL,
                        "the trace could not be written");
}
