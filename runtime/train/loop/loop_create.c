/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/train/loop/loop_create.h"

#include <string.h>

#include "runtime/exec/session/session_vars.h"
#include "runtime/graph/hash.h"
#include "runtime/graph/train/train_graph.h"
#include "runtime/graph/train/train_spec.h"
#include "runtime/io/checkpoint/checkpoint_store.h"
#include "runtime/train/batch/data_iter.h"
#include "runtime/train/data/data_open.h"
#include "runtime/train/data/data_vocabulary.h"
#include "runtime/train/loop/loop_eval.h"
#include "runtime/train/loop/loop_hooks.h"
#include "runtime/train/loop/loop_internal.h"
#include "runtime/train/loop/loop_restore.h"
#include "runtime/train/loop/loop_save.h"
#include "runtime/train/ps/chief.h"
#include "runtime/train/replicas/replicas.h"
#include "runtime/train/replicas/replicas_graph.h"
#include "runtime/train/spec/data_spec.h"

/* From a graph and options to a loop that can step. The order matters: the
 * folder of checkpoints is locked before one is read from it or another file is
 * written there; variables are restored before vocabularies are saved and
 * summaries opened, so that a run which is refused leaves neither; the clock
 * starts last, so that limits of time count training.
 */

static char *copy_sv(weir_loop *loop, weir_sv text) {
  return weir_arena_string(&loop->arena, text.data, text.size);
}

/* A copy of |text|; NULL stays NULL. */
static weir_status copy_text(weir_loop *loop, const char **text,
                             weir_error *err) {
  if (*text == NULL) return WEIR_OK;
  *text = copy_sv(loop, weir_sv_from(*text));
  return *text != NULL ? WEIR_OK : weir_fail_memory(err, 0);
}

/* ---- Options over the spec */

static weir_status merge_options(weir_loop *loop, weir_error *err) {
  weir_loop_options *o = &loop->options;
  weir_train_spec *spec = loop->spec;
  if (o->steps > 0 || o->epochs > 0) {
    spec->steps = o->steps;
    spec->epochs = o->epochs;
  }
  WEIR_TRY(copy_text(loop, &o->checkpoint, err));
  WEIR_TRY(copy_text(loop, &o->events, err));
  WEIR_TRY(copy_text(loop, &o->out, err));
  return copy_text(loop, &o->data_root, err);
}

/* ---- The files of the run: run_folder.h has the rule */

static bool is_given(const char *text) {
  return text != NULL && text[0] != '\0';
}

/* Where checkpoints stand, and with that the run folder. An option that is
 * given and empty means none. */
static weir_status find_run(weir_loop *loop, weir_error *err) {
  const weir_loop_options *o = &loop->options;
  weir_sv dir = loop->spec->checkpoint.dir;
  weir_run_folder here = {is_given(o->out) ? o->out : ".", NULL};
  loop->run = here;
  if (is_given(o->checkpoint))
    loop->checkpoints.path = o->checkpoint;
  else if (o->checkpoint == NULL && dir.size > 0)
    WEIR_TRY(weir_run_place_of(&here, dir, "dir", &loop->arena,
                               &loop->checkpoints, err));
  if (is_given(o->out)) return WEIR_OK;
  loop->run = (weir_run_folder){loop->checkpoints.path, NULL};
  if (loop->checkpoints.root != NULL)
    loop->run =
        (weir_run_folder){loop->checkpoints.root, loop->checkpoints.path};
  return WEIR_OK;
}

static weir_status find_summaries(weir_loop *loop, weir_error *err) {
  const weir_loop_options *o = &loop->options;
  const weir_train_spec *spec = loop->spec;
  bool named = spec->summary.dir.size > 0 || spec->summary.csv.size > 0 ||
               spec->summary.jsonl.size > 0;
  if (is_given(o->events)) loop->summaries.path = o->events;
  if (o->events != NULL || !named) return WEIR_OK;
  const char *key = spec->summary.dir.size > 0   ? "summary: {dir: ...}"
                    : spec->summary.csv.size > 0 ? "summary: {csv: ...}"
                                                 : "summary: {jsonl: ...}";
  return weir_run_place_of(&loop->run, spec->summary.dir, key, &loop->arena,
                           &loop->summaries, err);
}

