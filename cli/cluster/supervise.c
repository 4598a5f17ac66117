/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cluster/supervise.h"

#include <ftw.h>
#include <glob.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/spawn/spawn.h"
#include "cli/system.h"

enum {
  TASKS = 64,
  TEXT = 160,
  ADDED = 16,
  GRACE_MS = 5000,
  LAST_WORD_MS = 60000,
  CHIEF_MS = 20000,
  LOST = 138,
  RESTARTS = 3
};

/* A task and the words of its command. */
typedef struct part {
  char job[64], name[96], number[16];
  const char **words;
  /* An evaluator: it follows checkpoints, and the job does not see it. */
  bool evaluates, failed;
  int code;         /* of an evaluator that failed */
  int64_t ended_ns; /* with LOST; 0: it runs */
} part;

typedef struct supervisor {
  const cli_args *args;
  cli_spawn *spawn;
  char program[4096], *addresses, generations[4200];
  char *cluster;    /* --local without evaluators */
  char threads[32]; /* of each */
  char after[32];   /* the step of the newest checkpoint that is there; or "" */
  part *parts;
  size_t count, chief, evaluators;
  int64_t restarts; /* left */
  bool has_ps, has_worker;
} supervisor;

/* Options of this process alone; each has a value. */
static const char *const kOwn[] = {"--local", "--restarts", "--timeout",
                                   "--task-threads", "--resume"};

static bool count_task(void *self, const char *job, uint32_t index) {
  supervisor *s = self;
  (void)index;
  s->count++;
  s->has_ps = s->has_ps || strcmp(job, "ps") == 0;
  s->has_worker = s->has_worker || strcmp(job, "worker") == 0;
  s->evaluators += strcmp(job, "evaluator") == 0;
  return true;
}

/* The cluster of the others: |text| without its entries of evaluators. */
static weir_status leave_out(const char *text, char **out, weir_error *err) {
  static const char kJob[] = "evaluator=";
  char *to = *out = calloc(1, strlen(text) + 1);
  if (to == NULL) return cli_no_memory(err);
  for (const char *at = text; *at != '\0';) {
    while (*at == ',' || *at == ' ') at++;
    size_t n = strcspn(at, ",");
    if (strncmp(at, kJob, sizeof kJob - 1) != 0 && n > 0)
      to += sprintf(to, "%s%.*s", to == *out ? "" : ",", (int)n, at);
    at += n;
  }
  return WEIR_OK;
}

/* How many words from |at| on are this process's own. */
static size_t skips(const char *word) {
  for (size_t i = 0; i < sizeof kOwn / sizeof *kOwn; i++) {
    size_t n = strlen(kOwn[i]);
    if (strncmp(word, kOwn[i], n) != 0) continue;
    if (word[n] == '\0') return 2;
    if (word[n] == '=') return 1;
  }
  return 0;
}

static void add(part *p, size_t *n, const char *option, const char *value) {
  p->words[(*n)++] = option;
  p->words[(*n)++] = value;
}

/* Whether generations have a folder that outlives this command. */
static bool has_folder(const cli_args *a) {
  return a->generations != NULL ||
         (a->checkpoint != NULL && a->checkpoint[0] != '\0');
}

/* The words of a part: those of this command, and which part it is. */
static weir_status fill_words(const supervisor *s, part *p, weir_error *err) {
  const cli_args *a = s->args;
  size_t n = 0;
  p->words = calloc(a->word_count + ADDED + 4, sizeof *p->words);
  if (p->words == NULL) return cli_no_memory(err);
  p->words[n++] = s->program;
  p->words[n++] = "train";
  add(p, &n, "--cluster", s->cluster);
  add(p, &n, "--job", p->job);
  add(p, &n, "--index", p->number);
  add(p, &n, "--addresses", s->addresses);
  if (!has_folder(a)) add(p, &n, "--generations", s->generations);
  if (a->threads == NULL) add(p, &n, "--threads", s->threads);
  if (p->evaluates && s->after[0] != '\0') add(p, &n, "--after", s->after);
  for (size_t i = 0; i < a->word_count;) {
    size_t own = skips(a->words[i]);
    if (own == 0) p->words[n++] = a->words[i];
    i += own > 0 ? own : 1;
  }
  return WEIR_OK;
}

