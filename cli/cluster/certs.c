/* SPDX-License-Identifier: Apache-2.0 */
/* Certificates for tests and small clusters.
 *
 * Each pair of files is made in a folder of its own beside them and then linked
 * to its name, which fails where a file has that name: so nothing is
 * overwritten and no name ever stands for half a file. A name is in a
 * certificate as a URI, weir://JOB/INDEX and weir://driver (runtime/net/tls).
 */
#include "cli/cluster/certs.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cluster/openssl.h"
#include "cli/system.h"

enum { NAME = 96, YEAR = 365 };

typedef struct maker {
  const cli_certs_opts *opts;
  char pem[PATH_MAX], key[PATH_MAX]; /* of the pair at work */
  char ca_pem[PATH_MAX], ca_key[PATH_MAX];
  char work[PATH_MAX]; /* the folder beside them */
  char new_pem[PATH_MAX], new_key[PATH_MAX], config[PATH_MAX];
  size_t made, kept, found;
  weir_status status;
  weir_error *err;
} maker;

static bool is_there(const char *path) {
  struct stat st;
  return lstat(path, &st) == 0;
}

static bool join(char out[PATH_MAX], const char *folder, const char *name,
                 const char *end) {
  int n = snprintf(out, PATH_MAX, "%s/%s%s", folder, name, end);
  return n > 0 && n < PATH_MAX;
}

static weir_status cannot(maker *m, const char *what, const char *path) {
  return cli_error(m->err, "W5009", "%s %.300s: %s", what, path,
                   strerror(errno));
}

/* The extensions of an authority, or of a task whose name is |uri|. */
static weir_status write_config(maker *m, const char *name, const char *uri) {
  FILE *f = NULL;
  WEIR_TRY(cli_file_create(m->config, &f, m->err));
  fprintf(f,
          "[req]\ndistinguished_name = dn\nprompt = no\n"
          "[dn]\nCN = %s\n[ext]\nsubjectKeyIdentifier = hash\n",
          uri != NULL ? name : "weir test authority");
  if (uri == NULL)
    fprintf(f,
            "basicConstraints = critical, CA:TRUE\n"
            "keyUsage = critical, keyCertSign, cRLSign\n");
  else
    fprintf(f,
            "basicConstraints = critical, CA:FALSE\n"
            "authorityKeyIdentifier = keyid\n"
            "keyUsage = critical, digitalSignature\n"
            "extendedKeyUsage = serverAuth, clientAuth\n"
            "subjectAltName = URI:%s\n",
            uri);
  return cli_file_close(f, m->config, WEIR_OK, m->err);
}

static weir_status put(maker *m, const char *from, const char *to,
                       mode_t mode) {
  if (chmod(from, mode) != 0 || link(from, to) != 0)
    return cannot(m, "cannot make", to);
  return WEIR_OK;
}

static weir_status make_pair(maker *m, const char *name, const char *uri) {
  const cli_certs_opts *o = m->opts;
  cli_certificate it = {.config = m->config,
                        .out_pem = m->new_pem,
                        .out_key = m->new_key,
                        .ca_pem = uri != NULL ? m->ca_pem : NULL,
                        .ca_key = m->ca_key,
                        .days = o->days > 0 ? o->days : YEAR};
  (void)unlink(m->new_pem);
  (void)unlink(m->new_key);
  WEIR_TRY(write_config(m, name, uri));
  WEIR_TRY(cli_openssl_certify(&it, m->err));
  WEIR_TRY(put(m, m->new_key, m->key, 0600));
  weir_status s = put(m, m->new_pem, m->pem, 0644);
  if (s != WEIR_OK) (void)unlink(m->key);
  if (s == WEIR_OK) m->made++;
  if (s == WEIR_OK && !o->quiet) cli_note("%s\n%s\n", m->pem, m->key);
  return s;
}

static weir_status half(maker *m, const char *is, const char *is_not) {
  return cli_error(m->err, "W0002", "%.200s is there, but not %.200s", is,
                   is_not);
}

