/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "placement/place.h"
#include "placement/replica/replica.h"
#include "runtime/api/cluster/tasks.h"
#include "runtime/api/cluster/train_part.h"
#include "runtime/api/weir_internal.h"
#include "runtime/exec/session/session_vars.h"
#include "runtime/graph/train/train_spec.h"
#include "runtime/io/checkpoint/checkpoint_load.h"
#include "runtime/io/checkpoint/checkpoint_open.h"
#include "runtime/train/loop/follow.h"
#include "runtime/train/loop/loop.h"
#include "runtime/train/loop/loop_create.h"
#include "runtime/train/loop/loop_eval.h"
#include "runtime/train/loop/loop_save.h"
#include "runtime/train/loop/weights.h"

/* Trainers: runtime/train's loop behind a handle. */

struct weir_trainer {
  weir_runtime *runtime;
  const weir_graph *graph; /* as it was given: the loop's */
  weir_loop *loop;
  weir_placed *placed;   /* or NULL */
  weir_train_part *part; /* lent: this process leads others; or NULL */
  weir_train_callbacks callbacks;
  void (*on_diag)(void *self, const weir_diag *diag);
  void *on_diag_self;
  weir_diag_sink sink;
  weir_variables variables;
};

static void report(void *self, const weir_diag *diag) {
  const weir_trainer *t = self;
  if (t->on_diag != NULL)
    t->on_diag(t->on_diag_self, diag);
  else if (weir_diag_is_warning(diag))
    weir_log_diag(t->runtime, diag);
}

static void on_saved(void *self, uint64_t step) {
  const weir_trainer *t = self;
  weir_log(t->runtime, WEIR_LOG_INFO, "a checkpoint of step %llu is saved",
           (unsigned long long)step);
}

static weir_status open_tasks(void *self, const weir_graph *run_graph,
                              weir_session_options *session, weir_error *err) {
  const weir_trainer *t = self;
  return weir_placed_open(t->placed, t->graph, run_graph, session, err);
}

/* The replicas of a job between graphs: those of the template that is the plan.
 * On the tasks of a cluster there are none yet. */
static weir_status count_replicas(const weir_graph *graph,
                                  const weir_session_opts *o,
                                  uint32_t *out_count, weir_error *err) {
  weir_train_spec *spec = NULL;
  weir_status s = WEIR_OK;
  bool placed = o->tasks != NULL || o->place != NULL || o->plan != NULL;
  if (!placed || graph->train == NULL) return s;
  WEIR_TRY(weir_train_spec_read(graph, NULL, &spec, err));
  const weir_place_replica *template =
      o->tasks == NULL && o->plan != NULL && o->plan->placement != NULL
          ? o->plan->placing->replica
          : NULL;
  if (spec->shared.between && template != NULL) {
    *out_count = template->replicas;
  } else if (spec->shared.between) {
    s = weir_fail(err, WEIR_W1136, &spec->shared.way_mark,
                  "train: replicas between graphs (mode %s) have no driver: "
                  "each task of the cluster is a process of its own",
                  spec->shared.way_name);
    weir_hint(err, "each runs its weir_train_part");
  }
  weir_train_spec_release(spec);
  return s;
}

/* The trainer of a job's chief: other processes have the job's devices. */
static weir_status lead(weir_trainer *t, const weir_train_opts *o,
                        const weir_session_opts *session,
                        weir_loop_options *out, weir_error *err) {
  bool placed =
      session->tasks != NULL || session->place != NULL || session->plan != NULL;
  out->chief = weir_train_part_chief(o->part);
  if (out->chief == NULL || o->eval_only || placed)
    return weir_fail(err, WEIR_W0004, NULL, "weir_train_opts: part: %s",
                     out->chief == NULL ? "it is not the chief's"
                     : o->eval_only     ? "eval_only is without others"
                                        : "the session has a plan or tasks");
  t->part = o->part;
  return WEIR_OK;
}

