/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/watch.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/system.h"

/* The thread sleeps to a point in time, so a clock that is set or a machine
 * that pauses does not move it. It is never joined: the process ends first, or
 * by it. */

enum { GRACE_NS = 200000000 };

static int64_t end_ns;

static void *wait_and_end(void *unused) {
  weir_error err = WEIR_ERROR_INIT;
  struct timespec at = {(time_t)(end_ns / 1000000000), end_ns % 1000000000};
  (void)unused;
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR) {
  }
  (void)cli_error(&err, "W5006", "the command passed its deadline");
  _exit(cli_fail(&err));
}

weir_status cli_watch_start(int64_t timeout_ns, weir_error *err) {
  pthread_t thread;
  sigset_t all, before;
  if (timeout_ns <= 0 || end_ns != 0) return WEIR_OK;
  if (timeout_ns > INT64_MAX / 4) return WEIR_OK;
  end_ns = cli_now_ns() + timeout_ns + GRACE_NS;
  /* Signals are for the thread that waits for them. */
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  int failed = pthread_create(&thread, NULL, wait_and_end, NULL);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (failed != 0) return cli_error(err, "W6003", "no thread to keep the time");
  pthread_detach(thread);
  return WEIR_OK;
}
