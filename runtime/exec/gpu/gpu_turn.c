/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/exec/gpu/gpu_turn.h"

#include <assert.h>
#include <stdio.h>

#include "runtime/base/fs/fs_own.h"
#include "runtime/exec/gpu/gpu_frame.h"
#include "runtime/exec/pool.h"
#include "runtime/exec/run/run.h"

/* Locks are tried, not waited for: a wait in the system cannot be ended when
 * its run is stopped. The one with the next place tries five times a
 * millisecond, the others once; a try is a few microseconds. A free GPU is had
 * by the first try, on the task's own thread. */

enum { kNextNapNs = 200000, kNapNs = 1000000, kNameBytes = 96 };

struct weir_gpu_turn {
  void *folder;                            /* of weir_fs_folders */
  char turn[kNameBytes], next[kNameBytes]; /* names in it */
  void *has_turn, *has_next;               /* the locks; NULL: not held */
  int64_t since_ns;                        /* of the turn */
  uint32_t inside;                         /* tasks that have it */
  weir_frame_task *first, **last;          /* that wait, in their order */
  weir_status failed;                      /* the last try, */
  weir_error why;                          /* and why */
};

/* ---- Files */

static const weir_fs_folders *folders_of(const weir_exec_gpu *g) {
  return g->env->fs != NULL ? g->env->fs->folders : NULL;
}

static void *self_of(const weir_exec_gpu *g) {
  return g->env->fs->self;
}

static weir_status fail_locks(const weir_exec_gpu *g, const weir_error *why,
                              weir_error *err) {
  weir_status s = weir_fail(err, WEIR_W6003, NULL,
                            "GPU %d is used in turns, but there is no lock for "
                            "it: %.300s",
                            (int)g->index, why->message);
  weir_hint(err,
            "--device-locks DIR names another folder for it, the same for "
            "all processes that use the GPU");
  return s;
}

/* false: another process holds it, or |t->failed|. */
static bool lock_file(weir_exec_gpu *g, const char *name, void **lock) {
  struct weir_gpu_turn *t = g->turn;
  weir_error why = WEIR_ERROR_INIT;
  if (*lock != NULL) return true;
  t->failed = folders_of(g)->lock(self_of(g), t->folder, name, lock, &why);
  if (t->failed != WEIR_OK) t->failed = fail_locks(g, &why, &t->why);
  return *lock != NULL;
}

static void unlock_file(weir_exec_gpu *g, void **lock) {
  folders_of(g)->unlock(self_of(g), *lock);
  *lock = NULL;
}

/* ---- Opening */

static weir_status open_folder(weir_exec_gpu *g, void **out_folder,
                               weir_error *err) {
  char own[WEIR_OWN_FOLDER_BYTES];
  const char *path = g->options->locks;
  if (folders_of(g) == NULL)
    return weir_fail(err, WEIR_W6003, NULL, "there are no folders");
  if (path == NULL) {
    WEIR_TRY(weir_own_folder(own, err));
    path = own;
  }
  return folders_of(g)->open(self_of(g), NULL, path, true, out_folder, err);
}

static void tell_open(const weir_exec_gpu *g) {
  char text[600], where[400] = "";
  const weir_fs_folders *f = folders_of(g);
  if (g->options->say == NULL) return;
  if (f->path != NULL &&
      !f->path(self_of(g), g->turn->folder, where, sizeof where))
    where[0] = '\0';
  snprintf(text, sizeof text,
           "GPU %d: processes use it in turns, by the lock file %s%s%s",
           (int)g->index, where, where[0] != '\0' ? "/" : "", g->turn->turn);
  g->options->say(g->options->say_self, text);
}

static void drop(weir_exec_gpu *g, struct weir_gpu_turn *t) {
  if (t->folder != NULL) folders_of(g)->close(self_of(g), t->folder);
  weir_free(g->env->alloc, t);
}

/* Both files are made and locked once, to know now whether they can be; whether
 * others hold them says nothing. */
static weir_status try_files(weir_exec_gpu *g) {
  struct weir_gpu_turn *t = g->turn;
  if (lock_file(g, t->next, &t->has_next)) unlock_file(g, &t->has_next);
  if (t->failed != WEIR_OK) return t->failed;
  if (lock_file(g, t->turn, &t->has_turn)) unlock_file(g, &t->has_turn);
  return t->failed;
}

weir_status weir_gpu_turn_open(weir_exec_gpu *g, const char *id,
                               weir_error *err) {
  weir_error why = WEIR_ERROR_INIT;
  if (g->turn != NULL) return WEIR_OK;
  struct weir_gpu_turn *t = weir_alloc_array(g->env->alloc, 1, sizeof *t);
  if (t == NULL) return weir_fail_memory(err, sizeof *t);
  t->last = &t->first;
  snprintf(t->turn, sizeof t->turn, "%.64s.turn", id);
  snprintf(t->next, sizeof t->next, "%.64s.next", id);
  weir_status s = open_folder(g, &t->folder, &why);
  if (s != WEIR_OK) {
    s = fail_locks(g, &why, err);
    drop(g, t);
    return s;
  }
  pthread_mutex_lock(&g->lock);
  g->turn = t;
  s = try_files(g);
  if (s != WEIR_OK) g->turn = NULL;
  pthread_mutex_unlock(&g->lock);
  if (s == WEIR_OK) {
    tell_open(g);
    return s;
  }
  weir_error_copy(err, &t->why);
  drop(g, t);
  return s;
}

