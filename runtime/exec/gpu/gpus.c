/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/exec/gpu/gpus.h"

#include <stdio.h>
#include "kernels/tune/tuning.h"

#include "runtime/device/cuda.h"
#include "runtime/exec/futex.h"
#include "runtime/exec/gpu/gpu_memory.h"
#include "runtime/exec/gpu/gpu_turn.h"

/* A GPU is opened by the first that asks for it and closed with the process's
 * list. One thread for each open one waits for events: a driver's wait takes a
 * thread, and no thread of the pool is to sleep in one. It looks for a while
 * before it sleeps: a driver takes some 30 us to wake it, a tenth of a small
 * step. The same thread tries for the turn where processes use the GPU in
 * turns: then none of its tasks has work there, so it has no end to wait for.
 */

enum { kLookNs = 300000, kTries = 3 };

struct weir_gpus {
  atomic_int refs; /* the maker's and those of tensors */
  weir_env env;    /* its own: tensors outlive what the maker's is in */
  weir_gpus_options options;
  weir_tuning *tuning;   /* NULL: there is none */
  pthread_mutex_t lock;  /* of the rest */
  pthread_cond_t opened; /* or not, after a try */
  weir_module_handle module;
  weir_exec_gpu *items[WEIR_CUDA_GPUS];
  bool opening[WEIR_CUDA_GPUS];      /* by a thread that holds no lock */
  size_t most_bytes[WEIR_CUDA_GPUS]; /* of weir_gpus_bound; 0: no bound */
  bool always[WEIR_CUDA_GPUS];       /* of weir_gpus_share_always */
};

/* ---- The thread that waits */

/* Waits for |more|, |ns| at most; the lock is held. */
static void wait_more(weir_exec_gpu *g, int64_t ns) {
  const weir_clock *clock = g->env->clock;
  int64_t end_ns = clock->now_ns(clock->self) + ns;
  struct timespec end = {end_ns / 1000000000, end_ns % 1000000000};
  (void)pthread_cond_timedwait(&g->more, &g->lock, &end);
}

/* Tries for the turn, once; the lock is held. */
static void try_turn(weir_exec_gpu *g) {
  int64_t nap_ns;
  weir_frame_task *tasks = weir_gpu_turn_try(g, &nap_ns);
  if (tasks == NULL) {
    wait_more(g, nap_ns);
    return;
  }
  pthread_mutex_unlock(&g->lock);
  weir_gpu_turn_hand_out(tasks);
  pthread_mutex_lock(&g->lock);
}

static weir_gpu_end *next_end(weir_exec_gpu *g) {
  pthread_mutex_lock(&g->lock);
  while (g->first == NULL && !g->stop)
    if (weir_gpu_turn_is_wanted(g))
      try_turn(g);
    else
      pthread_cond_wait(&g->more, &g->lock);
  weir_gpu_end *end = g->first;
  if (end != NULL) g->first = end->next;
  if (g->first == NULL) g->last = &g->first;
  pthread_mutex_unlock(&g->lock);
  return end;
}

static void look(const weir_exec_gpu *g, weir_event *event) {
  weir_device *d = g->gpu.device;
  const weir_clock *clock = g->env->clock;
  int64_t until = clock->now_ns(clock->self) + kLookNs;
  while (!g->options->sleepy && !d->vt->is_over(d, event) &&
         clock->now_ns(clock->self) < until)
    weir_cpu_relax();
}

static void *wait_for_ends(void *self) {
  weir_exec_gpu *g = self;
  weir_device *d = g->gpu.device;
  for (;;) {
    weir_gpu_end *end = next_end(g);
    if (end == NULL) return NULL;
    weir_error err = WEIR_ERROR_INIT;
    look(g, end->event);
    weir_status s = d->vt->wait(d, end->event, &err);
    for (int i = 0; s != WEIR_OK && i < kTries; i++) /* it must have ended */
      if (d->vt->wait(d, end->event, NULL) == WEIR_OK) break;
    end->done(end->self, s, s == WEIR_OK ? NULL : &err);
  }
}

void weir_gpu_await(weir_exec_gpu *g, weir_gpu_end *end) {
  end->next = NULL;
  pthread_mutex_lock(&g->lock);
  *g->last = end;
  g->last = &end->next;
  pthread_cond_signal(&g->more);
  pthread_mutex_unlock(&g->lock);
}

