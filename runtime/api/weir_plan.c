/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/api/weir_plan.h"

#include <string.h>

#include "runtime/api/cluster/plan_gpus.h"
#include "runtime/api/weir_cluster_file.h"
#include "runtime/api/weir_costs.h"
#include "runtime/exec/compile/compile_needs.h"

/* Plans: the caller's options as a request to placement/place.h. A public plan
 * is placement's own object. */

/* ---- Rows */

weir_status weir_plan_check_row(const weir_plan *plan, size_t i, size_t count,
                                const char *what, weir_error *err) {
  if (plan == NULL) return weir_fail_null(err, "plan");
  if (i < count) return WEIR_OK;
  return weir_fail(err, WEIR_W0004, NULL, "the plan has %zu %s, not %zu", count,
                   what, i + 1);
}

/* ---- Options */

static weir_status read_pins(const weir_allocator *alloc, plan_call *c,
                             weir_error *err) {
  const weir_plan_opts *o = &c->opts;
  if (o->pin_count == 0) return WEIR_OK;
  if (o->pins == NULL) return weir_fail_null(err, "weir_plan_opts: pins");
  c->wishes = weir_alloc_array(alloc, o->pin_count, sizeof *c->wishes);
  if (c->wishes == NULL)
    return weir_fail_memory(err, o->pin_count * sizeof *c->wishes);
  for (size_t i = 0; i < o->pin_count; i++) {
    if (o->pins[i] == NULL) return weir_fail_null(err, "weir_plan_opts: a pin");
    const char *equals = strrchr(o->pins[i], '=');
    if (equals == NULL || equals == o->pins[i])
      return weir_fail(err, WEIR_W0002, NULL,
                       "pin \"%.100s\", expected NODE=DEVICE", o->pins[i]);
    weir_place_wish *w = &c->wishes[i];
    w->node = (weir_sv){o->pins[i], (size_t)(equals - o->pins[i])};
    WEIR_TRY(weir_device_name_parse(weir_sv_from(equals + 1), &w->device, NULL,
                                    err));
  }
  return WEIR_OK;
}

weir_status weir_plan_read_shapes(const weir_allocator *alloc,
                                  const weir_graph *graph,
                                  const weir_plan_opts *o,
                                  weir_shape **out_shapes, weir_error *err) {
  if (o->feed_count == 0) return WEIR_OK;
  if (o->feeds == NULL) return weir_fail_null(err, "weir_plan_opts: feeds");
  weir_shape *shapes =
      weir_alloc_array(alloc, graph->input_count, sizeof *shapes);
  if (shapes == NULL)
    return weir_fail_memory(err, graph->input_count * sizeof *shapes);
  *out_shapes = shapes;
  for (uint32_t i = 0; i < graph->input_count; i++)
    shapes[i].rank = WEIR_RANK_UNKNOWN;
  for (size_t k = 0; k < o->feed_count; k++) {
    weir_feed feed;
    weir_value_id value;
    WEIR_TRY(WEIR_OPTS_READ(weir_feed, &feed, weir_opts_at(o->feeds, k), err));
    if (feed.tensor == NULL) return weir_fail_null(err, "weir_feed: tensor");
    WEIR_TRY(weir_find_input(graph, feed.name, &value, err));
    for (uint32_t i = 0; i < graph->input_count; i++)
      if (graph->inputs[i].value == value) shapes[i] = feed.tensor->shape;
  }
  return WEIR_OK;
}

static weir_status read_text(const weir_plan_text *from, const char *what,
                             weir_plan_text *out, weir_error *err) {
  WEIR_TRY(WEIR_OPTS_READ(weir_plan_text, out, from, err));
  if (from != NULL && out->json == NULL) return weir_fail_null(err, what);
  if (out->name == NULL) out->name = "plan";
  return WEIR_OK;
}

static weir_status find_objective(const char *name,
                                  const weir_place_objective **out,
                                  weir_error *err) {
  *out = name == NULL ? weir_place_objective_at(0)
                      : weir_place_objective_find(name);
  if (*out != NULL) return WEIR_OK;
  return weir_fail(err, WEIR_W0002, NULL, "invalid objective %.40s", name);
}

static weir_status find_assumed(const char *name, uint32_t *out,
                                weir_error *err) {
  char names[128];
  *out = 0;
  if (name == NULL) return WEIR_OK;
  weir_device_kind kind = weir_device_kind_find(weir_sv_from(name));
  if (kind == WEIR_DEVICE_ANY)
    return weir_fail(err, WEIR_W0002, NULL,
                     "no kind of device is called %.40s, expected %s", name,
                     weir_device_kind_names(names, sizeof names));
  *out = UINT32_C(1) << kind;
  return WEIR_OK;
}

