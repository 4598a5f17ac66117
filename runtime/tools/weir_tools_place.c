/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "placement/bench/instance.h"
#include "runtime/tools/weir_tools_costs.h"
#include "runtime/tools/weir_tools_plan.h"

enum {
  BALANCE_MOVES = 700000, /* of another objective's, which cost less */
  MICROBATCHES = 8
};

void weir_tools_plan_release(weir_tools_plan *p) {
  if (p == NULL) return;
  weir_runtime *runtime = p->runtime;
  weir_place_figures_release(p->figures);
  weir_place_plan_release(p->result.plan);
  weir_placement_release(p->placement);
  weir_place_problem_release(p->problem);
  weir_cluster_release(p->cluster);
  weir_costs_release(p->costs);
  weir_free(runtime->env.alloc, p->peaks);
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

/* ---- Solving */

/* NULL: there is none of that name. */
static const weir_place_objective *objective_of(
    const weir_tools_place_opts *o) {
  return o->objective == NULL ? weir_place_objective_at(0)
                              : weir_place_objective_find(o->objective);
}

typedef struct deadline {
  const weir_clock *clock;
  int64_t at_ns;
} deadline;

static bool is_late(void *self) {
  const deadline *d = self;
  return d->clock->now_ns(d->clock->self) >= d->at_ns;
}

static weir_status take_given(weir_tools_plan *p,
                              const weir_place_problem *problem,
                              const weir_tools_place_opts *o,
                              weir_place_plan **out, weir_error *err) {
  *out = NULL;
  if (o->change_count > 0)
    return weir_tools_plan_carry(o->before, problem, out, err);
  if (o->given == NULL) return WEIR_OK;
  weir_sv json = {o->given, o->given_size};
  return weir_place_plan_read(p->runtime->env.alloc, problem, json,
                              o->given_name == NULL ? "plan" : o->given_name,
                              out, err);
}

static weir_status solve(weir_tools_plan *p, const weir_place_problem *problem,
                         const weir_tools_place_opts *o, weir_error *err) {
  const weir_env *env = &p->runtime->env;
  deadline d = {env->clock, 0};
  weir_place_plan *given = NULL;
  WEIR_TRY(take_given(p, problem, o, &given, err));
  weir_place_options options = {.seed = o->seed, .given = given};
  if (o->placer != NULL) {
    weir_status named =
        weir_placer_choose(o->placer, &options.placer, &options.seed, err);
    if (named != WEIR_OK) {
      weir_place_plan_release(given);
      return named;
    }
  }
  if (!o->portfolio_only && !o->replay)
    options.moves = o->moves != 0       ? o->moves
                    : o->budget_ns != 0 ? UINT64_MAX
                                        : weir_place_default_moves(problem);
  if (o->budget_ns != 0) {
    d.at_ns = env->clock->now_ns(env->clock->self) + o->budget_ns;
    options.stop = is_late;
    options.stop_self = &d;
  }
  /* Of another objective the portfolio is the beginning only. */
  const weir_place_objective *objective = objective_of(o);
  uint64_t moves = options.moves;
  if (objective->goal != NULL) options.moves = 0;
  weir_status s =
      weir_place_solve(env->alloc, problem, &options, &p->result, err);
  options.moves =
      moves == 0 || o->moves != 0 || o->budget_ns != 0 ? moves : BALANCE_MOVES;
  if (s == WEIR_OK && !o->replay)
    s = weir_place_improve(env->alloc, problem, objective, &options, &p->result,
                           err);
  /* A change that gains nothing moves nothing. */
  bool keep =
      s == WEIR_OK && o->change_count > 0 && given != NULL &&
      objective->goal == NULL &&
      given->makespan_ns <= p->result.plan->makespan_ns &&
      weir_place_check(env->alloc, problem, given, NULL, NULL) == WEIR_OK;
  if (s == WEIR_OK && (o->replay || keep))
    s = weir_place_plan_copy(p->result.plan, given, err);
  weir_place_plan_release(given);
  return s;
}

static weir_status plan_end(weir_tools_plan *p,
                            const weir_place_problem *problem,
                            const weir_tools_place_opts *o, weir_error *err) {
  const weir_allocator *a = p->runtime->env.alloc;
  WEIR_TRY(solve(p, problem, o, err));
  p->peaks = weir_alloc_array(a, problem->device_count, sizeof *p->peaks);
  if (p->peaks == NULL)
    return weir_fail_memory(err, problem->device_count * sizeof *p->peaks);
  WEIR_TRY(weir_place_check(a, problem, p->result.plan, p->peaks, err));
  WEIR_TRY(weir_place_measure(
      a, problem, p->result.plan, &p->result.bounds, p->peaks,
      o->microbatches == 0 ? MICROBATCHES : o->microbatches, objective_of(o),
      &p->figures, err));
  p->view = (weir_place_view){.alloc = a,
                              .problem = problem,
                              .plan = p->result.plan,
                              .bounds = &p->result.bounds,
                              .placement = p->placement,
                              .peaks = p->peaks,
                              .first_ns = p->result.first_ns,
                              .moves = p->result.moves,
                              .figures = p->figures};
  return WEIR_OK;
}

static weir_status read_opts(const weir_tools_place_opts *opts,
                             weir_tools_place_opts *out, weir_error *err) {
  *out = (weir_tools_place_opts){0};
  if (opts == NULL) return WEIR_OK;
  WEIR_TRY(
      weir_opts_read(out, sizeof *out, opts, 8, "weir_tools_place_opts", err));
  if (objective_of(out) == NULL)
    return weir_fail(err, WEIR_W0002, NULL, "there is no objective %.40s",
                     out->objective);
  return WEIR_OK;
}

/* ---- Graphs */

/* Measures the units of |fused|, which is what is wanted of |graph|. */
static weir_status measure(weir_tools_plan *p, const weir_graph *graph,
                           const weir_plan_wanted *w, const weir_graph *fused,
                           const weir_lower_options *lower, weir_error *err) {
  weir_placement *units = NULL;
  weir_lower_options plain = {.strictness = lower->strictness,
                              .logical = lower->logical};
  WEIR_TRY(weir_placement_create(p->runtime->env.alloc, fused, p->cluster,
                                 &plain, &units, err));
  weir_measure_request request = weir_want_measured(graph, w, units);
  weir_status s =
      weir_tools_costs_measure(p->runtime, &request, &p->costs, err);
  weir_placement_release(units);
  if (s == WEIR_OK && p->cluster->device_count > 1)
    s = weir_calibrate_link(&p->runtime->env, p->costs, err);
  return s;
}

/* A measured link joins devices of one process; copies to GPUs it knows not. */
static void use_link(weir_tools_plan *p, bool in_process) {
  if (p->costs == NULL || p->costs->piece_count == 0 ||
      p->cluster->models[1].present)
    return;
  const weir_cost_piece *piece = &p->costs->pieces[0];
  p->cluster->local =
      (weir_place_link){piece->latency_ns, piece->ps_per_byte, true};
  if (in_process) p->cluster->network = p->cluster->local;
}

/* The problem, with what was measured of it. */
static weir_status lower_graph(weir_tools_plan *p, const weir_graph *graph,
                               const weir_tools_place_opts *o,
                               const weir_diag_sink *sink, weir_error *err) {
  weir_graph *fused = NULL;
  weir_place_pin *pins = NULL;
  weir_plan_wanted w = {0};
  weir_lower_options lower = {
      .strictness = o->strictness < 0    ? WEIR_PLACE_SOFT
                    : o->strictness == 0 ? WEIR_PLACE_WARN
                                         : WEIR_PLACE_STRICT,
      .logical = graph->mesh != NULL && graph->mesh->logical,
      .sink = sink};
  weir_status s = weir_tools_plan_change(p, o, &pins, &lower.pin_count, err);
  lower.pins = pins;
  if (s == WEIR_OK) s = weir_want(graph, o->inference, &w, err);
  if (s == WEIR_OK) s = weir_want_groups(graph, &w, &fused, err);
  if (s == WEIR_OK && o->costs != NULL)
    s = weir_tools_costs_read(p->runtime, o->costs, o->calibrate, sink,
                              &p->costs, err);
  if (s == WEIR_OK && o->calibrate)
    s = measure(p, graph, &w, fused, &lower, err);
  if (s == WEIR_OK && o->calibrate && o->costs != NULL)
    s = weir_tools_costs_save(p->runtime, p->costs, o->costs, err);
  lower.costs = p->costs;
  use_link(p, o->in_process);
  if (s == WEIR_OK)
    s = weir_placement_create(p->runtime->env.alloc, fused, p->cluster, &lower,
                              &p->placement, err);
  weir_graph_unref(fused);
  weir_free(p->runtime->env.alloc, pins);
  weir_want_end(graph, &w);
  return s;
}

typedef struct forward {
  void (*on_diag)(void *self, const weir_diag *diag);
  void *self;
} forward;

static void report(void *self, const weir_diag *diag) {
  const forward *f = self;
  if (f->on_diag != NULL) f->on_diag(f->self, diag);
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
  const weir_graph *fixed = NULL;
  weir_status s = weir_cluster_choose(runtime->env.alloc, graph, o.cluster,
                                      &p->cluster, err);
  if (s == WEIR_OK) s = weir_tools_fix_batch(graph, &fixed, err);
  if (s == WEIR_OK) s = lower_graph(p, fixed, &o, &sink, err);
  weir_graph_unref(fixed);
  if (s == WEIR_OK) s = plan_end(p, p->placement->problem, &o, err);
  if (s == WEIR_OK)
    *out_plan = p;
  else
    weir_tools_plan_release(p);
  return s;
}

/* ---- Instances */

enum { INSTANCE_BYTES = 256 << 20 };

weir_status weir_tools_place_file(weir_runtime *runtime, const char *path,
                                  const weir_tools_place_opts *opts,
                                  weir_tools_plan **out_plan, weir_error *err) {
  weir_tools_place_opts o;
  weir_tools_plan *p = NULL;
  const weir_fs *fs = runtime->env.fs;
  weir_file file = {0};
  *out_plan = NULL;
  WEIR_TRY(read_opts(opts, &o, err));
  WEIR_TRY(fs->read(fs->self, NULL, path, INSTANCE_BYTES, false, &file, err));
  weir_status s = plan_begin(runtime, &p, err);
  weir_instance_options instance = {o.processors};
  weir_sv text = {(const char *)file.bytes.data, file.bytes.size};
  if (s == WEIR_OK)
    s = weir_instance_read(runtime->env.alloc, text, path, &instance,
                           &p->problem, err);
  fs->close(fs->self, &file);
  if (s == WEIR_OK) s = plan_end(p, p->problem, &o, err);
  if (s == WEIR_OK)
    *out_plan = p;
  else
    weir_tools_plan_release(p);
  return s;
}

/* ---- Showing */

/* A node by its name, by a name that the source gives its value ("c1", a call
 * of a block), or as SCOPE/op: "c1/conv2d" is the first conv2d inside c1. */
static uint32_t find_in_graph(const weir_placement *p, const char *name) {
  const weir_graph *g = p->graph;
  weir_node_id id = weir_graph_find_node(g, weir_sv_from(name));
  weir_value_id value = weir_graph_find_value(g, weir_sv_from(name));
  if (id == UINT32_MAX && value != WEIR_NO_VALUE) id = g->values[value].node;
  const char *slash = strrchr(name, '/');
  if (id == UINT32_MAX && slash != NULL) {
    size_t scope = (size_t)(slash - name) + 1;
    for (uint32_t n = 0; n < g->node_count && id == UINT32_MAX; n++)
      if (g->nodes[n].name.size > scope &&
          memcmp(g->nodes[n].name.data, name, scope) == 0 &&
          strcmp(g->nodes[n].op->name, slash + 1) == 0)
        id = n;
  }
  return id == UINT32_MAX ? WEIR_PLACE_NONE : p->unit_of[id];
}

weir_status weir_tools_plan_find(const weir_tools_plan *p, const char *name,
                                 uint32_t *out, weir_error *err) {
  const weir_place_problem *problem = p->view.problem;
  for (uint32_t n = 0; n < problem->node_count; n++)
    if (weir_sv_is(problem->names[n], name)) {
      *out = n;
      return WEIR_OK;
    }
  *out = p->placement == NULL ? WEIR_PLACE_NONE
                              : find_in_graph(p->placement, name);
  if (*out != WEIR_PLACE_NONE) return WEIR_OK;
  return weir_fail(err, WEIR_W0002, NULL,
                   "the plan has no node called %.100s (constants are "
                   "everywhere)",
                   name);
}

static weir_status find_device(const weir_tools_plan *p, const char *name,
                               uint32_t *out, weir_error *err) {
  weir_device_name name_wanted, full;
  WEIR_TRY(weir_device_name_parse(weir_sv_from(name), &name_wanted, NULL, err));
  const weir_place_problem *problem = p->view.problem;
  for (*out = 0; *out < problem->device_count; ++*out)
    if (weir_device_name_parse(problem->devices[*out].name, &full, NULL,
                               NULL) == WEIR_OK &&
        weir_device_name_matches(&name_wanted, &full))
      return WEIR_OK;
  return weir_fail(err, WEIR_W0002, NULL, "the plan has no device %.100s",
                   name);
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
  weir_place_view view = p->view;
  weir_place_alternative *all = NULL;
  uint32_t at;
  if (form == WEIR_PLAN_CRITICAL)
    return weir_place_write_critical(&p->view, &out, err);
  if (form == WEIR_PLAN_EXPLAIN) {
    WEIR_TRY(weir_tools_plan_find(p, what, &at, err));
    return weir_place_write_explain(&p->view, at, &out, err);
  }
  if (form == WEIR_PLAN_MEMORY) {
    WEIR_TRY(find_device(p, what, &at, err));
    return weir_place_write_memory(&p->view, at, &out, err);
  }
  if (form == WEIR_PLAN_JSON || form == WEIR_PLAN_HTML)
    WEIR_TRY(weir_place_alternatives_create(&view, &all, err));
  view.alternatives = all;
  if (what != NULL && (form == WEIR_PLAN_JSON || form == WEIR_PLAN_TABLE))
    view.nodes = weir_sv_from(what);
  bool ok = forms[form](&view, &out);
  weir_free(view.alloc, all);
  return ok ? WEIR_OK
            : weir_fail(err, WEIR_W5009, NULL, "the plan could not be written");
}

weir_status weir_tools_plan_verify(const weir_tools_plan *p, const char *json,
                                   size_t size, const char *name,
                                   weir_error *err) {
  weir_place_plan *other = NULL;
  const weir_allocator *a = p->runtime->env.alloc;
  WEIR_TRY(weir_place_plan_read(a, p->view.problem, (weir_sv){json, size}, name,
                                &other, err));
  weir_status s = weir_place_check(a, p->view.problem, other, NULL, err);
  weir_place_plan_release(other);
  return s;
}

weir_status weir_tools_plan_diff(const weir_tools_plan *p, const char *json,
                                 size_t size, const char *name, bool *same,
                                 weir_write_fn write, void *self,
                                 weir_error *err) {
  weir_writer out = {self, write};
  weir_place_view before = p->view;
  weir_place_plan *other = NULL;
  WEIR_TRY(weir_place_plan_read(p->runtime->env.alloc, p->view.problem,
                                (weir_sv){json, size}, name, &other, err));
  before.plan = other;
  int64_t *peaks = weir_alloc_array(
      p->runtime->env.alloc, p->view.problem->device_count, sizeof *peaks);
  before.peaks = peaks; /* unsound plans have none */
  if (peaks != NULL && weir_place_check(p->runtime->env.alloc, p->view.problem,
                                        other, peaks, NULL) != WEIR_OK)
    before.peaks = NULL;
  bool ok = weir_place_write_diff(&before, &p->view, &out, same);
  weir_free(p->runtime->env.alloc, peaks);
  weir_place_plan_release(other);
  return ok ? WEIR_OK
            : weir_fail(err, WEIR_W5009, NULL,
                        "the difference could not be "
                        "written");
}

const weir_place_view *weir_tools_plan_view(const weir_tools_plan *p) {
  return &p->view;
}

const weir_costs *weir_tools_plan_costs(const weir_tools_plan *p) {
  return p->costs;
}
