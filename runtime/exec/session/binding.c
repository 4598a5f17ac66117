/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/exec/session/binding.h"

#include <assert.h>
#include <string.h>

#include "runtime/base/size.h"
#include "runtime/exec/program/program_describe.h"
#include "runtime/exec/program/program_internal.h"
#include "runtime/exec/run/apart.h"
#include "runtime/exec/session/session_cache.h"
#include "runtime/exec/session/session_defaults.h"
#include "runtime/exec/session/session_first.h"
#include "runtime/exec/session/session_internal.h"
#include "runtime/exec/session/session_mesh.h"
#include "runtime/exec/session/session_run.h"
#include "runtime/exec/session/session_vars.h"

/* Bindings: everything looked up and pointed to before the first run. */

enum { kMaxLanes = 64 };

/* One step's place: its frame, its outputs, its variables' buffers. */
typedef struct lane {
  weir_frame *frame;
  weir_tensor **outputs; /* references; of the first lane: the binding's */
  weir_var_buffer **held;
  /* Computes the defaults that vary before each step; its outputs are inputs
   * here. NULL: there are none. */
  weir_binding *varying;
} lane;

struct weir_binding {
  weir_exec_session *session;
  weir_cached *cached;
  weir_tensor **inputs; /* that all lanes share */
  uint32_t input_count, output_count;
  weir_default_feeds defaults; /* of a placed program; tensors of |inputs| */
  lane first;
  lane *more; /* for overlapped runs, made by the first of them */
  int more_count;
};

static void lane_release(weir_binding *b, lane *l) {
  const weir_allocator *a = b->session->env->alloc;
  if (l->frame != NULL)
    weir_session_frame_return(b->session, b->cached, l->frame);
  for (uint32_t k = 0; l->outputs != NULL && k < b->output_count; k++)
    weir_tensor_unref(l->outputs[k]);
  weir_free(a, l->outputs);
  weir_free(a, l->held);
  weir_binding_release(l->varying);
  *l = (lane){0};
}

static weir_status bind(weir_exec_session *session, const weir_wanted *wanted,
                        weir_exec_fetch *fetches, weir_binding **out_binding,
                        weir_error *err);

/* The lane's own work before each step. */
static weir_status bind_varying(weir_binding *b, const weir_wanted *given,
                                lane *l, weir_error *err) {
  const weir_allocator *a = b->session->env->alloc;
  uint32_t count = b->defaults.varying_count;
  if (count == 0) return WEIR_OK;
  weir_wanted own = {.feeds = given->feeds,
                     .feed_count = given->feed_count,
                     .fetches = b->defaults.varying,
                     .fetch_count = count,
                     .unplaced = true};
  weir_exec_fetch *fetches = weir_alloc_array(a, count, sizeof *fetches);
  if (fetches == NULL) return weir_fail_memory(err, count * sizeof *fetches);
  weir_status s = bind(b->session, &own, fetches, &l->varying, err);
  for (uint32_t k = 0; k < count; k++) /* the binding has its own */
    weir_tensor_unref(fetches[k].tensor);
  weir_free(a, fetches);
  return s;
}

static uint32_t varying_count(const lane *l) {
  return l->varying != NULL ? l->varying->output_count : 0;
}

/* |fetches|: where tensors may be given, or NULL. */
static weir_status lane_make(weir_binding *b, lane *l,
                             const weir_exec_fetch *fetches, weir_error *err) {
  const weir_allocator *a = b->session->env->alloc;
  uint32_t vars = b->cached->compiled->var_count;
  l->outputs = weir_alloc_array(a, b->output_count, sizeof *l->outputs);
  l->held = weir_alloc_array(a, 2 * (size_t)vars, sizeof *l->held);
  if (l->outputs == NULL || l->held == NULL) return weir_fail_memory(err, 0);
  for (uint32_t k = 0; k < b->output_count; k++) {
    weir_tensor *given = fetches != NULL ? fetches[k].tensor : NULL;
    weir_tensor *tensor = given;
    WEIR_TRY(weir_session_output(b->session, b->cached, k, &tensor, err));
    l->outputs[k] = given != NULL ? weir_tensor_ref(given) : tensor;
  }
  WEIR_TRY(weir_session_frame(b->session, b->cached, &l->frame, err));
  for (uint32_t k = 0; k < b->input_count; k++)
    weir_frame_set_external(l->frame, k, b->inputs[k]->data);
  uint32_t own = varying_count(l), first = b->input_count + own;
  for (uint32_t k = 0; k < own; k++)
    weir_frame_set_external(l->frame, b->input_count + k,
                            l->varying->first.outputs[k]->data);
  for (uint32_t k = 0; k < b->output_count; k++)
    if (l->outputs[k] != NULL) /* else another task makes it */
      weir_frame_set_external(l->frame, first + k, l->outputs[k]->data);
  return WEIR_OK;
}

