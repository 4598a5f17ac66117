/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/train/loop/loop_restore.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/json/json.h"
#include "runtime/base/map.h"
#include "runtime/exec/session/session_snapshot.h"
#include "runtime/io/checkpoint/checkpoint_load.h"
#include "runtime/io/checkpoint/checkpoint_open.h"
#include "runtime/train/batch/data_iter.h"
#include "runtime/train/loop/loop_internal.h"

/* Going on: variables, then the loop's own place, then the data's. Keys of the
 * place that are not known are passed over, as a newer version may write more;
 * numbers that decide are checked, since a wrong place would train on other
 * data without a sign of it. */

/* ---- The loop's place */

static weir_status read_extra(weir_loop *loop, weir_sv text,
                              uint64_t *accumulate, weir_error *err) {
  struct {
    const char *key;
    uint64_t *to;
  } fields[] = {{"runs", &loop->runs},
                {"epoch", &loop->epoch},
                {"batches", &loop->batches},
                {"examples", &loop->examples},
                {"accumulate", accumulate}};
  weir_json_reader r;
  weir_json_token token;
  weir_json_reader_init(&r, text, "checkpoint", NULL);
  WEIR_TRY(weir_json_expect(&r, WEIR_JSON_OBJECT_BEGIN, err));
  for (;;) {
    WEIR_TRY(weir_json_next(&r, &token, err));
    if (token == WEIR_JSON_OBJECT_END) break;
    uint64_t *to = NULL;
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
      if (weir_json_text_is(&r, fields[i].key)) to = fields[i].to;
    bool best = weir_json_text_is(&r, "early_best");
    bool bad = weir_json_text_is(&r, "early_bad");
    if (to == NULL && !best && !bad) {
      WEIR_TRY(weir_json_skip(&r, err));
      continue;
    }
    int64_t n = 0;
    WEIR_TRY(weir_json_next(&r, &token, err));
    if (best) {
      loop->early_has = token == WEIR_JSON_NUMBER &&
                        weir_json_get_double(&r, &loop->early_best);
    } else if (token != WEIR_JSON_NUMBER || !weir_json_get_int(&r, &n) ||
               n < 0) {
      return weir_fail(err, WEIR_W5025, NULL,
                       "the checkpoint's place is damaged");
    } else if (bad) {
      loop->early_bad = n < UINT32_MAX ? (uint32_t)n : UINT32_MAX;
    } else {
      *to = (uint64_t)n;
    }
  }
  return weir_json_expect(&r, WEIR_JSON_END, err);
}

static weir_status keep_run_id(weir_loop *loop, weir_sv id, weir_error *err) {
  char *copy = weir_arena_string(&loop->arena, id.data, id.size);
  if (copy == NULL) return weir_fail_memory(err, id.size);
  loop->run_id = (weir_sv){copy, id.size};
  return WEIR_OK;
}

static void warn_other_graph(weir_loop *loop,
                             const weir_checkpoint_info *info) {
  weir_error warning = WEIR_ERROR_INIT;
  if (info->graph_hash == 0 || info->graph_hash == loop->graph_hash) return;
  (void)weir_fail(&warning, WEIR_W5025, NULL,
                  "the checkpoint was made with another graph (its nodes, "
                  "shapes or attributes differ); its variables fit, so "
                  "training goes on");
  weir_loop_warn(loop, &warning);
}

/* Variables are there already. */
static weir_status go_on(weir_loop *loop, const weir_checkpoint *c,
                         weir_error *err) {
  const weir_checkpoint_info *info = weir_checkpoint_about(c);
  uint64_t accumulate = loop->spec->accumulate;
  warn_other_graph(loop, info);
  loop->step = info->step;
  loop->runs = info->step * accumulate;
  if (info->extra.size > 0)
    WEIR_TRY(read_extra(loop, info->extra, &accumulate, err));
  WEIR_TRY(weir_train_ended_read(info->extra, &loop->newest, err));
  if (accumulate != loop->spec->accumulate && loop->runs % accumulate != 0)
    return weir_fail(err, WEIR_W5025, NULL,
                     "the checkpoint was made within an update of %" PRIu64
                     " batches, now it is accumulate: %u",
                     accumulate, loop->spec->accumulate);
  if (accumulate != loop->spec->accumulate)
    loop->runs = loop->step * loop->spec->accumulate;
  if (info->data.size > 0)
    WEIR_TRY(weir_data_iter_restore(loop->iter, info->data, err));
  WEIR_TRY(keep_run_id(loop, info->run_id, err));
  loop->saved = true;
  loop->saved_runs = loop->runs;
  loop->first_examples = loop->examples;
  if (loop->calls.resumed != NULL)
    loop->calls.resumed(loop->calls.self, loop->step);
  return WEIR_OK;
}

