/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/net/grpc_net.h"

/* The contract of transports over TCP, with certificates, or over a unix
 * socket.
 *
 *   test_net_grpc tcp | tls | unix */

/* A certificate that is its own authority, in |folder|. */
static bool make_certificate(const char *folder) {
  char line[512];
  snprintf(line, sizeof line,
           "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 "
           "-nodes -subj /CN=test -addext "
           "subjectAltName=URI:weir://worker/0 -days 2 -keyout %s/key -out "
           "%s/pem 2>%s/said",
           folder, folder, folder);
  return system(line) == 0;
}

static int run_tls(const char *folder) {
  char pem[64], key[64], said[64];
  snprintf(pem, sizeof pem, "%s/pem", folder);
  snprintf(key, sizeof key, "%s/key", folder);
  snprintf(said, sizeof said, "%s/said", folder);
  weir_net_tls tls = {pem, pem, key, "weir://worker/0"};
  grpc_net net = {.tls = &tls};
  if (!make_certificate(folder)) return 1;
  weir_fixture tcp = grpc_net_fixture(&net, "127.0.0.1:0");
  int failed = weir_conformance_run(&tcp);
  return failed + (unlink(pem) != 0) + (unlink(key) != 0) + (unlink(said) != 0);
}

int main(int argc, char **argv) {
  grpc_net net = {0};
  char folder[] = "/tmp/weir_grpc_XXXXXX", path[64];
  setenv("GRPC_POLL_STRATEGY", "poll", 0);
  if (argc == 2 && strcmp(argv[1], "tcp") == 0) {
    weir_fixture tcp = grpc_net_fixture(&net, "127.0.0.1:0");
    return weir_conformance_run(&tcp);
  }
  if (mkdtemp(folder) == NULL) return 1;
  if (argc == 2 && strcmp(argv[1], "tls") == 0) {
    int failed = run_tls(folder);
    return failed + (rmdir(folder) != 0);
  }
  snprintf(path, sizeof path, "unix:%s/a b%%41", folder);
  weir_fixture local = grpc_net_fixture(&net, path);
  int failed = weir_conformance_run(&local);
  return failed + (rmdir(folder) != 0); /* no socket and no lock stay behind */
}
