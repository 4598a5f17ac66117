/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/net/grpc_net.h"

/* The contract of transports over TCP, and over a unix socket. */
int main(void) {
  grpc_net net = {0};
  char folder[] = "/tmp/weir_grpc_XXXXXX", path[64];
  setenv("GRPC_POLL_STRATEGY", "poll", 0);
  if (mkdtemp(folder) == NULL) return 1;
  snprintf(path, sizeof path, "unix:%s/a b%%41", folder);
  weir_fixture tcp = grpc_net_fixture(&net, "127.0.0.1:0");
  weir_fixture local = grpc_net_fixture(&net, path);
  tcp.name = "grpc_tcp";
  local.name = "grpc_unix";
  int failed = weir_conformance_run(&tcp) + weir_conformance_run(&local);
  return failed + (rmdir(folder) != 0); /* no socket and no lock stay behind */
}
