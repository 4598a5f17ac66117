/* SPDX-License-Identifier: Apache-2.0 */
/* Runs: names to ids, options, the ring of runs under way.
 *
 * A run looks its names up, a bound run has done so once and then allocates
 * nothing. Up to WEIR_RUN_FEW feeds and fetches live on the stack. A run enters
 * the session's ring, so that weir_session_cancel finds it; a bound one stays
 * there until its release. */
#include <stdio.h>
#include <string.h>

#include "runtime/api/weir_internal.h"
#include "runtime/exec/session/binding.h"
#include "runtime/exec/session/session_run.h"

/* Feeds and fetches as exec wants them, on the stack when few. */
enum { RUN_FEW = 8 };
typedef struct run_io {
  const weir_allocator *alloc;
  weir_exec_feed *feeds;
  weir_exec_fetch *fetches;
  weir_node_id *targets, *dump;
  size_t feed_count, fetch_count, target_count, dump_count;
  weir_exec_feed few_feeds[RUN_FEW];
  weir_exec_fetch few_fetches[RUN_FEW];
} run_io;

/* ---- Names to ids */

static void *few_or_alloc(const weir_allocator *alloc, void *few, size_t count,
                          size_t elem_bytes) {
  if (count > RUN_FEW) return weir_alloc_array(alloc, count, elem_bytes);
  memset(few, 0, RUN_FEW * elem_bytes);
  return few;
}

static weir_status find_feeds(run_io *io, const weir_graph *graph,
                              const weir_feed *feeds, weir_error *err) {
  for (size_t i = 0; i < io->feed_count; i++) {
    weir_feed feed;
    WEIR_TRY(WEIR_OPTS_READ(weir_feed, &feed, weir_opts_at(feeds, i), err));
    if (feed.tensor == NULL) return weir_fail_null(err, "weir_feed: tensor");
    weir_exec_feed *out = &io->feeds[i];
    WEIR_TRY(weir_find_input(graph, feed.name, &out->value, err));
    for (size_t k = 0; k < i; k++)
      if (io->feeds[k].value == out->value)
        return weir_fail(err, WEIR_W0004, NULL, "input %s is fed twice",
                         feed.name);
    out->tensor = feed.tensor;
  }
  return WEIR_OK;
}

/* The tensor of a fetch that comes on the host. */
static weir_status check_filled(const weir_fetch *fetch, weir_error *err) {
  char what[160];
  snprintf(what, sizeof what,
           "the tensor to fill with %.100s, without on_device,", fetch->name);
  return weir_check_on_host(fetch->tensor, what, err);
}

static weir_status find_fetches(run_io *io, const weir_graph *graph,
                                const weir_fetch *fetches, weir_error *err) {
  for (size_t i = 0; i < io->fetch_count; i++) {
    weir_fetch fetch;
    WEIR_TRY(WEIR_OPTS_READ(weir_fetch, &fetch, weir_opts_at(fetches, i), err));
    weir_exec_fetch *out = &io->fetches[i];
    WEIR_TRY(weir_find_value(graph, fetch.name, &out->value, err));
    if (fetch.tensor != NULL && fetch.tensor->read_only)
      return weir_fail(err, WEIR_W0004, NULL,
                       "the tensor to fill with %s is read-only", fetch.name);
    if (!fetch.on_device) WEIR_TRY(check_filled(&fetch, err));
    out->tensor = fetch.tensor;
    out->error = fetch.error;
    out->stays = fetch.on_device;
  }
  return WEIR_OK;
}

static weir_status find_nodes(const weir_allocator *alloc,
                              const weir_graph *graph, const char *const *names,
                              size_t count, weir_node_id **out_nodes,
                              weir_error *err) {
  if (count == 0) return WEIR_OK;
  if (names == NULL) return weir_fail_null(err, "targets or dump");
  *out_nodes = weir_alloc_array(alloc, count, sizeof **out_nodes);
  if (*out_nodes == NULL)
    return weir_fail_memory(err, count * sizeof **out_nodes);
  for (size_t i = 0; i < count; i++)
    WEIR_TRY(weir_find_node(graph, names[i], &(*out_nodes)[i], err));
  return WEIR_OK;
}

