/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/net/grpc/args.h"

#include <limits.h>

#include "runtime/net/grpc/limits.h"

/* Only arguments that made a difference are set; windows are left to gRPC's own
 * probe. */

static void add(weir_grpc_args *args, const char *key, int value) {
  args->items[args->list.num_args++] = (grpc_arg){.type = GRPC_ARG_INTEGER,
                                                  .key = (char *)(uintptr_t)key,
                                                  .value = {.integer = value}};
}

static int milliseconds(int64_t ns) {
  int64_t ms = ns / 1000000;
  return ms < 1 ? 1 : ms > INT_MAX ? INT_MAX : (int)ms;
}

static int bytes(size_t n) {
  return n > INT_MAX ? INT_MAX : (int)n;
}

static void add_server(weir_grpc_args *args) {
  /* Two servers would share a port, each with half of the connections. */
  add(args, GRPC_ARG_ALLOW_REUSEPORT, 0);
  /* Our peers ping each 2 s; a server's defence against that cuts them off. */
  add(args, GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0);
  add(args, GRPC_ARG_MAX_CONCURRENT_STREAMS, WEIR_GRPC_STREAMS);
  /* Who connects has this long for its preface, and as long to begin a call. */
  add(args, GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, WEIR_GRPC_FIRST_MS);
  add(args, GRPC_ARG_MAX_CONNECTION_IDLE_MS, WEIR_GRPC_FIRST_MS);
}

static void add_client(weir_grpc_args *args, const weir_grpc *t) {
  int connect_ms = milliseconds(t->base.options.connect_ns);
  /* Each connection is one of its own, also to one address. */
  add(args, GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  add(args, GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  add(args, GRPC_ARG_ENABLE_RETRIES, 0);
  add(args, GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1);
  /* This one is the time-out of an attempt to connect: 20 s unless set. */
  add(args, GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, connect_ms);
  add(args, GRPC_ARG_DNS_MIN_TIME_BETWEEN_RESOLUTIONS_MS, 100);
  add(args, GRPC_ARG_DNS_ARES_QUERY_TIMEOUT_MS, connect_ms);
}

void weir_grpc_args_init(weir_grpc_args *args, weir_grpc *t, bool server) {
  args->list = (grpc_channel_args){0, args->items};
  add(args, GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH,
      bytes(t->base.options.max_frame_bytes));
  add(args, GRPC_ARG_MAX_SEND_MESSAGE_LENGTH, -1);
  /* Frames are not compressed, so a small one cannot grow. */
  add(args, GRPC_COMPRESSION_CHANNEL_ENABLED_ALGORITHMS_BITSET, 1);
  add(args, GRPC_ARG_MAX_METADATA_SIZE, WEIR_GRPC_METADATA);
  /* A net for half-open connections, wider than the heartbeats of the rooms
   * above: an answer is read in poll alone, and a process that was stopped or
   * busy for 5 s keeps its connections. It also bounds release() when a peer
   * does not read, and ends a server's reading from a flood (cutter.c). */
  add(args, GRPC_ARG_KEEPALIVE_TIME_MS, server ? 1000 : 2000);
  add(args, GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 6000);
  add(args, GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  add(args, GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  add(args, GRPC_ARG_ENABLE_CHANNELZ, 0);
  if (server)
    add_server(args);
  else
    add_client(args, t);
  args->items[args->list.num_args++] = (grpc_arg){
      .type = GRPC_ARG_POINTER,
      .key = (char *)(uintptr_t)GRPC_ARG_RESOURCE_QUOTA,
      .value = {.pointer = {t->quota, grpc_resource_quota_arg_vtable()}}};
}

const char *weir_grpc_method(weir_net_class cls) {
  return cls == WEIR_NET_BULK ? "/weir.v1.Task/Bulk" : "/weir.v1.Task/Control";
}
