/* SPDX-License-Identifier: Apache-2.0
 *
 * Processes that end with this one.
 *
 * One thread waits for the outputs of all children, for their ends (a pidfd
 * each) and for the owner (a pipe wakes it). It alone collects children, under
 * the lock, so no signal is ever sent to a process number that was reused. */
#include "cli/spawn/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/spawn/folder.h"
#include "cli/system.h"

enum { LINE = 4096, NAME = 64, TICK_MS = 50 };

typedef struct child {
  char name[NAME];
  pid_t pid;
  int out, pidfd; /* -1: closed, not there */
  bool plain;
  cli_child_state state;
  int code;
  size_t held; /* bytes of a line without its end */
  char line[LINE];
} child;

struct cli_spawn {
  cli_folder folder;
  child *children;
  size_t count, capacity, ended;
  struct pollfd *polled;
  int word[2];         /* a pipe: a byte wakes the thread */
  bool watched, plain; /* plain: the next child */
  int64_t kill_ns;     /* SIGKILL then; 0: never */
  pthread_t thread;
  pthread_mutex_t lock; /* states, |ended|, |kill_ns| */
  pthread_cond_t changed;
};

weir_status cli_spawn_open(const char *tmp, size_t children,
                           cli_spawn **out_spawn, weir_error *err) {
  *out_spawn = NULL;
  cli_spawn *spawn = calloc(1, sizeof *spawn);
  if (spawn == NULL) return cli_no_memory(err);
  spawn->word[0] = spawn->word[1] = spawn->folder.lock = -1;
  pthread_mutex_init(&spawn->lock, NULL);
  pthread_cond_init(&spawn->changed, NULL);
  spawn->capacity = children;
  spawn->children = calloc(children + 1, sizeof *spawn->children);
  spawn->polled = calloc(2 * children + 1, sizeof *spawn->polled);
  weir_status s = spawn->children == NULL || spawn->polled == NULL
                      ? cli_no_memory(err)
                      : cli_folder_make(tmp, &spawn->folder, err);
  if (s == WEIR_OK && pipe2(spawn->word, O_CLOEXEC) != 0)
    s = cli_error(err, "W6003", "a pipe: %s", strerror(errno));
  if (s == WEIR_OK) *out_spawn = spawn;
  if (s != WEIR_OK) cli_spawn_release(spawn);
  return s;
}

const char *cli_spawn_folder(const cli_spawn *spawn) {
  return spawn->folder.path;
}

/* ---- A child begins */

/* In the child: never returns. Writes its errno to |report| if exec fails.
 * |out| < 0: it keeps the outputs that it has. */
static void become(char *const argv[], pid_t parent, int out, int report) {
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  signal(SIGPIPE, SIG_DFL);
  signal(SIGINT, SIG_DFL);
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1); /* it has died already */
  int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (null >= 0 && dup2(null, 0) == 0 &&
      (out < 0 || (dup2(out, 1) == 1 && dup2(out, 2) == 2))) {
    /* A library may have opened files without close-on-exec. */
    syscall(SYS_close_range, 3u, ~0u, 4u /* CLOSE_RANGE_CLOEXEC */);
    execv(argv[0], argv);
  }
  int why = errno;
  if (write(report, &why, sizeof why) < 0) _exit(127);
  _exit(127);
}

/* The errno that a child has reported before its exec; 0: exec succeeded. */
static int failure_of(int report) {
  int why = 0;
  ssize_t n;
  do n = read(report, &why, sizeof why);
  while (n < 0 && errno == EINTR);
  return n == (ssize_t)sizeof why ? why : 0;
}

/* Starts |c|, whose name and |plain| are set. */
static weir_status begin(child *c, char *const argv[], weir_error *err) {
  int out[2] = {-1, -1}, report[2] = {-1, -1}, why = 0;
  pid_t parent = getpid(), pid = -1;
  if ((!c->plain && pipe2(out, O_CLOEXEC) != 0) ||
      pipe2(report, O_CLOEXEC) != 0)
    why = errno;
  if (why == 0 && (pid = fork()) < 0) why = errno;
  if (pid == 0) become(argv, parent, out[1], report[1]);
  if (out[1] >= 0) close(out[1]);
  if (report[1] >= 0) close(report[1]);
  if (pid > 0) why = failure_of(report[0]);
  if (report[0] >= 0) close(report[0]);
  if (why != 0) {
    if (out[0] >= 0) close(out[0]);
    if (pid > 0) waitpid(pid, NULL, 0);
    return cli_error(err, "W6003", "cannot start %s (%s): %s", c->name, argv[0],
                     strerror(why));
  }
  if (out[0] >= 0) fcntl(out[0], F_SETFL, O_NONBLOCK);
  c->pid = pid;
  c->out = out[0];
  c->state = CLI_CHILD_RUNS;
  c->pidfd = (int)syscall(SYS_pidfd_open, pid, 0u); /* close-on-exec */
  return WEIR_OK;
}