typedef struct listing {
  supervisor *s;
  size_t at;
} listing;

static bool list_task(void *self, const char *job, uint32_t index) {
  listing *l = self;
  supervisor *s = l->s;
  part *p = &s->parts[l->at];
  snprintf(p->job, sizeof p->job, "%s", job);
  snprintf(p->number, sizeof p->number, "%u", index);
  snprintf(p->name, sizeof p->name, "%s:%u", p->job, index);
  p->evaluates = strcmp(job, "evaluator") == 0;
  size_t used = strlen(s->addresses);
  if (!p->evaluates) /* nobody dials one */
    snprintf(s->addresses + used, TEXT * s->count - used, "%sunix:%s/%zu",
             used > 0 ? "," : "", cli_spawn_folder(s->spawn), l->at);
  /* Job chief leads; else worker 0. */
  bool leads = strcmp(job, "chief") == 0 ||
               (strcmp(job, "worker") == 0 && index == 0 &&
                strcmp(s->parts[s->chief].job, "chief") != 0);
  if (leads) s->chief = l->at;
  l->at++;
  return true;
}

/* Whether a file of |folder| fits |pattern|. */
static bool has_file(const char *folder, const char *pattern) {
  glob_t found;
  char path[4400];
  snprintf(path, sizeof path, "%.4200s/%s", folder, pattern);
  bool has = glob(path, GLOB_NOSORT, NULL, &found) == 0;
  globfree(&found);
  return has;
}

/* Finds the newest checkpoint. The job goes on from it, and an evaluator, which
 * may look before the chief writes another, must not take it for the end. */
static void find_newest(supervisor *s) {
  glob_t found;
  char path[4400];
  long long newest = 0;
  const char *folder = s->args->checkpoint;
  if (folder == NULL || folder[0] == '\0') return;
  snprintf(path, sizeof path, "%.4200s/step-*.json", folder);
  if (glob(path, GLOB_NOSORT, NULL, &found) != 0) return;
  for (size_t i = 0; i < found.gl_pathc; i++) {
    long long step = 0;
    const char *name = strrchr(found.gl_pathv[i], '/');
    if (sscanf(name, "/step-%lld", &step) == 1 && step > newest) newest = step;
  }
  globfree(&found);
  if (newest > 0) snprintf(s->after, sizeof s->after, "%lld", newest);
}

/* Generations are gone on from, and checkpoints of one process where there are
 * none, if --resume none does not forbid it. */
static weir_status check_new(const cli_args *a, weir_error *err) {
  char folder[4300] = "";
  bool none = a->resume != NULL && strcmp(a->resume, "none") == 0;
  if (!has_folder(a)) return WEIR_OK;
  snprintf(folder, sizeof folder, "%.4000s%s",
           a->generations != NULL ? a->generations : a->checkpoint,
           a->generations != NULL ? "" : "/generations");
  bool sealed = has_file(folder, "sealed");
  bool saved = a->checkpoint != NULL && has_file(a->checkpoint, "step-*.json");
  if (!none || (!sealed && !saved)) return WEIR_OK;
  weir_status s = cli_error(err, "W5025", "%s: there are %s already",
                            sealed ? folder : a->checkpoint,
                            sealed ? "generations" : "checkpoints");
  cli_hint(err,
           "--resume auto goes on from the last; for a new run name another "
           "folder, or remove them");
  return s;
}

