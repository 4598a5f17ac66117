/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_TRAIN_LOOP_H_
#define WEIR_TRAIN_LOOP_H_

#include "runtime/exec/session/session.h"
#include "runtime/graph/train/train.h"
#include "runtime/train/progress.h"

/* The training loop.
 *
 *   weir_loop_create(graph, options) -> loop    spec read, training graph made,
 *                                               data opened, newest checkpoint
 *                                               restored
 *   weir_loop_step(loop) ...                    one update, and the work due
 *                                               after it: evaluation,
 *                                               checkpoint, summaries
 *   weir_loop_finish(loop)                      last checkpoint, files closed
 *
 * weir_loop_run does the last two. Time comes from the env's clock only.
 *
 * The order within a step is fixed: update, summaries, evaluation, stop rules,
 * checkpoint. A checkpoint therefore holds the verdict of every
 * evaluation before it, and a run that goes on from it takes the same
 * decisions as one that was never interrupted. */

typedef struct weir_loop weir_loop;

typedef struct weir_loop_options {
  weir_session_options session;
  /* May change |session| for the graph that runs: the one to be trained, or
   * with |eval_only| the given one; both live as long as the loop. NULL: no. */
  weir_status (*open)(void *self, const weir_graph *run_graph,
                      weir_session_options *session, weir_error *err);
  void *open_self;
  /* Of a job between graphs (train.h, weir_train_shared): so many replicas, on
   * threads of this process. 0: one graph, whatever the section says. */
  uint32_t replicas;
  /* The chief of such a job over processes (runtime/train/ps); NULL: no. */
  const struct weir_chief_options *chief;
  uint64_t seed;          /* of shuffles that give none, and of the run */
  int64_t time_ns;        /* wall clock, since 1970, for show and file names */
  uint64_t steps, epochs; /* instead of the spec's, unless 0 */
  const char *data_root;  /* may be NULL */
  const char *checkpoint; /* folder, instead of the spec's; may be NULL */
  const char *events;     /* folder of summaries, likewise */
  const char *out;        /* the run folder: runtime/io/run_folder.h; or NULL */
  /* Only to evaluate: no training data, and the checkpoint, which must be
   * there, is read and not written. */
  bool eval_only;
  /* With |eval_only|: no checkpoint need be there yet; follow.h evaluates each
   * as it appears. */
  bool follow;
  uint64_t follow_after; /* what ended at that step or before goes on; 0 */
  /* Drivers that train use the same variables: those of the graph to be trained
   * are wanted, also with |eval_only|. */
  bool shared;
  weir_train_resume resume;
  const char *init;       /* a safetensors file with first values; NULL: none */
  const char *const *map; /* "old=new" */
  size_t map_count;
  const char *(*getenv)(void *self, const char *name);
  void *getenv_self;
  const weir_diag_sink *sink;        /* findings in the sections; may be NULL */
  const weir_train_callbacks *calls; /* copied; may be NULL */
  /* For the host's log: |calls.saved| is the caller's own. May be NULL. */
  void (*on_saved)(void *self, uint64_t step);
  void *on_saved_self;
} weir_loop_options;

/* One update, or nothing when the loop has ended; |*out_end| says which. A
 * failed step changed nothing. Errors: W5020, W5021, the run's own. */
weir_status weir_loop_step(weir_loop *loop, weir_train_end *out_end,
                           weir_error *err);
/* Steps until the end, then finish. */
weir_status weir_loop_run(weir_loop *loop, weir_train_end *out_end,
                          weir_error *err);
/* The step under way is finished, then the loop ends. From any thread, and
 * from signal handlers. */
void weir_loop_stop(weir_loop *loop);

/* Looks at runs of batches: |begin| gives a trace for the next one, or NULL;
 * |end| gets that run's time once it has succeeded. */
typedef struct weir_loop_profiler {
  void *self;
  struct weir_trace *(*begin)(void *self);
  weir_status (*end)(void *self, int64_t took_ns, weir_error *err);
} weir_loop_profiler;

/* From the next run on; copied. Errors: W0001 (the loop's runs are made by
 * replicas or by other processes). */
weir_status weir_loop_profile(weir_loop *loop,
                              const weir_loop_profiler *profiler,
                              weir_error *err);

/* Where training stands. */
weir_train_progress weir_loop_now(const weir_loop *loop);
/* The graph that is trained, and its session; lent. */
const weir_graph *weir_loop_graph(const weir_loop *loop);
weir_exec_session *weir_loop_session(weir_loop *loop);

#endif
