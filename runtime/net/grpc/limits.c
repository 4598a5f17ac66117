/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/net/grpc/limits.h"

/* What gRPC counts itself is set in args.c. Two things it does not: it has no
 * limit of connections, and its limits of streams and headers bind only peers
 * that have acknowledged its settings. So they are counted here, when a call
 * comes in.
 *
 * Memory has three bounds. What a peer sends is bounded by the largest frame,
 * for one message of a call is read at a time. Frames that wait for peers are
 * bounded for each peer (queue.c), and here for all of them together: beyond
 * that bound only peers whose own queue is longer than an equal share are
 * refused, so that one that reads is served beside others that do not. Shares
 * sum up to the bound, so at most twice the bound waits. The last bound is a
 * fence, the quota of gRPC, which kills streams of anybody: it lies beyond all
 * that well-behaved peers can need (32 MiB for a bulk stream under a credit of
 * 8 MiB), moves out for each peer that has spoken, and never comes nearer. */

enum {
  FENCE_MIB = 1024, /* for the first peers, and for those that say nothing */
  FENCE_BASE_MIB = 256,
  FENCE_LINK_MIB = 32
};

size_t weir_grpc_limits_headers(const grpc_metadata_array *metadata) {
  const size_t field = 32; /* more for each: RFC 9113, section 6.5.2 */
  size_t bytes = 0;
  for (size_t i = 0; i < metadata->count; i++)
    bytes += GRPC_SLICE_LENGTH(metadata->metadata[i].key) +
             GRPC_SLICE_LENGTH(metadata->metadata[i].value) + field;
  return bytes;
}

bool weir_grpc_limits_admit(const weir_grpc *t, const char *peer,
                            size_t headers,
                            char words[WEIR_NET_ADDRESS_BYTES]) {
  bool socket = strncmp(peer, "unix:", 5) != 0; /* else all have one name */
  unsigned all = 0, same = 0;
  for (size_t i = 0; i < t->link_room; i++) { /* poll alone changes the table */
    const weir_grpc_link *link = t->links[i];
    if (link == NULL || !link->incoming) continue;
    all++;
    same += socket && strcmp(link->peer, peer) == 0;
  }
  words[0] = '\0';
  if (headers > WEIR_GRPC_METADATA)
    snprintf(words, WEIR_NET_ADDRESS_BYTES,
             "a call has %zu bytes of headers, at most %d are taken", headers,
             WEIR_GRPC_METADATA);
  else if (same >= WEIR_GRPC_STREAMS)
    snprintf(words, WEIR_NET_ADDRESS_BYTES,
             "%u streams on one connection are open, at most %d are taken",
             same, WEIR_GRPC_STREAMS);
  else if (all >= WEIR_GRPC_INCOMING)
    snprintf(words, WEIR_NET_ADDRESS_BYTES,
             "%u connections are open, at most %d are taken", all,
             WEIR_GRPC_INCOMING);
  return words[0] == '\0';
}

bool weir_grpc_limits_queue(const weir_grpc_link *link, size_t bytes) {
  const weir_grpc *t = link->transport;
  const size_t most = (size_t)WEIR_GRPC_WORDS_MIB << 20;
  if (t->copied_bytes <= most && bytes <= most - t->copied_bytes) return true;
  size_t share = most / (t->link_count > 0 ? t->link_count : 1);
  return link->copied_bytes <= share && bytes <= share - link->copied_bytes;
}

void weir_grpc_limits_heard(weir_grpc_link *link) {
  weir_grpc *t = link->transport;
  if (link->heard) return;
  link->heard = true;
  t->heard++;
  weir_grpc_limits_fence(t);
}

void weir_grpc_limits_fence(weir_grpc *t) {
  size_t mib = FENCE_BASE_MIB + (size_t)FENCE_LINK_MIB * t->heard;
  if (mib < FENCE_MIB) mib = FENCE_MIB;
  if (mib <= t->fence_mib) return;
  t->fence_mib = mib;
  grpc_resource_quota_resize(t->quota, mib << 20);
}
