/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>
#include <ftw.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "tests/fuzz/mutate_drive.h"
#include "tests/fuzz/mutate_text.h"
#include "tests/networks.h"

/* Graph files with changes that keep their grammar, each through check, run,
 * place and train in one process:
 *
 *   mutate [--seed S] [--cases N | --seconds N] [--only CASE] [--slow SECONDS]
 *          [--plain] SEEDS...
 *
 * SEEDS are folders of graphs. With --plain those of the last one come first,
 * as they are: graphs that broke something once. Case c of seed S is the same
 * graph at any time and on any machine: `--only c` makes it again. The graph
 * under work lies in the file "mutate_S_c.weir.yaml" of the working directory
 * while it is worked on, and stays there when the process dies or breaks a
 * promise; so a file that is left in the folder is a finding. The end names the
 * number of cases, the longest ones and the most memory. Times are of the
 * processor, of all threads: other work of the machine is no part of them.
 * Verdicts do not depend on time unless --slow asks for it, which makes a case
 * that takes longer a finding; but a case that does not end ends the process:
 * after HANG_SECONDS of its own time, which no working one is near to, even
 * under a sanitizer, or after STUCK_SECONDS on the wall. */

enum {
  SEEDS = 1024,
  FOLDERS = 16,
  CHANGES = 5,
  HANG_SECONDS = 120,
  STUCK_SECONDS = 1200,
  LONGEST = 5
};

typedef struct options {
  uint64_t seed, cases, seconds, slow_seconds;
  int64_t only;
  bool plain;
} options;

/* A case and its ways' times together. */
typedef struct timed_case {
  uint64_t n;
  int64_t ns;
} timed_case;

typedef struct totals {
  uint64_t cases, findings, done[DRIVE_WAYS];
  int64_t worst_ns[DRIVE_WAYS];
  uint64_t worst_case[DRIVE_WAYS];
  uint64_t peak_bytes, peak_case;
  timed_case longest[LONGEST]; /* the longest first */
} totals;

static mutate_text *seeds[SEEDS];
static size_t seed_count, folder_first[FOLDERS + 1], folder_count;
static char here[4096], case_path[4200], work_folder[80];

static void die(const char *what) {
  fprintf(stderr, "mutate: %s: %s\n", what, strerror(errno));
  exit(2);
}

/* ---- Seeds */

static int by_name(const void *a, const void *b) {
  return strcmp(*(char *const *)a, *(char *const *)b);
}

static void add_seed(const char *path) {
  static char text[MUTATE_BYTES];
  FILE *file = fopen(path, "rb");
  if (file == NULL || seed_count == SEEDS) die(path);
  size_t size = fread(text, 1, sizeof text, file);
  bool whole = feof(file) != 0;
  fclose(file);
  if (!whole || size == 0) return;
  mutate_text *seed = malloc(sizeof *seed);
  if (seed == NULL) die("memory");
  mutate_set(seed, text, size);
  seeds[seed_count++] = seed;
}

/* In the order of their names: the file system's is not the same everywhere. */
static void add_folder(const char *folder) {
  char *paths[SEEDS];
  size_t count = 0;
  DIR *dir = opendir(folder);
  if (dir == NULL) die(folder);
  for (struct dirent *e; (e = readdir(dir)) != NULL && count < SEEDS;) {
    char path[4096];
    size_t n = strlen(e->d_name);
    if (n < 5 || strcmp(e->d_name + n - 5, ".yaml") != 0 ||
        is_network(e->d_name))
      continue;
    snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
    if ((paths[count++] = strdup(path)) == NULL) die("memory");
  }
  closedir(dir);
  if (folder_count == FOLDERS) die(folder);
  folder_first[folder_count++] = seed_count;
  qsort(paths, count, sizeof *paths, by_name);
  for (size_t i = 0; i < count; i++) {
    add_seed(paths[i]);
    free(paths[i]);
  }
  folder_first[folder_count] = seed_count;
}

/* Each folder as often as the others, however many seeds it has. */
static const mutate_text *any_seed(mutate_random *r) {
  size_t f = mutate_below(r, folder_count);
  size_t n = folder_first[f + 1] - folder_first[f];
  return seeds[folder_first[f] + mutate_below(r, n)];
}

/* ---- Cases */