/* ---- Copies */

void weir_gpu_settle(weir_exec_gpu *g, weir_queue *queue, weir_event *event) {
  weir_device *d = g->gpu.device;
  for (int i = 0; i < kTries; i++)
    if (d->vt->record(d, queue, event, NULL) == WEIR_OK &&
        d->vt->wait(d, event, NULL) == WEIR_OK)
      return;
}

static weir_status wait_copied(weir_exec_gpu *g, weir_error *err) {
  weir_device *d = g->gpu.device;
  WEIR_TRY(d->vt->record(d, g->copies, g->copied, err));
  return d->vt->wait(d, g->copied, err);
}

weir_status weir_gpu_write(weir_exec_gpu *g, weir_device_place dst,
                           const void *src, size_t bytes, weir_error *err) {
  weir_device *d = g->gpu.device;
  if (bytes == 0) return WEIR_OK;
  pthread_mutex_lock(&g->copy_lock);
  weir_status s = d->vt->copy_in(d, g->copies, dst, src, bytes, err);
  if (s == WEIR_OK) s = wait_copied(g, err);
  if (s != WEIR_OK) weir_gpu_settle(g, g->copies, g->copied);
  pthread_mutex_unlock(&g->copy_lock);
  return s;
}

weir_status weir_gpu_read(weir_exec_gpu *g, void *dst, weir_device_place src,
                          size_t bytes, weir_error *err) {
  weir_device *d = g->gpu.device;
  if (bytes == 0) return WEIR_OK;
  pthread_mutex_lock(&g->copy_lock);
  weir_status s = d->vt->copy_out(d, g->copies, dst, src, bytes, err);
  if (s == WEIR_OK) s = wait_copied(g, err);
  if (s != WEIR_OK) weir_gpu_settle(g, g->copies, g->copied);
  pthread_mutex_unlock(&g->copy_lock);
  return s;
}

/* ---- One GPU */

static void close_gpu(const weir_env *env, weir_exec_gpu *g) {
  if (g == NULL) return;
  weir_device *d = g->gpu.device;
  pthread_mutex_lock(&g->lock);
  g->stop = true;
  pthread_cond_signal(&g->more);
  pthread_mutex_unlock(&g->lock);
  if (g->started) pthread_join(g->thread, NULL);
  weir_gpu_turn_close(g);
  if (d != NULL) {
    d->vt->queue_release(d, g->copies);
    d->vt->event_release(d, g->copied);
  }
  weir_device_release(d);
  pthread_mutex_destroy(&g->copy_lock);
  pthread_mutex_destroy(&g->lock);
  pthread_cond_destroy(&g->more);
  weir_free(env->alloc, g);
}

/* Other processes may hold so much that the driver cannot begin. */
static weir_status create(weir_gpus *gpus, weir_exec_gpu *g,
                          weir_device **out_device, weir_error *err) {
  weir_device_name name = weir_device_name_any();
  name.index = (weir_index_range){g->index, g->index};
  name.type = WEIR_GPU;
  const weir_cuda_options cuda = {.runtime_folder = gpus->options.cuda,
                                  .gpu = g->index};
  weir_gpu_wait wait = {0};
  weir_status s;
  do
    s = weir_device_cuda_create(&gpus->env, &gpus->module, &name, &cuda,
                                out_device, err);
  while (s != WEIR_OK &&
         weir_gpu_wait_for(&gpus->env, gpus->options.wait_ns, &wait, &s, err));
  return s;
}

static weir_status open_parts(weir_gpus *gpus, weir_exec_gpu *g,
                              weir_error *err) {
  weir_device *d = NULL;
  WEIR_TRY(create(gpus, g, &d, err));
  g->gpu.device = d;
  WEIR_TRY(weir_gpu_open(d, &g->gpu, err));
  WEIR_TRY(weir_gpu_queue_waiting(g, &g->copies, err));
  WEIR_TRY(weir_gpu_event_waiting(g, &g->copied, err));
  if (pthread_create(&g->thread, NULL, wait_for_ends, g) != 0)
    return weir_fail(err, WEIR_W6003, NULL,
                     "the system refused the thread of GPU %d", (int)g->index);
  g->started = true;
  return WEIR_OK;
}