/* ---- Calls of the caller */

/* The search asks often; the caller is asked rarely. */
enum { PROGRESS_NS = 20000000 };

static bool stop(void *self) {
  plan_call *c = self;
  int64_t now = c->clock->now_ns(c->clock->self);
  if (now - c->asked_ns < PROGRESS_NS) return c->answer != WEIR_PLAN_GO_ON;
  c->asked_ns = now;
  weir_plan_progress p = {
      .struct_size = sizeof p,
      .elapsed_ns = now - c->begin_ns,
      .asked = c->asked++,
      .best_ns = c->progress.best_ns == INT64_MAX ? -1 : c->progress.best_ns,
      .bound_ns = c->progress.bound_ns};
  c->answer = c->opts.on_progress(c->opts.on_progress_self, &p);
  return c->answer != WEIR_PLAN_GO_ON;
}

static void report(void *self, const weir_diag *diag) {
  const plan_call *c = self;
  if (c->opts.on_diag != NULL)
    c->opts.on_diag(c->opts.on_diag_self, diag);
  else if (weir_diag_is_warning(diag))
    weir_log_diag(c->runtime, diag);
}

/* ---- Requests */

/* A placer that places by a rule has nothing to count moves of. */
static weir_status check_budget(const weir_plan_opts *o,
                                const weir_placer *placer, weir_error *err) {
  if (placer == NULL || placer->searches ||
      (o->moves == 0 && o->budget_ns == 0 && !o->portfolio_only))
    return WEIR_OK;
  return weir_fail(err, WEIR_W0002, NULL,
                   "weir_plan_opts: %s has no effect with placer %s",
                   o->moves != 0       ? "moves"
                   : o->budget_ns != 0 ? "budget_ns"
                                       : "portfolio_only",
                   placer->name);
}

static weir_place_strictness strictness_of(int32_t asked) {
  if (asked < 0) return WEIR_PLACE_SOFT;
  return asked == 0 ? WEIR_PLACE_WARN : WEIR_PLACE_STRICT;
}

weir_status weir_plan_call_begin(plan_call *c, weir_runtime *runtime,
                                 const weir_graph *graph,
                                 const weir_plan_opts *opts, weir_error *err) {
  memset(c, 0, sizeof *c);
  WEIR_TRY(WEIR_OPTS_READ(weir_plan_opts, &c->opts, opts, err));
  const weir_plan_opts *o = &c->opts;
  const weir_allocator *alloc = runtime->env.alloc;
  weir_place_request *r = &c->request;
  weir_arena_init(&c->arena, alloc);
  c->runtime = runtime;
  c->clock = runtime->env.clock;
  c->begin_ns = c->asked_ns = c->clock->now_ns(c->clock->self);
  c->sink = (weir_diag_sink){c, report};
  *r = (weir_place_request){
      .graph = graph,
      .cluster = o->cluster,
      .options = {.strictness = strictness_of(o->strictness),
                  .seed = o->seed,
                  .moves = o->moves,
                  .portfolio_only = o->portfolio_only,
                  .budget_ns = o->budget_ns,
                  .clock = c->clock,
                  .microbatches = o->microbatches,
                  .in_process = o->in_process,
                  .ask = weir_compile_needs,
                  .ask_self = &runtime->env,
                  .absent = weir_plan_gpus_absent,
                  .absent_self = c},
      .sink = &c->sink,
      .stop = o->on_progress != NULL ? stop : NULL,
      .stop_self = c,
      .progress = &c->progress,
      .inference = o->inference,
      .replica = o->replica,
      .open = o->open,
      .changes = o->changes,
      .change_count = o->change_count,
      .before = o->before};
  if (o->change_count > 0 && (o->changes == NULL || o->before == NULL))
    return weir_fail_null(err, "weir_plan_opts: changes or before");
  WEIR_TRY(weir_plan_cluster_read(c, runtime, err));
  weir_plan_gpus_auto(c);
  WEIR_TRY(find_objective(o->objective, &r->options.objective, err));
  WEIR_TRY(find_assumed(o->assume_kernels, &r->options.assumed_kinds, err));
  if (o->placer != NULL)
    WEIR_TRY(weir_placer_choose(o->placer, &r->options.placer, &r->options.seed,
                                err));
  WEIR_TRY(check_budget(o, r->options.placer, err));
  WEIR_TRY(read_text(o->given, "weir_plan_text: json", &c->given, err));
  r->given = (weir_sv){c->given.json, c->given.size};
  r->given_name = c->given.name;
  WEIR_TRY(read_pins(alloc, c, err));
  r->wishes = c->wishes;
  r->wish_count = (uint32_t)o->pin_count;
  if (graph == NULL) return WEIR_OK;
  WEIR_TRY(weir_plan_read_shapes(alloc, graph, &c->opts, &c->shapes, err));
  r->shapes = c->shapes;
  return WEIR_OK;
}

