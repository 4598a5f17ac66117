/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/exec/run/run_tasks.h"

#include <assert.h>
#include <stddef.h>

#include "runtime/exec/gpu/gpu_frame.h"
#include "runtime/exec/gpu/gpu_turn.h"
#include "runtime/exec/pool.h"
#include "runtime/exec/pool_grow.h"
#include "runtime/exec/program/instr_comm.h"
#include "runtime/exec/program/program_internal.h"
#include "runtime/exec/run/frame.h"
#include "runtime/exec/run/run.h"
#include "runtime/exec/run/stream.h"

/* Tasks of a run, in the order that the program asks for.
 *
 * Dataflow by counters: |waits| of a task is the number of its predecessors
 * that have not ended; the one that brings it to 0 makes it ready, so a task
 * starts once and after all of them. The subtractions are sequentially
 * consistent: they also publish the values that a task has written. |remaining|
 * of the head counts the tasks of all parts that have not ended, and other
 * threads that need the frame for a moment. Cost of a task: one subtraction for
 * each successor, and a push.
 *
 * Nobody has to wait for a run: the thread that brings |remaining| to 0 either
 * wakes the caller that does, or calls the function that it left. */

static void release(weir_frame *head, weir_worker *worker);

/* ---- Stopping while no instruction runs */

/* Another reference, unless the run has ended. */
static bool hold(weir_frame *head) {
  int remaining = atomic_load(&head->remaining);
  while (remaining > 0)
    if (atomic_compare_exchange_weak(&head->remaining, &remaining,
                                     remaining + 1))
      return true;
  return false;
}

/* Calls that wait for a peer end with |why|, those to come too. */
static void drop_step(weir_frame *head, const weir_error *why) {
  if (head->channel != NULL)
    head->channel->vt->drop(head->channel, head->channel_runs, why);
  if (head->outer != NULL)
    head->outer->vt->drop(head->outer, head->options.channel_step, why);
}

void weir_frame_stop(weir_frame *head, const weir_error *why) {
  if (!hold(head)) return;
  int status = why->code == WEIR_DEADLINE_EXCEEDED ? WEIR_DEADLINE_EXCEEDED
                                                   : WEIR_CANCELLED;
  for (weir_frame *f = head; f != NULL; f = f->next_part) {
    int none = WEIR_OK;
    atomic_compare_exchange_strong(&f->stopped, &none, status);
  }
  drop_step(head, why);
  release(head, NULL);
}

static bool watch_hold(weir_watch *w) {
  return hold((weir_frame *)((char *)w - offsetof(weir_frame, looks)));
}

static void watch_look(weir_watch *w) {
  weir_frame *head = (weir_frame *)((char *)w - offsetof(weir_frame, looks));
  weir_status stopped = WEIR_OK;
  for (weir_frame *f = head; f != NULL; f = f->next_part)
    stopped = weir_frame_check_stop(f);
  if (stopped != WEIR_OK) {
    weir_error why = WEIR_ERROR_INIT;
    weir_frame_stop_error(stopped, &why);
    drop_step(head, &why);
  }
  release(head, NULL);
}

/* A run that may wait for a peer cannot look at its deadline meanwhile. */
static void watch(weir_frame *head) {
  if (!head->watch || !head->comm) return;
  head->looked_at = true;
  head->looks = (weir_watch){.hold = watch_hold, .look = watch_look};
  weir_pool_watch(head->pool, &head->looks);
}

static void unwatch(weir_frame *head) {
  if (!head->looked_at) return;
  head->looked_at = false;
  weir_pool_unwatch(head->pool, &head->looks);
}

/* ---- Tasks */

/* Whether an async instruction can be started: nothing stopped or failed
 * before it. If not, |*why| is the reason. */
static bool can_start(weir_frame *f, uint32_t instr, weir_error *why) {
  const weir_instr_spec *s = &f->program->instrs[instr].spec;
  weir_status stopped = weir_frame_check_stop(f);
  if (stopped != WEIR_OK) {
    weir_frame_stop_error(stopped, why);
    return false;
  }
  for (uint32_t k = 0; k < s->in_count; k++)
    if (s->in[k] != WEIR_NO_INDEX &&
        weir_frame_value_status(f, s->in[k], why) != WEIR_OK)
      return false;
  return true;
}

/* Whether it went out; else the other end has got the reason. */
static bool start_async(weir_frame_task *t) {
  weir_frame *f = t->frame;
  weir_error why = WEIR_ERROR_INIT;
  bool ok = can_start(f, f->program->tasks[t->index].first, &why);
  t->refused = !ok;
  if (ok)
    weir_comm_start(t);
  else
    weir_comm_refuse(t, &why);
  return ok;
}

