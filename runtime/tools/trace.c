/* SPDX-License-Identifier: Apache-2.0 */
#include "placement/report/dump_json.h"
#include "placement/report/dump_observed.h"
#include "runtime/api/weir_plan.h"
#include "runtime/exec/gpu/gpus.h"
#include "runtime/exec/measure/measure.h"
#include "runtime/tools/tools.h"

/* A plan carried out here, beside its prediction. */

struct weir_tools_observed {
  weir_runtime *runtime;
  const weir_plan *plan;
  weir_measured *measured;
  weir_place_observed seen;
};

void weir_tools_observed_release(weir_tools_observed *o) {
  if (o == NULL) return;
  weir_runtime *runtime = o->runtime;
  weir_measured_release(o->measured);
  weir_free(runtime->env.alloc, o);
  weir_runtime_release(runtime);
}

/* Why |d| cannot do its part here. */
static weir_status fail_absent(const weir_place_device *d,
                               const weir_error *why, weir_error *err) {
  weir_status s =
      weir_fail(err, WEIR_W3047, NULL, "%.*s is no device of this process",
                WEIR_SV(d->name));
  if (why->message[0] != '\0') weir_hint(err, "%.200s", why->message);
  return s;
}

/* The devices that the plan uses must be in this process. */
static weir_status check_devices(const weir_plan *whole, weir_runtime *runtime,
                                 weir_error *err) {
  const weir_place_view *view = &whole->view;
  const weir_place_plan *plan = view->plan;
  weir_error why = WEIR_ERROR_INIT;
  uint32_t gpus = 0;
  bool asked = false;
  if (view->placement == NULL)
    return weir_fail(err, WEIR_W3047, NULL, "the plan is not of a graph");
  WEIR_TRY(weir_placing_check_runs(whole->placing, err));
  for (uint32_t n = 0; n < plan->node_count; n++) {
    const weir_place_device *d = &view->problem->devices[plan->device[n]];
    const weir_cluster_device *named =
        &view->placement->cluster->devices[plan->device[n]];
    if (weir_device_kinds[named->name.type]->host) continue;
    if (!asked) (void)weir_gpus_count(runtime->env.gpus, &gpus, &why);
    asked = true;
    if (named->name.type != WEIR_GPU ||
        named->name.index.first >= (int32_t)gpus)
      return fail_absent(d, &why, err);
  }
  return WEIR_OK;
}

/* The threads of the first node's device. */
static uint32_t first_threads(const weir_plan *plan) {
  const weir_cluster *cluster = plan->placement->cluster;
  if (plan->view.problem->node_count == 0) return 1;
  uint32_t device = plan->view.plan->device[0];
  return cluster->classes[cluster->devices[device].cls].threads;
}

/* Compiles it by the plan, and runs it if asked to. */
static weir_status observe(weir_tools_observed *o, const weir_graph *graph,
                           const weir_plan_opts *opts, bool runs,
                           weir_error *err) {
  const weir_plan *plan = o->plan;
  const weir_costs *costs = plan->placing->costs;
  const weir_allocator *alloc = o->runtime->env.alloc;
  weir_shape *shapes = NULL;
  weir_goal *goal = NULL;
  weir_status s = weir_plan_read_shapes(alloc, graph, opts, &shapes, err);
  if (s == WEIR_OK) s = weir_goal_create(graph, opts->inference, &goal, err);
  weir_measure_request request = {.goal = goal,
                                  .shapes = shapes,
                                  .placement = plan->placement,
                                  .plan = plan,
                                  .threads = weir_measure_threads(plan),
                                  .no_runs = !runs};
  if (s == WEIR_OK)
    s = weir_measure(&o->runtime->env, &request, &o->measured, err);
  weir_goal_release(goal);
  weir_free(alloc, shapes);
  if (s != WEIR_OK) return s;
  const weir_measured *m = o->measured;
  o->seen = (weir_place_observed){
      .step = m->step,
      .beside_ns = costs == NULL
                       ? 0
                       : weir_costs_step(costs, weir_device_kind_host(),
                                         first_threads(plan))
                             .median_ns,
      .nodes = m->units,
      .copies = m->copies,
      .node_start_ns = m->start_ns,
      .node_end_ns = m->end_ns,
      .copy_start_ns = m->copy_start_ns,
      .copy_end_ns = m->copy_end_ns,
      .device_bytes = m->device_bytes};
  return WEIR_OK;
}

weir_status weir_tools_plan_observe(const weir_plan *plan,
                                    weir_runtime *runtime,
                                    const weir_graph *graph,
                                    const weir_plan_opts *opts, bool runs,
                                    weir_tools_observed **out_observed,
                                    weir_error *err) {
  *out_observed = NULL;
  WEIR_TRY(check_devices(plan, runtime, err));
  weir_tools_observed *o = weir_alloc_array(runtime->env.alloc, 1, sizeof *o);
  if (o == NULL) return weir_fail_memory(err, sizeof *o);
  o->runtime = weir_runtime_ref(runtime);
  o->plan = plan;
  weir_status s = observe(o, graph, opts, runs, err);
  if (s == WEIR_OK)
    *out_observed = o;
  else
    weir_tools_observed_release(o);
  return s;
}

weir_status weir_tools_observed_write(const weir_tools_observed *o,
                                      weir_plan_form form, size_t most,
                                      weir_write_fn write, void *self,
                                      weir_error *err) {
  const weir_place_view *view = &o->plan->view;
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