/* The authority: kept, or made where nothing is there that another signed. */
static weir_status make_authority(maker *m) {
  bool pem = is_there(m->ca_pem), key = is_there(m->ca_key);
  if (pem) return WEIR_OK;
  if (key) return half(m, m->ca_key, m->ca_pem);
  memcpy(m->pem, m->ca_pem, sizeof m->pem);
  memcpy(m->key, m->ca_key, sizeof m->key);
  return make_pair(m, "ca", NULL);
}

static weir_status make_named(maker *m, const char *name, const char *uri) {
  const char *folder = m->opts->folder;
  if (!join(m->pem, folder, name, ".pem") ||
      !join(m->key, folder, name, ".key"))
    return cli_error(m->err, "W0002", "the folder's name is too long");
  bool pem = is_there(m->pem), key = is_there(m->key);
  if (pem && key) {
    m->kept++;
    return WEIR_OK;
  }
  if (pem || key) return half(m, pem ? m->pem : m->key, pem ? m->key : m->pem);
  WEIR_TRY(make_authority(m));
  if (!is_there(m->ca_key)) return half(m, m->ca_pem, m->ca_key);
  if (!join(m->pem, folder, name, ".pem") ||
      !join(m->key, folder, name, ".key"))
    return cli_error(m->err, "W0002", "the folder's name is too long");
  return make_pair(m, name, uri);
}

/* The name of a task in files and in its certificate. */
static void name_task(const char *job, uint32_t index, char name[NAME],
                      char uri[NAME]) {
  snprintf(name, NAME, "%.64s-%u", job, index);
  snprintf(uri, NAME, "weir://%.64s/%u", job, index);
}

static bool look(void *self, const char *job, uint32_t index) {
  maker *m = self;
  char name[NAME], uri[NAME];
  name_task(job, index, name, uri);
  if (!join(m->pem, m->opts->folder, name, ".pem")) return false;
  m->found += is_there(m->pem);
  return m->found == 0;
}

static bool make_task(void *self, const char *job, uint32_t index) {
  maker *m = self;
  char name[NAME], uri[NAME];
  name_task(job, index, name, uri);
  m->status = make_named(m, name, uri);
  return m->status == WEIR_OK;
}

static weir_status make_all(weir_runtime *runtime, maker *m) {
  const char *tasks = m->opts->cluster;
  WEIR_TRY(weir_tools_cluster_tasks(runtime, tasks, look, m, m->err));
  if (m->found > 0 && !is_there(m->ca_pem)) return half(m, m->pem, m->ca_pem);
  WEIR_TRY(weir_tools_cluster_tasks(runtime, tasks, make_task, m, m->err));
  WEIR_TRY(m->status);
  return make_named(m, "driver", "weir://driver");
}

static weir_status open_folder(maker *m) {
  const char *folder = m->opts->folder;
  if (!join(m->ca_pem, folder, "ca", ".pem") ||
      !join(m->ca_key, folder, "ca", ".key") ||
      !join(m->work, folder, ".new-XXXXXX", "") ||
      strlen(m->work) + 16 > sizeof m->work)
    return cli_error(m->err, "W0002", "the folder's name is too long");
  if (mkdir(folder, 0700) != 0 && errno != EEXIST)
    return cannot(m, "cannot make folder", folder);
  if (mkdtemp(m->work) == NULL) return cannot(m, "cannot write in", folder);
  (void)join(m->new_pem, m->work, "pem", "");
  (void)join(m->new_key, m->work, "key", "");
  (void)join(m->config, m->work, "config", "");
  return WEIR_OK;
}

static void close_folder(const maker *m) {
  (void)unlink(m->new_pem);
  (void)unlink(m->new_key);
  (void)unlink(m->config);
  (void)rmdir(m->work);
}

weir_status cli_certs_make(weir_runtime *runtime, const cli_certs_opts *opts,
                           weir_error *err) {
  maker *m = calloc(1, sizeof *m);
  if (m == NULL) return cli_no_memory(err);
  m->opts = opts;
  m->err = err;
  weir_status s = open_folder(m);
  if (s == WEIR_OK) {
    s = make_all(runtime, m);
    close_folder(m);
  }
  if (s == WEIR_OK && !opts->quiet)
    cli_note("%zu certificates made, %zu kept\n", m->made, m->kept);
  free(m);
  return s;
}