/* ---- The end */

/* Nothing touches the frame any more but its caller, who is told. */
static void finish(weir_frame *head) {
  weir_error err = WEIR_ERROR_INIT;
  weir_frame_end end = head->end;
  unwatch(head);
  weir_status s = weir_frame_result(head, &err);
  end.done(end.self, s, s == WEIR_OK ? NULL : &err);
}

static weir_task *run_ending(weir_task *task, weir_worker *worker) {
  (void)worker;
  finish((weir_frame *)((char *)task - offsetof(weir_frame, ending)));
  return NULL;
}

/* Counts down |remaining|: after the last one the frame may be gone. The last
 * of a started run tells its caller, on a thread of the pool: a thread that
 * came through a channel's callback is not ours to keep. */
static void release(weir_frame *head, weir_worker *worker) {
  weir_pool *pool = head->pool;
  bool started = head->end.done != NULL;
  assert(atomic_load(&head->remaining) > 0);
  if (atomic_fetch_sub(&head->remaining, 1) != 1) return;
  if (!started)
    weir_pool_notify(pool);
  else if (worker != NULL)
    finish(head);
  else
    weir_pool_submit(pool, &head->ending);
}

static weir_task *run_task(weir_task *task, weir_worker *worker);

/* Which of the tasks that wait for a task: a GPU's part tells those that queue
 * more work when its own is queued, and sends and receives when it has ended.
 */
typedef enum task_followers {
  ALL_FOLLOWERS,
  STREAM_FOLLOWERS,
  ASYNC_FOLLOWERS
} task_followers;

/* Counts a finished task off; gives a task that became ready, for this thread
 * to go on with: its data is in this core's cache, and no other thread has to
 * be woken. Sends and receives start at once, since they need no thread; one
 * that was refused is run like others, to poison its value. A callback's thread
 * (no worker) hands all on to the pool. */
static weir_task *tell(weir_frame_task *t, weir_worker *worker,
                       task_followers which) {
  weir_frame *f = t->frame;
  const weir_ptask *task = &f->program->tasks[t->index];
  weir_task *go_on = NULL;
  for (uint32_t i = 0; i < task->next_count; i++) {
    weir_frame_task *next = &f->tasks[task->next[i]];
    bool async = f->program->tasks[next->index].async;
    if (which != ALL_FOLLOWERS && async != (which == ASYNC_FOLLOWERS)) continue;
    assert(atomic_load(&next->waits) > 0 && task->next[i] != t->index);
    if (atomic_fetch_sub(&next->waits, 1) != 1) continue;
    if (worker == NULL)
      weir_pool_submit(f->pool, &next->task);
    else if (async && start_async(next))
      continue;
    else if (go_on == NULL)
      go_on = &next->task;
    else
      weir_worker_push(worker, &next->task);
  }
  return go_on;
}

static weir_task *end_task(weir_frame_task *t, weir_worker *worker) {
  weir_frame *head = t->frame->head;
  weir_task *go_on = tell(t, worker, ALL_FOLLOWERS);
  release(head, worker);
  return go_on;
}

void weir_frame_task_end(weir_frame_task *t) {
  (void)end_task(t, NULL);
}

void weir_gpu_task_ended(weir_frame_task *t) {
  weir_frame *head = t->frame->head;
  (void)tell(t, NULL, ASYNC_FOLLOWERS);
  release(head, NULL);
}

/* Awaited first, so that it ends before those that it tells; the reference is
 * for it may end at once. */
void weir_gpu_task_queued(weir_frame_task *t) {
  weir_frame *head = t->frame->head;
  atomic_fetch_add(&head->remaining, 1);
  weir_gpu_frame_await(t);
  (void)tell(t, NULL, STREAM_FOLLOWERS);
  release(head, NULL);
}

/* After the task's work was queued. From the last line but one on the frame may
 * be gone, but for what it hands back. */
static weir_task *end_gpu_task(weir_frame_task *t, weir_worker *worker) {
  bool awaited = weir_gpu_frame_end(t);
  weir_task *go_on = tell(t, worker, STREAM_FOLLOWERS);
  if (awaited)
    weir_gpu_frame_await(t);
  else
    weir_gpu_task_ended(t);
  return go_on;
}

