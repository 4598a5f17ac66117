/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_API_KV_PART_H_
#define WEIR_API_KV_PART_H_

#include "runtime/api/cluster/task_list.h"
#include "runtime/weir/kv.h"

/* What servers and workers of keys have in common: their place in the cluster,
 * addresses, transports. */

typedef struct weir_kv_part {
  weir_runtime *runtime; /* held */
  weir_task_list list;
  weir_grpc_maker maker;
  const weir_net_tls *tls;
  bool insecure;
  const char **servers;
  uint32_t server_count, member_count;
  uint32_t index;
  const char *own; /* its address */
  uint64_t hash;   /* of cluster and split: the same in all processes */
  uint64_t split_bytes;
  int64_t heartbeat_ns, lost_after_ns;
  void (*on_event)(void *self, const char *text);
  void *on_event_self;
} weir_kv_part;

/* |job|: the one that this process must be of, "ps" or "worker". |part| stays
 * where it is, and is released also after an error. Errors: W0002, W0004,
 * W7004, W7060, W6001. */
weir_status weir_kv_part_init(weir_kv_part *part, weir_runtime *runtime,
                              const weir_kv_opts *opts, const char *job,
                              weir_error *err);
void weir_kv_part_release(weir_kv_part *part);
/* A line for the log and the caller; |self| is the part. */
void weir_kv_part_tell(void *self, const char *text);

#endif