static weir_status prepare(supervisor *s, cli_job *job, weir_error *err) {
  const cli_args *a = s->args;
  ssize_t n = readlink("/proc/self/exe", s->program, sizeof s->program - 1);
  if (n <= 0)
    return cli_error(err, "W6003", "/proc/self/exe, this program, is unknown");
  s->program[n] = '\0';
  WEIR_TRY(weir_tools_tasks(job->runtime, a->local, count_task, s, err));
  if (s->count > TASKS || !s->has_ps || !s->has_worker)
    return cli_error(err, "W0002",
                     "--local %s: replicas between graphs need job ps and job "
                     "worker, %d tasks at most",
                     a->local, TASKS);
  int share = cli_cores() / (int)s->count;
  snprintf(s->threads, sizeof s->threads, "%d", share > 1 ? share : 1);
  if (a->task_threads != NULL)
    snprintf(s->threads, sizeof s->threads, "%s", a->task_threads);
  WEIR_TRY(check_new(a, err));
  find_newest(s);
  WEIR_TRY(leave_out(a->local, &s->cluster, err));
  s->parts = calloc(s->count, sizeof *s->parts);
  s->addresses = calloc(s->count, TEXT);
  if (s->parts == NULL || s->addresses == NULL) return cli_no_memory(err);
  const char *tmp = getenv("TMPDIR");
  WEIR_TRY(cli_spawn_open(tmp != NULL && tmp[0] == '/' ? tmp : "/tmp", s->count,
                          &s->spawn, err));
  snprintf(s->generations, sizeof s->generations, "%s/generations",
           cli_spawn_folder(s->spawn));
  listing l = {s, 0};
  WEIR_TRY(weir_tools_tasks(job->runtime, a->local, list_task, &l, err));
  for (size_t i = 0; i < s->count; i++)
    WEIR_TRY(fill_words(s, &s->parts[i], err));
  return WEIR_OK;
}

static weir_status start(const supervisor *s, size_t i, bool again,
                         weir_error *err) {
  char *const *words = (char *const *)(uintptr_t)s->parts[i].words;
  if (again) return cli_spawn_restart(s->spawn, i, words, err);
  cli_spawn_plain(s->spawn, i == s->chief);
  return cli_spawn_start(s->spawn, s->parts[i].name, words, err);
}

/* A part has ended before the chief. True: it was started again. */
static bool start_again(supervisor *s, size_t i, cli_child_state state,
                        int code, weir_error *err) {
  const char *how = state == CLI_CHILD_KILLED ? "signal" : "exit code";
  bool died = state == CLI_CHILD_KILLED || code >= 128;
  if (!died || s->restarts == 0) {
    (void)cli_error(err, "W7022", "%s has ended (%s %d)%s", s->parts[i].name,
                    how, code,
                    died ? "; --restarts N lets more be started again" : "");
    return false;
  }
  s->restarts--;
  cli_note("[%s] has ended (%s %d) and is started again; %lld restart%s left\n",
           s->parts[i].name, how, code, (long long)s->restarts,
           s->restarts == 1 ? " is" : "s are");
  return start(s, i, true, err) == WEIR_OK;
}

/* An evaluator has ended, and the chief has not. The training goes on, whatever
 * became of it; one that died is started again. */
static void see_evaluator(supervisor *s, size_t i, cli_child_state state,
                          int code) {
  part *p = &s->parts[i];
  weir_error err = WEIR_ERROR_INIT;
  bool died = state == CLI_CHILD_KILLED || code >= 128;
  if (p->failed || (state == CLI_CHILD_EXITED && code == 0)) return;
  if (died && s->restarts > 0 && start_again(s, i, state, code, &err)) return;
  p->failed = true;
  p->code = state == CLI_CHILD_KILLED ? 128 + code : code;
  cli_note("[%s] has ended (%s %d); the training goes on without it\n", p->name,
           state == CLI_CHILD_KILLED ? "signal" : "exit code", code);
}

/* The chief has ended with |code|. Evaluators end by themselves where the
 * training is over; the first that failed has the exit code. */
static int end_evaluators(supervisor *s, int code) {
  bool told = false, runs = code == 0;
  while (runs) {
    int signal = cli_signal_code(0);
    runs = false;
    cli_spawn_turn(s->spawn);
    for (size_t i = 0; i < s->count; i++) {
      int ended = 0;
      part *p = &s->parts[i];
      if (!p->evaluates) continue;
      cli_child_state state = cli_spawn_state(s->spawn, i, &ended);
      if (state == CLI_CHILD_RUNS && signal != 0 && !told)
        cli_spawn_signal(s->spawn, i, SIGINT);
      runs = runs || state == CLI_CHILD_RUNS;
      if (state == CLI_CHILD_RUNS || signal != 0) continue;
      s->restarts = 0; /* there is no training to follow */
      see_evaluator(s, i, state, ended);
      if (code == 0) code = p->code;
    }
    told = signal != 0;
  }
  return cli_signal_code(code);
}

