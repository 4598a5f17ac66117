/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/train/ps/chief_values.h"

#include <math.h>
#include <string.h>

#include "runtime/exec/session/session_run.h"
#include "runtime/exec/session/session_vars.h"
#include "runtime/train/loop/loop_eval.h"
#include "runtime/train/ps/account/chief_account.h"

/* The servers' values in the loop's session. The loop's graph is the whole
 * training graph, so every variable of the split has a node of its name in it.
 */

static weir_node_id node_named(const weir_graph *g, weir_sv name) {
  for (weir_node_id i = 0; i < g->node_count; i++)
    if (g->nodes[i].op->instr == WEIR_INSTR_VAR_READ &&
        weir_sv_equal(g->nodes[i].name, name))
      return i;
  return UINT32_MAX;
}

static weir_status find_nodes(weir_chief *c, weir_error *err) {
  const weir_split *split = c->job->split;
  const weir_graph *g = c->loop->run_graph;
  c->nodes =
      weir_alloc_array(c->loop->alloc, split->var_count + 1u, sizeof *c->nodes);
  if (c->nodes == NULL) return weir_fail_memory(err, split->var_count);
  for (uint32_t v = 0; v < split->var_count; v++) {
    c->nodes[v] = node_named(g, split->vars[v].name);
    if (c->nodes[v] == UINT32_MAX)
      return weir_fail(err, WEIR_W9001, NULL,
                       "variable %.*s of the servers is not in the graph",
                       WEIR_SV(split->vars[v].name));
  }
  c->step_node = node_named(g, weir_sv_from("train/global_step"));
  return WEIR_OK;
}

/* The whole value of variable |v|: one tensor, into which its pieces come from
 * their servers. */
static weir_status make_whole(weir_chief *c, uint32_t v, weir_tensor **whole,
                              weir_tensor **out, weir_error *err) {
  const weir_graph *g = c->loop->run_graph;
  uint32_t first = v;
  while (!weir_ps_var_begins(c->job, first)) first--;
  const weir_value *value = &g->values[g->nodes[c->nodes[v]].first_output];
  if (whole[first] == NULL)
    WEIR_TRY(weir_tensor_create_shaped(c->loop->alloc, value->dtype,
                                       value->shape, &whole[first], err));
  *out = weir_tensor_ref(whole[first]);
  return WEIR_OK;
}

static weir_status make_buffers(weir_chief *c, uint32_t server,
                                weir_tensor **whole, weir_error *err) {
  const weir_allocator *alloc = c->loop->alloc;
  const weir_ps_lists *lists = &c->job->servers[server];
  weir_chief_fetch *f = &c->fetches[server];
  f->tensors =
      weir_alloc_array(alloc, lists->held_count + 1u, sizeof *f->tensors);
  f->pieces =
      weir_alloc_array(alloc, lists->held_count + 1u, sizeof *f->pieces);
  if (f->tensors == NULL || f->pieces == NULL)
    return weir_fail_memory(err, lists->held_count);
  for (uint32_t i = 0; i < lists->held_count; i++) {
    uint32_t v = lists->held[i];
    WEIR_TRY(make_whole(c, v, whole, &f->tensors[i], err));
    f->pieces[i] = weir_ps_var_piece(c->job, v, f->tensors[i]);
  }
  uint32_t watched = c->job->watched[server].count;
  f->watched = weir_alloc_array(alloc, watched + 1u, sizeof *f->watched);
  if (f->watched == NULL) return weir_fail_memory(err, watched);
  for (uint32_t i = 0; i < watched; i++) f->watched[i] = NAN;
  f->pieces[lists->held_count] =
      (weir_ps_piece){f->watched, watched * sizeof *f->watched};
  return WEIR_OK;
}

static weir_status make_all_buffers(weir_chief *c, weir_error *err) {
  uint32_t count = c->job->split->var_count;
  weir_tensor **whole =
      weir_alloc_array(c->loop->alloc, count + 1u, sizeof *whole);
  weir_status s = whole == NULL ? weir_fail_memory(err, count) : WEIR_OK;
  for (uint32_t k = 0; s == WEIR_OK && k < c->job->config.servers; k++)
    s = make_buffers(c, k, whole, err);
  for (uint32_t v = 0; whole != NULL && v < count; v++)
    weir_tensor_unref(whole[v]);
  weir_free(c->loop->alloc, whole);
  return s;
}

