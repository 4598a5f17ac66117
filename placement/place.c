/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "placement/cluster/links.h"
#include "placement/place_details.h"
#include "placement/place_find.h"
#include "placement/place_homes.h"
#include "placement/place_internal.h"
#include "placement/place_rules.h"
#include "placement/place_solve.h"
#include "placement/place_what_if.h"
#include "placement/replica/replica.h"
#include "placement/report/figures.h"

/* A dimension that nothing fixes counts as this when homes are decided. */
enum { NOMINAL_SIZE = 64 };

/* ---- The cluster */

weir_status weir_cluster_choose(const weir_allocator *alloc,
                                const weir_place_request *r, weir_cluster **out,
                                weir_error *err) {
  const weir_graph *graph = r->graph;
  const char *text = r->cluster;
  *out = NULL;
  if (r->cluster_section != NULL)
    return weir_cluster_from_yaml(alloc, r->cluster_section, out, err);
  if ((text == NULL || strcmp(text, "graph") == 0) && graph->cluster != NULL)
    return weir_cluster_from_yaml(alloc, graph->cluster, out, err);
  if (text != NULL && strcmp(text, "graph") == 0)
    return weir_fail(err, WEIR_W3020, NULL,
                     "the graph has no `cluster:` section");
  char logical[64]; /* CPUs of a mesh that names no devices */
  if (text == NULL) text = "auto";
  if (strcmp(text, "auto") == 0 && graph->mesh != NULL &&
      graph->mesh->logical) {
    snprintf(logical, sizeof logical, "worker=1,cpu=%" PRIu32,
             graph->mesh->device_count);
    text = logical;
  } else if (strcmp(text, "auto") == 0 && r->machine != NULL) {
    text = r->machine;
  }
  return weir_cluster_from_text(alloc, weir_sv_from(text), out, err);
}

/* ---- Plans */

weir_plan *weir_plan_ref(const weir_plan *plan) {
  weir_plan *p = (weir_plan *)(uintptr_t)plan;
  atomic_fetch_add_explicit(&p->refs, 1, memory_order_relaxed);
  return p;
}

void weir_plan_unref(const weir_plan *plan) {
  weir_plan *p = (weir_plan *)(uintptr_t)plan;
  if (p == NULL) return;
  if (atomic_fetch_sub_explicit(&p->refs, 1, memory_order_acq_rel) != 1) return;
  weir_plan_details_release(p->alloc, atomic_load(&p->details));
  weir_place_figures_release(p->figures);
  weir_partition_release(atomic_load(&p->partition));
  weir_place_plan_release(p->result.plan);
  if (p->placement == NULL) weir_place_problem_release(p->problem);
  weir_placement_release(p->placement);
  weir_placing_unref(p->placing);
  weir_free(p->alloc, p->peaks);
  weir_free(p->alloc, p);
}

/* Threads that ask at once each make one; the first to store it wins. */
weir_status weir_plan_partition(const weir_plan *plan,
                                const weir_partition **out, weir_error *err) {
  weir_plan *p = (weir_plan *)(uintptr_t)plan;
  weir_partition *made = NULL, *there = atomic_load(&p->partition);
  *out = there;
  if (there != NULL || p->placement == NULL) return WEIR_OK;
  WEIR_TRY(weir_partition_create(p->alloc, p->placement, p->result.plan, &made,
                                 err));
  if (atomic_compare_exchange_strong(&p->partition, &there, made))
    there = made;
  else
    weir_partition_release(made);
  *out = there;
  return WEIR_OK;
}

uint64_t weir_plan_hash(const weir_plan *plan) {
  weir_plan *p = (weir_plan *)(uintptr_t)plan;
  uint64_t hash = atomic_load(&p->hash);
  if (hash != 0 || p->placement == NULL) return hash;
  hash = weir_cut_hash(p->placement->graph);
  atomic_store(&p->hash, hash); /* whoever makes it, it is the same */
  return hash;
}

