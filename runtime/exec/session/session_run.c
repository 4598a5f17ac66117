/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/exec/session/session_run.h"

#include "runtime/exec/program/program_internal.h"
#include "runtime/exec/run/run.h"
#include "runtime/exec/session/session_cache.h"
#include "runtime/exec/session/session_defaults.h"
#include "runtime/exec/session/session_internal.h"
#include "runtime/exec/session/session_mesh.h"
#include "runtime/exec/session/session_remote.h"
#include "runtime/exec/session/session_vars.h"

/* Runs by value id: look up, run once, hand out. */

weir_status weir_session_step(weir_exec_session *session,
                              const weir_cached *cached, weir_frame *frame,
                              weir_var_buffer **held,
                              const weir_run_options *options,
                              weir_error *err) {
  bool writes = cached->compiled->writes;
  if (writes) pthread_mutex_lock(&session->write_lock);
  weir_status s = weir_session_vars_begin(session, cached, frame, held, err);
  if (s == WEIR_OK) {
    s = weir_frame_run(frame, session->pool, options, err);
    bool ran = s == WEIR_OK;
    if (ran && options != NULL && options->accept != NULL)
      s = options->accept(options->accept_self, err);
    if (ran && cached->remote != NULL)
      s = weir_session_remote_decide(session, cached, s, err);
    weir_session_vars_end(session, cached, held, s == WEIR_OK);
  }
  if (writes) pthread_mutex_unlock(&session->write_lock);
  return s;
}

/* NULL: another task makes it. */
static const weir_pvalue *fetched(const weir_cached *cached, uint32_t k) {
  const weir_program *p = cached->compiled->program;
  while (p != NULL && p->fetches[k] == WEIR_NO_INDEX) p = p->next_part;
  return p != NULL ? &p->values[p->fetches[k]] : NULL;
}

bool weir_session_fetch_elsewhere(const weir_cached *cached, uint32_t k) {
  return fetched(cached, k) == NULL;
}

weir_status weir_session_output(weir_exec_session *session,
                                const weir_cached *cached, uint32_t k,
                                weir_tensor **tensor, weir_error *err) {
  const weir_pvalue *v = fetched(cached, k);
  if (v == NULL) return WEIR_OK;
  weir_shape shape = weir_shape_of(v->rank, v->dims);
  if (*tensor == NULL)
    return weir_tensor_create_shaped(session->env->alloc, v->dtype, &shape,
                                     tensor, err);
  if ((*tensor)->dtype == v->dtype &&
      weir_shape_equal(&(*tensor)->shape, &shape) && !(*tensor)->read_only)
    return WEIR_OK;
  char want[128], got[128];
  weir_shape_print(&shape, NULL, NULL, want, sizeof want);
  weir_shape_print(&(*tensor)->shape, NULL, NULL, got, sizeof got);
  return weir_fail(err, WEIR_W0004, NULL,
                   "the tensor for output %u is %s%s%s, %s%s is wanted", k,
                   weir_dtype_name((*tensor)->dtype), got,
                   (*tensor)->read_only ? " (read-only)" : "",
                   weir_dtype_name(v->dtype), want);
}

/* One call of weir_exec_run. Values to dump are fetched after the others. */
typedef struct call {
  weir_exec_session *session;
  const weir_exec_request *request;
  weir_wanted wanted;
  weir_cached *cached;
  weir_frame *frame;
  weir_var_buffer **held;
  weir_value_id *ids;
  weir_tensor **tensors;
  bool *made; /* tensors of this call, not the caller's */
  uint32_t count;
  weir_default_feeds defaults;
  weir_tensor **varying; /* of those: references, or NULL */
} call;

static weir_status run(weir_exec_session *session,
                       const weir_exec_request *request, bool unplaced,
                       weir_error *err);