/* ---- Metrics */

/* The evaluation's metrics and the loss if a rule looks at it, by name. */
static weir_status make_metrics(weir_loop *loop, weir_error *err) {
  const weir_train_spec *spec = loop->spec;
  const weir_train_watch *watch = &loop->watch;
  size_t most = watch->metric_count + 1u;
  loop->metrics = weir_arena_array(&loop->arena, most, sizeof *loop->metrics);
  loop->values = weir_arena_array(&loop->arena, most, sizeof *loop->values);
  loop->eval_values =
      weir_arena_array(&loop->arena, most, sizeof *loop->eval_values);
  loop->sums = weir_arena_array(
      &loop->arena, 2 * most + spec->summary.scalar_count + 4u, sizeof(double));
  if (loop->metrics == NULL || loop->values == NULL ||
      loop->eval_values == NULL || loop->sums == NULL)
    return weir_fail_memory(err, most * sizeof *loop->metrics);
  for (uint32_t i = 0; i < watch->metric_count; i++) {
    const weir_train_metric *m = &watch->metrics[i];
    char *name = copy_sv(loop, m->name);
    if (name == NULL) return weir_fail_memory(err, m->name.size);
    loop->metrics[i] = (weir_loop_metric){name, m->value, m->perplexity};
    loop->values[i].name = loop->eval_values[i].name = name;
  }
  loop->metric_count = watch->metric_count;
  return WEIR_OK;
}

/* ---- Variables */

static weir_checkpoint_role role_of(const weir_loop *loop, weir_node_id id) {
  const weir_train_graph *t = loop->train;
  for (uint32_t i = 0; t != NULL && i < t->var_count; i++)
    if (t->vars[i].node == id && t->vars[i].of != UINT32_MAX)
      return WEIR_CHECKPOINT_SLOT;
  return strcmp(loop->run_graph->nodes[id].op->name, "state") == 0
             ? WEIR_CHECKPOINT_STATE
             : WEIR_CHECKPOINT_VARIABLE;
}

static weir_status list_variables(weir_loop *loop, weir_error *err) {
  const weir_graph *g = loop->run_graph;
  size_t count = 0;
  for (uint32_t i = 0; i < g->node_count; i++)
    if (g->nodes[i].op->instr == WEIR_INSTR_VAR_READ) count++;
  loop->entries =
      weir_arena_array(&loop->arena, count + 1, sizeof *loop->entries);
  loop->entry_nodes =
      weir_arena_array(&loop->arena, count + 1, sizeof *loop->entry_nodes);
  if (loop->entries == NULL || loop->entry_nodes == NULL)
    return weir_fail_memory(err, count * sizeof *loop->entries);
  for (uint32_t i = 0; i < g->node_count; i++) {
    if (g->nodes[i].op->instr != WEIR_INSTR_VAR_READ) continue;
    loop->entry_nodes[loop->entry_count] = i;
    loop->entries[loop->entry_count++] = (weir_checkpoint_entry){
        .name = g->nodes[i].name, .role = role_of(loop, i)};
  }
  return WEIR_OK;
}

/* States that the graph itself assigns, such as those of recurrent layers:
 * their first values, for evaluation and reset_state, and the nodes that assign
 * them. */
static weir_status keep_states(weir_loop *loop, weir_error *err) {
  const weir_graph *g = loop->graph;
  loop->first_states = weir_arena_array(&loop->arena, loop->entry_count + 1,
                                        sizeof *loop->first_states);
  loop->own_assigns = weir_arena_array(&loop->arena, g->node_count + 1u,
                                       sizeof *loop->own_assigns);
  bool *own = weir_own_states(g, loop->alloc);
  weir_status s = WEIR_OK;
  if (loop->first_states == NULL || loop->own_assigns == NULL || own == NULL)
    s = weir_fail_memory(err, g->node_count);
  for (size_t i = 0; s == WEIR_OK && i < loop->entry_count; i++) {
    weir_node_id id = loop->entry_nodes[i];
    if (id >= g->node_count || !own[id]) continue; /* added by the rewrite */
    s = weir_exec_variable_get(loop->session, id, &loop->first_states[i], err);
  }
  for (weir_node_id id = 0; s == WEIR_OK && id < g->node_count; id++) {
    if (g->nodes[id].op->instr != WEIR_INSTR_VAR_COMMIT) continue;
    if (own[g->values[g->nodes[id].inputs[0]].node])
      loop->own_assigns[loop->own_assign_count++] = id;
  }
  weir_free(loop->alloc, own);
  return s;
}