static weir_status plan_begin(const weir_placing *placing, weir_plan **out,
                              weir_error *err) {
  weir_plan *p = weir_alloc_array(placing->alloc, 1, sizeof *p);
  *out = p;
  if (p == NULL) return weir_fail_memory(err, sizeof *p);
  atomic_init(&p->refs, 1);
  atomic_init(&p->partition, NULL);
  atomic_init(&p->hash, 0);
  p->alloc = placing->alloc;
  p->placing = weir_placing_ref(placing);
  return WEIR_OK;
}

static weir_status no_such_node(const weir_place_wish *w, weir_error *err) {
  return weir_fail(err, WEIR_W0002, NULL, "the plan has no node called %.*s",
                   WEIR_SV(w->node));
}

/* Wishes as pins of |graph|'s nodes, which the caller frees. */
static weir_status find_wishes(const weir_placing *p, const weir_graph *graph,
                               bool all, weir_place_pin **out, uint32_t *count,
                               weir_error *err) {
  *count = 0;
  *out = weir_alloc_array(p->alloc, p->wish_count, sizeof **out);
  if (*out == NULL) return weir_fail_memory(err, p->wish_count * sizeof **out);
  for (uint32_t i = 0; i < p->wish_count; i++) {
    const weir_place_wish *w = &p->wishes[i];
    weir_node_id id = weir_place_find_in(graph, w->node);
    if (id != UINT32_MAX)
      (*out)[(*count)++] = (weir_place_pin){id, w->device};
    else if (all)
      return no_such_node(w, err);
  }
  return WEIR_OK;
}

static weir_status lower(weir_plan *plan, const weir_graph *graph,
                         const weir_plan_start *start, weir_error *err) {
  const weir_placing *p = plan->placing;
  weir_place_pin *pins = NULL;
  weir_lower_options lower = {.strictness = p->options.strictness,
                              .logical = p->logical,
                              .sink = start->sink,
                              .costs = p->costs,
                              .homes = &p->homes,
                              .assumed_kinds = p->options.assumed_kinds,
                              .absent_kinds = p->absent_kinds,
                              .ask = p->options.ask,
                              .ask_self = p->options.ask_self};
  if (start->request != NULL) {
    lower.rule_used = p->rule_used;
    lower.with_found = p->with_found;
  }
  weir_status s =
      find_wishes(p, graph, start->wishes, &pins, &lower.pin_count, err);
  lower.pins = pins;
  if (s == WEIR_OK)
    s = weir_placement_create(p->alloc, graph, p->cluster, &lower,
                              &plan->placement, err);
  weir_free(p->alloc, pins);
  if (s != WEIR_OK) return s;
  plan->problem = (weir_place_problem *)(uintptr_t)plan->placement->problem;
  return WEIR_OK;
}

/* The plan of |graph| with the homes that |placing| has so far. */
static weir_status plan_make(const weir_placing *placing,
                             const weir_graph *graph,
                             const weir_plan_start *start, weir_plan **out_plan,
                             weir_error *err) {
  weir_plan *p = NULL;
  *out_plan = NULL;
  weir_status s = plan_begin(placing, &p, err);
  if (s == WEIR_OK) s = lower(p, graph, start, err);
  if (s == WEIR_OK) s = weir_plan_solve(p, start, err);
  if (s == WEIR_OK)
    *out_plan = p;
  else
    weir_plan_unref(p);
  return s;
}

weir_status weir_placing_plan(const weir_placing *placing,
                              const weir_graph *graph, weir_plan **out_plan,
                              weir_error *err) {
  weir_plan_start start = {0};
  return plan_make(placing, graph, &start, out_plan, err);
}

weir_status weir_plan_unpack(const weir_placing *placing,
                             const weir_graph *graph, weir_bytes bytes,
                             weir_plan **out_plan, weir_error *err) {
  weir_place_request request = {.carried = bytes, .replay = true};
  weir_plan_start start = {.request = &request, .given = true};
  return plan_make(placing, graph, &start, out_plan, err);
}

/* ---- Placings */

weir_placing *weir_placing_ref(const weir_placing *placing) {
  weir_placing *p = (weir_placing *)(uintptr_t)placing;
  atomic_fetch_add_explicit(&p->refs, 1, memory_order_relaxed);
  return p;
}

