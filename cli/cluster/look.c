/* SPDX-License-Identifier: Apache-2.0 */
/* Looks at tasks. A table comes when all tasks have answered or their time is
 * over; lines of ping come one by one. */
#include "cli/cluster/look.h"

#include "cli/cluster/cluster.h"

enum { SHOW_PINGS = 20, PING_COUNT = 5, BANDWIDTH_BYTES = 64 << 20 };

static bool write(void *self, const char *data, size_t size) {
  bool ok = cli_out(self, data, size);
  cli_flush();
  return ok && !cli_out_failed();
}

static weir_status look(weir_runtime *runtime, const cli_args *args,
                        weir_tools_look *opts, weir_error *err) {
  opts->cluster = args->tasks;
  if (args->tf != NULL) {
    opts->addresses = args->tf->addresses;
    opts->address_count = args->tf->address_count;
  }
  opts->insecure = args->insecure;
  opts->json = cli_is_json(args);
  opts->quiet = args->quiet;
  opts->wait_ns = args->wait_ns;
  opts->write = write;
  cli_cluster_prepare();
  return weir_tools_cluster_look(runtime, opts, err);
}

weir_status cli_cluster_show(weir_runtime *runtime, const cli_args *args,
                             weir_error *err) {
  weir_tools_look opts = {.kind = WEIR_TOOLS_LOOK_SHOW, .pings = SHOW_PINGS};
  if (args->bandwidth) opts.bandwidth_bytes = BANDWIDTH_BYTES;
  return look(runtime, args, &opts, err);
}

weir_status cli_cluster_ping(weir_runtime *runtime, const cli_args *args,
                             weir_error *err) {
  weir_tools_look opts = {.kind = WEIR_TOOLS_LOOK_PING,
                          .pings = PING_COUNT,
                          .interval_ns = 1000000000};
  if (args->count > 0) opts.pings = (uint32_t)args->count;
  if (args->interval_ns > 0) opts.interval_ns = args->interval_ns;
  return look(runtime, args, &opts, err);
}

weir_status cli_cluster_stop(weir_runtime *runtime, const cli_args *args,
                             weir_error *err) {
  weir_tools_look opts = {.kind = WEIR_TOOLS_LOOK_STOP, .force = args->force};
  return look(runtime, args, &opts, err);
}