/* A new run: its name, and first values from --init. */
static weir_status begin(weir_loop *loop, weir_error *err) {
  const weir_loop_options *o = &loop->options;
  size_t count = 0;
  char id[40];
  uint64_t seed[] = {(uint64_t)o->time_ns, (uint64_t)weir_loop_clock(loop),
                     loop->graph_hash, o->seed};
  int n = snprintf(id, sizeof id, "%016" PRIx64,
                   weir_hash_bytes(seed, sizeof seed, 1));
  WEIR_TRY(keep_run_id(loop, (weir_sv){id, (size_t)n}, err));
  if (o->init == NULL) return WEIR_OK;
  weir_weights_file file = {o->init, o->map, o->map_count};
  return weir_weights_to_session(loop->env, &file, loop->run_graph,
                                 loop->session, &count, err);
}

/* Passes warnings on and counts them. They are events of the training where
 * somebody listens to those. */
typedef struct counted_sink {
  const weir_loop *loop;
  unsigned count;
} counted_sink;

static void see_warning(void *self, const weir_diag *diag) {
  counted_sink *sink = self;
  const weir_diag_sink *to = sink->loop->options.sink;
  sink->count++;
  if (sink->loop->calls.warning != NULL)
    weir_loop_warn(sink->loop, &diag->error);
  else if (to != NULL)
    to->report(to->self, diag);
}

/* Variables of a generation, into the session. */
typedef struct taking {
  weir_loop *loop;
  const weir_diag_sink *sink;
  bool carry;
} taking;

static weir_status take(void *self, const weir_checkpoint *c, weir_error *err) {
  const taking *t = self;
  return weir_checkpoint_to_owners(c, t->loop->run_graph, t->loop->session,
                                   t->loop->checkpoints.path, t->carry, t->sink,
                                   err);
}

/* The newest generation that is sound; its variables are in the session then.
 * Where they live elsewhere, one whose tensors are damaged is known only while
 * they are loaded, and so the choice and the loading are one. */
static weir_status take_newest(taking *t, weir_checkpoint **out_c,
                               weir_error *err) {
  const weir_loop *loop = t->loop;
  const weir_run_place *in = &loop->checkpoints;
  weir_checkpoint_taker taker = {t, take};
  if (weir_exec_session_has_owners(loop->session) &&
      weir_checkpoint_can_take(loop->env))
    return weir_checkpoint_take_newest(loop->env, in->root, in->path, t->sink,
                                       &taker, out_c, err);
  WEIR_TRY(weir_checkpoint_open_newest(loop->env, in->root, in->path, t->sink,
                                       out_c, err));
  weir_status s = weir_checkpoint_to_session(
      *out_c, loop->run_graph, loop->session, in->path, t->carry, err);
  if (s == WEIR_OK) return WEIR_OK;
  weir_checkpoint_release(*out_c);
  *out_c = NULL;
  return s;
}

/* --resume none: whether there is a generation. */
static weir_status look_for_one(taking *t, weir_error *err) {
  const weir_run_place *in = &t->loop->checkpoints;
  weir_checkpoint *c = NULL;
  WEIR_TRY(weir_checkpoint_open_newest(t->loop->env, in->root, in->path,
                                       t->sink, &c, err));
  weir_checkpoint_release(c);
  weir_status s = weir_fail(err, WEIR_W5025, NULL,
                            "%s holds checkpoints already", in->path);
  weir_hint(err,
            "--resume auto goes on from the newest; for a new run name "
            "another folder, or remove them");
  return s;
}

weir_status weir_loop_restore(weir_loop *loop, weir_error *err) {
  weir_checkpoint *c = NULL;
  weir_error mine = WEIR_ERROR_INIT;
  weir_error *e = err != NULL ? err : &mine;
  counted_sink counted = {.loop = loop};
  weir_diag_sink sink = {&counted, see_warning};
  taking t = {loop, &sink, true};
  if (loop->store == NULL) return begin(loop, err);
  weir_status s = loop->options.resume == WEIR_TRAIN_RESUME_NONE
                      ? look_for_one(&t, e)
                      : take_newest(&t, &c, e);
  /* An empty folder is a start; one in which nothing is sound is not. */
  if (s != WEIR_OK && strcmp(e->id, "W4040") == 0 && counted.count == 0) {
    weir_error none = WEIR_ERROR_INIT;
    weir_error_copy(err, &none);
    return begin(loop, err);
  }
  if (s == WEIR_OK) s = go_on(loop, c, err);
  weir_checkpoint_release(c);
  return s;
}

weir_status weir_loop_restore_only(weir_loop *loop, weir_error *err) {
  const weir_loop_options *o = &loop->options;
  weir_checkpoint *c = NULL;
  size_t count = 0;
  weir_weights_file file = {o->init, o->map, o->map_count};
  if (o->init != NULL)
    return weir_weights_to_session(loop->env, &file, loop->run_graph,
                                   loop->session, &count, err);
  counted_sink counted = {.loop = loop};
  weir_diag_sink sink = {&counted, see_warning};
  taking t = {loop, &sink, false};
  /* Of a share that others train: its values are what counts. */
  if (weir_exec_session_has_found(loop->session)) return WEIR_OK;
  if (loop->checkpoints.path == NULL)
    return weir_fail(
        err, WEIR_W4040, NULL,
        "no folder of checkpoints and no file of weights is given");
  WEIR_TRY(take_newest(&t, &c, err));
  loop->step = weir_checkpoint_about(c)->step;
  weir_checkpoint_release(c);
  return WEIR_OK;
}
