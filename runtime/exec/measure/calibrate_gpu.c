/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/exec/measure/calibrate_gpu.h"

#include "placement/solve/assign.h"
#include "runtime/exec/measure/calibrate.h"

/* Units of GPUs are measured where they stand, as the host's are: a plan puts
 * all of them on GPUs that may be there, and is carried out. What may not be
 * there is on the host, and what crosses is copied; neither is in a unit's
 * time. One GPU of each task has all of its units. */

static bool is_gpu(const weir_place_device *device) {
  weir_device_name name;
  return weir_device_name_parse(device->name, &name, NULL, NULL) == WEIR_OK &&
         name.type == WEIR_GPU;
}

static uint32_t choose(weir_assigner *a, uint32_t node) {
  for (uint32_t d = 0; d < a->p->device_count; d++)
    if (weir_assign_may(a, node, d) && is_gpu(&a->p->devices[d])) return d;
  return weir_assign_pick(a, node, 0, 0);
}

static weir_status solve(const weir_allocator *alloc,
                         const weir_place_problem *problem,
                         const weir_place_options *options,
                         weir_place_result *out, weir_error *err) {
  static const weir_assign_rule rule = {.label = "GPUs first",
                                        .choose = choose};
  return weir_assign_solve(&rule, alloc, problem, options, out, err);
}

static const weir_placer kGpusFirst = {.name = "gpus_first", .solve = solve};

static weir_status run_plan(const weir_env *env, const weir_place_request *r,
                            const weir_plan *plan, weir_costs *costs,
                            weir_error *err) {
  weir_goal *goal = NULL;
  WEIR_TRY(weir_goal_create(r->graph, r->inference, &goal, err));
  weir_measure_request request = {.goal = goal,
                                  .shapes = r->shapes,
                                  .placement = plan->placement,
                                  .plan = plan,
                                  .threads = weir_measure_threads(plan)};
  weir_status s = weir_calibrate(env, &request, costs, err);
  weir_goal_release(goal);
  return s;
}

weir_status weir_calibrate_gpu(const weir_env *env, const weir_place_request *r,
                               weir_costs *costs, weir_error *err) {
  const weir_place_request request = {
      .graph = r->graph,
      .cluster = r->cluster,
      .machine = r->machine,
      .cluster_section = r->cluster_section,
      .options = {.strictness = r->options.strictness,
                  .placer = &kGpusFirst,
                  .in_process = true,
                  .ask = r->options.ask,
                  .ask_self = r->options.ask_self},
      .wishes = r->wishes,
      .wish_count = r->wish_count,
      .inference = r->inference,
      .shapes = r->shapes};
  weir_plan *plan = NULL;
  WEIR_TRY(weir_place_graph(env->alloc, &request, &plan, err));
  weir_status s = run_plan(env, r, plan, costs, err);
  weir_plan_unref(plan);
  return s;
}