/* Takes references to the tensors that all lanes share. */
static weir_status share_inputs(weir_binding *b, const weir_exec_feed *feeds,
                                uint32_t count, weir_error *err) {
  b->inputs =
      weir_alloc_array(b->session->env->alloc, count, sizeof *b->inputs);
  if (b->inputs == NULL) return weir_fail_memory(err, count);
  for (uint32_t i = 0; i < count; i++)
    b->inputs[b->input_count++] = weir_tensor_ref(feeds[i].tensor);
  return WEIR_OK;
}

/* The caller's feeds and, of a placed program, the defaults. */
static weir_status find_inputs(weir_binding *b, const weir_wanted *given,
                               weir_wanted *wanted, weir_error *err) {
  weir_default_feeds *d = &b->defaults;
  if (!weir_session_places(b->session, given))
    return share_inputs(b, given->feeds, given->feed_count, err);
  WEIR_TRY(weir_session_defaults(b->session, given, d, err));
  WEIR_TRY(share_inputs(b, d->feeds, d->feed_count - d->varying_count, err));
  WEIR_TRY(bind_varying(b, given, &b->first, err));
  for (uint32_t k = 0; k < d->varying_count; k++)
    d->feeds[b->input_count + k].tensor = b->first.varying->first.outputs[k];
  wanted->feeds = d->feeds;
  wanted->feed_count = d->feed_count;
  return WEIR_OK;
}

static weir_status fill(weir_binding *b, const weir_wanted *given,
                        weir_exec_fetch *fetches, weir_error *err) {
  weir_exec_session *session = b->session;
  weir_wanted wanted = *given;
  WEIR_TRY(weir_session_check(session, given, err));
  WEIR_TRY(find_inputs(b, given, &wanted, err));
  WEIR_TRY(weir_session_program(session, &wanted, &b->cached, err));
  if (b->cached->compiled->var_count > 0)
    WEIR_TRY(weir_session_vars_init(session, err));
  b->output_count = wanted.fetch_count;
  WEIR_TRY(lane_make(b, &b->first, fetches, err));
  return weir_run_check_apart(session->env->alloc, b->inputs, b->input_count,
                              b->first.outputs, b->output_count, err);
}

weir_status weir_exec_bind(weir_exec_session *session,
                           const weir_exec_request *request,
                           weir_binding **out_binding, weir_error *err) {
  *out_binding = NULL;
  if (session->mesh != NULL)
    return weir_session_mesh_run(session, request, out_binding, err);
  return weir_session_own_bind(session, request, out_binding, err);
}

static weir_status bind(weir_exec_session *session, const weir_wanted *wanted,
                        weir_exec_fetch *fetches, weir_binding **out_binding,
                        weir_error *err) {
  *out_binding = NULL;
  weir_binding *b = weir_alloc_array(session->env->alloc, 1, sizeof *b);
  if (b == NULL) return weir_fail_memory(err, sizeof *b);
  b->session = session;
  weir_status s = fill(b, wanted, fetches, err);
  if (s != WEIR_OK) {
    weir_binding_release(b);
    return s;
  }
  /* The caller's references: its own tensors, or those made here. */
  for (uint32_t k = 0; k < wanted->fetch_count; k++) {
    fetches[k].status = WEIR_OK;
    fetches[k].elsewhere = weir_session_fetch_elsewhere(b->cached, k);
    if (fetches[k].tensor == NULL && !fetches[k].elsewhere)
      fetches[k].tensor = weir_tensor_ref(b->first.outputs[k]);
  }
  *out_binding = b;
  return WEIR_OK;
}