/* A part has ended because its chief did, or because it found none. The chief
 * ends in a moment, and its error is reported. */
static bool awaits_chief(part *p, cli_child_state state, int code) {
  if (state != CLI_CHILD_EXITED || code != LOST) return false;
  if (p->ended_ns == 0) p->ended_ns = cli_now_ns();
  if (cli_now_ns() - p->ended_ns < CHIEF_MS * INT64_C(1000000)) return true;
  p->ended_ns = 0;
  return false;
}

/* Until the chief has ended: its exit code, or that of |err|. A part that fails
 * may have ended the job, which the chief says then. */
static int look_after(supervisor *s, weir_error *err) {
  bool told = false;
  int64_t until = INT64_MAX; /* the chief's time after a failure */
  for (;;) {
    cli_spawn_turn(s->spawn);
    if (cli_signal_code(0) != 0 && !told) {
      cli_spawn_signal(s->spawn, s->chief, SIGINT);
      told = true;
    }
    if (cli_now_ns() >= until) return cli_fail(err);
    for (size_t i = 0; i < s->count; i++) {
      int code;
      cli_child_state state = cli_spawn_state(s->spawn, i, &code);
      bool ended_well = state == CLI_CHILD_EXITED && code == 0;
      if (state == CLI_CHILD_RUNS || (ended_well && i != s->chief)) continue;
      if (s->parts[i].evaluates) {
        if (!told) see_evaluator(s, i, state, code);
        continue;
      }
      bool last = i == s->chief && state == CLI_CHILD_EXITED && code < 128;
      if (last || (told && i == s->chief))
        return end_evaluators(s, cli_signal_code(code));
      if (until != INT64_MAX) continue;
      if (i != s->chief && awaits_chief(&s->parts[i], state, code)) continue;
      if (start_again(s, i, state, code, err)) continue;
      if (i == s->chief) return cli_fail(err);
      bool died = state == CLI_CHILD_KILLED || code >= 128;
      if (died && !told) return cli_fail(err); /* the chief waits for it */
      until = cli_now_ns() + LAST_WORD_MS * INT64_C(1000000);
    }
  }
}

static int remove_one(const char *path, const struct stat *st, int kind,
                      struct FTW *ftw) {
  (void)st;
  (void)kind;
  (void)ftw;
  return remove(path);
}

/* Removes the generations of a job that has no folder of its own. */
static void remove_generations(const supervisor *s) {
  if (s->generations[0] != '\0')
    (void)nftw(s->generations, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void forget(void *self) {
  supervisor *s = self;
  remove_generations(s);
  cli_spawn_forget(s->spawn);
}

int cli_supervise(cli_job *job, const cli_args *args) {
  weir_error err = WEIR_ERROR_INIT;
  supervisor s = {.args = args,
                  .restarts = args->restarts < 0 ? RESTARTS : args->restarts};
  cli_signals_watch_search(); /* before there are processes */
  weir_status status = prepare(&s, job, &err);
  if (s.spawn != NULL) cli_exit_hook(forget, &s);
  for (size_t i = 0; status == WEIR_OK && i < s.count; i++)
    status = start(&s, i, false, &err);
  int code = status == WEIR_OK ? look_after(&s, &err) : cli_fail(&err);
  cli_exit_hook(NULL, NULL);
  if (s.spawn != NULL) cli_spawn_end(s.spawn, GRACE_MS);
  remove_generations(&s);
  cli_spawn_release(s.spawn);
  cli_signals_watch(NULL);
  for (size_t i = 0; s.parts != NULL && i < s.count; i++)
    free(s.parts[i].words);
  free(s.parts);
  free(s.addresses);
  free(s.cluster);
  return code;
}
