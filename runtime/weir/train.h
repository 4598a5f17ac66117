/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_WEIR_TRAIN_H_
#define WEIR_WEIR_TRAIN_H_

#include "runtime/train/progress.h"
#include "runtime/weir/session.h"
#include "runtime/weir/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Training, by the graph's `train:` section.
 *
 *   weir_train_callbacks calls = {.struct_size = sizeof calls};
 *   weir_train_opts opts = {.struct_size = sizeof opts};
 *   weir_train_end end;
 *   calls.step = on_step;
 *   opts.callbacks = &calls;
 *   s = weir_trainer_create(runtime, graph, &opts, &trainer, &err);
 *   if (s == WEIR_OK) s = weir_trainer_run(trainer, &end, &err);
 *   weir_trainer_release(trainer);
 *
 * A trainer is used by one thread; weir_trainer_stop may be called from any,
 * and from signal handlers. */

typedef struct weir_train_opts {
  uint32_t struct_size;
  weir_train_resume resume;
  uint64_t seed;          /* of shuffles that give none; of random ops */
  uint64_t steps, epochs; /* instead of the file's, unless both are 0 */
  const char *data_root;  /* data files lie beneath; NULL: as the file says */
  const char *checkpoint; /* folder of checkpoints; NULL: as the file says */
  const char *events;     /* folder of summaries; NULL: as the file says */
  const char *init;       /* a safetensors file with first values, or NULL */
  const char *const *map; /* "old=new": names in |init| */
  size_t map_count;
  int64_t time_ns; /* the time now, since 1970: for show and names of files */
  bool eval_only;  /* no training data; |checkpoint| or |init| is read */
  const weir_session_opts *session;      /* may be NULL; its seed is not read */
  const weir_train_callbacks *callbacks; /* copied; may be NULL */
  const char *(*getenv)(void *self, const char *name); /* as for loading */
  void *getenv_self;
  void (*on_diag)(void *self, const weir_diag *diag); /* as for loading */
  void *on_diag_self;
  /* The run folder: files that the graph names are written beneath it, never
   * over others. NULL: |checkpoint|, else the folder of checkpoints that the
   * graph names, beneath the working directory (SECURITY.md). */
  const char *out;
  /* The chief's part of a job between graphs (below), which the trainer then
   * leads; lent until it is released. NULL: this process trains alone, or
   * drives |session|'s tasks. */
  weir_train_part *part;
  /* With eval_only: an evaluator of a training that another process runs. No
   * checkpoint need be there yet; weir_trainer_follow evaluates each. */
  bool follow;
  /* With follow: a training that ended at this step or before is taken up
   * again, if steps and epochs let it. 0: one that has ended is over. */
  uint64_t follow_after;
} weir_train_opts;

/* Makes the training graph, opens data and checkpoints, goes on from the newest
 * one. |opts| may be NULL. The trainer retains graph and runtime.
 * Errors: W0004, W1130-W1139, W2018, W4001-W4048, W5021-W5025, W6001-W6005. */
WEIR_API weir_status weir_trainer_create(weir_runtime *runtime,
                                         const weir_graph *graph,
                                         const weir_train_opts *opts,
                                         weir_trainer **out_trainer,
                                         weir_error *err);
/* Waits for a checkpoint that is being written. */
WEIR_API void weir_trainer_release(weir_trainer *trainer);
/* One update and the work due after it (evaluation, checkpoint, summaries), or
 * nothing once training has ended; |out_end| says why. A failed step changed
 * nothing. Errors: W5020 (the loss is NaN), W5021, the run's own. */
WEIR_API weir_status weir_trainer_step(weir_trainer *trainer,
                                       weir_train_end *out_end,
                                       weir_error *err);
/* Writes the last checkpoint and waits until it is on disk. */
WEIR_API weir_status weir_trainer_finish(weir_trainer *trainer,
                                         weir_error *err);
/* Steps until the end, then finish. */
WEIR_API weir_status weir_trainer_run(weir_trainer *trainer,
                                      weir_train_end *out_end, weir_error *err);
/* Asks the trainer to end after the step under way. NULL-safe. */
WEIR_API void weir_trainer_stop(weir_trainer *trainer);
/* Evaluates on section |data| of the file (NULL: the one that `eval:` names).
 * Fills |out_report|, whose struct_size is set; its texts and lists are lent
 * until the next call. */
WEIR_API weir_status weir_trainer_eval(weir_trainer *trainer, const char *data,
                                       weir_train_report *out_report,
                                       weir_error *err);
/* Evaluates each checkpoint as another process saves it, until that one's
 * training is over, or weir_trainer_stop; blocks. Of a trainer made with
 * follow. It goes on with the newest where it falls behind, and takes the next
 * older one for one that is damaged. A training that was stopped, or died, is
 * waited for: it may be taken up again. Evaluations come by callbacks. Fills
 * |out_followed| (may be NULL), whose struct_size is set, also after a failure.
 * Errors: W0004, W4002, W4044, W5022, W5023, the run's own. */
WEIR_API weir_status weir_trainer_follow(weir_trainer *trainer,
                                         const char *data,
                                         weir_train_followed *out_followed,
                                         weir_error *err);
/* Writes a checkpoint now; with |wait| it is on disk after. */
WEIR_API weir_status weir_trainer_save(weir_trainer *trainer, bool wait,
                                       weir_error *err);
/* Fills |out_progress|, whose struct_size is set. */
WEIR_API weir_status weir_trainer_progress(const weir_trainer *trainer,
                                           weir_train_progress *out_progress,
                                           weir_error *err);
