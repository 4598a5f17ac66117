/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_DIST_KV_KEEPER_INTERNAL_H_
#define WEIR_DIST_KV_KEEPER_INTERNAL_H_

#include "runtime/dist/kv/keeper.h"

/* Shared by keeper.c and barrier.c. */

typedef struct weir_kv_member {
  bool up;     /* its link */
  bool joined; /* on this link */
  bool known;  /* has joined ever, and not left */
  bool left, lost;
  int64_t down_ns;      /* since when it is down; INT64_MAX: it is not */
  uint64_t incarnation; /* 0: none */
  uint64_t link;        /* number of the link */
  uint64_t accepted, mark, refused;
  uint32_t pending;        /* jobs at work */
  uint64_t joins;          /* incarnation that waits to join; 0: none */
  uint64_t tickets;        /* the highest that came */
  uint64_t passed, broken; /* bit i: of ticket |tickets| - i */
  uint32_t culprit;        /* of the last that broke */
} weir_kv_member;

/* A round that members wait in. */
typedef struct weir_kv_barrier {
  struct weir_kv_barrier *next;
  char name[WEIR_KV_NAME_BYTES];
  weir_kv_set wanted, here;
  uint64_t tickets[]; /* of those who are here */
} weir_kv_barrier;

struct weir_kv_keeper {
  const weir_allocator *alloc;
  weir_kv_keeper_options options;
  weir_kv_keeper_calls calls;
  weir_kv_keeper_counts counts;
  weir_kv_barrier *barriers;
  weir_kv_job *jobs;
  weir_kv_member members[];
};

/* keeper.c: */
void weir_kv_keeper_answer(weir_kv_keeper *s, uint32_t member,
                           weir_kv_message *m);

#endif
