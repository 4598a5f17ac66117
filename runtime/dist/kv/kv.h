/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_DIST_KV_KV_H_
#define WEIR_DIST_KV_KV_H_

#include "runtime/base/error.h"
#include "runtime/base/status.h"
#include "runtime/base/strbuf.h"
#include "runtime/tensor/dtype.h"

/* The key-value interface of host programs, as numbers: servers hold named
 * tensors, members push to them and pull from them.
 *
 * Two machines, keeper.h and client.h, with the rules of dist/ps/ps.h: one
 * thread, no clock, no lock, no tensor; links keep the order and lose nothing
 * while they are up.
 *
 * *Exactly once.* What changes a server (DECLARE, PUSH, PUSH_PULL) has a
 * number: the member, its incarnation, and |seq|, which counts from 1 for each
 * server. The server keeps one mark for each member, the last number that is
 * done; an answer comes after the change. When a link came back the member
 * JOINs, hears the mark, and sends again what lies above. At most
 * WEIR_KV_WINDOW changes of a member are without an answer at a server, so a
 * word of that many bits beside the mark tells which of them were refused: no
 * set grows.
 *
 * *Life* is a number of the server's process. A member that meets another one
 * than before knows that its keys are gone.
 *
 * *Barriers* are counted at server 0, as sets of members. An entry has a
 * ticket, a number of the member; the answers to the last WEIR_KV_WINDOW
 * tickets are kept as bits, so an entry that is sent again is answered again
 * and never counts for another round. */

enum {
  WEIR_KV_WINDOW = 64,
  WEIR_KV_MEMBERS = 1024,
  WEIR_KV_SET_WORDS = WEIR_KV_MEMBERS / 64,
  WEIR_KV_NAME_BYTES = 256, /* of a key or barrier, with its end */
  WEIR_KV_TEXT_BYTES = 512, /* of a rule or of an error's words */
  WEIR_KV_RANK = 8
};
/* Of the values of one message. */
#define WEIR_KV_MESSAGE_BYTES (UINT64_C(4) << 30)

typedef struct weir_kv_set {
  uint64_t bits[WEIR_KV_SET_WORDS];
} weir_kv_set;

static inline bool weir_kv_set_has(const weir_kv_set *s, uint32_t member) {
  return s->bits[member / 64] >> member % 64 & 1;
}
static inline void weir_kv_set_put(weir_kv_set *s, uint32_t member, bool in) {
  uint64_t bit = UINT64_C(1) << member % 64;
  if (in)
    s->bits[member / 64] |= bit;
  else
    s->bits[member / 64] &= ~bit;
}

/* Messages, and the fields that they use. All of a member have |incarnation|.
 */
typedef enum weir_kv_kind {
  /* Member to server. */
  WEIR_KV_JOIN,      /* first on each link */
  WEIR_KV_DECLARE,   /* seq; name, dtype, dims, first, rows, text (the rule);
                        values: the first ones, or none: zeros */
  WEIR_KV_PUSH,      /* seq; name; values; ids */
  WEIR_KV_PUSH_PULL, /* seq; name; values; ids */
  WEIR_KV_PULL,      /* request; name; ids; version: only a newer one */
  WEIR_KV_ENTER,     /* ticket, name, set */
  WEIR_KV_LEAVE,     /* it ends: nothing more comes */
  /* Server to member. */
  WEIR_KV_JOINED, /* life; seq: the mark; mask */
  WEIR_KV_DONE,   /* seq or request; version, newer; values; or an error */
  WEIR_KV_PASSED, /* ticket; or an error */
  WEIR_KV_KIND_COUNT
} weir_kv_kind;

typedef struct weir_kv_message {
  weir_kv_kind kind;
  uint64_t incarnation, life, seq, request, ticket, version;
  uint64_t mask; /* bit i: change |seq| - i was refused */
  bool newer;
  bool by_row; /* |count| ids come along, and a row of values for each */
  weir_dtype dtype;
  int32_t rank;
  int64_t dims[WEIR_KV_RANK]; /* of the whole key */
  int64_t first, rows;        /* the part of it that the server has */
  uint64_t count;
  uint64_t value_bytes; /* of the values, without ids */
  weir_kv_set set;
  /* A failure: not OK, |id| and |text| say which. */
  weir_status status;
  char id[8];
  char name[WEIR_KV_NAME_BYTES];
  char text[WEIR_KV_TEXT_BYTES];
  /* Ids and values, of the host; they travel beside the message. */
  void *data;
} weir_kv_message;

/* "PUSH". Static. */
const char *weir_kv_kind_name(weir_kv_kind kind);

/* Makes |m| an answer that says |err|. */
void weir_kv_set_error(weir_kv_message *m, weir_status status,
                       const weir_error *err);
/* The error of |m| in |err|; OK if it has none. */
weir_status weir_kv_get_error(const weir_kv_message *m, weir_error *err);

/* |m| without its data, at the end of |out|. */
void weir_kv_encode(const weir_kv_message *m, weir_strbuf *out);
/* |m| is checked for all that memory depends on: numbers of enums, texts,
 * sizes; |who|: the sender. Errors: W7011. */
weir_status weir_kv_decode(weir_sv note, const char *who, weir_kv_message *m,
                           weir_error *err);

/* Bytes of ids, and of all that travels beside |m|: at most
 * WEIR_KV_MESSAGE_BYTES. */
static inline uint64_t weir_kv_id_bytes(const weir_kv_message *m) {
  return m->by_row ? m->count * 8 : 0;
}

#endif
