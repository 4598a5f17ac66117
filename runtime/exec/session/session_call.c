/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/exec/session/session_call.h"

#include "runtime/exec/program/program_internal.h"
#include "runtime/exec/run/run.h"
#include "runtime/exec/session/session_cache.h"
#include "runtime/exec/session/session_first.h"
#include "runtime/exec/session/session_mesh.h"
#include "runtime/exec/session/session_run.h"
#include "runtime/exec/session/session_vars.h"

/* The work around one run of a request: a program found, a frame, outputs; then
 * each fetch gets its tensor or its failure. */

static weir_status collect(weir_session_call *c, weir_error *err) {
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
  c->stays = weir_alloc_array(a, n, sizeof *c->stays);
  if (c->ids == NULL || c->tensors == NULL || c->made == NULL ||
      c->stays == NULL)
    return weir_fail_memory(err, n * sizeof *c->tensors);
  for (size_t i = 0; i < r->fetch_count; i++) {
    c->ids[c->count] = r->fetches[i].value;
    c->stays[c->count] = r->fetches[i].stays;
    c->tensors[c->count++] = r->fetches[i].tensor;
  }
  for (size_t i = 0; options != NULL && i < options->dump_count; i++) {
    const weir_node *node = &g->nodes[options->dump[i]];
    for (uint32_t k = 0; k < node->output_count; k++)
      c->ids[c->count++] = node->first_output + k;
  }
  c->wanted.fetches = c->ids;
  c->wanted.stays = c->stays;
  c->wanted.fetch_count = c->count;
  c->wanted.no_fusion = options != NULL && options->trap_nan;
  return WEIR_OK;
}

/* With the program. */
static weir_status prepare(weir_session_call *c, weir_error *err) {
  weir_exec_session *session = c->session;
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

void weir_session_call_deliver(weir_session_call *c) {
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

void weir_session_call_close(weir_session_call *c) {
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
  weir_free(a, c->stays);
}

static weir_status feed_defaults(weir_session_call *c, weir_error *err) {
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

static weir_status begin(weir_session_call *c, weir_exec_session *session,
                         const weir_exec_request *request, bool unplaced,
                         weir_error *err) {
  *c = (weir_session_call){
      .session = session,
      .request = request,
      .wanted = {.feeds = request->feeds,
                 .targets = request->targets,
                 .feed_count = (uint32_t)request->feed_count,
                 .target_count = (uint32_t)request->target_count,
                 .unplaced = unplaced}};
  for (size_t k = 0; k < request->fetch_count; k++)
    request->fetches[k].status = WEIR_OK;
  WEIR_TRY(collect(c, err));
  return weir_session_check(session, &c->wanted, err);
}

weir_status weir_session_call_open(weir_session_call *c,
                                   weir_exec_session *session,
                                   const weir_exec_request *request,
                                   bool unplaced, weir_error *err) {
  WEIR_TRY(begin(c, session, request, unplaced, err));
  WEIR_TRY(feed_defaults(c, err));
  WEIR_TRY(weir_session_program(session, &c->wanted, &c->cached, err));
  return prepare(c, err);
}

weir_status weir_session_call_open_known(weir_session_call *c,
                                         weir_exec_session *session,
                                         const weir_exec_request *request,
                                         bool *out_opened, weir_error *err) {
  *out_opened = true;
  WEIR_TRY(begin(c, session, request, false, err));
  bool known = weir_session_vars_ready(session) &&
               !weir_session_has_defaults(session, &c->wanted);
  if (known) {
    WEIR_TRY(feed_defaults(c, err)); /* there are none: the list alone */
    c->cached = weir_session_program_known(session, &c->wanted);
  }
  if (c->cached != NULL) return prepare(c, err);
  *out_opened = false;
  weir_session_call_close(c);
  return WEIR_OK;
}

void weir_session_call_fail(weir_session_call *c, weir_status status,
                            const weir_error *err) {
  weir_exec_fetch *fetches = c->request->fetches;
  size_t count = c->request->fetch_count;
  for (size_t k = 0; k < count; k++) fetches[k].status = status;
  for (size_t k = 0; k < count; k++)
    if (err != NULL) weir_error_copy(fetches[k].error, err);
}