weir_status weir_session_own_bind(weir_exec_session *session,
                                  const weir_exec_request *request,
                                  weir_binding **out_binding, weir_error *err) {
  const weir_allocator *a = session->env->alloc;
  size_t count = request->fetch_count;
  assert(request->options == NULL); /* nothing would read them */
  *out_binding = NULL;
  weir_value_id *ids = weir_alloc_array(a, count, sizeof *ids);
  bool *stays = weir_alloc_array(a, count, sizeof *stays);
  weir_wanted wanted = {.feeds = request->feeds,
                        .fetches = ids,
                        .targets = request->targets,
                        .stays = stays,
                        .feed_count = (uint32_t)request->feed_count,
                        .fetch_count = (uint32_t)count,
                        .target_count = (uint32_t)request->target_count};
  weir_status s = WEIR_OK;
  if (ids == NULL || stays == NULL)
    s = weir_fail_memory(err, count * sizeof *ids);
  for (size_t k = 0; s == WEIR_OK && k < count; k++) {
    ids[k] = request->fetches[k].value;
    stays[k] = request->fetches[k].stays;
  }
  if (s == WEIR_OK)
    s = bind(session, &wanted, request->fetches, out_binding, err);
  weir_free(a, ids);
  weir_free(a, stays);
  return s;
}

/* A program that holds a constant of before is replaced by a new one. */
static weir_status refresh(weir_binding *b, weir_error *err) {
  const weir_allocator *a = b->session->env->alloc;
  weir_cached *old = b->cached, *fresh = NULL;
  weir_exec_feed *feeds = weir_alloc_array(a, old->feed_count, sizeof *feeds);
  weir_exec_fetch *outs = weir_alloc_array(a, b->output_count, sizeof *outs);
  weir_wanted wanted = {
      .feeds = feeds,
      .fetches = old->ids + old->feed_count,
      .targets = old->ids + old->feed_count + old->fetch_count,
      .stays = old->stays,
      .feed_count = old->feed_count,
      .fetch_count = old->fetch_count,
      .target_count = old->target_count,
      .init = old->init,
      .unplaced = old->unplaced};
  lane made = {0};
  weir_status s = WEIR_OK;
  if (feeds == NULL || outs == NULL) s = weir_fail_memory(err, 0);
  for (uint32_t i = 0; s == WEIR_OK && i < b->input_count; i++)
    feeds[i] = (weir_exec_feed){old->ids[i], b->inputs[i]};
  for (uint32_t i = b->input_count; s == WEIR_OK && i < old->feed_count; i++)
    feeds[i] = (weir_exec_feed){
        old->ids[i], b->first.varying->first.outputs[i - b->input_count]};
  for (uint32_t k = 0; s == WEIR_OK && k < b->output_count; k++)
    outs[k].tensor = b->first.outputs[k];
  if (s == WEIR_OK) s = weir_session_program(b->session, &wanted, &fresh, err);
  if (s == WEIR_OK) {
    b->cached = fresh;
    made.varying = b->first.varying; /* stays */
    s = lane_make(b, &made, outs, err);
    if (s == WEIR_OK) b->first.varying = NULL;
    if (s != WEIR_OK) made.varying = NULL;
    if (s != WEIR_OK) lane_release(b, &made);
    b->cached = old;
  }
  if (s == WEIR_OK) {
    lane_release(b, &b->first);
    for (int i = 0; i < b->more_count; i++) lane_release(b, &b->more[i]);
    b->more_count = 0;
    b->first = made;
    b->cached = fresh;
    fresh = old;
  }
  weir_session_program_release(b->session, fresh);
  weir_free(a, feeds);
  weir_free(a, outs);
  return s;
}

