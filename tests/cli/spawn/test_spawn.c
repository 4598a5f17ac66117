/* SPDX-License-Identifier: Apache-2.0
 *
 * This program is its own child: `test_spawn KIND ...` is one. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/spawn/spawn.h"
#include "tests/check.h"

static char *program;

/* cli/out.c has it beside much that this program does without. */
weir_status cli_error(weir_error *err, const char *id, const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  *err = (weir_error){.struct_size = sizeof *err};
  snprintf(err->id, sizeof err->id, "%s", id);
  vsnprintf(err->message, sizeof err->message, fmt, args);
  va_end(args);
  return err->code = WEIR_INVALID_ARGUMENT;
}

/* ---- Children */

/* Descriptors above 2 that are open. */
static int leaked(void) {
  int count = 0;
  for (int fd = 3; fd < 200; fd++) count += fcntl(fd, F_GETFD) != -1;
  return count;
}

static void wait_for_ever(void) {
  for (;;) pause();
}

static int print_and_end(void) {
  fprintf(stdout, "to stdout %d %d\n", leaked(), getpgrp() == getpid());
  fflush(stdout);
  fprintf(stderr, "to stderr\nlong ");
  for (int i = 0; i < 5000; i++) fputc('x', stderr);
  fprintf(stderr, "\n\nno end");
  return 7;
}

/* A parent with one child that ignores SIGTERM; prints its number. */
static int be_parent(const char *tmp) {
  weir_error err = WEIR_ERROR_INIT;
  cli_spawn *spawn = NULL;
  char *argv[] = {program, (char *)"stubborn", NULL};
  if (cli_spawn_open(tmp, 1, &spawn, &err) != WEIR_OK) return 2;
  if (cli_spawn_start(spawn, "ps:0", argv, &err) != WEIR_OK) return 3;
  if (cli_spawn_watch(spawn, &err) != WEIR_OK) return 4;
  wait_for_ever();
  return 0;
}

static int be_child(int argc, char **argv) {
  if (strcmp(argv[1], "print") == 0) return print_and_end();
  if (strcmp(argv[1], "parent") == 0 && argc == 3) return be_parent(argv[2]);
  if (strcmp(argv[1], "stubborn") == 0) signal(SIGTERM, SIG_IGN);
  printf("%d ready\n", (int)getpid());
  fflush(stdout);
  wait_for_ever();
  return 0;
}

/* ---- Tests */

/* Standard error goes to a pipe meanwhile. */
typedef struct capture {
  int saved, end[2];
} capture;

static void capture_begin(capture *c) {
  fflush(stderr);
  c->saved = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 10);
  assert_int_equal(pipe2(c->end, O_CLOEXEC), 0);
  dup2(c->end[1], STDERR_FILENO);
  close(c->end[1]);
}

static void capture_end(capture *c) {
  dup2(c->saved, STDERR_FILENO);
  close(c->saved);
}

/* Reads until |text| has come, or the end; returns all of it. */
static char *read_until(int fd, const char *text) {
  static char bytes[65536];
  size_t held = 0;
  ssize_t n = 1;
  bytes[0] = '\0';
  while (n > 0 && (text == NULL || strstr(bytes, text) == NULL)) {
    n = read(fd, bytes + held, sizeof bytes - 1 - held);
    if (n > 0) held += (size_t)n;
    bytes[held] = '\0';
  }
  return bytes;
}

static cli_spawn *open_spawn(size_t children) {
  weir_error err = WEIR_ERROR_INIT;
  cli_spawn *spawn = NULL;
  assert_ok(cli_spawn_open("/tmp", children, &spawn, &err), &err);
  return spawn;
}

static void start(cli_spawn *spawn, const char *name, const char *kind) {
  weir_error err = WEIR_ERROR_INIT;
  char *argv[] = {program, (char *)kind, NULL};
  assert_ok(cli_spawn_start(spawn, name, argv, &err), &err);
}

