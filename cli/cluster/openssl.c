/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cluster/openssl.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/system.h"

enum { WORDS = 32, SAID = 1 << 16 };

extern char **environ;

/* The last line of |text| that is not empty. */
static const char *last_line(char *text) {
  size_t n = strlen(text);
  while (n > 0 && text[n - 1] == '\n') text[--n] = '\0';
  const char *line = strrchr(text, '\n');
  return line != NULL ? line + 1 : text;
}

static weir_status absent(weir_error *err, int why) {
  weir_status s = cli_error(err, "W0005", "openssl, the command, %s",
                            why == ENOENT ? "is not installed" : strerror(why));
  cli_hint(err, "apt-get install openssl");
  return s;
}

/* Starts openssl; what it says on its error output comes from |*out_fd|. */
static weir_status start(const char *const *words, pid_t *out_pid, int *out_fd,
                         weir_error *err) {
  posix_spawn_file_actions_t files;
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    return cli_error(err, "W6003", "a pipe: %s", strerror(errno));
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_adddup2(&files, ends[1], 2);
  int why = posix_spawnp(out_pid, words[0], &files, NULL,
                         (char *const *)(uintptr_t)words, environ);
  posix_spawn_file_actions_destroy(&files);
  close(ends[1]);
  *out_fd = ends[0];
  if (why == 0) return WEIR_OK;
  close(ends[0]);
  return absent(err, why);
}

static weir_status wait_for(pid_t pid, int fd, weir_error *err) {
  size_t size;
  int status = 0;
  char *said = cli_read_all(fd, SAID, &size);
  close(fd);
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  weir_status s = WEIR_OK;
  if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
    s = absent(err, ENOENT);
  else if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    s = cli_error(err, "W0005", "openssl failed: %.300s",
                  said != NULL ? last_line(said) : "no word from it");
  free(said);
  return s;
}

weir_status cli_openssl_certify(const cli_certificate *it, weir_error *err) {
  const char *words[WORDS] = {"openssl", "req",      "-x509",
                              "-batch",  "-nodes",   "-newkey",
                              "ec",      "-pkeyopt", "ec_paramgen_curve:P-256",
                              "-config", it->config, "-extensions",
                              "ext",     "-keyout",  it->out_key,
                              "-out",    it->out_pem};
  char days[24];
  size_t n = 0;
  pid_t pid = -1;
  int fd = -1;
  while (words[n] != NULL) n++;
  snprintf(days, sizeof days, "%lld", (long long)it->days);
  words[n++] = "-days";
  words[n++] = days;
  if (it->ca_pem != NULL) {
    words[n++] = "-CA";
    words[n++] = it->ca_pem;
    words[n++] = "-CAkey";
    words[n++] = it->ca_key;
  }
  WEIR_TRY(start(words, &pid, &fd, err));
  return wait_for(pid, fd, err);
}