/* Case |n|: a seed and one to CHANGES changes. */
static uint64_t make_case(const options *o, uint64_t n, mutate_text *out) {
  mutate_random r = {o->seed * 0x9e3779b97f4a7c15u + n};
  (void)mutate_next(&r);
  *out = *any_seed(&r);
  const mutate_text *other = any_seed(&r);
  for (size_t k = 1 + mutate_below(&r, 1 + mutate_below(&r, CHANGES)); k-- > 0;)
    mutate_once(out, other, &r);
  return mutate_next(&r);
}

static int drop_entry(const char *path, const struct stat *info, int type,
                      struct FTW *walk) {
  (void)info, (void)type;
  return walk->level > 0 ? remove(path) : 0;
}

static void save_case(const mutate_text *t) {
  FILE *file = fopen(case_path, "wb");
  if (file == NULL || fwrite(t->bytes, 1, t->size, file) != t->size)
    die(case_path);
  fclose(file);
}

/* Arms the end of a case that hangs; 0: disarms it. */
static void watch(bool on) {
  struct itimerval own = {{0, 0}, {on ? HANG_SECONDS : 0, 0}};
  setitimer(ITIMER_PROF, &own, NULL);
  alarm(on ? STUCK_SECONDS : 0);
}

static void add_longest(totals *sum, timed_case c) {
  for (int i = 0; i < LONGEST; i++) {
    if (c.ns <= sum->longest[i].ns) continue;
    timed_case shorter = sum->longest[i];
    sum->longest[i] = c;
    c = shorter;
  }
}

static void add_up(const options *o, uint64_t n, drive_result *r, totals *sum) {
  timed_case all = {n, 0};
  sum->cases++;
  for (int w = 0; w < DRIVE_WAYS; w++) {
    sum->done[w] += r->done[w];
    all.ns += r->ns[w];
    if (r->ns[w] <= sum->worst_ns[w]) continue;
    sum->worst_ns[w] = r->ns[w];
    sum->worst_case[w] = n;
  }
  add_longest(sum, all);
  if (r->peak_bytes > sum->peak_bytes) {
    sum->peak_bytes = r->peak_bytes;
    sum->peak_case = n;
  }
  if (o->slow_seconds > 0 && r->finding[0] == '\0' &&
      all.ns > (int64_t)o->slow_seconds * 1000000000)
    snprintf(r->finding, sizeof r->finding, "%.2f s", (double)all.ns / 1e9);
}

/* An own block, so that sanitizers see reads past its end. */
static void one_text(const options *o, uint64_t n, const mutate_text *t,
                     uint64_t seed, totals *sum) {
  drive_result r;
  char *copy = malloc(t->size > 0 ? t->size : 1);
  if (copy == NULL) die("memory");
  memcpy(copy, t->bytes, t->size);
  save_case(t);
  watch(true);
  drive(copy, t->size, seed, work_folder, &r);
  watch(false);
  free(copy);
  nftw(work_folder, drop_entry, 16, FTW_DEPTH | FTW_PHYS);
  add_up(o, n, &r, sum);
  if (r.finding[0] == '\0') {
    unlink(case_path);
    return;
  }
  sum->findings++;
  printf("%s: %s\n", case_path, r.finding);
  fflush(stdout);
}

static void one_case(const options *o, uint64_t n, totals *sum) {
  static mutate_text t;
  uint64_t seed = make_case(o, n, &t);
  snprintf(case_path, sizeof case_path,
           "%s/mutate_%" PRIu64 "_%" PRIu64 ".weir.yaml", here, o->seed, n);
  one_text(o, n, &t, seed, sum);
}

/* The graphs of the last folder, as they are. */
static void plain_cases(const options *o, totals *sum) {
  for (size_t i = folder_first[folder_count - 1]; i < seed_count; i++) {
    snprintf(case_path, sizeof case_path, "%s/plain_%zu.weir.yaml", here,
             i - folder_first[folder_count - 1]);
    one_text(o, i, seeds[i], o->seed, sum);
  }
}

/* A folder that held nothing but the work folder still does: a graph wrote
 * nowhere else, as far as ".." leads. */
static bool nothing_beside(const char *folder) {
  DIR *dir = opendir(folder);
  bool clean = dir != NULL;
  if (dir == NULL) return false;
  for (struct dirent *e; (e = readdir(dir)) != NULL;)
    if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 &&
        strcmp(e->d_name, "in") != 0) {
      printf("a graph wrote %s/%s\n", folder, e->d_name);
      clean = false;
    }
  closedir(dir);
  return clean;
}

