/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/train/loop/follow.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

#include "runtime/io/checkpoint/checkpoint_follow.h"
#include "runtime/io/checkpoint/checkpoint_load.h"
#include "runtime/train/loop/loop_eval.h"
#include "runtime/train/loop/loop_internal.h"

/* A look at the folder, an evaluation if there is something new, else a pause:
 * there is no sign from the process that trains but what it saves, which any
 * disk can show, also one of another machine. */

enum {
  LOOK_MS = 250, /* between looks */
  PAUSE_MS = 50  /* until a stop is seen */
};

typedef struct follower {
  weir_loop *loop;
  weir_loop_eval_on *on;
  weir_checkpoint_follower *files;
  weir_train_followed *out;
  bool told; /* that it waits */
  /* The generation evaluated last. */
  bool has_last;
  weir_train_ended last;
  char run_id[64];
} follower;

static void see_warning(void *self, const weir_diag *diag) {
  const weir_loop *loop = self;
  weir_loop_warn(loop, &diag->error);
}

static void tell_waiting(follower *f, const char *why) {
  const weir_train_callbacks *calls = &f->loop->calls;
  if (f->told) return;
  f->told = true;
  if (calls->waiting != NULL) calls->waiting(calls->self, f->out->step, why);
}

/* ---- Whether the training is over */

/* Whether the loop's own numbers of steps or epochs, if it has some, are not
 * reached by |info|. */
static bool asks_for_more(const weir_loop *loop,
                          const weir_checkpoint_info *info) {
  const weir_train_spec *spec = loop->spec;
  bool steps = spec->steps > 0, epochs = spec->epochs > 0;
  if (steps && info->step >= spec->steps) return false;
  if (epochs && info->epoch >= (double)spec->epochs) return false;
  return steps || epochs;
}

/* The reason why the training has ended with the generation that was evaluated;
 * GOING: it has not. |first|: it was there when the evaluator came. */
static weir_train_end verdict(follower *f, const weir_checkpoint_info *info,
                              const weir_train_ended *ended, bool first) {
  const weir_loop *loop = f->loop;
  bool more = asks_for_more(loop, info);
  bool counted =
      ended->end == WEIR_TRAIN_END_STEPS || ended->end == WEIR_TRAIN_END_EPOCHS;
  f->told = false;
  if (ended->saves == 0) { /* of a version that does not tell */
    bool limits = loop->spec->steps > 0 || loop->spec->epochs > 0;
    bool by_steps = loop->spec->steps > 0 && info->step >= loop->spec->steps;
    if (more || !limits) return WEIR_TRAIN_END_GOING;
    return by_steps ? WEIR_TRAIN_END_STEPS : WEIR_TRAIN_END_EPOCHS;
  }
  if (ended->end == WEIR_TRAIN_END_STOPPED)
    tell_waiting(f, "the training was stopped here, and may go on");
  if (!weir_train_is_over(ended->end)) return WEIR_TRAIN_END_GOING;
  bool limits = loop->spec->steps > 0 || loop->spec->epochs > 0;
  bool earlier = info->step <= loop->options.follow_after && (more || !limits);
  if (!earlier && (!first || !counted || !more)) return ended->end;
  tell_waiting(f, earlier
                      ? "a training ended here before, and is taken up again"
                      : "a training ended here before, and train: asks for "
                        "more");
  return WEIR_TRAIN_END_GOING;
}

/* ---- One generation */

/* Those between the last one and this one; |first|: those before it were there
 * before the evaluator. */
static uint64_t count_skipped(const follower *f,
                              const weir_checkpoint_info *info,
                              const weir_train_ended *now, bool first) {
  if (first || now->saves == 0) return 0;
  if (!f->has_last) return now->saves - 1;
  bool known = f->last.saves > 0 && weir_sv_is(info->run_id, f->run_id) &&
               now->saves > f->last.saves;
  return known ? now->saves - f->last.saves - 1 : 0;
}

static void tell_skipped(const follower *f, uint64_t skipped, uint64_t step) {
  const weir_train_callbacks *calls = &f->loop->calls;
  f->out->skipped += skipped;
  if (skipped > 0 && calls->skipped != NULL)
    calls->skipped(calls->self, skipped, step);
}

static void keep_last(follower *f, const weir_checkpoint_info *info,
                      const weir_train_ended *now) {
  size_t n = info->run_id.size;
  if (n >= sizeof f->run_id) n = sizeof f->run_id - 1;
  memcpy(f->run_id, info->run_id.data, n);
  f->run_id[n] = '\0';
  f->last = *now;
  f->has_last = true;
}

/* Summaries are for somebody who looks meanwhile. */
static void flush(weir_loop *loop) {
  weir_error warning = WEIR_ERROR_INIT;
  if (loop->summary == NULL ||
      weir_summary_flush(loop->summary, &warning) == WEIR_OK)
    return;
  weir_loop_warn(loop, &warning);
  weir_summary_release(loop->summary);
  loop->summary = NULL;
}

