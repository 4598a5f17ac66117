/* SPDX-License-Identifier: Apache-2.0 */
/* weir fmt: graph files in canonical form. A file is replaced whole: the new
 * text goes beside it, to the disk, and then takes its name, with its rights.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/system.h"
#include "cli/table.h"
#include "cli/term/diff.h"

enum { MOST_BYTES = 64 << 20 };

/* The canonical text, as it comes. */
typedef struct formatted {
  char *data;
  size_t size;
} formatted;

static bool keep(void *self, const char *data, size_t size) {
  formatted *f = self;
  char *grown = realloc(f->data, f->size + size + 1);
  if (grown == NULL) return false;
  memcpy(grown + f->size, data, size);
  f->data = grown;
  f->size += size;
  return true;
}

static weir_status fail_write(const char *path, weir_error *err) {
  return cli_error(err, "W5009", "%s cannot be written", path);
}

/* Writes all of |f| to |fd| and to the disk. */
static bool write_all(int fd, const formatted *f) {
  for (size_t done = 0; done < f->size;) {
    ssize_t n = write(fd, f->data + done, f->size - done);
    if (n <= 0) return false;
    done += (size_t)n;
  }
  return fsync(fd) == 0;
}

/* Puts |f| in the place of |path|, which may be a link to the file. */
static weir_status replace(const char *path, const formatted *f,
                           weir_error *err) {
  struct stat was;
  char *real = realpath(path, NULL), *temp = NULL;
  int fd = -1;
  bool ok = real != NULL && stat(real, &was) == 0 &&
            asprintf(&temp, "%s.XXXXXX", real) > 0;
  if (ok) fd = mkostemp(temp, O_CLOEXEC);
  ok = ok && fd >= 0 && fchmod(fd, was.st_mode & 07777) == 0;
  if (ok && geteuid() == 0) ok = fchown(fd, was.st_uid, was.st_gid) == 0;
  ok = ok && write_all(fd, f);
  if (fd >= 0 && close(fd) != 0) ok = false;
  if (ok) ok = rename(temp, real) == 0;
  if (!ok && fd >= 0) unlink(temp);
  free(real);
  free(temp);
  return ok ? WEIR_OK : fail_write(path, err);
}

static weir_status read_source(const char *path, char **out, size_t *size,
                               weir_error *err) {
  bool is_stdin = strcmp(path, "-") == 0;
  int fd = is_stdin ? 0 : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  struct stat info;
  *out = NULL;
  if (fd < 0) return cli_error(err, "W4001", "cannot open '%s'", path);
  if (!is_stdin && (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode))) {
    close(fd);
    return cli_error(err, "W4002", "'%s' is not a plain file", path);
  }
  *out = cli_read_all(fd, MOST_BYTES, size);
  if (!is_stdin) close(fd);
  return *out != NULL ? WEIR_OK
                      : cli_error(err, "W4001", "'%s' cannot be read", path);
}

/* With --check or --diff: says what would change, and that something would. */
static weir_status report(const cli_args *args, const char *name,
                          cli_text source, const formatted *f, int *code,
                          weir_error *err) {
  *code = 1;
  if (!args->show_diff) {
    cli_print("%s\n", name);
    return WEIR_OK;
  }
  if (cli_print_diff(name, source, (cli_text){f->data, f->size}))
    return WEIR_OK;
  return cli_no_memory(err);
}

static int fmt_one(const cli_args *args, cli_job *job, const char *path) {
  weir_error err = WEIR_ERROR_INIT;
  formatted f = {NULL, 0};
  char *source = NULL;
  size_t size = 0;
  bool is_stdin = strcmp(path, "-") == 0;
  bool look = args->check || args->show_diff;
  const char *name = is_stdin ? "<stdin>" : path;
  weir_status s = read_source(path, &source, &size, &err);
  if (s == WEIR_OK)
    s = weir_tools_fmt(job->runtime, name, source, size, keep, &f, &err);
  bool same =
      s == WEIR_OK && size == f.size && memcmp(source, f.data, size) == 0;
  int code = 0;
  if (s == WEIR_OK && look && !same) {
    s = report(args, name, (cli_text){source, size}, &f, &code, &err);
  } else if (s == WEIR_OK && !look && is_stdin) {
    cli_out(NULL, f.data, f.size);
  } else if (s == WEIR_OK && !look && !same) {
    s = replace(path, &f, &err);
    if (s == WEIR_OK && !args->quiet) cli_note("%s: formatted\n", path);
  }
  if (s != WEIR_OK) code = cli_fail(&err);
  free(f.data);
  free(source);
  return code;
}

static int fmt_command(const cli_args *args) {
  cli_job job;
  int code = cli_job_open(&job, args, 1);
  for (size_t i = 0; i < args->rest_count && job.runtime != NULL; i++) {
    int one = fmt_one(args, &job, args->rest[i]);
    if (code <= 1 && one != 0) code = one;
  }
  cli_job_close(&job);
  return code;
}

static const cli_option options[] = {
    FLAG("check", 0, check,
         "change nothing, list the files that would change; exit code 1 if "
         "there are some"),
    FLAG("diff", 0, show_diff,
         "change nothing, print what would change as a unified diff; exit "
         "code 1 if something would"),
    QUIET,
    COLOR,
    HELP,
    END};

static const cli_effect effects[] = {
    {.option = "quiet", .without = "check", .why = "nothing is formatted"},
    {.option = "quiet", .without = "diff", .why = "nothing is formatted"},
    {.option = NULL}};

const cli_command cli_command_fmt = {
    .name = "fmt",
    .synopsis = "GRAPH.weir.yaml... [options]",
    .summary = "bring graph files into canonical form",
    .text =
        "Two columns for each level, one blank behind commas and colons, k=v "
        "in calls, double quotes. Comments, the order of keys, lines and "
        "values that were aligned by hand stay as they are, and so does the "
        "meaning. - reads standard input and writes standard output. A file "
        "is replaced whole or not at all.",
    .examples =
        "  weir fmt graphs/*.weir.yaml --check\n"
        "  weir fmt graphs/*.weir.yaml --diff\n"
        "  weir fmt mlp.weir.yaml\n"
        "  weir fmt - < mlp.weir.yaml\n",
    .options = options,
    .effects = effects,
    .min_rest = 1,
    .max_rest = 1024,
    .run = fmt_command,
};
