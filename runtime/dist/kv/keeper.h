/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_DIST_KV_KEEPER_H_
#define WEIR_DIST_KV_KEEPER_H_

#include "runtime/base/alloc.h"
#include "runtime/dist/kv/kv.h"

/* The machine of a server of keys: marks, order, barriers. Values are the
 * program's.
 *
 *   up(member), message..., down(member)     of the links
 *   calls.work(job) ... worked(job)          in the order of the calls
 *   step(now)                                what is due, and when to come back
 *
 * A member's changes count in the order of their numbers. The answer leaves
 * when worked() says that the work is done; JOINED when nothing of the member
 * is at work, so its mark is final. Answers to what an earlier link brought are
 * dropped: the mark says it all.
 *
 * Invariant: mark + changes at work = accepted, for each member. */

typedef struct weir_kv_keeper weir_kv_keeper;

/* A message at work; the machine's memory, the program fills |reply|: version,
 * newer, count, value_bytes, data, or an error. */
typedef struct weir_kv_job {
  uint32_t member;
  uint64_t link; /* the machine's */
  weir_kv_message message;
  weir_kv_message reply;
  void *owner;                     /* options.job_bytes, the program's */
  struct weir_kv_job *next, *prev; /* the machine's */
} weir_kv_job;

typedef struct weir_kv_keeper_calls {
  void *self;
  /* Sends to a member. |m| is lent, its data is given. */
  void (*send)(void *self, uint32_t member, weir_kv_message *m);
  /* Begins |job|; weir_kv_keeper_worked follows, later. */
  void (*work)(void *self, weir_kv_job *job);
  /* Frees data of a message or a reply. */
  void (*drop)(void *self, void *data);
  /* Ends the link to a member, which broke the protocol. */
  void (*give_up)(void *self, uint32_t member, const weir_error *why);
} weir_kv_keeper_calls;

typedef struct weir_kv_keeper_options {
  uint32_t members; /* 1 to WEIR_KV_MEMBERS */
  uint64_t life;    /* not 0 */
  /* A member without a link for so long is lost: barriers break. */
  int64_t lost_after_ns;
  size_t job_bytes; /* of |owner| */
} weir_kv_keeper_options;

/* Errors: W7090, W6001. */
weir_status weir_kv_keeper_create(const weir_allocator *alloc,
                                  const weir_kv_keeper_options *options,
                                  const weir_kv_keeper_calls *calls,
                                  weir_kv_keeper **out_server, weir_error *err);
/* Drops what is at work: nobody works any more. NULL-safe. */
void weir_kv_keeper_release(weir_kv_keeper *s);

/* Events of the links. |m| is lent but for its data, which is taken. */
void weir_kv_keeper_up(weir_kv_keeper *s, uint32_t member);
void weir_kv_keeper_down(weir_kv_keeper *s, uint32_t member, int64_t now_ns);
void weir_kv_keeper_message(weir_kv_keeper *s, uint32_t member,
                            const weir_kv_message *m);
/* |job| is done, and freed. */
void weir_kv_keeper_worked(weir_kv_keeper *s, weir_kv_job *job);
/* When something is due next; INT64_MAX: nothing. */
int64_t weir_kv_keeper_step(weir_kv_keeper *s, int64_t now_ns);

typedef struct weir_kv_keeper_counts {
  uint64_t applied, refused; /* changes */
  uint64_t duplicates;       /* that had come before */
  uint64_t pulled, barriers; /* answers, rounds */
} weir_kv_keeper_counts;
weir_kv_keeper_counts weir_kv_keeper_count(const weir_kv_keeper *s);

#endif