static void init_monotonic(pthread_cond_t *cond) {
  pthread_condattr_t attr;
  pthread_condattr_init(&attr);
  pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
  pthread_cond_init(cond, &attr);
  pthread_condattr_destroy(&attr);
}

static weir_status open_gpu(weir_gpus *gpus, int32_t index,
                            weir_exec_gpu **out_gpu, weir_error *err) {
  weir_exec_gpu *g = weir_alloc_array(gpus->env.alloc, 1, sizeof *g);
  if (g == NULL) return weir_fail_memory(err, sizeof *g);
  g->index = index;
  g->last = &g->first;
  g->list = gpus;
  g->env = &gpus->env;
  g->options = &gpus->options;
  g->tuning = gpus->tuning;
  atomic_init(&g->said, 0);
  pthread_mutex_init(&g->copy_lock, NULL);
  pthread_mutex_init(&g->lock, NULL);
  atomic_init(&g->in_turns, false);
  init_monotonic(&g->more);
  weir_status s = open_parts(gpus, g, err);
  if (s == WEIR_OK)
    *out_gpu = g;
  else
    close_gpu(&gpus->env, g);
  return s;
}

/* ---- All */

weir_status weir_gpus_create(const weir_env *env,
                             const weir_gpus_options *options,
                             weir_gpus **out_gpus, weir_error *err) {
  weir_gpus *gpus = weir_alloc_array(env->alloc, 1, sizeof *gpus);
  *out_gpus = gpus;
  if (gpus == NULL) return weir_fail_memory(err, sizeof *gpus);
  atomic_init(&gpus->refs, 1);
  gpus->env = *env;
  if (options != NULL) gpus->options = *options;
  pthread_mutex_init(&gpus->lock, NULL);
  pthread_cond_init(&gpus->opened, NULL);
  if (gpus->options.tune == NULL) return WEIR_OK;
  const weir_tuning_options tuning = {gpus->options.tune, gpus->options.warn,
                                      gpus->options.say_self};
  weir_status s = weir_tuning_create(&gpus->env, &tuning, &gpus->tuning, err);
  gpus->options.tune = NULL; /* the caller's */
  if (s == WEIR_OK) return s;
  weir_gpus_release(gpus);
  *out_gpus = NULL;
  return s;
}

weir_gpus *weir_gpus_ref(weir_gpus *gpus) {
  atomic_fetch_add(&gpus->refs, 1);
  return gpus;
}

void weir_gpus_release(weir_gpus *gpus) {
  if (gpus == NULL || atomic_fetch_sub(&gpus->refs, 1) != 1) return;
  const weir_allocator *alloc = gpus->env.alloc;
  for (int i = 0; i < WEIR_CUDA_GPUS; i++)
    close_gpu(&gpus->env, gpus->items[i]);
  weir_tuning_release(gpus->tuning);
  pthread_mutex_destroy(&gpus->lock);
  pthread_cond_destroy(&gpus->opened);
  weir_free(alloc, gpus);
}

/* Opens GPU |index|, unless another thread does. |lock| is held, but not while
 * the driver works or is waited for. */
static weir_status open_once(weir_gpus *gpus, int32_t index, weir_error *err) {
  while (gpus->opening[index]) pthread_cond_wait(&gpus->opened, &gpus->lock);
  if (gpus->items[index] != NULL) return WEIR_OK;
  WEIR_TRY(weir_device_cuda_load(&gpus->module, gpus->options.module, err));
  weir_exec_gpu *g = NULL;
  gpus->opening[index] = true;
  pthread_mutex_unlock(&gpus->lock);
  weir_status s = open_gpu(gpus, index, &g, err);
  pthread_mutex_lock(&gpus->lock);
  gpus->opening[index] = false;
  gpus->items[index] = g;
  pthread_cond_broadcast(&gpus->opened);
  return s;
}

static void set_limit(const weir_gpus *gpus, int32_t index, size_t bytes) {
  weir_device *d = gpus->items[index]->gpu.device;
  size_t most = gpus->most_bytes[index];
  d->vt->set_limit(d, most != 0 && (bytes == 0 || most < bytes) ? most : bytes);
}