/* Looks everything up. Release |io| also after a failure. */
static weir_status run_io_init(run_io *io, weir_session *session,
                               const weir_run_request *request,
                               const weir_run_opts *opts, weir_error *err) {
  const weir_allocator *alloc = session->runtime->env.alloc;
  size_t feed_count = request->feed_count, fetch_count = request->fetch_count;
  io->alloc = alloc;
  io->targets = io->dump = NULL;
  io->target_count = request->target_count;
  io->dump_count = opts->dump_count;
  io->feed_count = feed_count;
  io->fetch_count = fetch_count;
  io->feeds = few_or_alloc(alloc, io->few_feeds, feed_count, sizeof *io->feeds);
  io->fetches =
      few_or_alloc(alloc, io->few_fetches, fetch_count, sizeof *io->fetches);
  if (io->feeds == NULL || io->fetches == NULL)
    return weir_fail_memory(err, (feed_count + fetch_count) * 32);
  if ((feed_count != 0 && request->feeds == NULL) ||
      (fetch_count != 0 && request->fetches == NULL))
    return weir_fail_null(err, "feeds or fetches");
  WEIR_TRY(find_feeds(io, session->graph, request->feeds, err));
  WEIR_TRY(find_fetches(io, session->graph, request->fetches, err));
  WEIR_TRY(find_nodes(alloc, session->graph, request->targets,
                      request->target_count, &io->targets, err));
  return find_nodes(alloc, session->graph, opts->dump, opts->dump_count,
                    &io->dump, err);
}

/* Hands results and statuses back to the caller's fetches. */
static void run_io_give(const run_io *io, weir_fetch *fetches) {
  for (size_t i = 0; i < io->fetch_count; i++) {
    weir_fetch *fetch =
        (weir_fetch *)((char *)fetches + i * fetches[0].struct_size);
    fetch->tensor = io->fetches[i].tensor;
    fetch->status = io->fetches[i].status;
  }
}

static void run_io_release(run_io *io) {
  if (io->feeds != io->few_feeds) weir_free(io->alloc, io->feeds);
  if (io->fetches != io->few_fetches) weir_free(io->alloc, io->fetches);
  weir_free(io->alloc, io->targets);
  weir_free(io->alloc, io->dump);
}

/* ---- Options */

static void on_value(void *self, weir_sv node, uint32_t port,
                     const weir_tensor *tensor) {
  const weir_run_opts *opts = self;
  if (opts->on_value != NULL)
    opts->on_value(opts->self, node.data, node.size, port, tensor);
}

static void on_failed(void *self, const weir_error *error) {
  const weir_run_opts *opts = self;
  if (opts->on_failed != NULL) opts->on_failed(opts->self, error);
}

/* The earlier of the run's and the runtime's; 0: none. */
static int64_t run_deadline(const weir_runtime *runtime, int64_t timeout_ns) {
  const weir_clock *clock = runtime->env.clock;
  int64_t all = runtime->deadline_ns;
  if (timeout_ns <= 0) return all;
  int64_t own = clock->now_ns(clock->self) + timeout_ns;
  return all != 0 && all < own ? all : own;
}

/* |opts| and |observer| live as long as the run. */
static weir_run_options run_options(const weir_runtime *runtime,
                                    weir_run_opts *opts, const run_io *io,
                                    weir_run_entry *entry,
                                    weir_run_observer *observer) {
  *observer = (weir_run_observer){opts, on_value, on_failed};
  bool watched = opts->on_value != NULL || opts->on_failed != NULL;
  return (weir_run_options){
      .deadline_ns = run_deadline(runtime, opts->timeout_ns),
      .cancel = &entry->cancel,
      .step = opts->step,
      .trap_nan = opts->trap_nan,
      .dump = io != NULL ? io->dump : NULL,
      .dump_count = io != NULL ? io->dump_count : 0,
      .observer = watched ? observer : NULL,
      .trace = opts->trace};
}

static weir_status read_run_opts(weir_run_opts *out, const weir_run_opts *opts,
                                 weir_error *err) {
  return WEIR_OPTS_READ(weir_run_opts, out, opts, err);
}

/* ---- Runs */

static weir_status run_looked_up(weir_session *session, run_io *io,
                                 weir_run_opts *opts, weir_error *err) {
  weir_run_entry entry;
  weir_run_observer observer;
  weir_session_enter(session, &entry);
  weir_run_options options =
      run_options(session->runtime, opts, io, &entry, &observer);
  weir_exec_request request = {.feeds = io->feeds,
                               .feed_count = io->feed_count,
                               .fetches = io->fetches,
                               .fetch_count = io->fetch_count,
                               .targets = io->targets,
                               .target_count = io->target_count,
                               .options = &options};
  weir_status s = weir_exec_run(session->exec, &request, err);
  weir_session_leave(session, &entry);
  return s;
}