void cli_spawn_plain(cli_spawn *spawn, bool plain) {
  spawn->plain = plain;
}

weir_status cli_spawn_start(cli_spawn *spawn, const char *name,
                            char *const argv[], weir_error *err) {
  if (spawn->count == spawn->capacity || spawn->watched)
    return cli_error(err, "W6003", "%s: no more processes", name);
  child *c = &spawn->children[spawn->count];
  *c = (child){.plain = spawn->plain, .out = -1, .pidfd = -1};
  snprintf(c->name, sizeof c->name, "%s", name);
  WEIR_TRY(begin(c, argv, err));
  spawn->count++;
  return WEIR_OK;
}

/* ---- The thread */

/* Prints the first |size| bytes of the line that is held, in one write. */
static void print_line(child *c, size_t size) {
  char text[NAME + LINE + 8], name[NAME + 4];
  int named = snprintf(name, sizeof name, "[%s] ", c->name);
  if ((int)size >= named && memcmp(c->line, name, (size_t)named) == 0)
    name[0] = '\0'; /* the line begins with it */
  int n = snprintf(text, sizeof text, "%s%.*s\n", name, (int)size, c->line);
  size_t left = n < (int)sizeof text ? (size_t)n : sizeof text - 1;
  for (const char *at = text; left > 0;) {
    ssize_t wrote = write(STDERR_FILENO, at, left);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return; /* nobody reads standard error */
    at += wrote;
    left -= (size_t)wrote;
  }
}

static void print_lines(child *c, bool all) {
  char *end;
  size_t at = 0;
  while ((end = memchr(c->line + at, '\n', c->held - at)) != NULL) {
    size_t size = (size_t)(end - c->line) - at;
    memmove(c->line, c->line + at, c->held - at);
    c->held -= at;
    print_line(c, size);
    at = size + 1;
  }
  memmove(c->line, c->line + at, c->held - at);
  c->held -= at;
  if (c->held > 0 && (all || c->held == LINE)) {
    print_line(c, c->held);
    c->held = 0;
  }
}

/* Reads all bytes that have come. */
static void read_out(child *c, bool last) {
  while (c->out >= 0) {
    ssize_t n = read(c->out, c->line + c->held, LINE - c->held);
    if (n < 0 && errno == EINTR) continue;
    if (n > 0) c->held += (size_t)n;
    bool over = n == 0 || (n < 0 && (errno != EAGAIN || last));
    print_lines(c, over);
    if (n > 0) continue;
    if (over) {
      close(c->out);
      c->out = -1;
    }
    return;
  }
}

/* Collects a child that has ended. Its last bytes are in the pipe then. */
static void collect(cli_spawn *spawn, child *c) {
  int status;
  if (c->state != CLI_CHILD_RUNS) return;
  pthread_mutex_lock(&spawn->lock);
  bool ended = waitpid(c->pid, &status, WNOHANG) == c->pid;
  if (ended) {
    c->code = WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status);
    c->state = WIFEXITED(status) ? CLI_CHILD_EXITED : CLI_CHILD_KILLED;
  }
  pthread_mutex_unlock(&spawn->lock);
  if (!ended) return;
  read_out(c, true);
  if (c->pidfd >= 0) close(c->pidfd);
  c->pidfd = -1;
  pthread_mutex_lock(&spawn->lock);
  spawn->ended++;
  pthread_cond_broadcast(&spawn->changed);
  pthread_mutex_unlock(&spawn->lock);
}

static void signal_all(cli_spawn *spawn, int number) {
  for (size_t i = 0; i < spawn->count; i++)
    if (spawn->children[i].state == CLI_CHILD_RUNS)
      kill(-spawn->children[i].pid, number);
}

static void wait_for_any(cli_spawn *spawn, bool ticks) {
  nfds_t n = 0;
  spawn->polled[n++] = (struct pollfd){spawn->word[0], POLLIN, 0};
  for (size_t i = 0; i < spawn->count; i++) {
    const child *c = &spawn->children[i];
    if (c->out >= 0) spawn->polled[n++] = (struct pollfd){c->out, POLLIN, 0};
    if (c->pidfd >= 0)
      spawn->polled[n++] = (struct pollfd){c->pidfd, POLLIN, 0};
    ticks = ticks || (c->pidfd < 0 && c->state == CLI_CHILD_RUNS);
  }
  pthread_mutex_lock(&spawn->lock);
  ticks = ticks || spawn->kill_ns > 0;
  pthread_mutex_unlock(&spawn->lock);
  poll(spawn->polled, n, ticks ? TICK_MS : -1);
  char word;
  if (spawn->polled[0].revents != 0 && read(spawn->word[0], &word, 1) < 0)
    return;
}

