/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/exec/measure/calibrate_gpu_link.h"

#include "runtime/exec/gpu/gpu_memory.h"
#include "runtime/exec/measure/calibrate_link.h"
#include "runtime/exec/measure/measure.h"

/* Copies of a GPU, alone in its queue, between two timers: the time from one to
 * the other, less that of two timers with nothing between. What the GPU's queue
 * does in that time is the copy alone, so it sends for all of it; a copy from
 * the host is in the queue of the receiver, and the host sends for none. Bytes
 * that come to the host are used when a thread has learned of the end: that
 * time, by the host's clock, is in the latency. */

enum { RUNS = 9, WARM = 2 };

/* A GPU that measures. */
typedef struct bench {
  const weir_clock *clock;
  weir_device *d;
  weir_queue *queue;
  weir_event *begin, *end;
  weir_device_buffer own, other; /* |other|: of a second GPU */
  weir_device *second;
  void *host;
  int64_t price_ns; /* of a timer */
  int64_t told_ns;  /* until a thread knows that an empty queue is over */
} bench;

typedef weir_status (*copy_fn)(bench *b, size_t bytes, weir_error *err);

static weir_status copy_nothing(bench *b, size_t bytes, weir_error *err) {
  (void)b, (void)bytes, (void)err;
  return WEIR_OK;
}

static weir_status copy_in(bench *b, size_t bytes, weir_error *err) {
  return b->d->vt->copy_in(b->d, b->queue, (weir_device_place){&b->own, 0},
                           b->host, bytes, err);
}

static weir_status copy_out(bench *b, size_t bytes, weir_error *err) {
  return b->d->vt->copy_out(b->d, b->queue, b->host,
                            (weir_device_place){&b->own, 0}, bytes, err);
}

static weir_status copy_peer(bench *b, size_t bytes, weir_error *err) {
  return b->d->vt->copy_peer(b->d, b->queue, (weir_device_place){&b->own, 0},
                             b->second, (weir_device_place){&b->other, 0},
                             bytes, err);
}

/* The median of the device's times of |runs| runs of |copy|; in |*whole_ns|
 * that of the host's. */
static weir_status time_copy(bench *b, copy_fn copy, size_t bytes, int runs,
                             int64_t *out_ns, int64_t *whole_ns,
                             weir_error *err) {
  int64_t times[RUNS], whole[RUNS];
  for (int i = -WARM; i < runs; i++) {
    int64_t start = b->clock->now_ns(b->clock->self), ns;
    WEIR_TRY(b->d->vt->record(b->d, b->queue, b->begin, err));
    WEIR_TRY(copy(b, bytes, err));
    WEIR_TRY(b->d->vt->record(b->d, b->queue, b->end, err));
    WEIR_TRY(b->d->vt->wait(b->d, b->end, err));
    int64_t stop = b->clock->now_ns(b->clock->self);
    WEIR_TRY(b->d->vt->elapsed(b->d, b->begin, b->end, &ns, err));
    if (i < 0) continue;
    times[i] = ns - b->price_ns;
    whole[i] = stop - start;
  }
  *out_ns = weir_sample_of(times, (uint32_t)runs).median_ns;
  *whole_ns = weir_sample_of(whole, (uint32_t)runs).median_ns;
  return WEIR_OK;
}

static weir_status measure_way(bench *b, copy_fn copy, weir_cost_piece *out,
                               weir_error *err) {
  int64_t ns[WEIR_LINK_SIZES], send[WEIR_LINK_SIZES], ignored;
  for (int i = 0; i < WEIR_LINK_SIZES; i++) {
    size_t bytes = (size_t)weir_link_size(i);
    WEIR_TRY(time_copy(b, copy, bytes, weir_link_runs(i, RUNS), &ns[i],
                       &ignored, err));
    if (ns[i] < 1) ns[i] = 1;
    send[i] = ns[i];
    if (copy == copy_out) ns[i] += b->told_ns;
  }
  *out = weir_link_fit(ns, copy == copy_in ? NULL : send, RUNS);
  return WEIR_OK;
}

static weir_status begin(bench *b, const weir_env *env, bool two,
                         weir_error *err) {
  size_t most = (size_t)weir_link_size(WEIR_LINK_SIZES - 1);
  weir_exec_gpu *first = NULL, *second = NULL;
  int64_t price;
  b->clock = env->clock;
  WEIR_TRY(weir_gpus_get(env->gpus, 0, 0, &first, err));
  b->d = first->gpu.device;
  WEIR_TRY(b->d->vt->queue_create(b->d, &b->queue, err));
  WEIR_TRY(b->d->vt->timer_create(b->d, &b->begin, err));
  WEIR_TRY(b->d->vt->timer_create(b->d, &b->end, err));
  WEIR_TRY(b->d->vt->host_alloc(b->d, most, &b->host, err));
  memset(b->host, 0, most);
  WEIR_TRY(weir_gpu_alloc_waiting(first, most, &b->own, err));
  WEIR_TRY(time_copy(b, copy_nothing, 0, RUNS, &price, &b->told_ns, err));
  b->price_ns = price;
  if (!two) return WEIR_OK;
  WEIR_TRY(weir_gpus_get(env->gpus, 1, 0, &second, err));
  b->second = second->gpu.device;
  return weir_gpu_alloc_waiting(second, most, &b->other, err);
}

static void end(bench *b) {
  if (b->d == NULL) return;
  b->d->vt->queue_release(b->d, b->queue);
  b->d->vt->event_release(b->d, b->begin);
  b->d->vt->event_release(b->d, b->end);
  b->d->vt->host_free(b->d, b->host);
  if (b->own.handle != NULL) b->d->vt->free(b->d, &b->own);
  if (b->other.handle != NULL) b->second->vt->free(b->second, &b->other);
}

weir_status weir_calibrate_gpu_links(const weir_env *env, bool two,
                                     weir_costs *costs, weir_error *err) {
  const int host = weir_device_kind_host();
  weir_cost_piece in, out, peer = {0};
  bench b = {0};
  weir_status s = begin(&b, env, two, err);
  if (s == WEIR_OK) s = measure_way(&b, copy_in, &in, err);
  if (s == WEIR_OK) s = measure_way(&b, copy_out, &out, err);
  if (s == WEIR_OK && two) s = measure_way(&b, copy_peer, &peer, err);
  end(&b);
  if (s != WEIR_OK) return s;
  costs->ways[host][WEIR_GPU] = in;
  costs->ways[WEIR_GPU][host] = out;
  if (two) costs->ways[WEIR_GPU][WEIR_GPU] = peer;
  return WEIR_OK;
}
