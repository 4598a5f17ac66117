/* SPDX-License-Identifier: Apache-2.0
 *
 * The workers as one remote: a program is made on all of them, a run is given
 * to one.
 *
 * A run that fails asks whether its worker's session is over. If so, the worker
 * is lost and the run is made again by another; else the failure is the run's
 * own, which any worker would have. Fetches of an attempt that failed are
 * written again, for nothing of them was handed on. */
#include "runtime/dist/deal/deal_remote.h"

#include "placement/parts/hashes.h"
#include "runtime/dist/bundle/bundle.h"
#include "runtime/dist/cluster/cluster_session.h"
#include "runtime/dist/deal/deal_internal.h"

typedef struct deal_remote {
  weir_remote base;
  weir_deal *deal;
  weir_remote **remotes; /* per worker; NULL: it was lost before */
} deal_remote;

/* Handed out as a weir_remote_program. */
typedef struct deal_program {
  uint32_t fetch_count;
  bool writes;
  weir_remote_program **programs; /* per worker; NULL: likewise */
} deal_program;

/* ---- Programs */

typedef struct prepare_call {
  deal_remote *remote;
  const weir_remote_request *request;
  deal_program *program;
} prepare_call;

static weir_status prepare_one(weir_deal *d, uint32_t i, void *arg,
                               weir_error *err) {
  const prepare_call *c = arg;
  weir_remote *r = c->remote->remotes[i];
  bool writes = false;
  WEIR_TRY(
      r->vt->prepare(r, c->request, &c->program->programs[i], &writes, err));
  if (!writes) return WEIR_OK;
  pthread_mutex_lock(&d->lock);
  c->program->writes = true;
  pthread_mutex_unlock(&d->lock);
  return WEIR_OK;
}

static void forget(weir_remote *remote, weir_remote_program *program) {
  deal_remote *r = (deal_remote *)remote;
  deal_program *p = (deal_program *)program;
  if (p == NULL) return;
  for (uint32_t i = 0; p->programs != NULL && i < r->deal->count; i++)
    if (p->programs[i] != NULL)
      r->remotes[i]->vt->forget(r->remotes[i], p->programs[i]);
  weir_free(r->deal->outer->alloc, p->programs);
  weir_free(r->deal->outer->alloc, p);
}

/* What the plan makes when it is first asked is made before many ask. */
static weir_status warm_plan(const weir_remote_request *request,
                             weir_error *err) {
  const weir_partition *partition;
  weir_plan_hashes hashes;
  WEIR_TRY(weir_plan_partition(request->plan, &partition, err));
  return weir_plan_hashes_get(request->plan, &hashes, err);
}

static weir_status prepare_all(prepare_call *c, weir_error *err) {
  weir_deal *d = c->remote->deal;
  deal_program *p = c->program;
  p->programs =
      weir_alloc_array(d->outer->alloc, d->count, sizeof *p->programs);
  if (p->programs == NULL)
    return weir_fail_memory(err, d->count * sizeof *p->programs);
  p->fetch_count = c->request->fetch_count;
  WEIR_TRY(warm_plan(c->request, err));
  WEIR_TRY(weir_deal_each(d, prepare_one, c, err));
  if (!p->writes) return WEIR_OK;
  return weir_fail(err, WEIR_W7071, NULL,
                   "the run assigns variables, so all runs after it need it");
}

static weir_status prepare(weir_remote *remote,
                           const weir_remote_request *request,
                           weir_remote_program **out, bool *out_writes,
                           weir_error *err) {
  deal_remote *r = (deal_remote *)remote;
  deal_program *p = weir_alloc_array(r->deal->outer->alloc, 1, sizeof *p);
  *out = NULL;
  *out_writes = false;
  if (p == NULL) return weir_fail_memory(err, sizeof *p);
  prepare_call c = {r, request, p};
  weir_status s = prepare_all(&c, err);
  if (s == WEIR_OK)
    *out = (weir_remote_program *)p;
  else
    forget(remote, (weir_remote_program *)p);
  return s;
}

/* ---- Runs */

/* The worker that |call| is given; NONE: none is left. */
static uint32_t wait_for_worker(weir_deal *d, weir_dealer_call *call) {
  uint32_t worker;
  pthread_mutex_lock(&d->lock);
  weir_dealer_ask(&d->dealer, call);
  while ((worker = weir_dealer_grant(&d->dealer, call)) == WEIR_DEALER_WAIT)
    pthread_cond_wait(&d->changed, &d->lock);
  pthread_cond_broadcast(&d->changed); /* the next one may be granted, too */
  pthread_mutex_unlock(&d->lock);
  return worker;
}

static void end_call(weir_deal *d, uint32_t worker, weir_dealer_how how) {
  pthread_mutex_lock(&d->lock);
  weir_dealer_end(&d->dealer, worker, how);
  pthread_cond_broadcast(&d->changed);
  pthread_mutex_unlock(&d->lock);
  if (how != WEIR_DEAL_AGAIN && d->options.ran != NULL)
    d->options.ran(d->options.self);
}

/* No worker is left: so for all fetches. */
static weir_status fail_run(weir_deal *d, const deal_program *p,
                            const weir_remote_step *step, weir_error *err) {
  weir_status s = weir_deal_none_left(d, err);
  for (uint32_t k = 0; k < p->fetch_count; k++) {
    step->outcomes[k].status = s;
    weir_error_copy(&step->outcomes[k].error, err);
  }
  return s;
}