/* Computes the defaults that vary, then the step. */
static weir_status lane_step(weir_binding *b, lane *l,
                             const weir_run_options *options, weir_error *err) {
  if (l->varying != NULL) {
    weir_run_options quiet = {0};
    if (options != NULL)
      quiet = (weir_run_options){.deadline_ns = options->deadline_ns,
                                 .cancel = options->cancel,
                                 .step = options->step,
                                 .trap_nan = options->trap_nan};
    WEIR_TRY(weir_binding_run(l->varying, &quiet, err));
  }
  return weir_session_step(b->session, b->cached, l->frame, l->held, options,
                           err);
}

/* Rare, and apart so that the usual run is a test and a jump. */
static __attribute__((noinline)) weir_status run_prepared(
    weir_binding *b, const weir_run_options *options, weir_error *err) {
  if (atomic_load_explicit(&b->cached->stale, memory_order_acquire))
    WEIR_TRY(refresh(b, err));
  return lane_step(b, &b->first, options, err);
}

weir_status weir_binding_run(weir_binding *b, const weir_run_options *options,
                             weir_error *err) {
  if (b->first.varying != NULL ||
      atomic_load_explicit(&b->cached->stale, memory_order_acquire))
    return run_prepared(b, options, err);
  return weir_session_step(b->session, b->cached, b->first.frame, b->first.held,
                           options, err);
}

void weir_binding_feed(weir_binding *b, uint32_t input, weir_tensor *tensor) {
  assert(input < b->input_count && b->more_count == 0);
  assert(tensor == NULL || !tensor->on_gpu);
  weir_tensor_unref(b->inputs[input]);
  b->inputs[input] = tensor != NULL ? weir_tensor_ref(tensor) : NULL;
  weir_frame_set_external(b->first.frame, input,
                          tensor != NULL ? tensor->data : NULL);
}

weir_node_id weir_binding_over(const weir_binding *b, uint32_t input) {
  const weir_cached *c = b->cached;
  for (uint32_t i = 0; i < c->compiled->var_count; i++)
    if (c->compiled->vars[i].over_feed == input)
      return b->session->vars[c->vars[i]].node;
  return WEIR_NO_INDEX;
}

void weir_binding_release(weir_binding *b) {
  if (b == NULL) return;
  const weir_allocator *a = b->session->env->alloc;
  lane_release(b, &b->first);
  for (int i = 0; i < b->more_count; i++) lane_release(b, &b->more[i]);
  for (uint32_t i = 0; i < b->input_count; i++) weir_tensor_unref(b->inputs[i]);
  weir_session_program_release(b->session, b->cached);
  weir_default_feeds_release(b->session, &b->defaults);
  weir_free(a, b->more);
  weir_free(a, b->inputs);
  weir_free(a, b);
}

/* ---- Overlapped steps */

typedef struct overlapped {
  weir_binding *binding;
  const weir_run_options *options;
  const weir_overlap_options *overlap;
  atomic_uint_least64_t next;
  atomic_int failed;
  weir_error err; /* of the first to fail */
} overlapped;

typedef struct lane_thread {
  overlapped *all;
  lane *lane;
  pthread_t thread;
} lane_thread;

/* Takes the next step until there is none. Each lane's thread is a caller of
 * the pool, so all together keep to its budget. */
static void *run_lane(void *self) {
  const lane_thread *t = self;
  overlapped *o = t->all;
  weir_binding *b = o->binding;
  weir_run_options options = *o->options;
  while (atomic_load(&o->failed) == 0) {
    uint64_t i = atomic_fetch_add(&o->next, 1);
    if (i >= o->overlap->steps) break;
    weir_error err = WEIR_ERROR_INIT;
    options.step = o->options->step + i;
    if (o->overlap->begin != NULL)
      o->overlap->begin(o->overlap->self, options.step);
    weir_status s = lane_step(b, t->lane, &options, &err);
    int none = 0;
    if (s != WEIR_OK &&
        atomic_compare_exchange_strong(&o->failed, &none, (int)s))
      o->err = err;
    if (s == WEIR_OK && o->overlap->end != NULL)
      o->overlap->end(o->overlap->self, options.step, t->lane->outputs);
  }
  return NULL;
}

/* The first lane in this thread, the others in their own. A thread that the
 * system refuses is done without. */
