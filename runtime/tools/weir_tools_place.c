/* SPDX-License-Identifier: Apache-2.0 */
#include "placement/bench/instance.h"
#include "placement/check.h"
#include "placement/parts/partition_check.h"
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
#include "runtime/exec/measure/calibrate_link.h"
#include "runtime/tools/weir_tools_costs.h"
#include "runtime/tools/weir_tools_plan.h"

/* Plans for the command: what it asks for, in the words of placement/place.h,
 * and how a plan is written. */

void weir_tools_plan_release(weir_tools_plan *p) {
  if (p == NULL) return;
  weir_runtime *runtime = p->runtime;
  weir_plan_unref(p->plan);
  weir_free(runtime->env.alloc, p);
  weir_runtime_release(runtime);
}

static weir_status plan_begin(weir_runtime *runtime, weir_tools_plan **out,
                              weir_error *err) {
  weir_tools_plan *p = weir_alloc_array(runtime->env.alloc, 1, sizeof *p);
  if (p == NULL) return weir_fail_memory(err, sizeof *p);
  p->runtime = weir_runtime_ref(runtime);
  *out = p;
  return WEIR_OK;
}

const weir_plan *weir_tools_plan_get(const weir_tools_plan *p) {
  return p->plan;
}

weir_status weir_tools_plan_keep(weir_runtime *runtime, const weir_plan *plan,
                                 weir_tools_plan **kept, weir_error *err) {
  weir_tools_plan *p = NULL;
  if (*kept != NULL &&
      (*kept)->plan->view.problem->node_count >= plan->view.problem->node_count)
    return WEIR_OK;
  WEIR_TRY(plan_begin(runtime, &p, err));
  p->plan = weir_plan_ref(plan);
  weir_tools_plan_release(*kept);
  *kept = p;
  return WEIR_OK;
}

/* ---- What is asked for */

/* NULL: there is none of that name. */
static const weir_place_objective *objective_of(
    const weir_tools_place_opts *o) {
  return o->objective == NULL ? weir_place_objective_at(0)
                              : weir_place_objective_find(o->objective);
}

static weir_status read_opts(const weir_tools_place_opts *opts,
                             weir_tools_place_opts *out, weir_error *err) {
  *out = (weir_tools_place_opts){0};
  if (opts == NULL) return WEIR_OK;
  WEIR_TRY(
      weir_opts_read(out, sizeof *out, opts, 8, "weir_tools_place_opts", err));
  if (objective_of(out) == NULL)
    return weir_fail(err, WEIR_W0002, NULL, "invalid objective %.40s",
                     out->objective);
  return WEIR_OK;
}

typedef struct forward {
  void (*on_diag)(void *self, const weir_diag *diag);
  void *self;
} forward;

static void report(void *self, const weir_diag *diag) {
  const forward *f = self;
  if (f->on_diag != NULL) f->on_diag(f->self, diag);
}

/* |o| as a request, all of it lent. */
static weir_status make_request(const weir_runtime *runtime,
                                const weir_tools_place_opts *o,
                                const weir_diag_sink *sink,
                                weir_place_request *out, weir_error *err) {
  *out = (weir_place_request){
      .cluster = o->cluster,
      .options = {.strictness = o->strictness < 0    ? WEIR_PLACE_SOFT
                                : o->strictness == 0 ? WEIR_PLACE_WARN
                                                     : WEIR_PLACE_STRICT,
                  .objective = objective_of(o),
                  .seed = o->seed,
                  .moves = o->moves,
                  .portfolio_only = o->portfolio_only,
                  .budget_ns = o->budget_ns,
                  .clock = runtime->env.clock,
                  .microbatches = o->microbatches,
                  .in_process = o->in_process},
      .sink = sink,
      .inference = o->inference,
      .open = o->open,
      .given = {o->given, o->given == NULL ? 0 : o->given_size},
      .given_name = o->given_name,
      .replay = o->replay,
      .changes = o->changes,
      .change_count = o->change_count,
      .before = o->before == NULL ? NULL : o->before->plan};
  if (o->placer == NULL) return WEIR_OK;
  return weir_placer_choose(o->placer, &out->options.placer, &out->options.seed,
                            err);
}