/* ---- Data and steppers */

weir_dataset_options weir_loop_dataset(const weir_loop *loop) {
  const weir_loop_options *o = &loop->options;
  return (weir_dataset_options){.root = o->data_root,
                                .seed = o->seed,
                                .sink = o->sink,
                                .getenv = o->getenv,
                                .getenv_self = o->getenv_self,
                                .pool = loop->pool};
}

static weir_status open_data(weir_loop *loop, weir_error *err) {
  weir_dataset_options options = weir_loop_dataset(loop);
  WEIR_TRY(weir_dataset_open(loop->env, loop->graph, loop->spec->data, &options,
                             &loop->data, err));
  return weir_data_iter_create(loop->data, &loop->iter, err);
}

static weir_status make_steppers(weir_loop *loop, weir_error *err) {
  const weir_train_graph *t = loop->train;
  if (loop->chief != NULL) return WEIR_OK; /* batches are run elsewhere */
  if (loop->replicas != NULL) return weir_replicas_start(loop, err);
  weir_stepper_options options = {.session = loop->session,
                                  .graph = t->graph,
                                  .data = loop->data,
                                  .section = loop->spec->data,
                                  .fetches = loop->watch.fetches,
                                  .fetch_count = loop->watch.fetch_count,
                                  .targets = t->targets,
                                  .target_count = t->target_count,
                                  .rows = &t->rows};
  WEIR_TRY(weir_stepper_create(loop->env, &options, &loop->stepper, err));
  if (loop->spec->accumulate <= 1) return WEIR_OK;
  options.targets = t->accumulate_targets;
  options.target_count = t->accumulate_target_count;
  return weir_stepper_create(loop->env, &options, &loop->accumulator, err);
}

static weir_status open_eval(weir_loop *loop, weir_error *err) {
  weir_loop_eval_on *on;
  weir_sv name = loop->spec->eval.data;
  if (name.size == 0) return WEIR_OK;
  char *text = copy_sv(loop, name);
  if (text == NULL) return weir_fail_memory(err, name.size);
  return weir_loop_find_eval(loop, text, &on, err);
}

/* ---- Summaries */

/* The columns of steps; |names| has room. */
static uint32_t name_steps(weir_loop *loop, const char **names) {
  const weir_train_spec *spec = loop->spec;
  uint32_t n = 0;
  for (uint32_t i = 0; i < spec->summary.scalar_count; i++)
    names[n++] = copy_sv(loop, spec->summary.scalars[i]);
  if (!spec->summary.has_scalars) {
    names[n++] = copy_sv(loop, spec->minimize);
    for (uint32_t i = 0; i < loop->metric_count; i++)
      if (!weir_sv_is(spec->minimize, loop->metrics[i].name))
        names[n++] = loop->metrics[i].name;
  }
  names[n++] = "learning_rate";
  names[n++] = "examples_per_second";
  return n;
}

/* "|prefix||name|"; an empty name is none, NULL. */
static weir_status name_file(weir_loop *loop, const char *prefix, weir_sv name,
                             const char **out, weir_error *err) {
  weir_strbuf text;
  *out = NULL;
  if (name.size == 0) return WEIR_OK;
  weir_strbuf_init(&text, loop->alloc);
  weir_strbuf_printf(&text, "%s%.*s", prefix, WEIR_SV(name));
  *out = copy_sv(loop, weir_strbuf_view(&text));
  weir_strbuf_release(&text);
  return *out != NULL ? WEIR_OK : weir_fail_memory(err, name.size);
}

/* An evaluator's files stand beside those of the training that it follows,
 * which may evaluate too. */
