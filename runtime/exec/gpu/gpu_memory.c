/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/exec/gpu/gpu_memory.h"

#include <string.h>

#include "runtime/exec/futex.h"
#include "runtime/exec/run/run.h"

/* Nobody tells when another process gives memory of a GPU back, so a wait is
 * tries with naps between them that double up to a tenth of a second: a short
 * lack costs milliseconds, and a long one next to nothing. The last nap ends
 * with the time, and the last try is after it. Each try is a whole one, as this
 * process may have freed something meanwhile too. */

enum { kFirstNapNs = 1000000, kLongestNapNs = 100000000, kLookNs = 5000000 };

static _Thread_local const weir_gpu_stop *thread_stop;

const weir_gpu_stop *weir_gpu_stop_set(const weir_gpu_stop *stop) {
  const weir_gpu_stop *before = thread_stop;
  thread_stop = stop;
  return before;
}

/* Whether the run that this thread waits for is to end. */
static weir_status stopped(const weir_env *env) {
  const weir_gpu_stop *stop = thread_stop;
  if (stop == NULL) return WEIR_OK;
  if (stop->cancel != NULL && atomic_load(stop->cancel)) return WEIR_CANCELLED;
  bool over = stop->deadline_ns != 0 &&
              env->clock->now_ns(env->clock->self) >= stop->deadline_ns;
  return over ? WEIR_DEADLINE_EXCEEDED : WEIR_OK;
}

/* Nobody ends the nap, so it is taken in short ones with a look between them; a
 * signal may end one, which does no harm. */
static weir_status sleep_ns(const weir_env *env, int64_t ns) {
  weir_status s = stopped(env);
  while (s == WEIR_OK && ns > 0) {
    weir_nap nap = {0};
    (void)weir_nap_sleep(&nap, ns < kLookNs ? ns : kLookNs);
    ns -= kLookNs;
    s = stopped(env);
  }
  return s;
}

/* Of the host's memory a limit or a deadline is reached, and stays so. */
static bool is_refused(const weir_env *env) {
  return env->alloc->refusal != NULL &&
         env->alloc->refusal(env->alloc->self) != WEIR_REFUSAL_NONE;
}

static void tell_wait(int64_t waited_ns, weir_error *err) {
  char text[sizeof err->message];
  memcpy(text, err->message, sizeof text);
  weir_fail(err, WEIR_W6001, NULL, "%.400s, after a wait of %.1f s", text,
            (double)waited_ns / 1e9);
}

bool weir_gpu_wait_for(const weir_env *env, int64_t wait_ns,
                       weir_gpu_wait *wait, weir_status *status,
                       weir_error *err) {
  if (wait_ns <= 0 || err == NULL || strcmp(err->id, "W6001") != 0 ||
      is_refused(env))
    return false;
  int64_t now_ns = env->clock->now_ns(env->clock->self);
  if (wait->nap_ns == 0) *wait = (weir_gpu_wait){now_ns, kFirstNapNs};
  int64_t left_ns = wait_ns - (now_ns - wait->from_ns);
  if (left_ns <= 0) {
    tell_wait(now_ns - wait->from_ns, err);
    return false;
  }
  err->id[0] = err->message[0] = err->hint[0] = '\0';
  err->code = WEIR_OK;
  weir_status stop =
      sleep_ns(env, wait->nap_ns < left_ns ? wait->nap_ns : left_ns);
  if (wait->nap_ns < kLongestNapNs) wait->nap_ns *= 2;
  if (stop != WEIR_OK) *status = weir_frame_stop_error(stop, err);
  return stop == WEIR_OK;
}

bool weir_gpu_wait_more(const weir_exec_gpu *gpu, weir_gpu_wait *wait,
                        weir_status *status, weir_error *err) {
  return gpu != NULL &&
         weir_gpu_wait_for(gpu->env, gpu->options->wait_ns, wait, status, err);
}

weir_status weir_gpu_alloc(weir_exec_gpu *gpu, size_t bytes,
                           weir_device_buffer *out_buffer, weir_error *err) {
  weir_device *d = gpu->gpu.device;
  weir_status s = d->vt->alloc(d, bytes, out_buffer, err);
  if (s != WEIR_OK && err != NULL && strcmp(err->id, "W6002") == 0)
    weir_hint(err, "the limit is `memory:` of the task's gpu in the cluster");
  return s;
}

weir_status weir_gpu_alloc_waiting(weir_exec_gpu *gpu, size_t bytes,
                                   weir_device_buffer *out_buffer,
                                   weir_error *err) {
  weir_device *d = gpu->gpu.device;
  weir_gpu_wait wait = {0};
  bool may_fit = bytes <= d->vt->memory(d).total_bytes;
  weir_status s;
  do s = weir_gpu_alloc(gpu, bytes, out_buffer, err);
  while (s != WEIR_OK && may_fit && weir_gpu_wait_more(gpu, &wait, &s, err));
  return s;
}

weir_status weir_gpu_host_alloc_waiting(weir_exec_gpu *gpu, size_t bytes,
                                        void **out_data, weir_error *err) {
  weir_device *d = gpu->gpu.device;
  weir_gpu_wait wait = {0};
  weir_status s;
  do s = d->vt->host_alloc(d, bytes, out_data, err);
  while (s != WEIR_OK && weir_gpu_wait_more(gpu, &wait, &s, err));
  return s;
}

weir_status weir_gpu_queue_waiting(weir_exec_gpu *gpu, weir_queue **out_queue,
                                   weir_error *err) {
  weir_device *d = gpu->gpu.device;
  weir_gpu_wait wait = {0};
  weir_status s;
  do s = d->vt->queue_create(d, out_queue, err);
  while (s != WEIR_OK && weir_gpu_wait_more(gpu, &wait, &s, err));
  return s;
}

weir_status weir_gpu_event_waiting(weir_exec_gpu *gpu, weir_event **out_event,
                                   weir_error *err) {
  weir_device *d = gpu->gpu.device;
  weir_gpu_wait wait = {0};
  weir_status s;
  do s = d->vt->event_create(d, out_event, err);
  while (s != WEIR_OK && weir_gpu_wait_more(gpu, &wait, &s, err));
  return s;
}