static weir_status run(weir_remote *remote, weir_remote_program *program,
                       const weir_remote_step *step, weir_error *err) {
  deal_remote *r = (deal_remote *)remote;
  const deal_program *p = (const deal_program *)program;
  weir_deal *d = r->deal;
  weir_dealer_call call = {.number = 0};
  for (;;) {
    uint32_t w = wait_for_worker(d, &call);
    if (w == WEIR_DEALER_NONE) return fail_run(d, p, step, err);
    weir_error why = WEIR_ERROR_INIT;
    for (uint32_t k = 0; k < p->fetch_count; k++)
      step->outcomes[k] = (weir_remote_outcome){.error = WEIR_ERROR_INIT};
    weir_status s =
        r->remotes[w]->vt->run(r->remotes[w], p->programs[w], step, &why);
    if (s == WEIR_OK) {
      end_call(d, w, WEIR_DEAL_DONE);
      return s;
    }
    bool lost = weir_deal_is_lost(d, w);
    end_call(d, w, lost ? WEIR_DEAL_AGAIN : WEIR_DEAL_FAILED);
    if (lost) continue;
    weir_error_copy(err, &why);
    return s;
  }
}

static weir_status decide(weir_remote *remote, weir_remote_program *program,
                          bool commit, weir_error *err) {
  (void)remote, (void)program, (void)commit;
  return weir_fail(err, WEIR_W9001, NULL, "dealt runs assign nothing");
}

static uint32_t width(weir_remote *remote) {
  const deal_remote *r = (const deal_remote *)remote;
  return r->deal->count * WEIR_DEAL_EACH;
}

/* ---- Variables */

typedef struct set_call {
  deal_remote *remote;
  const weir_node_id *nodes;
  const void *const *data;
  uint32_t count;
} set_call;

static weir_status set_one(weir_deal *d, uint32_t i, void *arg,
                           weir_error *err) {
  (void)d;
  const set_call *c = arg;
  weir_remote *r = c->remote->remotes[i];
  return r->vt->set(r, c->nodes, c->data, c->count, err);
}

static weir_status set(weir_remote *remote, const weir_node_id *nodes,
                       const void *const *data, uint32_t count,
                       weir_error *err) {
  deal_remote *r = (deal_remote *)remote;
  set_call c = {r, nodes, data, count};
  return weir_deal_each(r->deal, set_one, &c, err);
}

/* All workers have the same values. */
static weir_status get(weir_remote *remote, const weir_node_id *nodes,
                       void *const *data, uint32_t count, weir_error *err) {
  deal_remote *r = (deal_remote *)remote;
  for (uint32_t i = 0; i < r->deal->count; i++) {
    weir_error why = WEIR_ERROR_INIT;
    if (!weir_deal_is_there(r->deal, i)) continue;
    weir_status s =
        r->remotes[i]->vt->get(r->remotes[i], nodes, data, count, &why);
    if (s != WEIR_OK && weir_deal_is_lost(r->deal, i)) continue;
    if (s != WEIR_OK) weir_error_copy(err, &why);
    return s;
  }
  return weir_deal_none_left(r->deal, err);
}

/* ---- The remote */

static const weir_remote_vtable kDeal = {.prepare = prepare,
                                         .forget = forget,
                                         .run = run,
                                         .decide = decide,
                                         .get = get,
                                         .set = set,
                                         .width = width};

typedef struct open_call {
  deal_remote *remote;
  const weir_bundle *bundle;
  const weir_graph *graph;
} open_call;

static weir_status open_one(weir_deal *d, uint32_t i, void *arg,
                            weir_error *err) {
  const open_call *c = arg;
  return weir_dist_remote(d->workers[i].dist, c->bundle, c->graph,
                          &c->remote->remotes[i], err);
}

weir_status weir_deal_remote(weir_deal *d, const weir_bundle *bundle,
                             const weir_graph *run_graph, weir_remote **out,
                             weir_error *err) {
  const weir_allocator *alloc = d->outer->alloc;
  deal_remote *r = weir_alloc_array(alloc, 1, sizeof *r);
  *out = NULL;
  if (r == NULL) return weir_fail_memory(err, sizeof *r);
  r->base.vt = &kDeal;
  r->deal = d;
  r->remotes = weir_alloc_array(alloc, d->count, sizeof(weir_remote *));
  open_call c = {r, bundle, run_graph};
  weir_status s = r->remotes == NULL
                      ? weir_fail_memory(err, d->count * sizeof *r->remotes)
                      : weir_deal_each(d, open_one, &c, err);
  if (s == WEIR_OK)
    *out = &r->base;
  else
    weir_deal_remote_release(&r->base);
  return s;
}

void weir_deal_remote_release(weir_remote *remote) {
  deal_remote *r = (deal_remote *)remote;
  if (r == NULL) return;
  for (uint32_t i = 0; r->remotes != NULL && i < r->deal->count; i++)
    weir_dist_remote_release(r->remotes[i]);
  weir_free(r->deal->outer->alloc, r->remotes);
  weir_free(r->deal->outer->alloc, r);
}