static weir_status evaluate(follower *f, const weir_checkpoint *c,
                            weir_error *err) {
  weir_loop *loop = f->loop;
  const weir_checkpoint_info *info = weir_checkpoint_about(c);
  weir_train_ended now;
  weir_train_report report;
  bool first = !f->has_last && !f->told;
  WEIR_TRY(weir_train_ended_read(info->extra, &now, err));
  WEIR_TRY(weir_checkpoint_to_session(c, loop->run_graph, loop->session,
                                      loop->checkpoints.path, false, err));
  loop->step = info->step;
  tell_skipped(f, count_skipped(f, info, &now, first), info->step);
  WEIR_TRY(weir_loop_eval_on_run(loop, f->on, &report, err));
  flush(loop);
  f->out->step = info->step;
  f->out->evaluations++;
  f->out->end = verdict(f, info, &now, first);
  keep_last(f, info, &now);
  return WEIR_OK;
}

/* ---- All of them */

static weir_status look(follower *f, bool *out_new, weir_error *err) {
  weir_checkpoint *c = NULL;
  WEIR_TRY(weir_checkpoint_follow(f->files, &c, err));
  *out_new = c != NULL;
  weir_status s = c != NULL ? evaluate(f, c, err) : WEIR_OK;
  weir_checkpoint_release(c);
  if (s != WEIR_OK) return s;
  /* The last one is damaged: it is the last all the same. */
  weir_train_ended lost;
  WEIR_TRY(weir_train_ended_read(weir_checkpoint_follower_lost(f->files), &lost,
                                 err));
  if (weir_train_is_over(lost.end)) f->out->end = lost.end;
  return WEIR_OK;
}

/* Nobody wakes it: a stop may come from a signal handler, which cannot, so the
 * pause is in pieces. */
static void pause_a_while(const weir_loop *loop) {
  pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t never;
  pthread_condattr_t attr;
  pthread_condattr_init(&attr);
  pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
  pthread_cond_init(&never, &attr);
  pthread_condattr_destroy(&attr);
  pthread_mutex_lock(&lock);
  for (int ms = 0; ms < LOOK_MS && !atomic_load(&loop->stop); ms += PAUSE_MS) {
    int64_t at = weir_loop_clock(loop) + PAUSE_MS * INT64_C(1000000);
    struct timespec t = {(time_t)(at / 1000000000), at % 1000000000};
    while (pthread_cond_timedwait(&never, &lock, &t) == 0) {
    }
  }
  pthread_mutex_unlock(&lock);
  pthread_cond_destroy(&never);
}

static weir_status run(follower *f, weir_error *err) {
  weir_loop *loop = f->loop;
  weir_error mine = WEIR_ERROR_INIT;
  while (f->out->end == WEIR_TRAIN_END_GOING) {
    bool any = false;
    weir_status s = WEIR_CANCELLED;
    if (!atomic_load(&loop->stop)) s = look(f, &any, &mine);
    if (s == WEIR_CANCELLED && atomic_load(&loop->stop)) {
      f->out->end = WEIR_TRAIN_END_STOPPED;
    } else if (s != WEIR_OK) {
      weir_error_copy(err, &mine);
      return s;
    } else if (!any) {
      if (!f->has_last) tell_waiting(f, "there is no checkpoint yet");
      pause_a_while(loop);
    }
  }
  return WEIR_OK;
}

/* Finds what to evaluate on, then follows. */
static weir_status open_and_run(follower *f, const char *data,
                                weir_error *err) {
  weir_loop *loop = f->loop;
  weir_diag_sink sink = {loop, see_warning};
  const weir_run_place *in = &loop->checkpoints;
  if (!loop->options.follow)
    return weir_fail(err, WEIR_W0004, NULL,
                     "the trainer was not made to follow");
  if (data != NULL) WEIR_TRY(weir_loop_find_eval(loop, data, &f->on, err));
  if (f->on->data == NULL)
    return weir_fail(err, WEIR_W5023, NULL,
                     "train: has no eval: {data: ...} to evaluate on");
  WEIR_TRY(weir_checkpoint_follower_create(loop->env, in->root, in->path, &sink,
                                           &f->files, err));
  weir_status s = run(f, err);
  weir_checkpoint_follower_release(f->files);
  return s;
}

weir_status weir_loop_follow(weir_loop *loop, const char *data,
                             weir_train_followed *out, weir_error *err) {
  follower f = {.loop = loop, .on = &loop->evals[0], .out = out};
  *out = (weir_train_followed){.struct_size = sizeof *out,
                               .end = WEIR_TRAIN_END_GOING};
  weir_status s = open_and_run(&f, data, err);
  if (s != WEIR_OK) out->end = WEIR_TRAIN_END_FAILED;
  return s;
}
