/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/train/loop/loop_save.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/json/json.h"
#include "runtime/exec/session/session_snapshot.h"
#include "runtime/io/checkpoint/checkpoint_store.h"
#include "runtime/train/batch/data_iter.h"
#include "runtime/train/data/data_open.h"
#include "runtime/train/loop/loop_internal.h"
#include "runtime/train/ps/chief.h"
#include "runtime/train/replicas/replicas.h"

/* Checkpoints of a loop. The values are snapshots, so a store that writes in a
 * thread of its own sees those between two steps while the next one runs. */

weir_status weir_loop_save_open(weir_loop *loop, weir_error *err) {
  const weir_train_spec *spec = loop->spec;
  const char *dir = loop->checkpoints.path;
  if (dir == NULL) return WEIR_OK;
  weir_checkpoint_options options = {
      .keep = spec->checkpoint.keep,
      .keep_every_steps = spec->checkpoint.keep_every.steps,
      .async = spec->checkpoint.async,
      .root = loop->checkpoints.root};
  for (size_t i = 0; i < loop->entry_count; i++) {
    const weir_graph *g = loop->run_graph;
    const weir_value *v =
        &g->values[g->nodes[loop->entry_nodes[i]].first_output];
    options.expected_bytes += weir_shape_bytes(v->shape, v->dtype);
  }
  int64_t batches = weir_dataset_batches(loop->data);
  if (spec->checkpoint.keep_every.epochs > 0 && batches > 0)
    options.keep_every_steps =
        (uint64_t)(spec->checkpoint.keep_every.epochs * (double)batches /
                   (double)spec->accumulate);
  return weir_checkpoint_store_open(loop->env, dir, &options, &loop->store,
                                    err);
}

/* The loop's own place, from which it goes on. */
static weir_status write_extra(weir_loop *loop, weir_error *err) {
  weir_json_writer w;
  weir_strbuf_clear(&loop->extra);
  weir_json_writer_init(&w, weir_strbuf_writer(&loop->extra), 0);
  weir_json_object_begin(&w, true);
  weir_json_key(&w, "runs");
  weir_json_uint(&w, loop->runs);
  weir_json_key(&w, "epoch");
  weir_json_uint(&w, loop->epoch);
  weir_json_key(&w, "batches");
  weir_json_uint(&w, loop->batches);
  weir_json_key(&w, "examples");
  weir_json_uint(&w, loop->examples);
  weir_json_key(&w, "accumulate");
  weir_json_uint(&w, loop->spec->accumulate);
  if (loop->early_has) {
    weir_json_key(&w, "early_best");
    weir_json_double(&w, loop->early_best);
    weir_json_key(&w, "early_bad");
    weir_json_uint(&w, loop->early_bad);
  }
  weir_train_ended ended = {loop->end, loop->newest.saves + 1};
  weir_train_ended_write(&w, &ended);
  weir_json_object_end(&w);
  weir_json_finish(&w);
  return weir_strbuf_status(&loop->extra, err);
}

static void drop_snapshots(weir_loop *loop) {
  for (size_t i = 0; i < loop->entry_count; i++) {
    weir_tensor_unref((weir_tensor *)(uintptr_t)loop->entries[i].tensor);
    loop->entries[i].tensor = NULL;
  }
}

static weir_status take_snapshots(weir_loop *loop, weir_error *err) {
  weir_status s = WEIR_OK;
  for (size_t i = 0; i < loop->entry_count && s == WEIR_OK; i++) {
    weir_tensor *t = NULL;
    s = weir_exec_variable_snapshot(loop->session, loop->entry_nodes[i], &t,
                                    err);
    loop->entries[i].tensor = t;
  }
  return s;
}

/* Entries without data, for tensors that stay where they are. */
static weir_status take_shapes(weir_loop *loop, weir_error *err) {
  weir_status s = WEIR_OK;
  for (size_t i = 0; i < loop->entry_count && s == WEIR_OK; i++) {
    const weir_graph *g = loop->run_graph;
    const weir_value *v =
        &g->values[g->nodes[loop->entry_nodes[i]].first_output];
    weir_tensor_memory memory = {.dtype = v->dtype, .shape = v->shape};
    weir_tensor *t = NULL;
    s = weir_tensor_wrap(loop->alloc, &memory, &t, err);
    loop->entries[i].tensor = t;
  }
  return s;
}

/* Variables that live in other processes are held there, and saved by them. */
static weir_status save_entries(weir_loop *loop,
                                const weir_checkpoint_info *info,
                                weir_error *err) {
  struct weir_checkpoint_owners *owners = NULL;
  if (!weir_exec_session_has_owners(loop->session)) {
    WEIR_TRY(take_snapshots(loop, err));
  } else {
    WEIR_TRY(take_shapes(loop, err));
    weir_checkpoint_idle(loop->store); /* tasks hold the values of one save */
    WEIR_TRY(weir_exec_variables_hold(loop->session, loop->entry_nodes,
                                      (uint32_t)loop->entry_count, &owners,
                                      err));
  }
  return weir_checkpoint_save_owned(loop->store, info, loop->entries,
                                    loop->entry_count, owners, err);
}