void weir_placing_unref(const weir_placing *placing) {
  weir_placing *p = (weir_placing *)(uintptr_t)placing;
  if (p == NULL) return;
  if (atomic_fetch_sub_explicit(&p->refs, 1, memory_order_acq_rel) != 1) return;
  weir_cluster_release((weir_cluster *)(uintptr_t)p->cluster);
  weir_costs_release(p->costs);
  weir_map_release(&p->homes);
  weir_arena_release(&p->arena);
  weir_free(p->alloc, p);
}

uint32_t weir_placing_home(const weir_placing *placing, weir_sv name) {
  uint32_t device = weir_map_get(&placing->homes, name);
  return device == WEIR_MAP_NONE ? WEIR_PLACE_NONE : device;
}

uint32_t weir_placing_home_task(const weir_placing *placing, weir_sv name) {
  uint32_t device = weir_placing_home(placing, name);
  return device == WEIR_PLACE_NONE ? WEIR_PLACE_NONE
                                   : placing->cluster->devices[device].task;
}

weir_status weir_placing_check_runs(const weir_placing *p, weir_error *err) {
  if (p->options.assumed_kinds == 0) return WEIR_OK;
  weir_status s = weir_fail(err, WEIR_W3016, NULL,
                            "the plan assumes kernels that do not exist, so it "
                            "cannot be run");
  weir_hint(err, "place it without --assume-kernels");
  return s;
}

static weir_status copy_wishes(weir_placing *p, const weir_place_request *r,
                               weir_place_wish **out, weir_error *err) {
  size_t most = r->wish_count + r->change_count;
  weir_place_wish *w = weir_arena_array(&p->arena, most + 1, sizeof *w);
  *out = w;
  if (w == NULL) return weir_fail_memory(err, most * sizeof *w);
  for (uint32_t i = 0; i < r->wish_count; i++) {
    char *name = weir_arena_string(&p->arena, r->wishes[i].node.data,
                                   r->wishes[i].node.size);
    if (name == NULL) return weir_fail_memory(err, r->wishes[i].node.size);
    w[i] =
        (weir_place_wish){{name, r->wishes[i].node.size}, r->wishes[i].device};
  }
  p->wishes = w;
  p->wish_count = r->wish_count;
  return WEIR_OK;
}

static weir_status placing_begin(const weir_allocator *alloc,
                                 const weir_place_request *r,
                                 weir_placing **out, weir_error *err) {
  weir_place_wish *wishes;
  weir_placing *p = weir_alloc_array(alloc, 1, sizeof *p);
  *out = p;
  if (p == NULL) return weir_fail_memory(err, sizeof *p);
  atomic_init(&p->refs, 1);
  p->alloc = alloc;
  weir_arena_init(&p->arena, alloc);
  weir_map_init(&p->homes, alloc);
  p->options = r->options;
  if (r->costs != NULL) p->costs = weir_costs_ref(r->costs);
  if (r->graph == NULL) return WEIR_OK; /* of an instance */
  WEIR_TRY(weir_rules_begin(p, r, err));
  p->logical = r->graph->mesh != NULL && r->graph->mesh->logical;
  weir_cluster *cluster = NULL;
  WEIR_TRY(copy_wishes(p, r, &wishes, err));
  WEIR_TRY(weir_cluster_choose(alloc, r, &cluster, err));
  /* Before the changes, which are of what holds here. */
  weir_cluster_links_use(p->costs, p->options.in_process, cluster);
  weir_status s =
      weir_place_change(r, &p->arena, &cluster, wishes, &p->wish_count, err);
  p->cluster = cluster;
  if (s == WEIR_OK && p->options.absent != NULL)
    s = p->options.absent(p->options.absent_self, cluster, &p->absent_kinds,
                          err);
  return s;
}

/* ---- The first plan: the graph's main purpose */

/* One call of weir_place_graph or weir_placing_create. */
typedef struct placer {
  const weir_place_request *request;
  weir_placing *placing;
  weir_goal *goal;      /* the request's */
  weir_goal *main;      /* the one that gives homes: maybe the same */
  weir_cut *cut;        /* of |goal|; NULL: the caller wants the homes only */
  weir_cut *first_cut;  /* of |main| */
  weir_plan *first;     /* of |main|; or NULL */
  bool is_first_wanted; /* the two cuts are the same graph */
  bool wishes_failed;   /* a wish names a node that is not there */
} placer;