static void see_to_all(cli_spawn *spawn) {
  for (size_t i = 0; i < spawn->count; i++) {
    read_out(&spawn->children[i], false);
    collect(spawn, &spawn->children[i]);
  }
}

static void *watch(void *self) {
  cli_spawn *spawn = self;
  while (spawn->ended < spawn->count) { /* written by this thread alone */
    wait_for_any(spawn, false);
    see_to_all(spawn);
    pthread_mutex_lock(&spawn->lock);
    if (spawn->kill_ns > 0 && cli_now_ns() >= spawn->kill_ns)
      signal_all(spawn, SIGKILL);
    pthread_mutex_unlock(&spawn->lock);
  }
  return NULL;
}

weir_status cli_spawn_watch(cli_spawn *spawn, weir_error *err) {
  if (pthread_create(&spawn->thread, NULL, watch, spawn) != 0)
    return cli_error(err, "W6003", "the system refused a thread");
  spawn->watched = true;
  return WEIR_OK;
}

/* ---- Without the thread */

void cli_spawn_turn(cli_spawn *spawn) {
  wait_for_any(spawn, true);
  see_to_all(spawn);
}

weir_status cli_spawn_restart(cli_spawn *spawn, size_t i, char *const argv[],
                              weir_error *err) {
  WEIR_TRY(begin(&spawn->children[i], argv, err));
  spawn->ended--;
  return WEIR_OK;
}

void cli_spawn_signal(cli_spawn *spawn, size_t i, int number) {
  if (spawn->children[i].state == CLI_CHILD_RUNS)
    kill(spawn->children[i].pid, number);
}

/* ---- States and the end */

cli_child_state cli_spawn_state(cli_spawn *spawn, size_t i, int *out_code) {
  pthread_mutex_lock(&spawn->lock);
  cli_child_state state = spawn->children[i].state;
  *out_code = spawn->children[i].code;
  pthread_mutex_unlock(&spawn->lock);
  return state;
}

weir_status cli_spawn_check(cli_spawn *spawn, weir_error *err) {
  for (size_t i = 0; i < spawn->count; i++) {
    int code;
    cli_child_state state = cli_spawn_state(spawn, i, &code);
    if (state == CLI_CHILD_RUNS) continue;
    return cli_error(err, "W7022", "%s has ended by itself (%s %d)",
                     spawn->children[i].name,
                     state == CLI_CHILD_EXITED ? "exit code" : "signal", code);
  }
  return WEIR_OK;
}

size_t cli_spawn_wait(cli_spawn *spawn, size_t seen) {
  pthread_mutex_lock(&spawn->lock);
  while (spawn->ended <= seen && spawn->ended < spawn->count)
    pthread_cond_wait(&spawn->changed, &spawn->lock);
  size_t ended = spawn->ended;
  pthread_mutex_unlock(&spawn->lock);
  return ended;
}

void cli_spawn_end(cli_spawn *spawn, int64_t grace_ms) {
  pthread_mutex_lock(&spawn->lock);
  spawn->kill_ns = cli_now_ns() + grace_ms * 1000000;
  signal_all(spawn, grace_ms > 0 ? SIGTERM : SIGKILL);
  pthread_mutex_unlock(&spawn->lock);
  if (spawn->watched) {
    ssize_t n = write(spawn->word[1], "x", 1);
    (void)n; /* it looks every TICK_MS at the latest */
    pthread_join(spawn->thread, NULL);
  } else {
    watch(spawn);
  }
  spawn->watched = false;
}

void cli_spawn_forget(const cli_spawn *spawn) {
  cli_folder_remove(&spawn->folder);
}

void cli_spawn_release(cli_spawn *spawn) {
  if (spawn == NULL) return;
  if (spawn->count > 0 && (spawn->watched || spawn->ended < spawn->count))
    cli_spawn_end(spawn, 0);
  cli_folder_release(&spawn->folder);
  for (int i = 0; i < 2; i++)
    if (spawn->word[i] >= 0) close(spawn->word[i]);
  pthread_mutex_destroy(&spawn->lock);
  pthread_cond_destroy(&spawn->changed);
  free(spawn->polled);
  free(spawn->children);
  free(spawn);
}