static weir_status check_index(const weir_gpus *gpus, int32_t index,
                               weir_error *err) {
  if (gpus == NULL)
    return weir_fail(err, WEIR_W6004, NULL, "this process has no GPUs");
  if (index < 0 || index >= WEIR_CUDA_GPUS)
    return weir_fail(err, WEIR_W6004, NULL,
                     "there is no GPU %d, the most are %d", (int)index,
                     (int)WEIR_CUDA_GPUS);
  return WEIR_OK;
}

weir_status weir_gpus_get(weir_gpus *gpus, int32_t index, size_t limit_bytes,
                          weir_exec_gpu **out_gpu, weir_error *err) {
  *out_gpu = NULL;
  WEIR_TRY(check_index(gpus, index, err));
  pthread_mutex_lock(&gpus->lock);
  weir_status s = open_once(gpus, index, err);
  if (s == WEIR_OK) set_limit(gpus, index, limit_bytes);
  *out_gpu = gpus->items[index];
  pthread_mutex_unlock(&gpus->lock);
  return s;
}

weir_status weir_gpus_open(weir_gpus *gpus, int32_t index,
                           weir_exec_gpu **out_gpu, weir_error *err) {
  *out_gpu = NULL;
  WEIR_TRY(check_index(gpus, index, err));
  pthread_mutex_lock(&gpus->lock);
  weir_status s = open_once(gpus, index, err);
  *out_gpu = gpus->items[index];
  pthread_mutex_unlock(&gpus->lock);
  return s;
}

void weir_gpus_bound(weir_gpus *gpus, int32_t index, size_t most_bytes) {
  if (gpus == NULL || index < 0 || index >= WEIR_CUDA_GPUS) return;
  pthread_mutex_lock(&gpus->lock);
  gpus->most_bytes[index] = most_bytes;
  pthread_mutex_unlock(&gpus->lock);
}

/* The lock is held. */
static weir_status open_turn(weir_gpus *gpus, int32_t index, weir_error *err) {
  weir_cuda_found found;
  WEIR_TRY(
      weir_device_cuda_find(&gpus->module, gpus->options.cuda, &found, err));
  if ((uint32_t)index >= found.gpu_count)
    return weir_fail(err, WEIR_W6004, NULL, "GPU %d is gone", (int)index);
  return weir_gpu_turn_open(gpus->items[index], found.gpus[index].id, err);
}

weir_status weir_gpus_share(weir_gpus *gpus, int32_t index, bool in_turns,
                            weir_error *err) {
  weir_status s = WEIR_OK;
  pthread_mutex_lock(&gpus->lock);
  weir_exec_gpu *g = gpus->items[index];
  in_turns |= gpus->always[index];
  if (in_turns && g->turn == NULL) s = open_turn(gpus, index, err);
  if (s == WEIR_OK) atomic_store(&g->in_turns, in_turns);
  pthread_mutex_unlock(&gpus->lock);
  return s;
}

void weir_gpus_share_always(weir_gpus *gpus, int32_t index) {
  if (gpus == NULL || index < 0 || index >= WEIR_CUDA_GPUS) return;
  pthread_mutex_lock(&gpus->lock);
  gpus->always[index] = true;
  pthread_mutex_unlock(&gpus->lock);
}

static weir_status find_all(weir_gpus *gpus, weir_cuda_found *out,
                            weir_error *err) {
  if (gpus == NULL)
    return weir_fail(err, WEIR_W6004, NULL, "this process has no GPUs");
  pthread_mutex_lock(&gpus->lock);
  weir_status s =
      weir_device_cuda_load(&gpus->module, gpus->options.module, err);
  if (s == WEIR_OK)
    s = weir_device_cuda_find(&gpus->module, gpus->options.cuda, out, err);
  pthread_mutex_unlock(&gpus->lock);
  return s;
}

weir_status weir_gpus_count(weir_gpus *gpus, uint32_t *out_count,
                            weir_error *err) {
  weir_cuda_found found;
  *out_count = 0;
  WEIR_TRY(find_all(gpus, &found, err));
  *out_count = found.gpu_count;
  return WEIR_OK;
}

weir_status weir_gpus_name(weir_gpus *gpus, char *text, size_t capacity,
                           weir_error *err) {
  weir_cuda_found found;
  WEIR_TRY(find_all(gpus, &found, err));
  snprintf(text, capacity, "%s", found.gpus[0].name);
  return WEIR_OK;
}
