/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/watch.h"
#include "runtime/base/quantity.h"

/* The process's own state: where output stands, which signal came. */
static int out_errno; /* of the first write to stdout that failed */
static int color = -1;
static atomic_int signal_number;
static pthread_mutex_t watch_lock = PTHREAD_MUTEX_INITIALIZER;
static weir_session *watched;
static weir_trainer *trainer;
static weir_task_server *server;
static weir_predict_server *predictor;
static weir_train_part *part;
static void (*exit_hook)(void *self);
static void *exit_self;
static bool searching; /* a plan */
static pthread_t watcher;
static bool watching;
static atomic_bool watch_ends;

/* ---- Text */

bool cli_out(void *self, const char *data, size_t size) {
  (void)self;
  if (out_errno == 0 && fwrite(data, 1, size, stdout) != size)
    out_errno = errno != 0 ? errno : EIO;
  return out_errno == 0;
}

bool cli_err(void *self, const char *data, size_t size) {
  (void)self;
  return fwrite(data, 1, size, stderr) == size;
}

bool cli_file_write(void *self, const char *data, size_t size) {
  return fwrite(data, 1, size, self) == size;
}

static weir_status unwritten(const char *path, weir_error *err) {
  return cli_error(err, "W5009", "%s cannot be written", path);
}

weir_status cli_file_create(const char *path, FILE **out, weir_error *err) {
  *out = fopen(path, "we");
  return *out != NULL ? WEIR_OK : unwritten(path, err);
}

weir_status cli_file_close(FILE *file, const char *path, weir_status s,
                           weir_error *err) {
  bool closed = fclose(file) == 0;
  return s == WEIR_OK && !closed ? unwritten(path, err) : s;
}

void cli_print(const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  if (out_errno == 0 && vfprintf(stdout, fmt, args) < 0)
    out_errno = errno != 0 ? errno : EIO;
  va_end(args);
}

void cli_note(const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  vfprintf(stderr, fmt, args);
  va_end(args);
}

void cli_flush(void) {
  if (out_errno == 0 && fflush(stdout) != 0)
    out_errno = errno != 0 ? errno : EIO;
}

bool cli_out_failed(void) {
  return out_errno != 0;
}

static int print_error(const weir_error *err) {
  weir_error_write(err, WEIR_DIAG_FORM_HUMAN, cli_color(), cli_err, NULL);
  int code = weir_error_exit_code(err->id);
  return code >= 0 ? code : 8;
}

int cli_out_close(int code) {
  cli_flush();
  if (out_errno == 0) return code;
  if (out_errno == EPIPE) return 128 + SIGPIPE; /* a reader that has enough */
  weir_error err = WEIR_ERROR_INIT;
  (void)cli_error(&err, "W5009", "standard output: %s", strerror(out_errno));
  return print_error(&err);
}

void cli_color_set(const char *when) {
  if (strcmp(when, "always") == 0) color = 1;
  if (strcmp(when, "never") == 0) color = 0;
}

bool cli_color(void) {
  if (color >= 0) return color == 1;
  const char *no = getenv("NO_COLOR"), *force = getenv("CLICOLOR_FORCE");
  const char *term = getenv("TERM");
  if (no != NULL && *no != '\0')
    color = 0;
  else if (force != NULL && *force != '\0' && strcmp(force, "0") != 0)
    color = 1;
  else
    color = isatty(2) && term != NULL && strcmp(term, "dumb") != 0;
  return color == 1;
}

/* ---- Errors */

weir_status cli_error(weir_error *err, const char *id, const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  *err = (weir_error){.struct_size = sizeof *err};
  snprintf(err->id, sizeof err->id, "%s", id);
  vsnprintf(err->message, sizeof err->message, fmt, args);
  va_end(args);
  err->code = WEIR_INVALID_ARGUMENT;
  return err->code;
}

void cli_hint(weir_error *err, const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  vsnprintf(err->hint, sizeof err->hint, fmt, args);
  va_end(args);
}

/* Names the process's limits when memory or threads were refused. */
static void hint_limits(weir_error *err) {
  char limit[WEIR_QUANTITY_TEXT];
  struct rlimit r;
  if (strcmp(err->id, "W6001") != 0 && strcmp(err->id, "W6003") != 0) return;
  if (err->hint[0] != '\0') return;
  if (getrlimit(RLIMIT_AS, &r) == 0 && r.rlim_cur != RLIM_INFINITY)
    cli_hint(
        err, "the address space is limited to %s (RLIMIT_AS, ulimit -v)",
        weir_quantity_print_bytes(
            r.rlim_cur < INT64_MAX ? (int64_t)r.rlim_cur : INT64_MAX, limit));
  else if (getrlimit(RLIMIT_NOFILE, &r) == 0 && r.rlim_cur < 64)
    cli_hint(err, "open files are limited to %llu (RLIMIT_NOFILE, ulimit -n)",
             (unsigned long long)r.rlim_cur);
}