static weir_status hand_over(weir_loop *loop, weir_error *err) {
  weir_strbuf_clear(&loop->data_state);
  if (loop->chief != NULL) /* batches are read by others */
    WEIR_TRY(weir_data_iter_state_at(loop->iter, loop->epoch, loop->batches,
                                     &loop->data_state, err));
  else
    WEIR_TRY(weir_data_iter_state(loop->iter, &loop->data_state, err));
  WEIR_TRY(weir_strbuf_status(&loop->data_state, err));
  WEIR_TRY(write_extra(loop, err));
  int64_t run_ns = weir_loop_clock(loop) - loop->start_ns;
  weir_checkpoint_info info = {.step = loop->step,
                               .epoch = weir_loop_epochs(loop),
                               .seed = loop->options.seed,
                               .graph_hash = loop->graph_hash,
                               .run_id = loop->run_id,
                               .data = weir_strbuf_view(&loop->data_state),
                               .extra = weir_strbuf_view(&loop->extra),
                               .time_ns = loop->options.time_ns + run_ns};
  return save_entries(loop, &info, err);
}

weir_status weir_loop_save_now(weir_loop *loop, weir_error *err) {
  int64_t start = weir_loop_clock(loop);
  weir_error mine = WEIR_ERROR_INIT;
  weir_error *e = err != NULL ? err : &mine;
  weir_status s = hand_over(loop, e);
  drop_snapshots(loop);
  int64_t ns = weir_loop_clock(loop) - start;
  loop->save_ns += ns;
  if (s == WEIR_OK) {
    loop->saved = true;
    loop->save_failed = false;
    loop->saved_runs = loop->runs;
    loop->newest = (weir_train_ended){loop->end, loop->newest.saves + 1};
    if (loop->options.on_saved != NULL)
      loop->options.on_saved(loop->options.on_saved_self, loop->step);
    if (loop->calls.saved != NULL)
      loop->calls.saved(loop->calls.self, loop->step, ns);
    return WEIR_OK;
  }
  loop->saved = false;
  if (!loop->save_failed) weir_loop_warn(loop, e);
  loop->save_failed = true;
  return s;
}

weir_status weir_loop_save(weir_loop *loop, bool wait, weir_error *err) {
  if (loop->store == NULL)
    return weir_fail(err, WEIR_W0004, NULL,
                     "there is no folder for checkpoints");
  if (loop->replicas != NULL) WEIR_TRY(weir_replicas_drain(loop, err));
  WEIR_TRY(weir_loop_save_now(loop, err));
  return wait ? weir_checkpoint_wait(loop->store, err) : WEIR_OK;
}

/* Whether the newest checkpoint is the last one: of these values, and one that
 * says that training is over, for those that follow it. */
static bool last_is_saved(const weir_loop *loop) {
  return loop->saved && loop->saved_runs == loop->runs &&
         (!weir_train_is_over(loop->end) ||
          weir_train_is_over(loop->newest.end));
}

/* A save that failed in its thread is known only now: once more, and then the
 * failure counts. */
static weir_status finish(weir_loop *loop, weir_error *err) {
  weir_error first = WEIR_ERROR_INIT;
  weir_status s = WEIR_OK;
  if (loop->summary != NULL) {
    weir_error warning = WEIR_ERROR_INIT;
    if (weir_summary_flush(loop->summary, &warning) != WEIR_OK)
      weir_loop_warn(loop, &warning);
  }
  if (loop->replicas != NULL) {
    WEIR_TRY(weir_replicas_drain(loop, err));
    weir_replicas_tell(loop);
  }
  if (loop->store == NULL) return WEIR_OK;
  int64_t start = weir_loop_clock(loop);
  if (weir_checkpoint_wait(loop->store, &first) != WEIR_OK) {
    weir_loop_warn(loop, &first);
    loop->saved = false;
  }
  if (!last_is_saved(loop)) {
    loop->save_failed = true; /* the error is returned, so no warning too */
    s = weir_loop_save_now(loop, err);
    if (s == WEIR_OK) s = weir_checkpoint_wait(loop->store, err);
  }
  loop->save_ns += weir_loop_clock(loop) - start;
  return s;
}

weir_status weir_loop_finish(weir_loop *loop, weir_error *err) {
  weir_error mine = WEIR_ERROR_INIT;
  err = err != NULL ? err : &mine;
  weir_status s = finish(loop, err);
  if (loop->chief != NULL && s == WEIR_OK) return weir_chief_end(loop, err);
  if (loop->chief != NULL) (void)weir_chief_end(loop, &mine);
  return s;
}
