/* SPDX-License-Identifier: Apache-2.0 */
#include "placement/place.h"
#include "runtime/api/weir_internal.h"

/* Sessions whose nodes are placed on the devices of a cluster, all of them in
 * this process. */

struct weir_placed {
  const weir_allocator *alloc;
  weir_placing *placing;
  weir_plan *plan; /* or NULL */
  bool plan_only;
  weir_write_fn on_placed;
  void *on_placed_self;
  void (*on_plan)(void *self, const weir_plan *plan);
  void *on_plan_self;
};

void weir_placed_release(weir_placed *p) {
  if (p == NULL) return;
  weir_plan_unref(p->plan);
  weir_placing_unref(p->placing);
  weir_free(p->alloc, p);
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
  weir_writer out = {p->on_placed_self, p->on_placed};
  /* That it cannot be shown is no reason not to run. */
  if (out.write != NULL) (void)weir_place_write_summary(&plan->view, &out);
  if (p->on_plan != NULL) p->on_plan(p->on_plan_self, plan);
}

/* A plan that is there, one to be read, or places for each program. */
static weir_status find_placing(weir_placed *p, const weir_graph *graph,
                                const weir_session_opts *o, weir_error *err) {
  weir_place_request r = {.graph = graph,
                          .cluster = o->in_process,
                          .options = {.strictness = WEIR_PLACE_WARN},
                          .inference = true,
                          .given = {o->plan, o->plan_size},
                          .replay = true};
  if (o->placed != NULL) {
    p->plan = weir_plan_ref(o->placed);
  } else {
    WEIR_TRY(
        weir_placer_choose(o->placer, &r.options.placer, &r.options.seed, err));
    if (o->plan == NULL)
      return weir_placing_create(p->alloc, &r, &p->placing, &p->plan, err);
    WEIR_TRY(weir_place_graph(p->alloc, &r, &p->plan, err));
  }
  p->placing = weir_placing_ref(p->plan->placing);
  return WEIR_OK;
}

weir_status weir_placed_create(weir_runtime *runtime, const weir_graph *graph,
                               const weir_session_opts *o, weir_placed **out,
                               weir_error *err) {
  *out = NULL;
  if (o->in_process == NULL && o->placed == NULL) {
    if (o->plan == NULL && o->placer == NULL) return WEIR_OK;
    return weir_fail(err, WEIR_W0002, NULL,
                     "a plan or a placer needs a cluster: in-process");
  }
  weir_placed *p = weir_alloc_array(runtime->env.alloc, 1, sizeof *p);
  if (p == NULL) return weir_fail_memory(err, sizeof *p);
  *p = (weir_placed){.alloc = runtime->env.alloc,
                     .plan_only = o->placed_only,
                     .on_placed = o->on_placed,
                     .on_placed_self = o->on_placed_self,
                     .on_plan = o->on_plan,
                     .on_plan_self = o->on_plan_self};
  weir_status s = find_placing(p, graph, o, err);
  if (s == WEIR_OK)
    *out = p;
  else
    weir_placed_release(p);
  return s;
}

void weir_placed_use(weir_placed *p, weir_session_options *options) {
  if (p == NULL) return;
  options->placing = p->placing;
  options->plan = p->plan;
  options->plan_only = p->plan_only;
  options->on_plan = on_plan;
  options->on_plan_self = p;
}