static void prints(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  capture c;
  capture_begin(&c);
  int leaky = open("/dev/null", O_RDONLY); /* without close-on-exec */
  cli_spawn *spawn = open_spawn(2);
  start(spawn, "worker:0", "print");
  start(spawn, "worker:1", "print");
  assert_ok(cli_spawn_watch(spawn, &err), &err);
  assert_int_equal(cli_spawn_wait(spawn, 1), 2);
  for (size_t i = 0; i < 2; i++) {
    int code = 0;
    assert_int_equal(cli_spawn_state(spawn, i, &code), CLI_CHILD_EXITED);
    assert_int_equal(code, 7);
  }
  cli_spawn_release(spawn);
  close(leaky);
  capture_end(&c);
  char *text = read_until(c.end[0], NULL);
  close(c.end[0]);
  const char *want[] = {"[worker:0] to stdout 0 1\n",
                        "[worker:1] to stdout 0 1\n",
                        "[worker:0] to stderr\n",
                        "[worker:1] no end\n",
                        "[worker:1] \n",
                        "[worker:0] long xxx",
                        "[worker:0] xxx"};
  for (size_t i = 0; i < sizeof want / sizeof *want; i++)
    if (strstr(text, want[i]) == NULL) fail_msg("no %s", want[i]);
}

static void ends_the_stubborn(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  capture c;
  int code = 0;
  capture_begin(&c);
  cli_spawn *spawn = open_spawn(2);
  start(spawn, "meek", "waits");
  start(spawn, "stubborn", "stubborn");
  assert_ok(cli_spawn_watch(spawn, &err), &err);
  assert_int_equal(cli_spawn_state(spawn, 0, &code), CLI_CHILD_RUNS);
  char *text = read_until(c.end[0], "[stubborn] ");
  assert_non_null(strstr(text, "[stubborn] ")); /* SIGTERM is ignored now */
  cli_spawn_end(spawn, 100);
  assert_int_equal(cli_spawn_state(spawn, 0, &code), CLI_CHILD_KILLED);
  assert_int_equal(code, SIGTERM);
  assert_int_equal(cli_spawn_state(spawn, 1, &code), CLI_CHILD_KILLED);
  assert_int_equal(code, SIGKILL);
  assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no zombie */
  assert_int_equal(errno, ECHILD);
  cli_spawn_release(spawn);
  capture_end(&c);
  close(c.end[0]);
}

/* A child that is killed is seen; the others go on. */
static void sees_a_death(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  capture c;
  int code = 0;
  capture_begin(&c);
  cli_spawn *spawn = open_spawn(2);
  start(spawn, "a", "waits");
  assert_ok(cli_spawn_watch(spawn, &err), &err);
  char *text = strstr(read_until(c.end[0], " ready"), "[a] ");
  assert_non_null(text);
  assert_ok(cli_spawn_check(spawn, &err), &err);
  assert_int_equal(kill((pid_t)strtol(text + 4, NULL, 10), SIGKILL), 0);
  assert_int_equal(cli_spawn_wait(spawn, 0), 1);
  assert_int_equal(cli_spawn_state(spawn, 0, &code), CLI_CHILD_KILLED);
  assert_int_equal(code, SIGKILL);
  assert_error(cli_spawn_check(spawn, &err), &err, "W7022");
  assert_string_equal(err.message, "a has ended by itself (signal 9)");
  cli_spawn_end(spawn, 100); /* nothing to do */
  cli_spawn_release(spawn);
  capture_end(&c);
  close(c.end[0]);
}

/* How many things a folder holds. */
static int entries(const char *path) {
  DIR *dir = opendir(path);
  int count = -2; /* "." and ".." */
  assert_non_null(dir);
  while (readdir(dir) != NULL) count++;
  closedir(dir);
  return count;
}

/* A parent that dies by SIGKILL leaves none. The pipe ends with its last
 * holder: the children have none of it, so the number is waited for. */
static void dies_with_its_parent(void **state) {
  (void)state;
  char tmp[] = "/tmp/weir-test-XXXXXX";
  int out[2];
  assert_non_null(mkdtemp(tmp));
  assert_int_equal(pipe2(out, O_CLOEXEC), 0);
  pid_t parent = fork();
  if (parent == 0) {
    dup2(out[1], STDERR_FILENO);
    execl(program, program, "parent", tmp, (char *)NULL);
    _exit(127);
  }
  close(out[1]);
  char *text = strstr(read_until(out[0], " ready"), "[ps:0] ");
  assert_non_null(text);
  pid_t child = (pid_t)strtol(text + 7, NULL, 10);
  assert_int_equal(kill(parent, SIGKILL), 0);
  assert_int_equal(waitpid(parent, NULL, 0), parent);
  char path[64], state_of = 'R';
  snprintf(path, sizeof path, "/proc/%d/stat", (int)child);
  while (state_of != 'Z' && state_of != 'X') { /* nobody may collect it */
    FILE *file = fopen(path, "r");
    if (file == NULL) break;
    if (fscanf(file, "%*d %*[^)]) %c", &state_of) != 1) state_of = 'X';
    fclose(file);
  }
  close(out[0]);
  assert_int_equal(entries(tmp), 1); /* the folder of a killed parent stays */
  weir_error err = WEIR_ERROR_INIT;
  cli_spawn *first = NULL, *second = NULL; /* until there is another */
  assert_ok(cli_spawn_open(tmp, 1, &first, &err), &err);
  assert_int_equal(entries(tmp), 1);
  assert_ok(cli_spawn_open(tmp, 1, &second, &err), &err);
  assert_int_equal(entries(tmp), 2); /* one with an owner is left alone */
  cli_spawn_release(first);
  cli_spawn_release(second);
  assert_int_equal(rmdir(tmp), 0);
}