/* How many variables and slots there are; the i-th, its texts lent by the
 * trainer. Errors: W0004 (there are not so many), W6001. */
WEIR_API size_t weir_trainer_variable_count(const weir_trainer *trainer);
WEIR_API weir_status weir_trainer_variable_at(weir_trainer *trainer, size_t i,
                                              weir_variable_desc *out_variable,
                                              weir_error *err);
/* The value of a variable or slot ("c1/w", "c1/w/adam_m", "train/global_step"),
 * as a copy; and sets it. */
WEIR_API weir_status weir_trainer_variable_get(weir_trainer *trainer,
                                               const char *name,
                                               weir_tensor **out_tensor,
                                               weir_error *err);
WEIR_API weir_status weir_trainer_variable_set(weir_trainer *trainer,
                                               const char *name,
                                               const weir_tensor *tensor,
                                               weir_error *err);

/* ---- Replicas between graphs, over processes
 *
 * A `train:` section with mode async, sync or bounded is trained by a process
 * of each task of a cluster, with the same graph: those of job ps hold the
 * variables and apply updates, those of job worker compute gradients on batches
 * of their own. One of them is the chief too, task 0 of job chief or else of
 * job worker: it deals the batches, evaluates, writes checkpoints, and ends the
 * job.
 *
 *   weir_train_part_opts o = {.struct_size = sizeof o, .cluster = "c.yaml",
 *                             .job = "worker", .index = 1};
 *   s = weir_train_part_create(runtime, graph, &o, &part, &err);
 *   if (s == WEIR_OK && weir_train_part_is_chief(part)) {
 *     opts.part = part;
 *     s = weir_trainer_create(runtime, graph, &opts, &trainer, &err);
 *     if (s == WEIR_OK) s = weir_trainer_run(trainer, &end, &err);
 *   } else if (s == WEIR_OK) {
 *     s = weir_train_part_run(part, &opts, &err);
 *   }
 *   weir_trainer_release(trainer);
 *   weir_train_part_release(part);
 *
 * A process that died is started again with the same options and takes its
 * part up: what was acknowledged counts once, all else is made again. */

typedef struct weir_train_part_opts {
  uint32_t struct_size;
  bool insecure;       /* as of weir_tasks_opts */
  const char *cluster; /* likewise */
  /* Of each task, in the cluster's order; NULL: the cluster's own. */
  const char *const *addresses;
  size_t address_count;
  const char *job; /* this process's task */
  uint32_t index;
  /* The folder of generations, which servers go back to when one of them died:
   * on a disk that all of them see, or one for each. NULL: there are none, and
   * the job ends with a server. */
  const char *generations;
  int64_t heartbeat_ns; /* a process is lost after five; 0: 1 s */
  const char *module_folder;
  const weir_tls_opts *tls; /* as of weir_tasks_opts */
  /* Gets a line of text without its end for each event, lent for the call, on
   * some thread. NULL: none is wanted. */
  void (*on_event)(void *self, const char *text);
  void *on_event_self;
  /* "HOST:PORT" of the job's scheduler, for clusters that nobody has a list of,
   * such as those of ps-lite. The scheduler is the process of |job| "chief": it
   * listens there, deals the work and computes none. |cluster| has no chief
   * then and no addresses: "ps=2,worker=4". The others register with the
   * scheduler and get an index and the addresses. NULL: there is none. */
  const char *scheduler;
  bool ranked; /* with a scheduler: |index| is wanted, and no other */
  /* Likewise: where this process takes connections; port 0: any. */
  const char *address;
  /* Tasks of job worker that there may be at most, those of the cluster and
   * others, which join while it runs: "worker:7". The same for all processes;
   * 0: those of the cluster. Not with a scheduler. */
  uint32_t max_workers;
  /* How long a process waits for others that it needs, at the start and when
   * one has died, before the job ends: 138. 0: ten minutes. */
  int64_t start_timeout_ns;
} weir_train_part_opts;

/* |graph| is retained, and the runtime. Nothing is dialled yet. Errors: W0002
 * (no such task, no address, no job ps), W0004, W3020, W7004, W7060, W6001. */
WEIR_API weir_status weir_train_part_create(weir_runtime *runtime,
                                            const weir_graph *graph,
                                            const weir_train_part_opts *opts,
                                            weir_train_part **out_part,
                                            weir_error *err);
/* Whether this process leads: then a trainer runs the part. */
WEIR_API bool weir_train_part_is_chief(const weir_train_part *part);
/* Runs any other part until the job is over, or weir_train_part_stop. Of |opts|
 * seed, steps, epochs, data_root and getenv count. With a scheduler it waits
 * for a place first. One that comes when the job has ended, as the generations
 * say, has nothing to do: WEIR_OK. Errors: W0004, W1122, W7090, W7082 and W7083
 * (of the scheduler), W7022 and W7023 (nobody is there), W7101 (the chief has
 * failed), those of the graph, of the data, of runs. */
WEIR_API weir_status weir_train_part_run(weir_train_part *part,
                                         const weir_train_opts *opts,
                                         weir_error *err);
/* A worker finishes its step and gives the rest of its work back; a server
 * ends. Any thread, not a signal handler; also before it runs. NULL-safe. */
WEIR_API void weir_train_part_stop(weir_train_part *part);
WEIR_API void weir_train_part_release(weir_train_part *part); /* NULL-safe */

#ifdef __cplusplus
}
#endif

#endif