static void report(const totals *sum, time_t started) {
  double seconds = difftime(time(NULL), started);
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  printf("%" PRIu64 " cases, %.0f s, %.1f a second; %" PRIu64 " findings\n",
         sum->cases, seconds, (double)sum->cases / (seconds > 1 ? seconds : 1),
         sum->findings);
  for (int w = 0; w < DRIVE_WAYS; w++)
    printf("%-5s %8" PRIu64 " ended well; longest %.2f s (case %" PRIu64 ")\n",
           drive_names[w], sum->done[w], (double)sum->worst_ns[w] / 1e9,
           sum->worst_case[w]);
  printf("longest cases:");
  for (int i = 0; i < LONGEST && sum->longest[i].ns > 0; i++)
    printf("%s %" PRIu64 " (%.2f s)", i > 0 ? "," : "", sum->longest[i].n,
           (double)sum->longest[i].ns / 1e9);
  printf("\nmemory: at most %.1f MiB of weir's own (case %" PRIu64
         "), %.1f MiB of the process\n",
         (double)sum->peak_bytes / 1048576, sum->peak_case,
         (double)usage.ru_maxrss / 1024);
}

/* ---- The command */

static void on_alarm(int signal_number) {
  static const char text[] = "mutate: a case does not end: ";
  (void)signal_number;
  if (write(2, text, sizeof text - 1) > 0 &&
      write(2, case_path, strlen(case_path)) > 0 && write(2, "\n", 1) > 0)
    abort();
  abort();
}

static uint64_t number(const char *text) {
  char *end = NULL;
  errno = 0;
  uint64_t n = strtoull(text, &end, 10);
  if (errno != 0 || *end != '\0' || end == text) die(text);
  return n;
}

static void read_options(int argc, char **argv, options *o) {
  for (int i = 1; i < argc; i++) {
    bool value = i + 1 < argc;
    if (value && strcmp(argv[i], "--seed") == 0)
      o->seed = number(argv[++i]);
    else if (value && strcmp(argv[i], "--cases") == 0)
      o->cases = number(argv[++i]);
    else if (value && strcmp(argv[i], "--seconds") == 0)
      o->seconds = number(argv[++i]);
    else if (value && strcmp(argv[i], "--slow") == 0)
      o->slow_seconds = number(argv[++i]);
    else if (value && strcmp(argv[i], "--only") == 0)
      o->only = (int64_t)number(argv[++i]);
    else if (strcmp(argv[i], "--plain") == 0)
      o->plain = true;
    else
      add_folder(argv[i]);
  }
  if (seed_count == 0) die("no seeds");
}

int main(int argc, char **argv) {
  options o = {.seed = 1, .cases = UINT64_MAX, .only = -1};
  totals sum = {0};
  char outer[] = "/tmp/weir_mutate_XXXXXX", inner[64];
  read_options(argc, argv, &o);
  if (o.cases == UINT64_MAX && o.seconds == 0) o.cases = 1000;
  if (mkdtemp(outer) == NULL) die(outer);
  snprintf(inner, sizeof inner, "%s/in", outer);
  snprintf(work_folder, sizeof work_folder, "%s/in", inner);
  if (mkdir(inner, 0700) != 0 || mkdir(work_folder, 0700) != 0) die(inner);
  /* A path without a folder in a graph is one of this folder. */
  if (getcwd(here, sizeof here) == NULL || chdir(work_folder) != 0) die(inner);
  signal(SIGALRM, on_alarm);
  signal(SIGPROF, on_alarm);
  time_t started = time(NULL);
  if (o.plain) plain_cases(&o, &sum);
  uint64_t n = o.only >= 0 ? (uint64_t)o.only : 0;
  if (o.only >= 0) o.cases = n + 1;
  for (; n < o.cases; n++) {
    if (o.seconds > 0 && difftime(time(NULL), started) >= (double)o.seconds)
      break;
    one_case(&o, n, &sum);
  }
  report(&sum, started);
  bool clean = nothing_beside(outer) && nothing_beside(inner);
  nftw(outer, drop_entry, 16, FTW_DEPTH | FTW_PHYS);
  rmdir(outer);
  for (size_t i = 0; i < seed_count; i++) free(seeds[i]);
  return sum.findings == 0 && clean ? 0 : 1;
}