/* |o| in the loop's form; texts are borrowed. */
static weir_status read_opts(weir_trainer *t, const weir_graph *graph,
                             const weir_train_opts *o, weir_loop_options *out,
                             weir_error *err) {
  weir_session_opts session;
  WEIR_TRY(WEIR_OPTS_READ(weir_session_opts, &session, o->session, err));
  WEIR_TRY(
      WEIR_OPTS_READ(weir_train_callbacks, &t->callbacks, o->callbacks, err));
  if (o->map_count > 0 && o->map == NULL) return weir_fail_null(err, "map");
  if (o->follow && (!o->eval_only || o->init != NULL))
    return weir_fail(err, WEIR_W0004, NULL,
                     "weir_train_opts: follow needs eval_only, and no init");
  if (o->follow_after > 0 && !o->follow)
    return weir_fail(err, WEIR_W0004, NULL,
                     "weir_train_opts: follow_after needs follow");
  session.seed = o->seed;
  t->on_diag = o->on_diag;
  t->on_diag_self = o->on_diag_self;
  t->sink = (weir_diag_sink){t, report};
  *out = (weir_loop_options){
      .session = weir_session_options_of(t->runtime, &session),
      .seed = o->seed,
      .time_ns = o->time_ns,
      .steps = o->steps,
      .epochs = o->epochs,
      .data_root = o->data_root,
      .checkpoint = o->checkpoint,
      .events = o->events,
      .out = o->out,
      .eval_only = o->eval_only,
      .follow = o->follow,
      .follow_after = o->follow_after,
      .shared = session.tasks != NULL && session.tasks->shared,
      .resume = o->resume,
      .init = o->init,
      .map = o->map,
      .map_count = o->map_count,
      .getenv = o->getenv,
      .getenv_self = o->getenv_self,
      .sink = &t->sink,
      .calls = &t->callbacks,
      .on_saved = on_saved,
      .on_saved_self = t,
      .open = open_tasks,
      .open_self = t};
  if (o->part != NULL) return lead(t, o, &session, out, err);
  if (!o->eval_only)
    WEIR_TRY(count_replicas(graph, &session, &out->replicas, err));
  if (out->replicas > 0) return WEIR_OK; /* the plan is a template */
  WEIR_TRY(weir_placed_create(t->runtime, graph, &session, &t->placed, err));
  weir_placed_use(t->placed, &out->session);
  return WEIR_OK;
}

weir_status weir_trainer_create(weir_runtime *runtime, const weir_graph *graph,
                                const weir_train_opts *opts,
                                weir_trainer **out_trainer, weir_error *err) {
  if (out_trainer == NULL) return weir_fail_null(err, "out_trainer");
  *out_trainer = NULL;
  if (runtime == NULL) return weir_fail_null(err, "runtime");
  if (graph == NULL) return weir_fail_null(err, "graph");
  weir_train_opts o;
  weir_loop_options options;
  weir_pool *pool = NULL;
  WEIR_TRY(WEIR_OPTS_READ(weir_train_opts, &o, opts, err));
  weir_trainer *t = weir_alloc_array(runtime->env.alloc, 1, sizeof *t);
  if (t == NULL)
    return weir_fail_refused(runtime->env.alloc, "opening the training", err);
  t->runtime = weir_runtime_ref(runtime);
  t->graph = graph;
  weir_status s = read_opts(t, graph, &o, &options, err);
  if (s == WEIR_OK) s = weir_runtime_pool(runtime, &pool, err);
  if (s == WEIR_OK)
    s = weir_loop_create(&runtime->env, pool, graph, &options, &t->loop, err);
  if (s != WEIR_OK) {
    s = weir_settle(graph->alloc, "making the training graph", s, err);
    weir_trainer_release(t);
    return weir_settle(runtime->env.alloc, "opening the training", s, err);
  }
  t->variables = (weir_variables){weir_loop_graph(t->loop), t->placed, NULL};
  if (t->part != NULL) s = weir_train_part_begin(t->part, &o, err);
  if (s == WEIR_OK)
    *out_trainer = t;
  else
    weir_trainer_release(t);
  return s;
}

void weir_trainer_release(weir_trainer *trainer) {
  if (trainer == NULL) return;
  weir_runtime *runtime = trainer->runtime;
  weir_train_part_end(trainer->part);
  weir_variables_release(&trainer->variables);
  weir_loop_release(trainer->loop);
  weir_placed_release(trainer->placed);
  weir_free(runtime->env.alloc, trainer);
  weir_runtime_release(runtime);
}

static weir_status settle(const weir_trainer *t, weir_status s,
                          weir_error *err) {
  const weir_graph *graph = weir_loop_graph(t->loop);
  s = weir_settle(t->runtime->env.alloc, "training", s, err);
  return weir_settle(graph->alloc, "compiling the graph", s, err);
}

weir_status weir_trainer_step(weir_trainer *trainer, weir_train_end *out_end,
                              weir_error *err) {
  weir_train_end end;
  if (trainer == NULL) return weir_fail_null(err, "trainer");
  weir_status s =
      weir_loop_step(trainer->loop, out_end != NULL ? out_end : &end, err);
  return settle(trainer, s, err);
}

weir_status weir_trainer_finish(weir_trainer *trainer, weir_error *err) {
  if (trainer == NULL) return weir_fail_null(err, "trainer");
  return weir_loop_finish(trainer->loop, err);
}

weir_status weir_trainer_run(weir_trainer *trainer, weir_train_end *out_end,
                             weir_error *err) {
  weir_train_end end;
  if (trainer == NULL) return weir_fail_null(err, "trainer");
  weir_status s =
      weir_loop_run(trainer->loop, out_end != NULL ? out_end : &end, err);
  return settle(trainer, s, err);
}

struct weir_loop *weir_trainer_loop(const weir_trainer *trainer) {
  return trainer->loop;
}

void weir_trainer_stop(weir_trainer *trainer) {
  if (trainer != NULL) weir_loop_stop(trainer->loop);
}