static weir_status collect(call *c, weir_error *err) {
  const weir_graph *g = c->session->graph;
  const weir_allocator *a = c->session->env->alloc;
  const weir_exec_request *r = c->request;
  const weir_run_options *options = r->options;
  size_t n = r->fetch_count;
  for (size_t i = 0; options != NULL && i < options->dump_count; i++) {
    if (options->dump[i] >= g->node_count)
      return weir_fail(err, WEIR_W0004, NULL, "a node to dump does not exist");
    n += g->nodes[options->dump[i]].output_count;
  }
  c->ids = weir_alloc_array(a, n, sizeof *c->ids);
  c->tensors = weir_alloc_array(a, n, sizeof *c->tensors);
  c->made = weir_alloc_array(a, n, sizeof *c->made);
  if (c->ids == NULL || c->tensors == NULL || c->made == NULL)
    return weir_fail_memory(err, n * sizeof *c->tensors);
  for (size_t i = 0; i < r->fetch_count; i++) {
    c->ids[c->count] = r->fetches[i].value;
    c->tensors[c->count++] = r->fetches[i].tensor;
  }
  for (size_t i = 0; options != NULL && i < options->dump_count; i++) {
    const weir_node *node = &g->nodes[options->dump[i]];
    for (uint32_t k = 0; k < node->output_count; k++)
      c->ids[c->count++] = node->first_output + k;
  }
  c->wanted.fetches = c->ids;
  c->wanted.fetch_count = c->count;
  c->wanted.no_fusion = options != NULL && options->trap_nan;
  return WEIR_OK;
}

static weir_status prepare(call *c, weir_error *err) {
  weir_exec_session *session = c->session;
  WEIR_TRY(weir_session_program(session, &c->wanted, &c->cached, err));
  uint32_t vars = c->cached->compiled->var_count;
  if (vars > 0) WEIR_TRY(weir_session_vars_init(session, err));
  for (uint32_t k = 0; k < c->count; k++) {
    c->made[k] = c->tensors[k] == NULL;
    WEIR_TRY(weir_session_output(session, c->cached, k, &c->tensors[k], err));
  }
  c->held =
      weir_alloc_array(session->env->alloc, 2 * (size_t)vars, sizeof *c->held);
  if (c->held == NULL) return weir_fail_memory(err, 0);
  WEIR_TRY(weir_session_frame(session, c->cached, &c->frame, err));
  for (uint32_t k = 0; k < c->wanted.feed_count; k++)
    weir_frame_set_external(c->frame, k, c->wanted.feeds[k].tensor->data);
  for (uint32_t k = 0; k < c->count; k++)
    if (c->tensors[k] != NULL)
      weir_frame_set_external(c->frame, c->wanted.feed_count + k,
                              c->tensors[k]->data);
  return WEIR_OK;
}

/* Hands each fetch its tensor or its failure. */
static void deliver(call *c) {
  const weir_run_options *options = c->request->options;
  weir_exec_fetch *fetches = c->request->fetches;
  size_t fetch_count = c->request->fetch_count;
  for (uint32_t k = 0; k < c->count; k++) {
    const weir_graph *g = c->session->graph;
    if (k < fetch_count)
      fetches[k].elsewhere = weir_session_fetch_elsewhere(c->cached, k);
    if (weir_session_fetch_elsewhere(c->cached, k)) continue;
    weir_error *err = k < fetch_count ? fetches[k].error : NULL;
    weir_status s = weir_frame_fetch_status(c->frame, k, err);
    const weir_value *v = &g->values[c->ids[k]];
    if (c->session->mesh != NULL) {
      const weir_value *old = weir_session_mesh_value(c->session, c->ids[k]);
      if (old != NULL) {
        g = c->session->given;
        v = old;
      }
    }
    if (s == WEIR_OK && options != NULL && options->observer != NULL &&
        options->observer->value != NULL)
      options->observer->value(options->observer->self, g->nodes[v->node].name,
                               v->port, c->tensors[k]);
    if (k >= fetch_count) continue;
    fetches[k].status = s;
    if (s != WEIR_OK || !c->made[k]) continue;
    fetches[k].tensor = c->tensors[k];
    c->tensors[k] = NULL;
  }
}

static void end(call *c) {
  const weir_allocator *a = c->session->env->alloc;
  if (c->frame != NULL)
    weir_session_frame_return(c->session, c->cached, c->frame);
  weir_session_program_release(c->session, c->cached);
  for (uint32_t k = 0; c->made != NULL && k < c->count; k++)
    if (c->made[k]) weir_tensor_unref(c->tensors[k]);
  for (uint32_t k = 0; c->varying != NULL && k < c->defaults.varying_count; k++)
    weir_tensor_unref(c->varying[k]);
  weir_default_feeds_release(c->session, &c->defaults);
  weir_free(a, c->varying);
  weir_free(a, c->held);
  weir_free(a, c->ids);
  weir_free(a, c->tensors);
  weir_free(a, c->made);
}