static weir_task *run_task(weir_task *task, weir_worker *worker) {
  weir_frame_task *t = (weir_frame_task *)task;
  weir_frame *f = t->frame;
  const weir_ptask *plan = &f->program->tasks[t->index];
  bool shared = f->stream != NULL && !plan->async;
  if (f->gpu != NULL && !plan->async && weir_gpu_frame_is_over(t)) {
    weir_gpu_frame_finish(t, worker);
    weir_gpu_task_ended(t);
    return NULL;
  }
  if (plan->async && !t->refused && start_async(t)) return NULL;
  if (shared && !weir_stream_enter(f->stream, t)) return NULL;
  bool queues = f->gpu != NULL && !plan->async;
  if (queues && !weir_gpu_turn_enter(t)) return NULL;
  if (queues)
    weir_gpu_frame_queue(t, worker);
  else
    weir_frame_run_range(f, worker, plan->first, plan->last);
  if (shared) {
    t->has_stream = false;
    weir_frame_task *next = weir_stream_leave(f->stream);
    if (next != NULL) weir_worker_push(worker, &next->task);
  }
  return queues ? end_gpu_task(t, worker) : end_task(t, worker);
}

/* Sets all counters: a task that is handed out may end at once, and reach the
 * other parts through a channel. |more| references beside the tasks'. */
static void count_tasks(weir_frame *head, int more) {
  int total = more;
  for (weir_frame *f = head; f != NULL; f = f->next_part) {
    const weir_program *p = f->program;
    total += (int)p->task_count;
    for (uint32_t t = 0; t < p->task_count; t++) {
      f->tasks[t].task.run = run_task;
      f->tasks[t].refused = false;
      atomic_store_explicit(&f->tasks[t].waits, p->tasks[t].waits,
                            memory_order_relaxed);
    }
  }
  atomic_store_explicit(&head->remaining, total, memory_order_release);
}

/* In reverse: the owner takes the newest first. Without a worker they go to the
 * pool's list, which is taken so too. */
static void hand_out(weir_frame *head, weir_worker *worker) {
  for (weir_frame *f = head; f != NULL; f = f->next_part)
    for (uint32_t t = f->program->task_count; t-- > 0;) {
      if (f->program->tasks[t].waits != 0) continue;
      if (worker != NULL)
        weir_worker_push(worker, &f->tasks[t].task);
      else
        weir_pool_submit(f->pool, &f->tasks[t].task);
    }
}

void weir_frame_run_tasks(weir_frame *head, weir_worker *worker) {
  head->end.done = NULL;
  count_tasks(head, 0);
  watch(head);
  hand_out(head, worker);
  weir_worker_finish(worker, &head->remaining);
  unwatch(head);
}

/* A cheap program ends in the caller's thread: handing it over costs more. One
 * with sends or receives might wait there, and a loop on data turn for ever:
 * the caller may be a task's control thread, whose silence means death. */
static void run_at_once(weir_frame *head) {
  const weir_openmp *openmp = weir_pool_openmp(head->pool);
  int omp = weir_openmp_single(openmp);
  weir_frame_run_range(head, NULL, 0, head->program->instr_count);
  weir_openmp_restore(openmp, omp);
  finish(head);
}

/* The same for a device, if it is free; else whoever leaves it goes on with
 * this, as with any task. */
static void stream_at_once(weir_frame *head) {
  weir_frame_task *t = &head->tasks[0];
  const weir_openmp *openmp = weir_pool_openmp(head->pool);
  head->ending.run = run_ending;
  count_tasks(head, 0);
  if (!weir_stream_enter(head->stream, t)) return;
  int omp = weir_openmp_single(openmp);
  weir_frame_run_range(head, NULL, 0, head->program->instr_count);
  weir_openmp_restore(openmp, omp);
  t->has_stream = false;
  weir_frame_task *next = weir_stream_leave(head->stream);
  if (next != NULL) weir_pool_submit(head->pool, &next->task);
  if (atomic_fetch_sub(&head->remaining, 1) == 1) finish(head);
}

weir_status weir_frame_start(weir_frame *head, weir_pool *pool,
                             const weir_run_options *options,
                             const weir_frame_end *end, weir_error *err) {
  const weir_program *p = head->program;
  assert(pool != NULL && end->done != NULL);
  bool at_once = p->cheap && !p->comm && !p->any_time &&
                 head->next_part == NULL && head->gpu == NULL;
  if (!at_once) WEIR_TRY(weir_pool_serve(pool, err));
  WEIR_TRY(weir_frame_begin(head, pool, options, err));
  head->end = *end;
  if (at_once) {
    run_at_once(head);
    return WEIR_OK;
  }
  if (p->brief && p->task_count == 1 && head->next_part == NULL &&
      head->stream != NULL && head->gpu == NULL) {
    stream_at_once(head);
    return WEIR_OK;
  }
  head->ending.run = run_ending;
  /* One reference is this function's: the frame stays until all is out. */
  count_tasks(head, 1);
  watch(head);
  hand_out(head, NULL);
  if (atomic_fetch_sub(&head->remaining, 1) == 1) finish(head);
  return WEIR_OK;
}