static weir_status open_summary(weir_loop *loop, weir_error *err) {
  const weir_train_spec *spec = loop->spec;
  bool follows = loop->options.follow;
  const char *prefix = follows ? "evaluator-" : "";
  uint32_t scalars = spec->summary.scalar_count;
  const char **names = weir_arena_array(
      &loop->arena, scalars + 3u + 2u * loop->metric_count, sizeof *names);
  if (names == NULL) return weir_fail_memory(err, 0);
  uint32_t n = follows ? 0 : name_steps(loop, names);
  weir_summary_options options = {
      .root = loop->summaries.root,
      .dir = loop->summaries.path,
      .time_ns = loop->options.time_ns,
      .clock_ns = weir_loop_clock(loop),
      .graph = spec->summary.graph ? loop->graph : NULL,
      .names = names,
      .eval_from = n,
      .eval_folder = follows ? "evaluator" : NULL};
  for (uint32_t i = 0; i < loop->metric_count; i++)
    WEIR_TRY(name_file(loop, "eval/", weir_sv_from(loop->metrics[i].name),
                       &names[n++], err));
  for (uint32_t i = 0; i < n; i++)
    if (names[i] == NULL) return weir_fail_memory(err, 0);
  options.name_count = n;
  WEIR_TRY(name_file(loop, prefix, spec->summary.csv, &options.csv, err));
  WEIR_TRY(name_file(loop, prefix, spec->summary.jsonl, &options.jsonl, err));
  loop->row_evals = options.eval_from;
  return weir_summary_create(loop->env, &options, &loop->summary, err);
}

/* ---- All of it */

static uint64_t last_step_of(const weir_loop *loop) {
  const weir_train_spec *spec = loop->spec;
  int64_t batches = weir_dataset_batches(loop->data);
  uint64_t last = spec->steps;
  if (spec->epochs > 0 && batches > 0) {
    uint64_t runs;
    if (__builtin_mul_overflow(spec->epochs, (uint64_t)batches, &runs))
      return last;
    runs /= spec->accumulate;
    if (last == 0 || runs < last) last = runs;
  }
  return last;
}

static void begin_times(weir_loop *loop) {
  const weir_train_spec *spec = loop->spec;
  loop->start_ns = loop->row_ns = weir_loop_clock(loop);
  loop->eval_due.every = spec->eval.every;
  loop->save_due.every = spec->checkpoint.every;
  loop->log_due.every = spec->log;
  loop->summary_due.every = spec->summary.every;
  weir_loop_due_begin(loop, &loop->eval_due);
  weir_loop_due_begin(loop, &loop->save_due);
  weir_loop_due_begin(loop, &loop->log_due);
  weir_loop_due_begin(loop, &loop->summary_due);
  loop->last_step = last_step_of(loop);
}

static weir_status make_session(weir_loop *loop, weir_error *err) {
  const weir_loop_options *o = &loop->options;
  loop->run_graph = loop->graph;
  if (!o->eval_only || o->shared) {
    weir_error unused = WEIR_ERROR_INIT;
    if (o->chief != NULL)
      WEIR_TRY(weir_chief_create(loop, err));
    else if (o->replicas > 0)
      WEIR_TRY(weir_replicas_create(loop, err));
    else if (weir_train_unused(loop->spec, &unused))
      weir_loop_warn(loop, &unused);
    bool between = o->chief != NULL || o->replicas > 0, equal = false;
    WEIR_TRY(weir_data_shares(loop->graph, loop->spec, between, &equal, err));
    if (loop->train == NULL)
      WEIR_TRY(weir_graph_train(loop->graph, loop->spec, &loop->train, err));
    loop->run_graph = loop->train->graph;
  }
  WEIR_TRY(weir_train_watch_list(loop->graph, loop->spec, loop->train,
                                 &loop->arena, &loop->watch, err));
  WEIR_TRY(make_metrics(loop, err));
  WEIR_TRY(list_variables(loop, err));
  weir_session_options session = o->session;
  if (o->open != NULL)
    WEIR_TRY(o->open(o->open_self, loop->run_graph, &session, err));
  return weir_exec_session_create(loop->env, loop->pool, loop->run_graph,
                                  &session, &loop->session, err);
}

