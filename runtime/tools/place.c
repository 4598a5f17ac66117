/* SPDX-License-Identifier: Apache-2.0 */
#include "placement/bench/instance.h"
#include "placement/place_rules.h"
#include "placement/report/dump_internal.h"
#include "runtime/api/weir_plan.h"
#include "runtime/graph/train/train_spec.h"
#include "runtime/tools/tools.h"

/* Plans of instance files, task graphs of the literature, not weir's own; and
 * questions about placing that need no plan. */

enum { INSTANCE_BYTES = 256 << 20 };

static weir_status read_instance(weir_runtime *runtime, const char *path,
                                 uint32_t processors, weir_place_problem **out,
                                 weir_error *err) {
  const weir_fs *fs = runtime->env.fs;
  weir_file file = {0};
  WEIR_TRY(fs->read(fs->self, NULL, path, INSTANCE_BYTES, false, &file, err));
  weir_instance_options instance = {processors};
  weir_sv text = {(const char *)file.bytes.data, file.bytes.size};
  weir_status s =
      weir_instance_read(runtime->env.alloc, text, path, &instance, out, err);
  fs->close(fs->self, &file);
  return s;
}

weir_status weir_tools_place_file(weir_runtime *runtime, const char *path,
                                  const weir_plan_opts *opts,
                                  const weir_plan_text *replay,
                                  uint32_t processors, weir_plan **out_plan,
                                  weir_error *err) {
  plan_call call;
  weir_plan *plan = NULL;
  weir_place_problem *problem = NULL;
  *out_plan = NULL;
  weir_status s = weir_plan_call_begin(&call, runtime, NULL, opts, err);
  if (replay != NULL) {
    call.request.given = (weir_sv){replay->json, replay->size};
    call.request.given_name = replay->name;
    call.request.replay = true;
  }
  if (s == WEIR_OK) s = read_instance(runtime, path, processors, &problem, err);
  if (s == WEIR_OK)
    s = weir_place_problem_plan(runtime->env.alloc, problem, &call.request,
                                &plan, err);
  if (s == WEIR_OK) s = weir_plan_call_finish(&call, plan, out_plan, err);
  weir_plan_call_end(&call, runtime);
  return s;
}

/* Keys of `train` that have no effect; what is wrong with it, loading said. */
static void warn_of_unused(const weir_graph *graph,
                           void (*on_diag)(void *self, const weir_diag *diag),
                           void *self) {
  weir_error why = WEIR_ERROR_INIT;
  weir_train_spec *spec = NULL;
  weir_diag diag;
  if (graph->train == NULL ||
      weir_train_spec_read(graph, NULL, &spec, &why) != WEIR_OK)
    return;
  if (weir_train_unused(spec, &why)) {
    weir_diag_init(&diag, &why);
    diag.severity = WEIR_SEVERITY_WARNING;
    on_diag(self, &diag);
  }
  weir_train_spec_release(spec);
}

weir_status weir_tools_check_sections(const weir_graph *graph,
                                      void (*on_diag)(void *self,
                                                      const weir_diag *diag),
                                      void *self, weir_error *err) {
  weir_error why = WEIR_ERROR_INIT;
  warn_of_unused(graph, on_diag, self);
  weir_status s = weir_place_check_sections(graph->alloc, graph, &why);
  if (s == WEIR_OK) return s;
  weir_diag diag;
  weir_diag_init(&diag, &why);
  on_diag(self, &diag);
  weir_error_copy(err, &why);
  return s;
}

bool weir_tools_plan_has(const weir_plan *plan, const char *pattern) {
  weir_place_view view = plan->view;
  view.nodes = weir_sv_from(pattern);
  for (uint32_t n = 0; n < view.problem->node_count; n++)
    if (weir_place_is_wanted(&view, n)) return true;
  return false;
}