weir_status weir_trainer_eval(weir_trainer *trainer, const char *data,
                              weir_train_report *out_report, weir_error *err) {
  weir_train_report r = {.struct_size = sizeof r};
  if (trainer == NULL) return weir_fail_null(err, "trainer");
  if (out_report == NULL) return weir_fail_null(err, "out_report");
  WEIR_TRY(weir_loop_eval(trainer->loop, data, &r, err));
  return WEIR_OPTS_WRITE(weir_train_report, out_report, &r, err);
}

weir_status weir_trainer_follow(weir_trainer *trainer, const char *data,
                                weir_train_followed *out_followed,
                                weir_error *err) {
  weir_train_followed f = {.struct_size = sizeof f};
  if (trainer == NULL) return weir_fail_null(err, "trainer");
  if (out_followed != NULL) /* a bad size is told now, not in some days */
    WEIR_TRY(WEIR_OPTS_WRITE(weir_train_followed, out_followed, &f, err));
  weir_status s =
      settle(trainer, weir_loop_follow(trainer->loop, data, &f, err), err);
  if (out_followed != NULL)
    (void)WEIR_OPTS_WRITE(weir_train_followed, out_followed, &f, NULL);
  return s;
}

weir_status weir_trainer_save(weir_trainer *trainer, bool wait,
                              weir_error *err) {
  if (trainer == NULL) return weir_fail_null(err, "trainer");
  return weir_loop_save(trainer->loop, wait, err);
}

weir_status weir_trainer_progress(const weir_trainer *trainer,
                                  weir_train_progress *out_progress,
                                  weir_error *err) {
  if (trainer == NULL) return weir_fail_null(err, "trainer");
  weir_train_progress p = weir_loop_now(trainer->loop);
  return WEIR_OPTS_WRITE(weir_train_progress, out_progress, &p, err);
}

size_t weir_trainer_variable_count(const weir_trainer *trainer) {
  return trainer == NULL ? 0
                         : weir_variables_count(weir_loop_graph(trainer->loop));
}

weir_status weir_trainer_variable_at(weir_trainer *trainer, size_t i,
                                     weir_variable_desc *out_variable,
                                     weir_error *err) {
  if (trainer == NULL) return weir_fail_null(err, "trainer");
  return weir_variables_at(&trainer->variables, i, out_variable, err);
}

weir_status weir_trainer_variable_get(weir_trainer *trainer, const char *name,
                                      weir_tensor **out_tensor,
                                      weir_error *err) {
  weir_node_id node;
  if (out_tensor == NULL) return weir_fail_null(err, "out_tensor");
  *out_tensor = NULL;
  if (trainer == NULL) return weir_fail_null(err, "trainer");
  WEIR_TRY(weir_find_node(weir_loop_graph(trainer->loop), name, &node, err));
  return weir_exec_variable_get(weir_loop_session(trainer->loop), node,
                                out_tensor, err);
}

weir_status weir_trainer_variable_set(weir_trainer *trainer, const char *name,
                                      const weir_tensor *tensor,
                                      weir_error *err) {
  weir_node_id node;
  if (trainer == NULL) return weir_fail_null(err, "trainer");
  if (tensor == NULL) return weir_fail_null(err, "tensor");
  WEIR_TRY(weir_check_on_host(tensor, name, err));
  WEIR_TRY(weir_find_node(weir_loop_graph(trainer->loop), name, &node, err));
  return weir_exec_variable_set(weir_loop_session(trainer->loop), node, tensor,
                                err);
}

/* ---- Variables of sessions */

weir_status weir_session_restore(weir_session *session, const char *dir,
                                 int64_t step, int64_t *out_step,
                                 weir_error *err) {
  weir_checkpoint *c = NULL;
  if (session == NULL) return weir_fail_null(err, "session");
  if (dir == NULL) return weir_fail_null(err, "dir");
  WEIR_TRY(weir_checkpoint_open(&session->runtime->env, dir,
                                step < 0 ? -1 : step, NULL, &c, err));
  weir_status s = weir_checkpoint_to_session(c, session->graph, session->exec,
                                             dir, false, err);
  if (s == WEIR_OK) {
    int64_t found = (int64_t)weir_checkpoint_about(c)->step;
    weir_log(session->runtime, WEIR_LOG_INFO,
             "variables are restored from step %lld in %.300s",
             (long long)found, dir);
    if (out_step != NULL) *out_step = found;
  }
  weir_checkpoint_release(c);
  return s;
}

weir_status weir_session_load_weights(weir_session *session, const char *path,
                                      const char *const *map, size_t map_count,
                                      size_t *out_count, weir_error *err) {
  size_t count = 0;
  if (session == NULL) return weir_fail_null(err, "session");
  if (path == NULL) return weir_fail_null(err, "path");
  if (map_count > 0 && map == NULL) return weir_fail_null(err, "map");
  weir_weights_file file = {path, map, map_count};
  weir_status s =
      weir_weights_to_session(&session->runtime->env, &file, session->graph,
                              session->exec, &count, err);
  if (out_count != NULL) *out_count = count;
  return s;
}
