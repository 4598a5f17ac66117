/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/api/cluster/tasks.h"
#include "runtime/api/weir_costs.h"
#include "runtime/api/weir_plan.h"
#include "runtime/dist/bundle/bundle.h"
#include "runtime/dist/cluster/cluster_session.h"
#include "runtime/dist/deal/deal_remote.h"

/* Sessions whose nodes are placed on the devices of a cluster: all of them in
 * this process, or each in its task's. */

struct weir_placed {
  weir_runtime *runtime; /* of the session, which outlives this */
  weir_placing *placing;
  weir_plan *plan; /* or NULL */
  bool plan_only;
  weir_tasks *tasks;   /* held; NULL: this process */
  weir_remote *remote; /* to them, once the graph that runs is known */
  weir_bundle bundle;
  weir_graph *graph, *run_graph; /* held for |remote| */
  void (*on_plan)(void *self, const weir_plan *plan);
  void *on_plan_self;
};

void weir_placed_release(weir_placed *p) {
  if (p == NULL) return;
  if (p->tasks != NULL && p->tasks->deal != NULL)
    weir_deal_remote_release(p->remote);
  else
    weir_dist_remote_release(p->remote);
  weir_graph_unref(p->run_graph);
  weir_graph_unref(p->graph);
  weir_tasks_release(p->tasks);
  weir_plan_unref(p->plan);
  weir_placing_unref(p->placing);
  weir_free(p->runtime->env.alloc, p);
}

weir_status weir_placer_choose(const char *name, const weir_placer **out,
                               uint64_t *out_seed, weir_error *err) {
  char forms[256];
  *out = NULL;
  *out_seed = 0;
  if (name == NULL || weir_placer_parse(weir_sv_from(name), out, out_seed))
    return WEIR_OK;
  return weir_fail(err, WEIR_W0002, NULL, "invalid placer %.40s, expected %s",
                   name, weir_placer_forms(forms, sizeof forms));
}

static void on_plan(void *self, const weir_plan *plan) {
  const weir_placed *p = self;
  weir_log(p->runtime, WEIR_LOG_DEBUG,
           "a program of %u nodes is placed: a step of %lld ns",
           plan->view.problem->node_count,
           (long long)plan->view.plan->makespan_ns);
  if (p->on_plan != NULL) p->on_plan(p->on_plan_self, plan);
}

/* Options that are about one plan say nothing of a session's many. */
static weir_status refuse_single(const weir_plan_opts *o, weir_error *err) {
  const struct {
    const char *name;
    bool is_given;
  } single[] = {{"given", o->given != NULL},
                {"changes", o->change_count > 0},
                {"feeds", o->feed_count > 0},
                {"assume_kernels", o->assume_kernels != NULL},
                {"inference", o->inference},
                {"open", o->open}};
  for (size_t i = 0; i < sizeof single / sizeof *single; i++)
    if (single[i].is_given)
      return weir_fail(err, WEIR_W0004, NULL,
                       "weir_session_opts: place: %s is about one plan; make "
                       "that with weir_plan_create, and give it as plan",
                       single[i].name);
  return WEIR_OK;
}

/* The placing, by |opts|, which are read as weir_plan_create reads them: a
 * session places its programs as `weir place` shows them. */
static weir_status make_placing(weir_placed *p, const weir_graph *graph,
                                const weir_plan_opts *opts, weir_error *err) {
  plan_call c;
  weir_status s = weir_plan_call_begin(&c, p->runtime, graph, opts, err);
  c.opts.present = p->tasks == NULL;
  if (p->tasks != NULL) c.request.machine = NULL; /* theirs is not known */
  if (s == WEIR_OK) s = refuse_single(&c.opts, err);
  if (s == WEIR_OK)
    s = weir_plan_costs_find(p->runtime, &c.opts, &c.request, &c.costs, err);
  c.request.costs = c.costs;
  if (s == WEIR_OK)
    s = weir_placing_create(p->runtime->env.alloc, &c.request, &p->placing,
                            &p->plan, err);
  if (s == WEIR_OK) s = weir_plan_call_check(&c, err);
  weir_plan_call_end(&c, p->runtime);
  return s;
}

/* On the cluster of the tasks, where none is given. */
static weir_status place_on_tasks(weir_placed *p, const weir_graph *graph,
                                  const weir_plan_opts *opts, weir_error *err) {
  weir_plan_opts o;
  WEIR_TRY(WEIR_OPTS_READ(weir_plan_opts, &o, opts, err));
  o.struct_size = sizeof o;
  if (o.cluster == NULL) o.cluster = p->tasks->list.text;
  return make_placing(p, graph, &o, err);
}

/* Each worker has all nodes on one device, so there is nothing to search; the
 * text of the placing says "worker", whatever the worker's name is. */
static weir_status place_whole(weir_placed *p, const weir_graph *graph,
                               const weir_session_opts *o, weir_error *err) {
  if (o->place != NULL || o->plan != NULL)
    return weir_fail(err, WEIR_W0004, NULL,
                     "weir_session_opts: tasks that runs are dealt to take "
                     "neither place nor plan");
  weir_plan_opts whole = {
      .struct_size = sizeof whole, .cluster = "worker=1", .placer = "first"};
  return make_placing(p, graph, &whole, err);
}