void weir_plan_call_end(plan_call *c, weir_runtime *runtime) {
  if (c->arena.alloc != NULL) weir_arena_release(&c->arena);
  weir_costs_release(c->costs);
  weir_free(runtime->env.alloc, c->wishes);
  weir_free(runtime->env.alloc, c->shapes);
}

weir_status weir_plan_call_check(const plan_call *c, weir_error *err) {
  if (c->answer != WEIR_PLAN_CANCEL) return WEIR_OK;
  return weir_fail(err, WEIR_W5005, NULL, "placing was cancelled");
}

weir_status weir_plan_call_finish(const plan_call *c, weir_plan *plan,
                                  weir_plan **out, weir_error *err) {
  weir_status s = weir_plan_call_check(c, err);
  if (s != WEIR_OK) {
    weir_plan_unref(plan);
    return s;
  }
  weir_log(c->runtime, WEIR_LOG_DEBUG,
           "a plan of %u nodes is placed: a step of %lld ns, by %s",
           plan->view.problem->node_count,
           (long long)plan->view.plan->makespan_ns, plan->view.plan->placer);
  *out = plan;
  return WEIR_OK;
}

static weir_status check(weir_runtime *runtime, const weir_graph *graph,
                         weir_plan **out_plan, weir_error *err) {
  if (out_plan == NULL) return weir_fail_null(err, "out_plan");
  *out_plan = NULL;
  if (runtime == NULL) return weir_fail_null(err, "runtime");
  if (graph == NULL) return weir_fail_null(err, "graph");
  return WEIR_OK;
}

static weir_status place(weir_runtime *runtime, plan_call *c,
                         weir_plan **out_plan, weir_error *err) {
  weir_plan *plan = NULL;
  WEIR_TRY(
      weir_plan_costs_find(runtime, &c->opts, &c->request, &c->costs, err));
  c->request.costs = c->costs;
  WEIR_TRY(weir_place_graph(runtime->env.alloc, &c->request, &plan, err));
  return weir_plan_call_finish(c, plan, out_plan, err);
}

weir_status weir_plan_create(weir_runtime *runtime, const weir_graph *graph,
                             const weir_plan_opts *opts, weir_plan **out_plan,
                             weir_error *err) {
  plan_call c;
  WEIR_TRY(check(runtime, graph, out_plan, err));
  weir_status s = weir_plan_call_begin(&c, runtime, graph, opts, err);
  if (s == WEIR_OK) s = place(runtime, &c, out_plan, err);
  weir_plan_call_end(&c, runtime);
  s = weir_settle(graph->alloc, "placing", s, err);
  return weir_settle(runtime->env.alloc, "placing", s, err);
}

weir_status weir_plan_from_json(weir_runtime *runtime, const weir_graph *graph,
                                const weir_plan_opts *opts,
                                const weir_plan_text *text,
                                weir_plan **out_plan, weir_error *err) {
  plan_call c;
  WEIR_TRY(check(runtime, graph, out_plan, err));
  if (text == NULL) return weir_fail_null(err, "text");
  weir_status s = weir_plan_call_begin(&c, runtime, graph, opts, err);
  if (s == WEIR_OK) s = read_text(text, "weir_plan_text: json", &c.given, err);
  c.request.given = (weir_sv){c.given.json, c.given.size};
  c.request.given_name = c.given.name;
  c.request.replay = true;
  if (s == WEIR_OK) s = place(runtime, &c, out_plan, err);
  weir_plan_call_end(&c, runtime);
  s = weir_settle(graph->alloc, "placing", s, err);
  return weir_settle(runtime->env.alloc, "placing", s, err);
}

weir_plan *weir_plan_retain(const weir_plan *plan) {
  return plan != NULL ? weir_plan_ref(plan) : NULL;
}

void weir_plan_release(const weir_plan *plan) {
  weir_plan_unref(plan);
}