/* ---- Graphs */

/* The units of what |r| wants, which has no place yet. */
static weir_status lower(const weir_place_request *r, const weir_goal *goal,
                         const weir_cluster *cluster, weir_placement **out,
                         weir_error *err) {
  const weir_graph *g = goal->graph;
  weir_lower_options options = {
      .strictness = r->options.strictness,
      .logical = r->graph->mesh != NULL && r->graph->mesh->logical};
  weir_cut *cut = NULL;
  weir_shape *shapes =
      weir_alloc_array(g->alloc, g->input_count, sizeof *shapes);
  if (shapes == NULL)
    return weir_fail_memory(err, g->input_count * sizeof *shapes);
  weir_status s = weir_graph_input_shapes(g, r->shapes, 0, shapes, err);
  if (s == WEIR_OK) s = weir_goal_cut(goal, shapes, &cut, err);
  if (s == WEIR_OK)
    s = weir_placement_create(g->alloc, cut->graph, cluster, &options, out,
                              err);
  weir_cut_release(cut);
  weir_free(g->alloc, shapes);
  return s;
}

/* Measures those units, and what a copy takes where there may be some. */
static weir_status measure(weir_runtime *runtime, const weir_place_request *r,
                           weir_costs **costs, weir_error *err) {
  weir_cluster *cluster = NULL;
  weir_placement *units = NULL;
  weir_goal *goal = NULL;
  weir_status s = weir_cluster_choose(runtime->env.alloc, r->graph, r->cluster,
                                      &cluster, err);
  if (s == WEIR_OK) s = weir_goal_create(r->graph, r->inference, &goal, err);
  if (s == WEIR_OK) s = lower(r, goal, cluster, &units, err);
  if (s == WEIR_OK) {
    weir_measure_request request = {
        .goal = goal, .shapes = r->shapes, .placement = units};
    s = weir_tools_costs_measure(runtime, &request, costs, err);
  }
  if (s == WEIR_OK && cluster->device_count > 1)
    s = weir_calibrate_link(&runtime->env, *costs, err);
  weir_placement_release(units);
  weir_goal_release(goal);
  weir_cluster_release(cluster);
  return s;
}

/* The costs of the file, and what is measured now. */
static weir_status find_costs(weir_runtime *runtime,
                              const weir_tools_place_opts *o,
                              const weir_place_request *r, weir_costs **costs,
                              weir_error *err) {
  if (o->costs != NULL)
    WEIR_TRY(weir_tools_costs_read(runtime, o->costs, o->calibrate, r->sink,
                                   costs, err));
  if (!o->calibrate) return WEIR_OK;
  WEIR_TRY(measure(runtime, r, costs, err));
  return o->costs == NULL
             ? WEIR_OK
             : weir_tools_costs_save(runtime, *costs, o->costs, err);
}

/* Shapes of what will be fed, per input; to be freed. */
static weir_status find_shapes(const weir_graph *g,
                               const weir_tools_place_opts *o, weir_shape **out,
                               weir_error *err) {
  *out = weir_alloc_array(g->alloc, g->input_count, sizeof **out);
  if (*out == NULL) return weir_fail_memory(err, g->input_count * sizeof **out);
  for (uint32_t i = 0; i < g->input_count; i++)
    (*out)[i] = (weir_shape){.rank = WEIR_RANK_UNKNOWN};
  for (size_t k = 0; k < o->feed_count; k++) {
    weir_value_id value;
    WEIR_TRY(weir_find_input(g, o->feeds[k].name, &value, err));
    for (uint32_t i = 0; i < g->input_count; i++)
      if (g->inputs[i].value == value) (*out)[i] = o->feeds[k].tensor->shape;
  }
  return WEIR_OK;
}

