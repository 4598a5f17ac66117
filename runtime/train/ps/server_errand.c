/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/train/ps/server_errand.h"

#include <signal.h>
#include <time.h>

void weir_ps_runner_init(weir_ps_runner *r) {
  *r = (weir_ps_runner){.started = false};
  pthread_mutex_init(&r->lock, NULL);
  pthread_condattr_t monotonic;
  pthread_condattr_init(&monotonic);
  pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
  pthread_cond_init(&r->changed, &monotonic);
  pthread_condattr_destroy(&monotonic);
}

void weir_ps_runner_destroy(weir_ps_runner *r) {
  weir_ps_runner_stop(r);
  pthread_cond_destroy(&r->changed);
  pthread_mutex_destroy(&r->lock);
}

static void *run(void *arg) {
  weir_ps_runner *r = arg;
  pthread_mutex_lock(&r->lock);
  for (;;) {
    while (!r->stop && r->first == NULL)
      pthread_cond_wait(&r->changed, &r->lock);
    if (r->stop) break;
    weir_ps_errand *e = r->first;
    r->first = e->next;
    if (r->first == NULL) r->last = NULL;
    pthread_mutex_unlock(&r->lock);
    e->work(e->self);
    r->post(r->self, &e->done); /* the errand may be given again from here on */
    pthread_mutex_lock(&r->lock);
  }
  pthread_mutex_unlock(&r->lock);
  return NULL;
}

/* All signals are blocked in it: they are for the program's own threads. */
weir_status weir_ps_runner_start(weir_ps_runner *r, weir_error *err) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  r->started = pthread_create(&r->thread, NULL, run, r) == 0;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (r->started) return WEIR_OK;
  return weir_fail(err, WEIR_W6003, NULL,
                   "a parameter server's thread did not start");
}

void weir_ps_runner_give(weir_ps_runner *r, weir_ps_errand *errand) {
  errand->next = NULL;
  pthread_mutex_lock(&r->lock);
  if (r->last != NULL)
    r->last->next = errand;
  else
    r->first = errand;
  r->last = errand;
  pthread_cond_broadcast(&r->changed);
  pthread_mutex_unlock(&r->lock);
}

void weir_ps_runner_rest(weir_ps_runner *r, int64_t until_ns) {
  struct timespec until = {(time_t)(until_ns / 1000000000),
                           until_ns % 1000000000};
  pthread_mutex_lock(&r->lock);
  while (!r->stop &&
         pthread_cond_timedwait(&r->changed, &r->lock, &until) == 0) {
  }
  pthread_mutex_unlock(&r->lock);
}

void weir_ps_runner_stop(weir_ps_runner *r) {
  pthread_mutex_lock(&r->lock);
  r->stop = true;
  pthread_cond_broadcast(&r->changed);
  pthread_mutex_unlock(&r->lock);
  if (r->started) pthread_join(r->thread, NULL);
  r->started = false;
  r->first = r->last = NULL;
}