static weir_status make_reports(weir_chief *c, weir_error *err) {
  double *all = weir_alloc_array(c->loop->alloc,
                                 (WEIR_CHIEF_REPORTS + (size_t)1) * c->numbers,
                                 sizeof *all);
  if (all == NULL) return weir_fail_memory(err, c->numbers);
  c->reported = all + (size_t)WEIR_CHIEF_REPORTS * c->numbers;
  for (uint32_t i = 0; i < c->numbers; i++) c->reported[i] = NAN;
  for (uint32_t i = 0; i < WEIR_CHIEF_REPORTS; i++)
    c->reports[i] = (weir_chief_report){WEIR_PS_NONE, all + i * c->numbers};
  return WEIR_OK;
}

weir_status weir_chief_values_create(weir_chief *c, weir_error *err) {
  uint32_t servers = c->job->config.servers;
  c->numbers = weir_ps_report_count(c->job);
  c->fetches = weir_alloc_array(c->loop->alloc, servers, sizeof *c->fetches);
  c->met =
      weir_alloc_array(c->loop->alloc, c->job->config.workers, sizeof *c->met);
  if (c->fetches == NULL || c->met == NULL)
    return weir_fail_memory(err, servers);
  WEIR_TRY(weir_chief_account_create(c, err));
  WEIR_TRY(make_reports(c, err));
  WEIR_TRY(find_nodes(c, err));
  return make_all_buffers(c, err);
}

void weir_chief_values_release(weir_chief *c) {
  const weir_allocator *alloc = c->loop->alloc;
  for (uint32_t s = 0; c->fetches != NULL && s < c->job->config.servers; s++) {
    weir_chief_fetch *f = &c->fetches[s];
    uint32_t count = f->tensors != NULL ? c->job->servers[s].held_count : 0;
    for (uint32_t i = 0; i < count; i++) weir_tensor_unref(f->tensors[i]);
    weir_free(alloc, f->tensors);
    weir_free(alloc, f->pieces);
    weir_free(alloc, f->watched);
  }
  weir_chief_account_release(c);
  weir_free(alloc, c->fetches);
  weir_free(alloc, c->nodes);
  weir_free(alloc, c->met);
  weir_free(alloc, c->reports[0].values);
}

weir_status weir_chief_values_take(weir_chief *c, weir_error *err) {
  for (uint32_t s = 0; s < c->job->config.servers; s++) {
    const weir_ps_lists *lists = &c->job->servers[s];
    for (uint32_t i = 0; i < lists->held_count; i++)
      if (weir_ps_var_begins(c->job, lists->held[i])) /* then it is whole */
        WEIR_TRY(weir_exec_variable_set(c->loop->session,
                                        c->nodes[lists->held[i]],
                                        c->fetches[s].tensors[i], err));
  }
  return WEIR_OK;
}

/* ---- The step */

static weir_status put_step(const weir_chief *c, uint64_t step,
                            weir_error *err) {
  weir_shape scalar = weir_shape_of(0, NULL);
  weir_tensor *t = NULL;
  WEIR_TRY(
      weir_tensor_create_shaped(c->loop->alloc, WEIR_I64, &scalar, &t, err));
  weir_tensor_set_i64(t, 0, (int64_t)step);
  weir_status s =
      weir_exec_variable_set(c->loop->session, c->step_node, t, err);
  weir_tensor_unref(t);
  return s;
}

weir_status weir_chief_set_step(weir_chief *c, uint64_t step, weir_error *err) {
  weir_loop *loop = c->loop;
  if (c->step_node == UINT32_MAX) return WEIR_OK;
  weir_exec_fetch rate = {.value = loop->train->learning_rate};
  weir_exec_request request = {.fetches = &rate, .fetch_count = 1};
  WEIR_TRY(put_step(c, step > 0 ? step - 1 : 0, err)); /* of the last update */
  WEIR_TRY(weir_exec_run(loop->session, &request, err));
  loop->rate = weir_loop_mean(rate.tensor);
  weir_tensor_unref(rate.tensor);
  return put_step(c, step, err);
}

/* ---- Reports */

static void use(weir_loop *loop, const double *values) {
  loop->loss = values[0];
  for (uint32_t i = 0; i < loop->metric_count; i++) {
    double x = values[1 + i];
    loop->values[i].value = loop->metrics[i].perplexity ? exp(x) : x;
  }
}

void weir_chief_take_report(weir_chief *c, uint64_t runs) {
  const weir_chief_report *best = NULL;
  for (uint32_t i = 0; i < WEIR_CHIEF_REPORTS; i++) {
    const weir_chief_report *r = &c->reports[i];
    if (r->run != WEIR_PS_NONE && r->run < runs &&
        (best == NULL || r->run > best->run))
      best = r;
  }
  if (best == NULL) return;
  memcpy(c->reported, best->values, c->numbers * sizeof *c->reported);
  use(c->loop, best->values);
}