static weir_status place(weir_tools_plan *p, const weir_graph *graph,
                         const weir_tools_place_opts *o,
                         const weir_diag_sink *sink, weir_error *err) {
  weir_costs *costs = NULL;
  weir_place_request r;
  WEIR_TRY(make_request(p->runtime, o, sink, &r, err));
  r.graph = graph;
  weir_shape *shapes = NULL;
  weir_status s = find_shapes(graph, o, &shapes, err);
  r.shapes = shapes;
  if (s == WEIR_OK) s = find_costs(p->runtime, o, &r, &costs, err);
  r.costs = costs;
  if (s == WEIR_OK)
    s = weir_place_graph(p->runtime->env.alloc, &r, &p->plan, err);
  weir_costs_release(costs);
  weir_free(graph->alloc, shapes);
  return s;
}

weir_status weir_tools_place_graph(weir_runtime *runtime,
                                   const weir_graph *graph,
                                   const weir_tools_place_opts *opts,
                                   weir_tools_plan **out_plan,
                                   weir_error *err) {
  weir_tools_place_opts o;
  weir_tools_plan *p = NULL;
  *out_plan = NULL;
  WEIR_TRY(read_opts(opts, &o, err));
  WEIR_TRY(plan_begin(runtime, &p, err));
  forward f = {o.on_diag, o.on_diag_self};
  weir_diag_sink sink = {&f, report};
  weir_status s = place(p, graph, &o, &sink, err);
  if (s == WEIR_OK)
    *out_plan = p;
  else
    weir_tools_plan_release(p);
  return s;
}

/* ---- Instances */

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
                                  const weir_tools_place_opts *opts,
                                  weir_tools_plan **out_plan, weir_error *err) {
  weir_tools_place_opts o;
  weir_tools_plan *p = NULL;
  weir_place_request r;
  weir_place_problem *problem = NULL;
  *out_plan = NULL;
  WEIR_TRY(read_opts(opts, &o, err));
  WEIR_TRY(make_request(runtime, &o, NULL, &r, err));
  WEIR_TRY(plan_begin(runtime, &p, err));
  weir_status s = read_instance(runtime, path, o.processors, &problem, err);
  if (s == WEIR_OK)
    s = weir_place_problem_plan(runtime->env.alloc, problem, &r, &p->plan, err);
  if (s == WEIR_OK)
    *out_plan = p;
  else
    weir_tools_plan_release(p);
  return s;
}

/* ---- Showing */

/* The rows of |plan|; NULL for an instance's, which has none. */
static weir_status make_parts(const weir_plan *plan, weir_place_parts **out,
                              weir_error *err) {
  const weir_partition *partition;
  *out = NULL;
  WEIR_TRY(weir_plan_partition(plan, &partition, err));
  if (partition == NULL) return WEIR_OK;
  return weir_place_parts_create(plan->alloc, plan->placement, partition, out,
                                 err);
}

static weir_status write_parts(const weir_tools_plan *p,
                               weir_tools_plan_form form,
                               const weir_writer *out, weir_error *err) {
  weir_place_parts *parts = NULL;
  WEIR_TRY(make_parts(p->plan, &parts, err));
  bool ok = form == WEIR_PLAN_PARTS ? weir_place_write_parts(parts, out)
            : form == WEIR_PLAN_PARTS_JSON
                ? weir_place_write_parts_json(parts, out)
                : weir_place_write_parts_dot(parts, out);
  weir_place_parts_release(parts);
  return ok ? WEIR_OK
            : weir_fail(err, WEIR_W5009, NULL, "the parts cannot be written");
}

