/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks of a command.
 *
 * A task of --local listens at a unix socket in a folder that no other user can
 * enter, so the addresses are known before the processes start; both sides read
 * the same text of the cluster, so they agree on its hash. */
#include "cli/cluster/cluster.h"

#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "cli/cluster/dealt.h"
#include "cli/cluster/own.h"
#include "cli/spawn/spawn.h"
#include "cli/system.h"
#include "runtime/base/quantity.h"

enum { GRACE_MS = 2000, WORDS = 28, TEXT = 160, TASKS = 64 };

/* Addresses of the tasks of --local, and their processes. */
struct cli_locals {
  cli_spawn *spawn;
  char (*addresses)[TEXT];
  const char **list;
  size_t count;
};

/* Each connection is a file, of strangers too, and gRPC 1.51 listens no longer
 * once it could not take one: 1,024, what most systems give at first, are soon
 * used up. FILES are far beyond what comes within the time for a Hello. */
static void raise_files(void) {
  enum { FILES = 65536 };
  struct rlimit r;
  if (getrlimit(RLIMIT_NOFILE, &r) != 0 || r.rlim_cur >= FILES) return;
  r.rlim_cur = r.rlim_max < FILES ? r.rlim_max : FILES;
  (void)setrlimit(RLIMIT_NOFILE, &r);
}

void cli_cluster_prepare(void) {
  raise_files();
  setenv("GRPC_POLL_STRATEGY", "poll", 0);
#ifdef __GLIBC__
  /* Else the buffers of each large tensor go back to the system and come again:
   * half of the throughput. */
  mallopt(M_TRIM_THRESHOLD, 2000000000);
  mallopt(M_TOP_PAD, 64 << 20);
  /* One heap, whose pages come around again while they are in the cache; the
   * heap of a thread of its own takes a tenth of the throughput. */
  mallopt(M_ARENA_MAX, 1);
#endif
}

const char *cli_cluster_text(const cli_args *args) {
  if (args->local != NULL || args->tasks == NULL) return args->local;
  /* What the environment had is in |tasks| by now (choose.h). */
  bool here = args->job == NULL && strcmp(args->tasks, "auto") == 0;
  return here ? NULL : args->tasks;
}

/* ---- The processes of --local */

typedef struct starting {
  struct cli_locals *locals;
  const cli_args *args;
  const char *self; /* this program */
} starting;

static bool count_task(void *self, const char *job, uint32_t index) {
  struct cli_locals *locals = self;
  (void)job;
  (void)index;
  locals->count++;
  return true;
}

/* The words that start a task's process. */
typedef struct words {
  const char *at[WORDS];
  size_t count;
  char texts[6][TEXT];
  size_t text_count;
} words;

static void add(words *w, const char *word) {
  w->at[w->count++] = word;
}

/* An option with its value, when there is one. */
static void add_value(words *w, const char *option, const char *value) {
  if (value == NULL) return;
  add(w, option);
  add(w, value);
}

static void add_time(words *w, const char *option, int64_t ns) {
  if (ns == 0) return;
  char *text = w->texts[w->text_count++];
  snprintf(text, TEXT, "%.9fs", (double)ns / 1e9);
  add_value(w, option, text);
}

/* The folder that this command itself may write checkpoints to: the option's,
 * or the one beneath which a graph may name others. */
static const char *checkpoint_root(const cli_args *a) {
  if (a->checkpoint != NULL && a->checkpoint[0] != '\0') return a->checkpoint;
  return a->run_folder != NULL && a->run_folder[0] != '\0' ? a->run_folder
                                                           : ".";
}

static weir_status start_task(const starting *s, size_t i, const char *job,
                              uint32_t index, weir_error *err) {
  const cli_args *a = s->args;
  struct cli_locals *l = s->locals;
  words w = {.count = 0};
  char name[TEXT], number[16];
  snprintf(number, sizeof number, "%u", index);
  snprintf(name, sizeof name, "%.64s:%u", job, index);
  snprintf(l->addresses[i], TEXT, "unix:%s/%zu", cli_spawn_folder(l->spawn), i);
  l->list[i] = l->addresses[i];
  add(&w, s->self);
  add(&w, "task");
  add_value(&w, "--job", job);
  add_value(&w, "--index", number);
  add_value(&w, "--cluster", a->local);
  add_value(&w, "--listen", l->addresses[i]);
  add_value(&w, "--threads", a->task_threads);
  add_value(&w, "--isa", a->isa);
  add_value(&w, "--checkpoint-root", checkpoint_root(a));
  add_time(&w, "--heartbeat", a->heartbeat_ns);
  add_time(&w, "--device-wait", a->device_wait_ns);
  add_value(&w, "--tune", a->tune);
  add_value(&w, "--device-locks", a->device_locks);
  if (a->quiet) add(&w, "--quiet");
  add(&w, NULL);
  return cli_spawn_start(l->spawn, name, (char *const *)(uintptr_t)w.at, err);
}

typedef struct start_call {
  starting s;
  size_t next;
  weir_status status;
  weir_error *err;
} start_call;

static bool on_task(void *self, const char *job, uint32_t index) {
  start_call *c = self;
  c->status = start_task(&c->s, c->next++, job, index, c->err);
  return c->status == WEIR_OK;
}