void weir_gpu_turn_close(weir_exec_gpu *g) {
  struct weir_gpu_turn *t = g->turn;
  if (t == NULL) return;
  assert(t->inside == 0 && t->first == NULL);
  if (t->has_turn != NULL) unlock_file(g, &t->has_turn);
  if (t->has_next != NULL) unlock_file(g, &t->has_next);
  g->turn = NULL;
  drop(g, t);
}

/* ---- Turns; the GPU's lock is held */

/* Whether this process has the turn, and one more task may join it. */
static bool take(weir_exec_gpu *g) {
  struct weir_gpu_turn *t = g->turn;
  const weir_clock *clock = g->env->clock;
  int64_t now_ns = clock->now_ns(clock->self);
  t->failed = WEIR_OK;
  if (t->has_turn != NULL) return now_ns - t->since_ns < WEIR_GPU_TURN_NS;
  if (!lock_file(g, t->next, &t->has_next) ||
      !lock_file(g, t->turn, &t->has_turn))
    return false;
  unlock_file(g, &t->has_next);
  t->since_ns = now_ns;
  return true;
}

static weir_gpu_task *gpu_task(const weir_frame_task *task) {
  return &task->frame->gpu->tasks[task->index];
}

static void grant(struct weir_gpu_turn *t, weir_frame_task *task) {
  gpu_task(task)->turn = WEIR_GPU_TURN_HAS;
  t->inside++;
}

bool weir_gpu_turn_enter(weir_frame_task *task) {
  weir_exec_gpu *g = task->frame->gpu->gpu;
  weir_gpu_task *gt = gpu_task(task);
  if (!atomic_load(&g->in_turns)) return true;
  pthread_mutex_lock(&g->lock);
  struct weir_gpu_turn *t = g->turn;
  bool asked = gt->turn != WEIR_GPU_TURN_NONE;
  bool got = !asked && t->first == NULL && take(g);
  if (got) grant(t, task);
  if (!got && !asked) {
    task->next_waiting = NULL;
    *t->last = task;
    t->last = &task->next_waiting;
    pthread_cond_signal(&g->more);
  }
  pthread_mutex_unlock(&g->lock);
  return got || asked;
}

bool weir_gpu_turn_granted(const weir_frame_task *task, weir_status *out_status,
                           weir_error *err) {
  weir_exec_gpu *g = task->frame->gpu->gpu;
  if (gpu_task(task)->turn != WEIR_GPU_TURN_REFUSED) return true;
  *out_status = weir_frame_check_stop(task->frame);
  if (*out_status != WEIR_OK) {
    weir_frame_stop_error(*out_status, err);
    return false;
  }
  pthread_mutex_lock(&g->lock);
  *out_status = g->turn->why.code;
  weir_error_copy(err, &g->turn->why);
  pthread_mutex_unlock(&g->lock);
  return false;
}

void weir_gpu_turn_leave(weir_frame_task *task) {
  weir_exec_gpu *g = task->frame->gpu->gpu;
  weir_gpu_task *gt = gpu_task(task);
  if (gt->turn == WEIR_GPU_TURN_NONE) return;
  pthread_mutex_lock(&g->lock);
  struct weir_gpu_turn *t = g->turn;
  bool had = gt->turn == WEIR_GPU_TURN_HAS;
  gt->turn = WEIR_GPU_TURN_NONE;
  assert(!had || t->inside > 0);
  if (had && --t->inside == 0) unlock_file(g, &t->has_turn);
  pthread_mutex_unlock(&g->lock);
}

/* ---- The GPU's thread */

bool weir_gpu_turn_is_wanted(const weir_exec_gpu *g) {
  return g->turn != NULL && g->turn->first != NULL;
}

weir_frame_task *weir_gpu_turn_try(weir_exec_gpu *g, int64_t *out_nap_ns) {
  struct weir_gpu_turn *t = g->turn;
  weir_frame_task *out = NULL, **end = &out, **link = &t->first;
  bool got = take(g);
  bool failed = !got && t->failed != WEIR_OK;
  while (*link != NULL) {
    weir_frame_task *task = *link;
    if (!got && !failed && weir_frame_check_stop(task->frame) == WEIR_OK) {
      link = &task->next_waiting;
      continue;
    }
    *link = task->next_waiting;
    task->next_waiting = NULL;
    if (got)
      grant(t, task);
    else
      gpu_task(task)->turn = WEIR_GPU_TURN_REFUSED;
    *end = task;
    end = &task->next_waiting;
  }
  t->last = link;
  if (t->first == NULL && t->has_next != NULL) unlock_file(g, &t->has_next);
  *out_nap_ns = t->has_next != NULL ? kNextNapNs : kNapNs;
  return out;
}

void weir_gpu_turn_hand_out(weir_frame_task *tasks) {
  for (weir_frame_task *t = tasks, *next; t != NULL; t = next) {
    next = t->next_waiting;
    weir_pool_submit(t->frame->pool, &t->task);
  }
}
