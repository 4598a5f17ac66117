/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/exec/gpu/gpus.h"

#include "runtime/device/cuda.h"
#include "runtime/exec/futex.h"

/* A GPU is opened by the first that asks for it and closed with the process's
 * list. One thread for each open one waits for events: a driver's wait takes a
 * thread, and no thread of the pool is to sleep in one. It looks for a while
 * before it sleeps: a driver takes some 30 us to wake it, a tenth of a small
 * step. */

enum { kLookNs = 300000, kTries = 3 };

struct weir_gpus {
  const weir_env *env;
  weir_gpus_options options;
  pthread_mutex_t lock;
  weir_module_handle module;
  weir_exec_gpu *items[WEIR_CUDA_GPUS];
};

/* ---- The thread that waits */

static weir_gpu_end *next_end(weir_exec_gpu *g) {
  pthread_mutex_lock(&g->lock);
  while (g->first == NULL && !g->stop) pthread_cond_wait(&g->more, &g->lock);
  weir_gpu_end *end = g->first;
  if (end != NULL) g->first = end->next;
  if (g->first == NULL) g->last = &g->first;
  pthread_mutex_unlock(&g->lock);
  return end;
}

static void look(const weir_exec_gpu *g, weir_event *event) {
  weir_device *d = g->gpu.device;
  int64_t until = g->clock->now_ns(g->clock->self) + kLookNs;
  while (!g->sleepy && !d->vt->is_over(d, event) &&
         g->clock->now_ns(g->clock->self) < until)
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

static weir_status open_parts(weir_gpus *gpus, weir_exec_gpu *g,
                              weir_error *err) {
  weir_device_name name = weir_device_name_any();
  name.index = (weir_index_range){g->index, g->index};
  name.type = WEIR_GPU;
  const weir_cuda_options cuda = {.runtime_folder = gpus->options.cuda,
                                  .gpu = g->index};
  weir_device *d = NULL;
  WEIR_TRY(weir_device_cuda_load(&gpus->module, gpus->options.module, err));
  WEIR_TRY(
      weir_device_cuda_create(gpus->env, &gpus->module, &name, &cuda, &d, err));
  g->gpu.device = d;
  WEIR_TRY(weir_gpu_open(d, &g->gpu, err));
  WEIR_TRY(d->vt->queue_create(d, &g->copies, err));
  WEIR_TRY(d->vt->event_create(d, &g->copied, err));
  if (pthread_create(&g->thread, NULL, wait_for_ends, g) != 0)
    return weir_fail(err, WEIR_W6003, NULL,
                     "the system refused the thread of GPU %d", (int)g->index);
  g->started = true;
  return WEIR_OK;
}

static weir_status open_gpu(weir_gpus *gpus, int32_t index,
                            weir_exec_gpu **out_gpu, weir_error *err) {
  weir_exec_gpu *g = weir_alloc_array(gpus->env->alloc, 1, sizeof *g);
  if (g == NULL) return weir_fail_memory(err, sizeof *g);
  g->index = index;
  g->last = &g->first;
  g->clock = gpus->env->clock;
  g->sleepy = gpus->options.sleepy;
  pthread_mutex_init(&g->copy_lock, NULL);
  pthread_mutex_init(&g->lock, NULL);
  pthread_cond_init(&g->more, NULL);
  weir_status s = open_parts(gpus, g, err);
  if (s == WEIR_OK)
    *out_gpu = g;
  else
    close_gpu(gpus->env, g);
  return s;
}

/* ---- All */

weir_status weir_gpus_create(const weir_env *env,
                             const weir_gpus_options *options,
                             weir_gpus **out_gpus, weir_error *err) {
  weir_gpus *gpus = weir_alloc_array(env->alloc, 1, sizeof *gpus);
  *out_gpus = gpus;
  if (gpus == NULL) return weir_fail_memory(err, sizeof *gpus);
  gpus->env = env;
  if (options != NULL) gpus->options = *options;
  pthread_mutex_init(&gpus->lock, NULL);
  return WEIR_OK;
}

void weir_gpus_release(weir_gpus *gpus) {
  if (gpus == NULL) return;
  for (int i = 0; i < WEIR_CUDA_GPUS; i++) close_gpu(gpus->env, gpus->items[i]);
  pthread_mutex_destroy(&gpus->lock);
  weir_free(gpus->env->alloc, gpus);
}

weir_status weir_gpus_get(weir_gpus *gpus, int32_t index,
                          weir_exec_gpu **out_gpu, weir_error *err) {
  weir_status s = WEIR_OK;
  *out_gpu = NULL;
  if (gpus == NULL)
    return weir_fail(err, WEIR_W6004, NULL, "this process has no GPUs");
  if (index < 0 || index >= WEIR_CUDA_GPUS)
    return weir_fail(err, WEIR_W6004, NULL,
                     "there is no GPU %d, the most are %d", (int)index,
                     (int)WEIR_CUDA_GPUS);
  pthread_mutex_lock(&gpus->lock);
  if (gpus->items[index] == NULL)
    s = open_gpu(gpus, index, &gpus->items[index], err);
  *out_gpu = gpus->items[index];
  pthread_mutex_unlock(&gpus->lock);
  return s;
}

weir_status weir_gpus_count(weir_gpus *gpus, uint32_t *out_count,
                            weir_error *err) {
  weir_cuda_found found;
  *out_count = 0;
  if (gpus == NULL)
    return weir_fail(err, WEIR_W6004, NULL, "this process has no GPUs");
  pthread_mutex_lock(&gpus->lock);
  weir_status s =
      weir_device_cuda_load(&gpus->module, gpus->options.module, err);
  if (s == WEIR_OK)
    s = weir_device_cuda_find(&gpus->module, gpus->options.cuda, &found, err);
  pthread_mutex_unlock(&gpus->lock);
  if (s == WEIR_OK) *out_count = found.gpu_count;
  return s;
}
