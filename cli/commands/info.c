/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "cli/json.h"
#include "cli/table.h"
#include "runtime/base/quantity.h"

extern char **environ;

/* One "name: value" after the other, as text or as members of an object. */
typedef struct facts {
  bool json;
  weir_json_writer w;
} facts;

static void facts_begin(facts *f, bool json) {
  f->json = json;
  if (!json) return;
  weir_json_writer_init(&f->w, (weir_writer){NULL, cli_out}, 1);
  weir_json_object_begin(&f->w, false);
}

static void fact(facts *f, const char *name, const char *value) {
  if (f->json)
    weir_json_key_text(&f->w, name, weir_sv_from(value));
  else
    cli_print("%-13s %s\n", name, value);
}

static void facts_end(facts *f) {
  if (f->json) cli_json_end(&f->w);
}

static void library_facts(facts *f, size_t count) {
  char value[1536]; /* 16 GPUs, a name and a size each */
  const char *name = NULL;
  for (size_t i = 0; i < count; i++)
    if (weir_fact(i, &name, value, sizeof value)) fact(f, name, value);
}

static int version_command(const cli_args *args) {
  facts f;
  if (!args->json) {
    cli_print("weir %s\n", weir_version_text());
    return 0;
  }
  facts_begin(&f, true);
  library_facts(&f, 4);
  facts_end(&f);
  return 0;
}

static void machine_fact(void *self, const char *name, const char *value) {
  fact(self, name, value);
}

static void limit_fact(facts *f, const char *name, int which, bool bytes) {
  char value[64];
  struct rlimit r;
  if (getrlimit((__rlimit_resource_t)which, &r) != 0) return;
  if (r.rlim_cur == RLIM_INFINITY)
    snprintf(value, sizeof value, "unlimited");
  else if (bytes && r.rlim_cur <= INT64_MAX)
    weir_quantity_print_bytes((int64_t)r.rlim_cur, value);
  else
    snprintf(value, sizeof value, "%llu", (unsigned long long)r.rlim_cur);
  fact(f, name, value);
}

/* The environment that has a say, in its own order. */
static void environment_facts(facts *f) {
  static const char *const names[] = {"NO_COLOR", "CLICOLOR_FORCE",
                                      "OMP_NUM_THREADS"};
  for (char **e = environ; *e != NULL; e++) {
    char name[64];
    const char *equals = strchr(*e, '=');
    if (equals == NULL || strncmp(*e, "WEIR_", 5) != 0) continue;
    snprintf(name, sizeof name, "%.*s",
             (int)(equals - *e < 60 ? equals - *e : 60), *e);
    fact(f, name, equals + 1);
  }
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    const char *value = getenv(names[i]);
    if (value != NULL) fact(f, names[i], value);
  }
}

static void memory_fact(facts *f) {
  char value[64];
  long pages = sysconf(_SC_PHYS_PAGES), bytes = sysconf(_SC_PAGESIZE);
  if (pages <= 0 || bytes <= 0) return;
  fact(f, "memory", weir_quantity_print_bytes((int64_t)pages * bytes, value));
}

static void limit_warnings(void) {
  struct rlimit r;
  if (getrlimit(RLIMIT_STACK, &r) == 0 && r.rlim_cur != RLIM_INFINITY &&
      r.rlim_cur < 1000000)
    cli_note("warning: the stack limit is below 1 MB (ulimit -s)\n");
  if (getrlimit(RLIMIT_NOFILE, &r) == 0 && r.rlim_cur < 64)
    cli_note("warning: fewer than 64 files may be open (ulimit -n)\n");
  if (getrlimit(RLIMIT_AS, &r) == 0 && r.rlim_cur != RLIM_INFINITY)
    cli_note("warning: the address space is limited (ulimit -v)\n");
}

static int doctor_command(const cli_args *args) {
  facts f;
  cli_job job;
  weir_error err = WEIR_ERROR_INIT;
  int code = cli_job_open(&job, args, 1);
  if (code != 0) return code;
  facts_begin(&f, args->json);
  library_facts(&f, 64);
  weir_status s =
      weir_tools_machine(job.runtime, args->measure, machine_fact, &f, &err);
  memory_fact(&f);
  limit_fact(&f, "stack", RLIMIT_STACK, true);
  limit_fact(&f, "open files", RLIMIT_NOFILE, false);
  limit_fact(&f, "address space", RLIMIT_AS, true);
  environment_facts(&f);
  facts_end(&f);
  limit_warnings();
  cli_job_close(&job);
  return s == WEIR_OK ? 0 : cli_fail(&err);
}

static const cli_option doctor_options[] = {
    FLAG("measure", 0, measure,
         "also the machine's peaks: products that are added, on one thread and "
         "on all, and copies within each cache and memory"),
    ISA,
    JSON,
    COLOR,
    HELP,
    END};

static const cli_option options[] = {JSON, COLOR, HELP, END};

const cli_command cli_command_doctor = {
    .name = "doctor",
    .synopsis = "[options]",
    .summary = "facts about this machine and process",
    .text =
        "Prints the CPU's features, caches and cores, what oneDNN has for it, "
        "GPUs, versions,\nlimits and environment that matter to weir, with a "
        "warning where one is too small.\n`onednn lacks` names primitives that "
        "kernels of weir stand in for.",
    .examples =
        "  weir doctor\n  weir doctor --json\n  weir doctor --measure\n",
    .options = doctor_options,
    .min_rest = 0,
    .max_rest = 0,
    .run = doctor_command,
};

const cli_command cli_command_version = {
    .name = "version",
    .synopsis = "[options]",
    .summary = "version of weir, its compiler and its libraries",
    .examples = "  weir version\n  weir version --json\n",
    .options = options,
    .min_rest = 0,
    .max_rest = 0,
    .run = version_command,
};
