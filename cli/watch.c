/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/watch.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/system.h"

/* The thread sleeps to a point in time, so a clock that is set or a machine
 * that pauses does not move it. It is never joined: the process ends first, or
 * by it. An error is reported by one of the two, whoever comes first. */

enum { GRACE_NS = 200000000 };

static int64_t end_ns;

/* Whose error is the last one told. */
enum { NOBODY, COMMAND, WATCH };
static atomic_int told;

void cli_watch_tell(void) {
  int who = NOBODY;
  if (atomic_compare_exchange_strong(&told, &who, COMMAND)) return;
  while (who == WATCH) pause(); /* it ends the process */
}

static void *wait_and_end(void *unused) {
  weir_error err = WEIR_ERROR_INIT;
  struct timespec at = {(time_t)(end_ns / 1000000000), end_ns % 1000000000};
  (void)unused;
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR) {
  }
  int who = NOBODY;
  if (!atomic_compare_exchange_strong(&told, &who, WATCH))
    cli_exit_now(weir_error_exit_code("W5006"));
  (void)cli_error(&err, "W5006", "the command passed its deadline");
  weir_error_write(&err, WEIR_DIAG_FORM_HUMAN, cli_color(), cli_err, NULL);
  cli_exit_now(weir_error_exit_code(err.id));
  return NULL;
}

bool cli_watch_is_over(void) {
  return end_ns != 0 && cli_now_ns() >= end_ns - GRACE_NS;
}

weir_status cli_watch_start(int64_t timeout_ns, weir_error *err) {
  pthread_t thread;
  sigset_t all, before;
  if (timeout_ns <= 0 || end_ns != 0) return WEIR_OK;
  if (timeout_ns > INT64_MAX / 4) return WEIR_OK;
  end_ns = cli_now_ns() + timeout_ns + GRACE_NS;
  /* Signals are for the thread that waits for them. */
  (void)cli_color(); /* decided here: the thread only reads it */
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  int failed = pthread_create(&thread, NULL, wait_and_end, NULL);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (failed != 0) return cli_error(err, "W6003", "no thread to keep the time");
  pthread_detach(thread);
  return WEIR_OK;
}