int cli_fail(const weir_error *err) {
  weir_error shown = *err;
  cli_watch_tell();
  /* A call that was refused memory then may not know why. */
  if (strcmp(err->id, "W6001") == 0 && cli_watch_is_over()) {
    shown = (weir_error)WEIR_ERROR_INIT;
    (void)cli_error(&shown, "W5006", "the command passed its deadline");
  }
  hint_limits(&shown);
  cli_flush();
  /* A writer whose output failed says so too: cli_out_close tells it once, or
   * nothing where nobody reads. */
  if (out_errno != 0 && strcmp(shown.id, "W5009") == 0) return 6;
  return print_error(&shown);
}

/* ---- Signals */

/* With |watch_lock|, for good: nobody changes the hook's object meanwhile. */
static void leave(int code) {
  if (exit_hook != NULL) exit_hook(exit_self);
  _exit(code);
}

void cli_exit_hook(void (*fn)(void *self), void *self) {
  pthread_mutex_lock(&watch_lock);
  exit_hook = fn;
  exit_self = self;
  pthread_mutex_unlock(&watch_lock);
}

void cli_exit_now(int code) {
  pthread_mutex_lock(&watch_lock);
  leave(code);
}

static void *wait_for_signals(void *set) {
  for (;;) {
    int number = 0;
    if (sigwait(set, &number) != 0) continue;
    if (number == SIGUSR1) {
      if (atomic_load(&watch_ends)) return NULL;
      continue;
    }
    bool again = atomic_exchange(&signal_number, number) != 0;
    pthread_mutex_lock(&watch_lock);
    bool none = watched == NULL && trainer == NULL && server == NULL &&
                predictor == NULL && part == NULL;
    if ((none && !searching) || again) leave(128 + number);
    if (watched != NULL) weir_session_cancel(watched);
    weir_trainer_stop(trainer);
    weir_task_server_stop(server);
    weir_predict_server_stop(predictor);
    weir_train_part_stop(part);
    pthread_mutex_unlock(&watch_lock);
  }
}

/* A closed descriptor 0, 1 or 2 must not become a file that is opened later:
 * it gets one that can neither be read nor written as it would be. */
static void fill_descriptors(void) {
  for (int fd = 0; fd < 3; fd++)
    if (fcntl(fd, F_GETFD) == -1 && errno == EBADF) {
      int made = open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY);
      if (made >= 0 && made != fd) close(made);
    }
}

void cli_signals_init(void) {
  fill_descriptors();
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);
}

static void watch(weir_session *session, weir_trainer *training,
                  weir_task_server *serving, bool search) {
  static sigset_t set;
  pthread_mutex_lock(&watch_lock);
  watched = session;
  trainer = training;
  server = serving;
  predictor = NULL;
  part = NULL;
  searching = search;
  pthread_mutex_unlock(&watch_lock);
  if (watching) return;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGHUP);
  sigaddset(&set, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &set, NULL);
  watching = pthread_create(&watcher, NULL, wait_for_signals, &set) == 0;
  if (!watching) pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

void cli_signals_watch(weir_session *session) {
  watch(session, NULL, NULL, false);
}

void cli_signals_watch_trainer(weir_trainer *training) {
  watch(NULL, training, NULL, false);
}

void cli_signals_watch_server(weir_task_server *serving) {
  watch(NULL, NULL, serving, false);
}

void cli_signals_watch_predictor(weir_predict_server *serving) {
  watch(NULL, NULL, NULL, false);
  pthread_mutex_lock(&watch_lock);
  predictor = serving;
  pthread_mutex_unlock(&watch_lock);
}

void cli_signals_watch_part(weir_train_part *served) {
  watch(NULL, NULL, NULL, false);
  pthread_mutex_lock(&watch_lock);
  part = served;
  pthread_mutex_unlock(&watch_lock);
}

void cli_signals_watch_search(void) {
  watch(NULL, NULL, NULL, true);
}

void cli_signals_end(void) {
  if (!watching) return;
  atomic_store(&watch_ends, true);
  pthread_kill(watcher, SIGUSR1);
  pthread_join(watcher, NULL);
  watching = false;
}

int cli_signal_code(int code) {
  int number = atomic_load(&signal_number);
  return number != 0 ? 128 + number : code;
}