static weir_status find_placing(weir_placed *p, const weir_graph *graph,
                                const weir_session_opts *o, weir_error *err) {
  if (p->tasks != NULL && p->tasks->deal != NULL)
    return place_whole(p, graph, o, err);
  if (o->plan == NULL && p->tasks != NULL)
    return place_on_tasks(p, graph, o->place, err);
  if (o->place != NULL) return make_placing(p, graph, o->place, err);
  if (o->plan->placement == NULL)
    return weir_fail(err, WEIR_W3016, NULL,
                     "the plan is not of a graph, so no session can use it");
  WEIR_TRY(weir_placing_check_runs(o->plan->placing, err));
  p->plan = weir_plan_ref(o->plan);
  p->placing = weir_placing_ref(p->plan->placing);
  return WEIR_OK;
}

static weir_status check_tasks(const weir_placed *p, const weir_graph *graph,
                               weir_error *err) {
  if (p->tasks == NULL) return WEIR_OK;
  if (p->tasks->runtime != p->runtime)
    return weir_fail(err, WEIR_W0004, NULL,
                     "weir_session_opts: tasks are of another runtime");
  if (graph->sources != NULL) return WEIR_OK;
  return weir_fail(err, WEIR_W0004, NULL,
                   "weir_session_opts: tasks need a graph that was loaded with "
                   "keep_files");
}

static weir_status check_fits(const weir_placed *p, weir_error *err) {
  if (p->tasks == NULL || p->tasks->deal != NULL ||
      weir_task_list_fits(&p->tasks->list, p->placing->cluster))
    return WEIR_OK;
  return weir_fail(err, WEIR_W0004, NULL,
                   "weir_session_opts: the nodes are placed on another cluster "
                   "than that of the tasks");
}

weir_status weir_placed_create(weir_runtime *runtime, const weir_graph *graph,
                               const weir_session_opts *o, weir_placed **out,
                               weir_error *err) {
  *out = NULL;
  if (o->plan_only && o->plan == NULL)
    return weir_fail_null(err, "weir_session_opts: plan_only, but plan");
  if (o->place == NULL && o->plan == NULL && o->tasks == NULL) return WEIR_OK;
  if (o->place != NULL && o->plan != NULL)
    return weir_fail(err, WEIR_W0004, NULL,
                     "weir_session_opts: either place or plan, not both");
  weir_placed *p = weir_alloc_array(runtime->env.alloc, 1, sizeof *p);
  if (p == NULL) return weir_fail_memory(err, sizeof *p);
  *p = (weir_placed){.runtime = runtime,
                     .plan_only = o->plan_only,
                     .on_plan = o->on_plan,
                     .on_plan_self = o->on_plan_self};
  if (o->tasks != NULL) p->tasks = weir_tasks_ref(o->tasks);
  weir_status s = check_tasks(p, graph, err);
  if (s == WEIR_OK) s = find_placing(p, graph, o, err);
  if (s == WEIR_OK) s = check_fits(p, err);
  if (s == WEIR_OK)
    *out = p;
  else
    weir_placed_release(p);
  return s;
}

weir_sv weir_placed_home(const weir_placed *p, weir_sv name) {
  if (p == NULL || (p->tasks != NULL && p->tasks->deal != NULL))
    return (weir_sv){"", 0};
  uint32_t device = weir_placing_home(p->placing, name);
  if (device == WEIR_PLACE_NONE) return (weir_sv){"", 0};
  return p->placing->cluster->devices[device].text;
}

void weir_placed_use(weir_placed *p, weir_session_options *options) {
  if (p == NULL) return;
  options->placing = p->placing;
  options->plan = p->plan;
  options->plan_only = p->plan_only;
  options->on_plan = on_plan;
  options->on_plan_self = p;
}

weir_status weir_placed_open(weir_placed *p, const weir_graph *graph,
                             const weir_graph *run_graph,
                             weir_session_options *options, weir_error *err) {
  if (p == NULL || p->tasks == NULL) return WEIR_OK;
  p->graph = weir_graph_ref(graph);
  p->run_graph = weir_graph_ref(run_graph);
  p->bundle = (weir_bundle){.sources = graph->sources,
                            .train = run_graph != graph,
                            .placing = p->placing,
                            .no_fusion = options->no_fusion,
                            .no_fold = options->no_fold,
                            .ref_kernels = options->ref_kernels,
                            .no_layout = options->no_layout,
                            .tf32 = options->tf32,
                            .session_seed = options->seed,
                            .memory_limit = options->memory_limit};
  WEIR_TRY(p->tasks->deal != NULL
               ? weir_deal_remote(p->tasks->deal, &p->bundle, run_graph,
                                  &p->remote, err)
               : weir_dist_remote(p->tasks->dist, &p->bundle, run_graph,
                                  &p->remote, err));
  options->remote = p->remote;
  return WEIR_OK;
}