/* ---- Defaults of a placed program */

weir_status weir_session_compute(weir_exec_session *session,
                                 const weir_wanted *wanted,
                                 const weir_run_options *options,
                                 weir_tensor **out, weir_error *err) {
  const weir_allocator *a = session->env->alloc;
  uint32_t count = wanted->fetch_count;
  weir_exec_fetch *fetches = weir_alloc_array(a, count, sizeof *fetches);
  if (fetches == NULL) return weir_fail_memory(err, count * sizeof *fetches);
  weir_run_options quiet = {0};
  weir_exec_request own = {.feeds = wanted->feeds,
                           .feed_count = wanted->feed_count,
                           .fetches = fetches,
                           .fetch_count = count,
                           .options = &quiet};
  if (options != NULL)
    quiet = (weir_run_options){.deadline_ns = options->deadline_ns,
                               .cancel = options->cancel,
                               .step = options->step,
                               .trap_nan = options->trap_nan};
  for (uint32_t k = 0; k < count; k++) fetches[k].value = wanted->fetches[k];
  weir_status s = run(session, &own, true, err);
  for (uint32_t k = 0; k < count; k++) {
    out[k] = NULL;
    if (s == WEIR_OK)
      out[k] = fetches[k].tensor;
    else
      weir_tensor_unref(fetches[k].tensor);
  }
  weir_free(a, fetches);
  return s;
}

static weir_status feed_defaults(call *c, weir_error *err) {
  weir_exec_session *session = c->session;
  weir_default_feeds *d = &c->defaults;
  if (!weir_session_places(session, &c->wanted)) return WEIR_OK;
  WEIR_TRY(weir_session_defaults(session, &c->wanted, d, err));
  c->varying = weir_alloc_array(session->env->alloc, d->varying_count,
                                sizeof *c->varying);
  if (c->varying == NULL) return weir_fail_memory(err, d->varying_count);
  weir_wanted varying = {.feeds = c->wanted.feeds,
                         .feed_count = c->wanted.feed_count,
                         .fetches = d->varying,
                         .fetch_count = d->varying_count};
  if (d->varying_count > 0)
    WEIR_TRY(weir_session_compute(session, &varying, c->request->options,
                                  c->varying, err));
  uint32_t first = d->feed_count - d->varying_count;
  for (uint32_t k = 0; k < d->varying_count; k++)
    d->feeds[first + k].tensor = c->varying[k];
  c->wanted.feeds = d->feeds;
  c->wanted.feed_count = d->feed_count;
  return WEIR_OK;
}

/* ---- The whole */

static weir_status run(weir_exec_session *session,
                       const weir_exec_request *request, bool unplaced,
                       weir_error *err) {
  call c = {.session = session,
            .request = request,
            .wanted = {.feeds = request->feeds,
                       .targets = request->targets,
                       .feed_count = (uint32_t)request->feed_count,
                       .target_count = (uint32_t)request->target_count,
                       .unplaced = unplaced}};
  weir_exec_fetch *fetches = request->fetches;
  size_t count = request->fetch_count;
  for (size_t k = 0; k < count; k++) fetches[k].status = WEIR_OK;
  weir_status s = collect(&c, err);
  if (s == WEIR_OK) s = weir_session_check(session, &c.wanted, err);
  if (s == WEIR_OK) s = feed_defaults(&c, err);
  if (s == WEIR_OK) s = prepare(&c, err);
  if (s == WEIR_OK) {
    s = weir_session_step(session, c.cached, c.frame, c.held, request->options,
                          err);
    deliver(&c);
  } else {
    for (size_t k = 0; k < count; k++) fetches[k].status = s;
    for (size_t k = 0; k < count; k++)
      if (err != NULL) weir_error_copy(fetches[k].error, err);
  }
  end(&c);
  return s;
}

weir_status weir_exec_run(weir_exec_session *session,
                          const weir_exec_request *request, weir_error *err) {
  if (session->mesh != NULL)
    return weir_session_mesh_run(session, request, NULL, err);
  return weir_session_own_run(session, request, err);
}

weir_status weir_session_own_run(weir_exec_session *session,
                                 const weir_exec_request *request,
                                 weir_error *err) {
  return run(session, request, false, err);
}
