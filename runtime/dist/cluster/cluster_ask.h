/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_DIST_CLUSTER_ASK_H_
#define WEIR_DIST_CLUSTER_ASK_H_

#include "runtime/dist/cluster/cluster_internal.h"
#include "runtime/io/checkpoint/checkpoint_owners.h"
#include "runtime/net/wire.h"

/* Requests to tasks about checkpoints. A call asks some tasks one thing each
 * and waits for all answers, so no task works for it any more when it returns.
 */

enum { WEIR_DIST_ASK_WARNINGS = 16 };

/* A piece that follows a request, as slot (VARIABLE, node, request). */
typedef struct weir_dist_piece {
  weir_dist_move move;
  uint32_t node;
  void *dst;
  size_t bytes;
} weir_dist_piece;

/* A request to one task, and its answer. */
typedef struct weir_dist_ask {
  uint32_t place;
  Weir__V1__Control message;
  uint64_t *number;       /* in |message| */
  weir_dist_piece *piece; /* NULL: none follows */
  uint32_t *crcs;         /* room for |crc_count|, filled from the answer */
  size_t crc_count;
  weir_error *
      warnings; /* room for WEIR_DIST_ASK_WARNINGS; NULL: they are not wanted */
  /* Filled: */
  bool told, apart;
  uint32_t crc;
  uint64_t bytes;
  size_t warning_count;
  char name[WEIR_TASK_NAME_BYTES]; /* of the task */
  weir_error error;                /* id "": none */
} weir_dist_ask;

/* Asks all of |asks|, and waits. The first error, with the task's name. One
 * that does not send a piece ends the session; other failures do not. */
weir_status weir_dist_ask_all(weir_dist *dist, weir_dist_ask *asks,
                              uint32_t count, weir_error *err);

/* A request has ended. Control thread. */
void weir_dist_replied(weir_dist *dist, uint64_t request,
                       const Weir__V1__CheckpointReply *reply,
                       const weir_error *err);

/* |place| for a message; false: no frame can hold the path. */
bool weir_dist_can_tell(const weir_checkpoint_common *place,
                        Weir__V1__CheckpointFolder *out);

#endif