/* Before this process ends at once; its children die with it. */
static void forget(void *self) {
  cli_spawn_forget(self);
}

static weir_status start_all(cli_job *job, const cli_args *args,
                             weir_error *err) {
  struct cli_locals *l = job->locals;
  char program[4096];
  ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
  if (n <= 0)
    return cli_error(err, "W6003", "/proc/self/exe, this program, is unknown");
  program[n] = '\0';
  WEIR_TRY(weir_tools_tasks(job->runtime, args->local, count_task, l, err));
  if (l->count > TASKS)
    return cli_error(err, "W0002",
                     "--local %s: %zu processes, at most %d are started",
                     args->local, l->count, TASKS);
  l->addresses = calloc(l->count, sizeof *l->addresses);
  l->list = calloc(l->count, sizeof *l->list);
  if (l->addresses == NULL || l->list == NULL) return cli_no_memory(err);
  const char *tmp = getenv("TMPDIR");
  WEIR_TRY(cli_spawn_open(tmp != NULL && tmp[0] == '/' ? tmp : "/tmp", l->count,
                          &l->spawn, err));
  cli_exit_hook(forget, l->spawn);
  start_call call = {.s = {l, args, program}, .err = err};
  WEIR_TRY(weir_tools_tasks(job->runtime, args->local, on_task, &call, err));
  WEIR_TRY(call.status);
  return cli_spawn_watch(l->spawn, err);
}

weir_status cli_cluster_start(cli_job *job, const cli_args *args,
                              weir_error *err) {
  if (args->local == NULL) return WEIR_OK;
  cli_signals_watch(NULL); /* before there are threads */
  job->locals = calloc(1, sizeof *job->locals);
  if (job->locals == NULL) return cli_no_memory(err);
  return start_all(job, args, err);
}

/* ---- Connecting */

/* The process of a task that has ended will not serve. */
static weir_status check_all(void *self, weir_error *err) {
  return cli_spawn_check(self, err);
}

/* A graph that cannot be dealt is cut, and the reason is said. */
static weir_status open_tasks(cli_job *job, const cli_args *args, bool deal,
                              weir_tasks_opts *o, weir_error *err) {
  weir_error why = WEIR_ERROR_INIT;
  weir_status s = WEIR_FAILED_PRECONDITION;
  if (deal) {
    WEIR_TRY(cli_dealt_begin(args, o, &job->dealt, err));
    s = weir_tasks_open(job->runtime, job->graph, o, &job->tasks, &why);
    if (s == WEIR_OK) cli_dealt_use(job->dealt, job->tasks);
    if (s == WEIR_OK || strcmp(why.id, "W7071") != 0) {
      *err = why;
      return s;
    }
    cli_dealt_end(job->dealt);
    job->dealt = NULL;
    o->deal = false;
    if (!args->quiet)
      cli_note("batches are not dealt, the graph is cut over all tasks: %s\n",
               why.message);
  }
  return weir_tasks_open(job->runtime, job->graph, o, &job->tasks, err);
}

weir_status cli_cluster_open(cli_job *job, const cli_args *args, bool deal,
                             weir_session_opts *opts, weir_error *err) {
  const char *text = cli_cluster_text(args);
  if (text == NULL) return WEIR_OK;
  const struct cli_locals *l = job->locals;
  weir_tasks_opts o = {.struct_size = sizeof o,
                       .insecure = args->insecure,
                       .stop = l != NULL,
                       .cluster = text,
                       .share = args->share,
                       .start_timeout_ns = args->start_ns,
                       .step_timeout_ns = args->step_ns,
                       .heartbeat_ns = args->heartbeat_ns};
  if (args->tf != NULL) {
    o.addresses = args->tf->addresses;
    o.address_count = args->tf->address_count;
  }
  if (l != NULL) {
    o.addresses = l->list;
    o.address_count = l->count;
    o.while_starting = check_all;
    o.while_starting_self = l->spawn;
  }
  cli_cluster_prepare();
  WEIR_TRY(cli_own_start(job, args, &job->own, err));
  /* Dealt workers have weights of their own, and a share has one of each. */
  WEIR_TRY(open_tasks(job, args, deal && args->share == NULL, &o, err));
  opts->tasks = job->tasks;
  return WEIR_OK;
}

void cli_cluster_say(const cli_job *job) {
  char size[WEIR_QUANTITY_TEXT];
  uint64_t values = weir_tasks_values(job->tasks);
  if (job->tasks == NULL) return;
  cli_note("; %llu value%s, %s came from tasks", (unsigned long long)values,
           values == 1 ? "" : "s",
           weir_quantity_print_bytes(
               (int64_t)weir_tasks_value_bytes(job->tasks), size));
}

void cli_cluster_close(cli_job *job) {
  struct cli_locals *l = job->locals;
  weir_tasks_release(job->tasks);
  job->tasks = NULL;
  cli_dealt_end(job->dealt);
  job->dealt = NULL;
  cli_own_end(job->own);
  job->own = NULL;
  job->locals = NULL;
  if (l == NULL) return;
  cli_exit_hook(NULL, NULL);
  if (l->spawn != NULL) cli_spawn_end(l->spawn, GRACE_MS);
  cli_spawn_release(l->spawn);
  free(l->addresses);
  free(l->list);
  free(l);
}