/* Folders that are of another kind, of another process, or half made. */
static void folders_of_others_stay(void **state) {
  (void)state;
  static const struct {
    const char *name, *file;
    mode_t mode;
    bool goes;
  } rows[] = {{"weir-abc123", "lock", 0700, true},
              {"weir-nolock", "socket", 0700, false},
              {"weir-open12", "lock", 0755, false},
              {"weir-sevenab", "lock", 0700, false},
              {"weir-five1", "lock", 0700, false},
              {"weir-a_b_c1", "lock", 0700, false},
              {"Weir-abc123", "lock", 0700, false}};
  weir_error err = WEIR_ERROR_INIT;
  cli_spawn *spawn = NULL;
  char tmp[] = "/tmp/weir-test-XXXXXX", path[100];
  assert_non_null(mkdtemp(tmp));
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    snprintf(path, sizeof path, "%s/%s", tmp, rows[i].name);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(chmod(path, rows[i].mode), 0);
    snprintf(path, sizeof path, "%s/%s/%s", tmp, rows[i].name, rows[i].file);
    close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
  }
  snprintf(path, sizeof path, "%s/weir-link12", tmp);
  assert_int_equal(symlink("weir-open12", path), 0);
  assert_ok(cli_spawn_open(tmp, 1, &spawn, &err), &err);
  cli_spawn_release(spawn);
  assert_int_equal(unlink(path), 0);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    snprintf(path, sizeof path, "%s/%s/%s", tmp, rows[i].name, rows[i].file);
    if ((unlink(path) == 0) == rows[i].goes) fail_msg("%s", rows[i].name);
    snprintf(path, sizeof path, "%s/%s", tmp, rows[i].name);
    if ((rmdir(path) == 0) == rows[i].goes) fail_msg("%s", rows[i].name);
  }
  assert_int_equal(rmdir(tmp), 0);
}

static void folders(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  cli_spawn *spawn = open_spawn(1);
  struct stat s;
  char path[200], name[100];
  snprintf(name, sizeof name, "%s", cli_spawn_folder(spawn));
  assert_int_equal(stat(name, &s), 0);
  assert_int_equal(s.st_mode & 0777, 0700);
  snprintf(path, sizeof path, "%s/w.sock", name);
  close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
  char *argv[] = {(char *)"/nowhere/weir", NULL};
  assert_error(cli_spawn_start(spawn, "a", argv, &err), &err, "W6003");
  start(spawn, "a", "waits");
  assert_error(cli_spawn_start(spawn, "b", argv, &err), &err, "W6003");
  cli_spawn_release(spawn); /* never watched */
  assert_int_equal(stat(name, &s), -1);
  assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
  memset(path, 'x', 90);
  memcpy(path, "/tmp/", 5);
  path[90] = '\0';
  assert_error(cli_spawn_open(path, 1, &spawn, &err), &err, "W4002");
  assert_error(cli_spawn_open("/nowhere", 1, &spawn, &err), &err, "W4002");
  assert_null(spawn);
  cli_spawn_release(NULL);
}

int main(int argc, char **argv) {
  char self[4096];
  ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
  if (n <= 0) return 1;
  self[n] = '\0';
  program = self;
  if (argc > 1) return be_child(argc, argv);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(prints),       cmocka_unit_test(ends_the_stubborn),
      cmocka_unit_test(sees_a_death), cmocka_unit_test(dies_with_its_parent),
      cmocka_unit_test(folders),      cmocka_unit_test(folders_of_others_stay),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
