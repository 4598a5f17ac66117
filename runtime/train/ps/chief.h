/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_TRAIN_PS_CHIEF_H_
#define WEIR_TRAIN_PS_CHIEF_H_

#include "runtime/dist/psnet/psnet.h"
#include "runtime/train/loop/loop.h"

/* The chief of a job between graphs over processes: a training loop whose
 * updates are made elsewhere.
 *
 * The coordinator (runtime/dist/ps) deals runs up to a step at which the loop
 * has work: a line of the log, a summary, an evaluation, a checkpoint, the end
 * of an epoch. When all runs below it count, the chief fetches the values of
 * the servers into the loop's own session, the loop does its work on that one
 * version as in one process, and the next steps are dealt.
 *
 * When servers go back to a generation, steps are reached again; their work is
 * done once. */

/* Lent for the create of the loop; |transports|, |tls| and |log| for its life.
 */
typedef struct weir_chief_options {
  const weir_transports *transports;
  const weir_net_tls *tls; /* NULL: none */
  bool insecure;
  const char *address; /* where the chief takes connections */
  const char *const *servers;
  weir_ps_book *book; /* in place of addresses; as in psnet.h; NULL: none */
  uint32_t server_count, worker_count;
  uint32_t slots;  /* workers that may join; 0: |worker_count| */
  uint32_t listed; /* slots below it are those of processes that are to come */
  uint32_t own_worker; /* that computes in this process; UINT32_MAX: none */
  bool folder; /* servers have a folder of generations, which outlives them */
  int64_t heartbeat_ns; /* 0: 1 s */
  int64_t rejoin_ns;    /* a lost worker may come back; 0: 10 s */
  int64_t away_ns;      /* servers are waited for; 0: WEIR_PS_AWAY_NS */
  uint64_t save_every;  /* steps between generations; 0: 100 */
  void (*log)(void *self, const char *text); /* some thread; may be NULL */
  void *log_self;
} weir_chief_options;

/* Before the loop makes its graph: the job of loop->spec, whose `accumulate`
 * becomes the number of runs of an update. Errors: those of weir_ps_job_create,
 * W6001, W6003. */
weir_status weir_chief_create(weir_loop *loop, weir_error *err);
/* Takes connections and dials the servers, once the loop has a session and its
 * data. Errors: W7002, W5025 (a checkpoint within a step), those of the
 * transports, W1122, W6001, W6003. */
weir_status weir_chief_start(weir_loop *loop, weir_error *err);
/* NULL-safe. */
void weir_chief_release(weir_loop *loop);

/* Waits for the next step at which the loop has work, and does it. Errors:
 * W5020 (a run has failed), W7100 (another chief goes on), W7103 (the servers
 * are waited for in vain), W7023, those of weir_loop_after. */
weir_status weir_chief_turn(weir_loop *loop, weir_error *err);

/* After the last checkpoint: tells the others that the job is over, and waits
 * until they have heard. Where it is not over, does nothing. Errors: W7102 (the
 * last generation is not on disk). */
weir_status weir_chief_end(weir_loop *loop, weir_error *err);
/* The loop has ended with |why|: so does the job, for which the chief is
 * needed. Tells the others, as weir_chief_end. */
void weir_chief_fail(weir_loop *loop, const weir_error *why);

#endif