static void placer_end(placer *p) {
  weir_cut_release(p->cut);
  weir_cut_release(p->first_cut);
  if (p->main != p->goal) weir_goal_release(p->main);
  weir_goal_release(p->goal);
  weir_plan_unref(p->first);
  weir_placing_unref(p->placing);
}

static bool has_variables(const weir_graph *g) {
  for (weir_node_id id = 0; id < g->node_count; id++)
    if (g->nodes[id].op->instr == WEIR_INSTR_VAR_READ) return true;
  return false;
}

static weir_status cut(const weir_goal *goal, const weir_shape *given,
                       int64_t nominal, weir_cut **out, weir_error *err) {
  const weir_graph *g = goal->graph;
  weir_shape *shapes =
      weir_alloc_array(g->alloc, g->input_count, sizeof *shapes);
  *out = NULL;
  if (shapes == NULL)
    return weir_fail_memory(err, g->input_count * sizeof *shapes);
  weir_status s = weir_graph_input_shapes(g, given, nominal, shapes, err);
  if (s == WEIR_OK) s = weir_goal_cut(goal, shapes, out, err);
  weir_free(g->alloc, shapes);
  return s;
}

/* The requested plan; |half|: another was made before, for the homes. */
static weir_plan_start wanted(const placer *p, bool half) {
  const weir_place_request *r = p->request;
  return (weir_plan_start){.request = r,
                           .sink = r->sink,
                           .given = true,
                           .wishes = true,
                           .half = half};
}

/* Programs that will be placed have some of the nodes each: a wish counts where
 * its node is, but it must be somewhere. */
static weir_status check_wishes(const placer *p, weir_error *err) {
  const weir_placing *placing = p->placing;
  const weir_cut *step = p->first_cut;
  for (uint32_t i = 0; i < placing->wish_count; i++) {
    const weir_place_wish *w = &placing->wishes[i];
    if (weir_place_find_in(p->request->graph, w->node) == UINT32_MAX &&
        (step == NULL ||
         weir_place_find_in(step->graph, w->node) == UINT32_MAX))
      return no_such_node(w, err);
  }
  return WEIR_OK;
}

static void tell_gpus(const weir_placing *placing, weir_goal *goal) {
  goal->with_gpus = placing->cluster->kind_count[WEIR_GPU] > 0;
}

/* The plan that gives homes. Where it is the requested plan, it begins as
 * the caller wants. Where that one follows, it repeats the warnings. */
static weir_status plan_main(placer *p, weir_error *err) {
  if (p->main == NULL)
    WEIR_TRY(weir_goal_create(p->request->graph, false, &p->main, err));
  tell_gpus(p->placing, p->main);
  WEIR_TRY(cut(p->main, NULL, NOMINAL_SIZE, &p->first_cut, err));
  p->wishes_failed = check_wishes(p, err) != WEIR_OK;
  if (p->wishes_failed) return err->code;
  p->is_first_wanted = p->cut != NULL && weir_cut_hash(p->cut->graph) ==
                                             weir_cut_hash(p->first_cut->graph);
  weir_plan_start start = {.request = p->request, .half = p->cut != NULL};
  if (p->cut == NULL) start.sink = p->request->sink;
  if (p->is_first_wanted) start = wanted(p, false);
  return plan_make(p->placing, p->first_cut->graph, &start, &p->first, err);
}

/* A warning that homes go by rules, with the reason. */
static void tell_rules(const placer *p, const weir_error *why) {
  weir_error warning = *why;
  weir_hint(&warning,
            "the step is not placed, so its variables are spread by rules and "
            "bytes");
  weir_diag_warn(p->request->sink, &warning);
}

/* Where there is no such plan, because a shape is not known or the step does
 * not fit the cluster, the outputs' variables go by rules and bytes. */