weir_status weir_tools_plan_write(const weir_tools_plan *p,
                                  weir_tools_plan_form form, const char *what,
                                  weir_write_fn write, void *self,
                                  weir_error *err) {
  static bool (*const forms[])(const weir_place_view *, const weir_writer *) = {
      [WEIR_PLAN_SUMMARY] = weir_place_write_summary,
      [WEIR_PLAN_TABLE] = weir_place_write_table,
      [WEIR_PLAN_JSON] = weir_place_write_json,
      [WEIR_PLAN_DOT] = weir_place_write_dot,
      [WEIR_PLAN_TRACE] = weir_place_write_trace,
      [WEIR_PLAN_HTML] = weir_place_write_html};
  weir_writer out = {self, write};
  weir_place_view view = p->plan->view;
  weir_place_alternative *all = NULL;
  weir_place_parts *parts = NULL;
  uint32_t at;
  if (form >= WEIR_PLAN_PARTS) return write_parts(p, form, &out, err);
  if (form == WEIR_PLAN_CRITICAL)
    return weir_place_write_critical(&p->plan->view, &out, err);
  if (form == WEIR_PLAN_EXPLAIN) {
    WEIR_TRY(weir_place_find_node(p->plan, what, &at, err));
    return weir_place_write_explain(&p->plan->view, at, &out, err);
  }
  if (form == WEIR_PLAN_MEMORY) {
    WEIR_TRY(weir_place_find_device(p->plan, what, &at, err));
    return weir_place_write_memory(&p->plan->view, at, &out, err);
  }
  bool full = form == WEIR_PLAN_JSON || form == WEIR_PLAN_HTML;
  weir_status s = WEIR_OK;
  if (full) s = weir_place_alternatives_create(&view, &all, err);
  if (s == WEIR_OK && full && what == NULL)
    s = make_parts(p->plan, &parts, err);
  view.alternatives = all;
  view.parts = parts;
  if (what != NULL && (form == WEIR_PLAN_JSON || form == WEIR_PLAN_TABLE))
    view.nodes = weir_sv_from(what);
  if (s == WEIR_OK && !forms[form](&view, &out))
    s = weir_fail(err, WEIR_W5009, NULL, "the plan could not be written");
  weir_free(view.alloc, all);
  weir_place_parts_release(parts);
  return s;
}

weir_status weir_tools_plan_verify(const weir_tools_plan *p, const char *json,
                                   size_t size, const char *name,
                                   weir_error *err) {
  weir_place_plan *other = NULL;
  const weir_allocator *a = p->runtime->env.alloc;
  WEIR_TRY(weir_place_plan_read(a, p->plan->view.problem, (weir_sv){json, size},
                                name, &other, err));
  weir_partition *cut = NULL;
  const weir_placement *placement = p->plan->placement;
  weir_status s = weir_place_check(a, p->plan->view.problem, other, NULL, err);
  if (s == WEIR_OK && placement != NULL)
    s = weir_partition_create(a, placement, other, &cut, err);
  if (cut != NULL) s = weir_partition_check(placement->graph, cut, err);
  weir_partition_release(cut);
  weir_place_plan_release(other);
  return s;
}

weir_status weir_tools_plan_diff(const weir_tools_plan *p, const char *json,
                                 size_t size, const char *name, bool *same,
                                 weir_write_fn write, void *self,
                                 weir_error *err) {
  weir_writer out = {self, write};
  weir_place_view before = p->plan->view;
  weir_place_plan *other = NULL;
  WEIR_TRY(weir_place_plan_read(p->runtime->env.alloc, p->plan->view.problem,
                                (weir_sv){json, size}, name, &other, err));
  before.plan = other;
  int64_t *peaks =
      weir_alloc_array(p->runtime->env.alloc,
                       p->plan->view.problem->device_count, sizeof *peaks);
  before.peaks = peaks; /* unsound plans have none */
  if (peaks != NULL &&
      weir_place_check(p->runtime->env.alloc, p->plan->view.problem, other,
                       peaks, NULL) != WEIR_OK)
    before.peaks = NULL;
  bool ok = weir_place_write_diff(&before, &p->plan->view, &out, same);
  weir_free(p->runtime->env.alloc, peaks);
  weir_place_plan_release(other);
  return ok ? WEIR_OK
            : weir_fail(err, WEIR_W5009, NULL,
                        "the difference could not be "
                        "written");
}

weir_status weir_tools_plan_compare(const weir_tools_plan *before,
                                    const weir_tools_plan *after,
                                    weir_write_fn write, void *self,
                                    weir_error *err) {
  const weir_place_view *a = &before->plan->view, *b = &after->plan->view;
  weir_writer out = {self, write};
  bool same;
  if (a->problem->node_count != b->problem->node_count)
    return weir_fail(err, WEIR_W3016, NULL, "the plans have other nodes");
  if (!weir_place_write_diff(a, b, &out, &same))
    return weir_fail(err, WEIR_W5009, NULL,
                     "the difference could not be written");
  return WEIR_OK;
}