static weir_status make_training(weir_loop *loop, weir_error *err) {
  WEIR_TRY(find_summaries(loop, err));
  WEIR_TRY(open_data(loop, err));
  WEIR_TRY(weir_loop_save_open(loop, err));
  WEIR_TRY(make_steppers(loop, err));
  WEIR_TRY(open_eval(loop, err));
  WEIR_TRY(weir_loop_restore(loop, err)); /* servers may know better */
  WEIR_TRY(weir_dataset_save(loop->data, &loop->run, err));
  if (loop->evals[0].data != NULL)
    WEIR_TRY(weir_dataset_save(loop->evals[0].data, &loop->run, err));
  if (loop->summaries.path != NULL) WEIR_TRY(open_summary(loop, err));
  begin_times(loop);
  return loop->chief != NULL ? weir_chief_start(loop, err) : WEIR_OK;
}

/* Values come with the checkpoints. */
static weir_status make_follower(weir_loop *loop, weir_error *err) {
  if (loop->checkpoints.path == NULL)
    return weir_fail(err, WEIR_W4040, NULL,
                     "no folder of checkpoints is given to follow");
  WEIR_TRY(find_summaries(loop, err));
  WEIR_TRY(open_eval(loop, err));
  return loop->summaries.path != NULL ? open_summary(loop, err) : WEIR_OK;
}

static weir_status fill(weir_loop *loop, weir_error *err) {
  const weir_loop_options *o = &loop->options;
  WEIR_TRY(weir_train_spec_read(loop->graph, o->sink, &loop->spec, err));
  WEIR_TRY(merge_options(loop, err));
  WEIR_TRY(find_run(loop, err));
  loop->graph_hash = weir_graph_hash(loop->graph);
  WEIR_TRY(make_session(loop, err));
  WEIR_TRY(keep_states(loop, err));
  if (!o->eval_only) return make_training(loop, err);
  if (o->follow) return make_follower(loop, err);
  WEIR_TRY(weir_loop_restore_only(loop, err));
  return open_eval(loop, err);
}

weir_status weir_loop_create(const weir_env *env, weir_pool *pool,
                             const weir_graph *graph,
                             const weir_loop_options *options,
                             weir_loop **out_loop, weir_error *err) {
  *out_loop = NULL;
  weir_loop *loop = weir_alloc_array(env->alloc, 1, sizeof *loop);
  if (loop == NULL) return weir_fail_memory(err, sizeof *loop);
  loop->env = env;
  loop->alloc = env->alloc;
  loop->pool = pool;
  loop->graph = weir_graph_ref(graph);
  loop->options = *options;
  if (options->calls != NULL) loop->calls = *options->calls;
  weir_arena_init(&loop->arena, env->alloc);
  weir_strbuf_init(&loop->data_state, env->alloc);
  weir_strbuf_init(&loop->extra, env->alloc);
  atomic_init(&loop->stop, false);
  weir_status s = fill(loop, err);
  if (s == WEIR_OK)
    *out_loop = loop;
  else
    weir_loop_release(loop);
  return s;
}

/* The store first: snapshots that it writes belong to the session. */
void weir_loop_release(weir_loop *loop) {
  if (loop == NULL) return;
  weir_chief_release(loop);
  weir_checkpoint_store_close(loop->store);
  weir_summary_release(loop->summary);
  weir_loop_evals_release(loop);
  weir_replicas_release(loop);
  weir_stepper_release(loop->accumulator);
  weir_stepper_release(loop->stepper);
  weir_data_iter_release(loop->iter);
  weir_dataset_release(loop->data);
  for (size_t i = 0; loop->first_states != NULL && i < loop->entry_count; i++)
    weir_tensor_unref(loop->first_states[i]);
  weir_exec_session_release(loop->session);
  weir_train_graph_release(loop->train);
  weir_train_spec_release(loop->spec);
  weir_graph_unref(loop->graph);
  weir_strbuf_release(&loop->data_state);
  weir_strbuf_release(&loop->extra);
  weir_arena_release(&loop->arena);
  weir_free(loop->alloc, loop);
}
