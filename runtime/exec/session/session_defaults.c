/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/exec/session/session_defaults.h"

#include <string.h>

#include "runtime/exec/session/session_run.h"
#include "runtime/graph/pass/updates.h"

/* A placed program has all inputs fed, so that its graph, and with it its plan,
 * does not depend on the defaults that the caller overrode. For inputs that the
 * caller leaves out the session feeds the default, computed by a small program
 * on one device. A default that stays the same is computed once; one that
 * depends on the step, on a variable or on another input is computed in every
 * run. */

bool weir_session_places(const weir_exec_session *session,
                         const weir_wanted *wanted) {
  return session->options.placing != NULL && !wanted->init && !wanted->unplaced;
}

static const weir_node *input_node(const weir_graph *g, uint32_t i) {
  return &g->nodes[g->values[g->inputs[i].value].node];
}

/* ---- Defaults that vary */

static bool may_vary(const weir_node *node) {
  return node->body_count > 0 || node->op->instr == WEIR_INSTR_VAR_READ ||
         node->op->instr == WEIR_INSTR_FEED ||
         (node->op->flags & (WEIR_OP_RANDOM | WEIR_OP_EFFECT)) != 0;
}

/* Whether the default of |input| varies: one backward sweep over the nodes
 * below it, as operands have lower ids. Bodies count as varying without a look
 * inside. |mark|: per node, scratch. */
static bool varies(const weir_graph *g, uint32_t input, bool *mark) {
  weir_node_id from = g->values[input_node(g, input)->inputs[0]].node;
  memset(mark, 0, g->node_count * sizeof *mark);
  mark[from] = true;
  for (weir_node_id id = from + 1; id-- > 0;) {
    const weir_node *node = &g->nodes[id];
    if (!mark[id]) continue;
    if (may_vary(node)) return true;
    for (uint32_t k = 0; k < node->input_count; k++)
      if (node->inputs[k] != WEIR_NO_VALUE)
        mark[g->values[node->inputs[k]].node] = true;
  }
  return false;
}

/* ---- Inputs that the run needs */

static bool is_fed(const weir_wanted *w, weir_value_id value) {
  for (uint32_t k = 0; k < w->feed_count; k++)
    if (w->feeds[k].value == value) return true;
  return false;
}

/* Marks in |marks| the nodes of the run, inputs among them. */
static weir_status mark_wanted(const weir_exec_session *session,
                               const weir_wanted *w, bool *marks,
                               weir_error *err) {
  const weir_graph *g = session->graph;
  bool *fed =
      weir_alloc_array(session->env->alloc, g->input_count, sizeof *fed);
  if (fed == NULL) return weir_fail_memory(err, g->input_count);
  for (uint32_t i = 0; i < g->input_count; i++) fed[i] = true;
  weir_cut_request request = {.graph = g,
                              .values = w->fetches,
                              .nodes = w->targets,
                              .value_count = w->fetch_count,
                              .node_count = w->target_count,
                              .fed = fed};
  weir_status s = weir_graph_mark_wanted(&request, marks, err);
  weir_free(session->env->alloc, fed);
  return s;
}

/* The value of a default that stays; made by the first run that needs it. Not
 * under the lock, which the small program takes itself: of two threads that
 * compute it at once, the second gives its tensor back. */
static weir_status staying(weir_exec_session *session, uint32_t input,
                           weir_tensor **out, weir_error *err) {
  weir_default *d = &session->defaults[input];
  weir_value_id value = input_node(session->graph, input)->inputs[0];
  weir_wanted wanted = {.fetches = &value, .fetch_count = 1};
  weir_tensor *made = NULL;
  pthread_mutex_lock(&session->lock);
  *out = d->tensor;
  pthread_mutex_unlock(&session->lock);
  if (*out != NULL) return WEIR_OK;
  WEIR_TRY(weir_session_compute(session, &wanted, NULL, &made, err));
  pthread_mutex_lock(&session->lock);
  if (d->tensor == NULL) {
    d->tensor = made;
    made = NULL;
  }
  *out = d->tensor;
  pthread_mutex_unlock(&session->lock);
  weir_tensor_unref(made);
  return WEIR_OK;
}

static bool find_varies(weir_exec_session *session, uint32_t input,
                        bool *mark) {
  weir_default *d = &session->defaults[input];
  pthread_mutex_lock(&session->lock);
  if (!d->known) d->varies = varies(session->graph, input, mark);
  d->known = true;
  bool found = d->varies;
  pthread_mutex_unlock(&session->lock);
  return found;
}

static weir_status fill(weir_exec_session *session, const weir_wanted *w,
                        const bool *wanted, bool *mark, weir_default_feeds *out,
                        weir_error *err) {
  const weir_graph *g = session->graph;
  for (int turn = 0; turn < 2; turn++) { /* those that vary come last */
    for (uint32_t i = 0; i < g->input_count; i++) {
      weir_value_id value = g->inputs[i].value;
      weir_exec_feed feed = {value, NULL};
      if (!g->inputs[i].has_default || !wanted[g->values[value].node] ||
          is_fed(w, value) || find_varies(session, i, mark) != (turn == 1))
        continue;
      if (turn == 0) {
        WEIR_TRY(staying(session, i, &feed.tensor, err));
        out->stay_count++;
      } else {
        out->varying[out->varying_count++] = input_node(g, i)->inputs[0];
      }
      out->feeds[out->feed_count++] = feed;
    }
  }
  return WEIR_OK;
}

bool weir_session_has_defaults(const weir_exec_session *session,
                               const weir_wanted *w) {
  const weir_graph *g = session->graph;
  for (uint32_t i = 0; i < g->input_count; i++)
    if (g->inputs[i].has_default && !is_fed(w, g->inputs[i].value)) return true;
  return false;
}

weir_status weir_session_defaults(weir_exec_session *session,
                                  const weir_wanted *w, weir_default_feeds *out,
                                  weir_error *err) {
  const weir_allocator *a = session->env->alloc;
  const weir_graph *g = session->graph;
  bool some = weir_session_has_defaults(session, w);
  size_t most = (size_t)w->feed_count + g->input_count;
  *out = (weir_default_feeds){0};
  out->feeds = weir_alloc_array(a, most, sizeof *out->feeds);
  out->varying = weir_alloc_array(a, g->input_count, sizeof *out->varying);
  bool *marks = weir_alloc_array(a, 2 * (size_t)g->node_count, sizeof *marks);
  weir_status s = WEIR_OK;
  if (out->feeds == NULL || out->varying == NULL || marks == NULL)
    s = weir_fail_memory(err, most * sizeof *out->feeds);
  for (uint32_t k = 0; s == WEIR_OK && k < w->feed_count; k++)
    out->feeds[out->feed_count++] = w->feeds[k];
  if (s == WEIR_OK && some) s = mark_wanted(session, w, marks, err);
  if (s == WEIR_OK && some)
    s = fill(session, w, marks, marks + g->node_count, out, err);
  weir_free(a, marks);
  return s;
}

void weir_default_feeds_release(const weir_exec_session *session,
                                weir_default_feeds *feeds) {
  weir_free(session->env->alloc, feeds->feeds);
  weir_free(session->env->alloc, feeds->varying);
}
