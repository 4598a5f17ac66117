/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_TRAIN_PROGRESS_H_
#define WEIR_TRAIN_PROGRESS_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/error.h"

/* The progress of a training. Structs that are handed to callbacks say in
 * struct_size how much of them this library fills. */

#ifdef __cplusplus
extern "C" {
#endif

/* Why a training ended. */
typedef enum weir_train_end {
  WEIR_TRAIN_END_GOING = 0,
  WEIR_TRAIN_END_STEPS = 1,   /* all steps are done */
  WEIR_TRAIN_END_EPOCHS = 2,  /* all epochs are done */
  WEIR_TRAIN_END_TARGET = 3,  /* the metric is reached */
  WEIR_TRAIN_END_TIME = 4,    /* the time is over */
  WEIR_TRAIN_END_EARLY = 5,   /* the metric no longer improves */
  WEIR_TRAIN_END_STOPPED = 6, /* it was asked to */
  WEIR_TRAIN_END_FAILED = 7
} weir_train_end;

/* "steps", "epochs", ...: static text, never NULL. */
WEIR_API const char *weir_train_end_name(weir_train_end end);

/* A metric. */
typedef struct weir_train_value {
  const char *name;
  double value;
} weir_train_value;

/* How far a training is. Texts and lists are lent for the call. */
typedef struct weir_train_progress {
  uint32_t struct_size;
  bool log;                 /* a line is due, by `log:` */
  uint64_t step, last_step; /* updates; |last_step| 0: not known */
  uint64_t epochs;          /* wanted; 0: no such end */
  double epoch;             /* finished, with the fraction when known */
  double loss, learning_rate;
  const weir_train_value *values; /* of this step, in training mode */
  size_t value_count;
  uint64_t examples;        /* of this run; of earlier ones not */
  int64_t run_ns, wait_ns;  /* since it began; of that, waiting for data */
  int64_t save_ns, eval_ns; /* of that, in checkpoints and evaluations */
} weir_train_progress;

/* An evaluation. */
typedef struct weir_train_report {
  uint32_t struct_size;
  const char *data; /* name of the section */
  uint64_t step, examples, batches;
  int64_t ns;
  const weir_train_value *values; /* averages over all examples */
  size_t value_count;
} weir_train_report;

/* What an evaluator that followed a training has done. */
typedef struct weir_train_followed {
  uint32_t struct_size;
  weir_train_end end;   /* the training's; STOPPED, FAILED: the evaluator's */
  uint64_t step;        /* of the checkpoint evaluated last */
  uint64_t evaluations; /* checkpoints evaluated */
  uint64_t skipped;     /* and passed over, for newer ones were there */
} weir_train_followed;

/* What one of several workers has done. */
typedef struct weir_train_worker {
  uint32_t struct_size;
  uint64_t runs;     /* batches of its own that count */
  uint64_t examples; /* that it told of: fewer where a link was cut */
  double share;      /* of all runs that have a worker, from 0 to 1 */
  double rate;       /* examples/s while it had work, waits for it included */
  double alone_rate; /* examples/s of computing, without any wait */
} weir_train_worker;

/* The account of workers between graphs, at the end of a training. */
typedef struct weir_train_account {
  uint32_t struct_size;
  const weir_train_worker *workers; /* lent, by index */
  size_t worker_count;
  /* |runs| = |earlier| + those of all workers, each once; sync: of all steps,
   * whoever computed them. */
  uint64_t runs, earlier; /* earlier: before a generation was read */
  uint64_t returned;      /* dealt again after a worker was lost, or left */
  uint64_t partial;       /* counted, though some servers lack them */
  uint64_t updates_least, updates_most; /* applied, by server */
  double rate;       /* examples/s of all, from the first run to the last */
  double alone_rate; /* that of one worker, of all their computing */
  double speedup;    /* rate / alone_rate; 0: not measured */
  /* Updates by the age of their values in updates: 0, 1, 2-3, 4-7, ... */
  const uint64_t *staleness;
  size_t staleness_count;
  uint64_t staleness_most;
  const uint64_t *applied; /* runs, by server; of the whole job, as |runs| */
  size_t server_count;
} weir_train_account;

/* Called on the thread that trains; each may be NULL. */
typedef struct weir_train_callbacks {
  uint32_t struct_size;
  void *self;
  void (*step)(void *self, const weir_train_progress *progress);
  void (*epoch)(void *self, const weir_train_progress *progress);
  void (*eval)(void *self, const weir_train_report *report);
  /* A checkpoint of |step| is written, or about to be by another thread; it
   * held up training for |ns|. */
  void (*saved)(void *self, uint64_t step, int64_t ns);
  /* Training goes on from a checkpoint of |step|. */
  void (*resumed)(void *self, uint64_t step);
  /* Something that training survives. */
  void (*warning)(void *self, const weir_error *warning);
  /* Of weir_trainer_follow. It fell behind: |count| checkpoints between the
   * last one and that of |step| are not evaluated. */
  void (*skipped)(void *self, uint64_t count, uint64_t step);
  /* It waits for the next checkpoint, for another reason than that training
   * goes on; |step|: of the last one, or 0. */
  void (*waiting)(void *self, uint64_t step, const char *why);
  /* At the end of a training between graphs, before finish. */
  void (*account)(void *self, const weir_train_account *account);
} weir_train_callbacks;

typedef enum weir_train_resume {
  WEIR_TRAIN_RESUME_AUTO = 0, /* from the newest sound checkpoint, if any */
  WEIR_TRAIN_RESUME_NONE = 1  /* a folder with checkpoints is refused */
} weir_train_resume;

#ifdef __cplusplus
}
#endif

#endif
