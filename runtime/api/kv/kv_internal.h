/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_API_KV_INTERNAL_H_
#define WEIR_API_KV_INTERNAL_H_

#include <pthread.h>

#include "runtime/api/kv/kv_part.h"
#include "runtime/base/map.h"
#include "runtime/dist/kv/client.h"
#include "runtime/train/kv/block.h"

/* Shared by the files of a worker's side.
 *
 * The machine is the control thread's. Callers put ops in a list, under the
 * lock, and one post has it read; ends of ops are told under the lock too. */

/* A run of a key's rows, on one server. */
typedef struct weir_kv_piece {
  uint32_t server;
  int64_t first, rows;
} weir_kv_piece;

/* A key, as this process has declared it. Never changes. */
typedef struct weir_kv_known {
  char name[WEIR_KV_NAME_BYTES];
  weir_dtype dtype;
  int32_t rank;
  int64_t dims[WEIR_KV_RANK];
  int64_t rows;     /* of all servers */
  size_t row_bytes; /* of one row */
  uint32_t piece_count;
  weir_kv_piece pieces[64];
} weir_kv_known;

struct weir_kv {
  weir_kv_part part;
  weir_env env;
  weir_ps_net *net;
  weir_kv_client *machine;
  uint32_t refs; /* under the lock: the caller's, and of each handle */
  pthread_mutex_t lock;
  pthread_cond_t changed;
  /* Under the lock: */
  bool closed; /* nothing more is begun */
  bool ended;  /* the machine's ops have */
  bool posted; /* |submit| is under way */
  weir_kv_op *submitted, *last;
  weir_map names;
  weir_kv_known **keys;
  size_t key_count, key_room;
  char (*links)[128]; /* per server: how its link stands */
  weir_node_call submit, end;
};

/* The share of an op that goes to one server. */
typedef struct weir_kv_share {
  weir_kv_op op;
  weir_kv_handle *handle;
  weir_kv_block *ids_and_rows; /* of a push or pull by rows; else NULL */
  int64_t *places;             /* of these rows in the whole; in the block's
                                  memory of its own */
  const uint8_t *src;          /* whole values: of the caller's tensor */
  uint8_t *dst; /* likewise, for the answer; NULL: it waits in |answer| */
  weir_kv_block *answer;
} weir_kv_share;

struct weir_kv_handle {
  weir_kv *kv;   /* held */
  uint32_t refs; /* under the lock: the caller's, ops, values on their way */
  uint32_t left; /* ops without an answer */
  weir_tensor *in, *out; /* held; may be NULL */
  size_t row_bytes;
  weir_status status; /* of the first that failed */
  weir_error err;
  uint64_t version;
  bool newer;
  char what[WEIR_KV_NAME_BYTES + 32]; /* "push of key `w`" */
  uint32_t share_count;
  weir_kv_share shares[];
};

/* kv.c: */

/* One reference more, or less: the last one frees it. Without the lock. */
void weir_kv_hold(weir_kv *kv);
void weir_kv_drop(weir_kv *kv);
/* Has the ops of |h| begun. Errors: W7118. */
weir_status weir_kv_begin(weir_kv *kv, weir_kv_handle *h, weir_error *err);

#endif