/* Compiling takes memory of the graph, runs that of the runtime. */
static weir_status settle_run(const weir_session *session, weir_status s,
                              weir_error *err) {
  s = weir_settle(session->runtime->env.alloc, "the run", s, err);
  return weir_settle(session->graph->alloc, "compiling the graph", s, err);
}

static weir_status read_request(weir_run_request *out,
                                const weir_run_request *request,
                                weir_error *err) {
  if (request == NULL) return weir_fail_null(err, "request");
  return WEIR_OPTS_READ(weir_run_request, out, request, err);
}

weir_status weir_session_run(weir_session *session,
                             const weir_run_request *request,
                             const weir_run_opts *opts, weir_error *err) {
  if (session == NULL) return weir_fail_null(err, "session");
  weir_run_request r;
  weir_run_opts o;
  run_io io;
  WEIR_TRY(read_request(&r, request, err));
  WEIR_TRY(read_run_opts(&o, opts, err));
  weir_status s = run_io_init(&io, session, &r, &o, err);
  if (s == WEIR_OK) {
    s = run_looked_up(session, &io, &o, err);
    run_io_give(&io, r.fetches);
  }
  run_io_release(&io);
  return settle_run(session, s, err);
}

static weir_status make_bound(weir_session *session, run_io *io,
                              weir_bound **out_bound, weir_error *err) {
  const weir_allocator *alloc = session->runtime->env.alloc;
  weir_bound *bound = weir_alloc_array(alloc, 1, sizeof *bound);
  if (bound == NULL) return weir_fail_memory(err, sizeof *bound);
  weir_exec_request request = {.feeds = io->feeds,
                               .feed_count = io->feed_count,
                               .fetches = io->fetches,
                               .fetch_count = io->fetch_count,
                               .targets = io->targets,
                               .target_count = io->target_count};
  weir_status s = weir_exec_bind(session->exec, &request, &bound->binding, err);
  if (s != WEIR_OK) {
    weir_free(alloc, bound);
    return s;
  }
  (void)weir_session_ref(session);
  bound->session = session;
  weir_session_enter(session, &bound->entry);
  *out_bound = bound;
  return WEIR_OK;
}

weir_status weir_session_bind(weir_session *session,
                              const weir_run_request *request,
                              weir_bound **out_bound, weir_error *err) {
  if (out_bound == NULL) return weir_fail_null(err, "out_bound");
  *out_bound = NULL;
  if (session == NULL) return weir_fail_null(err, "session");
  static const weir_run_opts none = {.struct_size = sizeof none};
  weir_run_request r;
  run_io io;
  WEIR_TRY(read_request(&r, request, err));
  weir_status s = run_io_init(&io, session, &r, &none, err);
  if (s == WEIR_OK) s = make_bound(session, &io, out_bound, err);
  if (s == WEIR_OK) run_io_give(&io, r.fetches);
  run_io_release(&io);
  return settle_run(session, s, err);
}

weir_status weir_bound_run(weir_bound *bound, const weir_run_opts *opts,
                           weir_error *err) {
  if (bound == NULL) return weir_fail_null(err, "bound");
  atomic_store_explicit(&bound->entry.cancel, false, memory_order_relaxed);
  if (opts == NULL) {
    weir_run_options plain = {
        .deadline_ns = run_deadline(bound->session->runtime, 0),
        .cancel = &bound->entry.cancel};
    return weir_binding_run(bound->binding, &plain, err);
  }
  weir_run_opts o;
  weir_run_observer observer;
  WEIR_TRY(read_run_opts(&o, opts, err));
  if (o.dump_count != 0)
    return weir_fail(err, WEIR_W0004, NULL,
                     "weir_run_opts: a bound run has no names to dump");
  weir_run_options options =
      run_options(bound->session->runtime, &o, NULL, &bound->entry, &observer);
  return weir_binding_run(bound->binding, &options, err);
}

void weir_bound_release(weir_bound *bound) {
  if (bound == NULL) return;
  weir_session *session = bound->session;
  const weir_allocator *alloc = session->runtime->env.alloc;
  weir_session_leave(session, &bound->entry);
  weir_binding_release(bound->binding);
  weir_free(alloc, bound);
  weir_session_unref(session);
}
