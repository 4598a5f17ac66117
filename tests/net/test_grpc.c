/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/net/grpc_net.h"

/* The contract of transports over TCP, or over a unix socket.
 *
 *   test_net_grpc tcp | unix */
int main(int argc, char **argv) {
  grpc_net net = {0};
  char folder[] = "/tmp/weir_grpc_XXXXXX", path[64];
  setenv("GRPC_POLL_STRATEGY", "poll", 0);
  if (argc == 2 && strcmp(argv[1], "tcp") == 0) {
    weir_fixture tcp = grpc_net_fixture(&net, "127.0.0.1:0");
    return weir_conformance_run(&tcp);
  }
  if (mkdtemp(folder) == NULL) return 1;
  snprintf(path, sizeof path, "unix:%s/a b%%41", folder);
  weir_fixture local = grpc_net_fixture(&net, path);
  int failed = weir_conformance_run(&local);
  return failed + (rmdir(folder) != 0); /* no socket and no lock stay behind */
}