static weir_status decide_homes(placer *p, weir_error *err) {
  weir_error why = WEIR_ERROR_INIT;
  if (!has_variables(p->request->graph)) return WEIR_OK;
  weir_status s = plan_main(p, &why);
  if (s != WEIR_OK && (p->is_first_wanted || p->wishes_failed ||
                       strcmp(why.id, "W6001") == 0)) {
    weir_error_copy(err, &why);
    return s;
  }
  if (s != WEIR_OK) tell_rules(p, &why);
  if (p->main == NULL)
    WEIR_TRY(weir_goal_create(p->request->graph, true, &p->main, err));
  tell_gpus(p->placing, p->main);
  if (p->first != NULL) WEIR_TRY(weir_homes_take(p->placing, p->first, err));
  return weir_homes_fill(p->placing, p->main, err);
}

weir_status weir_placing_create(const weir_allocator *alloc,
                                const weir_place_request *request,
                                weir_placing **out_placing,
                                weir_plan **out_plan, weir_error *err) {
  placer p = {.request = request};
  *out_placing = NULL;
  *out_plan = NULL;
  weir_status s = placing_begin(alloc, request, &p.placing, err);
  if (s == WEIR_OK) s = decide_homes(&p, err);
  if (s == WEIR_OK) s = check_wishes(&p, err);
  if (s == WEIR_OK) weir_rules_tell(p.placing, request);
  if (s == WEIR_OK) {
    *out_placing = p.placing;
    *out_plan = p.first;
    p.placing = NULL;
    p.first = NULL;
  }
  placer_end(&p);
  return s;
}

/* ---- One plan */

/* A plan that was given says where its variables live. */
static weir_status plan_given(placer *p, weir_plan **out, weir_error *err) {
  weir_plan_start start = wanted(p, false);
  WEIR_TRY(plan_make(p->placing, p->cut->graph, &start, out, err));
  WEIR_TRY(weir_homes_take(p->placing, *out, err));
  return weir_homes_fill(p->placing, p->goal, err);
}

static weir_status plan_goal(placer *p, weir_plan **out, weir_error *err) {
  const weir_place_request *r = p->request;
  WEIR_TRY(weir_goal_create(r->graph, r->inference, &p->goal, err));
  tell_gpus(p->placing, p->goal);
  if (r->replica)
    WEIR_TRY(weir_replica_begin(p->placing->cluster, p->goal,
                                &p->placing->arena, &p->placing->replica, err));
  WEIR_TRY(cut(p->goal, r->shapes, r->open ? NOMINAL_SIZE : 0, &p->cut, err));
  if (r->replay) return plan_given(p, out, err);
  if (!r->inference || r->graph->train == NULL) p->main = p->goal;
  WEIR_TRY(decide_homes(p, err));
  if (p->first != NULL && p->is_first_wanted) {
    *out = weir_plan_ref(p->first);
    return WEIR_OK;
  }
  weir_plan_start start = wanted(p, p->first != NULL);
  return plan_make(p->placing, p->cut->graph, &start, out, err);
}

weir_status weir_place_graph(const weir_allocator *alloc,
                             const weir_place_request *request,
                             weir_plan **out_plan, weir_error *err) {
  placer p = {.request = request};
  weir_plan *plan = NULL;
  *out_plan = NULL;
  weir_status s = placing_begin(alloc, request, &p.placing, err);
  if (s == WEIR_OK) s = plan_goal(&p, &plan, err);
  if (s == WEIR_OK) weir_rules_tell(p.placing, request);
  placer_end(&p);
  if (s == WEIR_OK)
    *out_plan = plan;
  else
    weir_plan_unref(plan);
  return s;
}

weir_status weir_place_problem_plan(const weir_allocator *alloc,
                                    weir_place_problem *problem,
                                    const weir_place_request *request,
                                    weir_plan **out_plan, weir_error *err) {
  weir_plan_start start = {
      .request = request, .sink = request->sink, .given = true};
  weir_place_request r = *request;
  weir_placing *placing = NULL;
  weir_plan *p = NULL;
  *out_plan = NULL;
  r.graph = NULL;
  weir_status s = placing_begin(alloc, &r, &placing, err);
  if (s == WEIR_OK) s = plan_begin(placing, &p, err);
  if (s == WEIR_OK) {
    p->problem = problem;
    s = weir_plan_solve(p, &start, err);
  } else {
    weir_place_problem_release(problem);
  }
  weir_placing_unref(placing);
  if (s == WEIR_OK)
    *out_plan = p;
  else
    weir_plan_unref(p);
  return s;
}