static void run_lanes(overlapped *o, int inflight) {
  lane_thread threads[kMaxLanes];
  int started = 1;
  threads[0] = (lane_thread){.all = o, .lane = &o->binding->first};
  for (int i = 1; i < inflight; i++) {
    threads[i] = (lane_thread){.all = o, .lane = &o->binding->more[i - 1]};
    if (pthread_create(&threads[i].thread, NULL, run_lane, &threads[i]) != 0)
      break;
    started++;
  }
  run_lane(&threads[0]);
  for (int i = 1; i < started; i++) pthread_join(threads[i].thread, NULL);
}

static weir_status make_lanes(weir_binding *b, int inflight, weir_error *err) {
  if (b->more_count >= inflight - 1) return WEIR_OK;
  lane *more =
      weir_alloc_array(b->session->env->alloc, (size_t)inflight, sizeof *more);
  if (more == NULL) return weir_fail_memory(err, 0);
  if (b->more != NULL)
    memcpy(more, b->more, (size_t)b->more_count * sizeof *more);
  weir_free(b->session->env->alloc, b->more);
  b->more = more;
  weir_wanted given = {.feeds = b->defaults.feeds,
                       .feed_count = b->input_count - b->defaults.stay_count};
  while (b->more_count < inflight - 1) {
    lane *l = &more[b->more_count++];
    WEIR_TRY(bind_varying(b, &given, l, err));
    WEIR_TRY(lane_make(b, l, NULL, err));
  }
  return WEIR_OK;
}

weir_status weir_binding_run_overlapped(weir_binding *b,
                                        const weir_overlap_options *overlap,
                                        const weir_run_options *options,
                                        weir_error *err) {
  static const weir_run_options kNone = {0};
  int inflight = overlap->inflight;
  if (inflight < 1 || inflight > kMaxLanes)
    return weir_fail(err, WEIR_W0004, NULL,
                     "%d steps in flight, expected 1 to %d", inflight,
                     (int)kMaxLanes);
  if (atomic_load(&b->cached->stale)) WEIR_TRY(refresh(b, err));
  int threads = weir_pool_threads(b->session->pool);
  if (inflight > threads) inflight = threads;
  if (b->cached->compiled->writes) inflight = 1;
  WEIR_TRY(make_lanes(b, inflight, err));
  overlapped o = {.binding = b,
                  .options = options != NULL ? options : &kNone,
                  .overlap = overlap};
  run_lanes(&o, inflight);
  if (atomic_load(&o.failed) == 0) return WEIR_OK;
  weir_error_copy(err, &o.err);
  return (weir_status)atomic_load(&o.failed);
}

/* ---- Figures of a program */

const weir_graph *weir_binding_graph(const weir_binding *b) {
  return b->cached->compiled->graph;
}

weir_program_stats weir_binding_stats(const weir_binding *b) {
  const weir_compiled *c = b->cached->compiled;
  weir_program_stats stats = {.nodes = c->node_count, .groups = c->group_count};
  for (const weir_program *p = c->program; p != NULL; p = p->next_part) {
    stats.instructions += p->instr_count;
    weir_sum_add(&stats.flops, p->flops);
    weir_sum_add(&stats.bytes, p->bytes);
    stats.arena_bytes += p->memory_bytes;
    stats.arena_bound_bytes += p->bound_bytes;
    stats.constant_bytes += p->constant_bytes;
  }
  return stats;
}

weir_status weir_binding_memory(const weir_binding *b, uint32_t part,
                                bool *there, uint32_t *device,
                                weir_program_memory *out, weir_error *err) {
  const weir_compiled *c = b->cached->compiled;
  const weir_program *p = c->program;
  while (p != NULL && p->part < part) p = p->next_part;
  *there = p != NULL;
  *device = 0;
  if (p == NULL) return WEIR_OK;
  if (c->partition != NULL) *device = c->partition->parts[part].device;
  return weir_program_held(p, out, err);
}

bool weir_binding_describe(const weir_binding *b, const weir_writer *out) {
  return weir_program_describe(b->cached->compiled->program, out);
}
