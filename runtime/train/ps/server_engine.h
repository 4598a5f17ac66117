/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_TRAIN_PS_SERVER_ENGINE_H_
#define WEIR_TRAIN_PS_SERVER_ENGINE_H_

#include "runtime/dist/psnet/psnet.h"
#include "runtime/exec/session/binding.h"
#include "runtime/exec/session/session.h"
#include "runtime/train/ps/job.h"

/* A server's update: the session that has its variables, pushes as they come
 * from workers, and the values that pulls lend.
 *
 * A push has a buffer of its own from the first byte until it is applied. Where
 * the update allows, the tensor of a gradient is room of its variable: the link
 * writes into it, the update reads the gradient and writes the variable's new
 * value over it. So the spare buffer of a variable and the memory of a push are
 * one.
 *
 * A set of values holds each variable that pulls lend as it is at that moment,
 * without a copy: an update that follows is computed into other buffers. So two
 * sets, the current one and the one to be, are the two buffers of server.h.
 * Slots and sums are lent to nobody and have one buffer: an update writes over
 * it, unless a save holds it. What a save or the chief wants of them has to be
 * taken while no update is under way that is not published (weir_ps_own). Where
 * updates write over nothing (weir_ps_writes_over) all values are lent. */

/* The values of a push. */
typedef struct weir_ps_buffer {
  weir_tensor **tensors;             /* in the order of the server's pushes */
  weir_ps_piece *pieces;             /* the same */
  struct weir_ps_buffer *next, *all; /* the holder's */
} weir_ps_buffer;

/* Values that are lent, in the order of all that the server holds; NULL: an own
 * one. */
typedef struct weir_ps_set {
  weir_tensor **tensors;
  uint32_t count;       /* 0: there are none */
  weir_tensor *watched; /* f64 of the update that made them; NULL: no summary */
} weir_ps_set;

/* Values that the server holds and does not lend. */
typedef enum weir_ps_own {
  WEIR_PS_LENT, /* it does */
  WEIR_PS_SLOT, /* updates change it */
  WEIR_PS_SUM   /* the first pushes of several do too; 0 between updates */
} weir_ps_own;

typedef struct weir_ps_engine {
  const weir_env *env;
  weir_arena arena;
  const weir_ps_job *job;
  const weir_ps_lists *lists;
  const weir_update_graph *update;
  uint32_t server;
  weir_pool *pool;
  weir_exec_session *session;
  weir_binding *last, *more, *shared; /* NULL: there is nothing to do */
  weir_node_id *room_of; /* per push: a variable; UINT32_MAX: none */
  weir_ps_own *own;      /* per value that is held */
  uint64_t plain_bytes;  /* of a push, that are no rooms */
  weir_tensor *step;     /* i64: fed with each push, or NULL */
  weir_tensor *age; /* i64: its staleness, where the update divides by it */
  /* With a norm over several servers: fed, and what this one adds to it. */
  weir_tensor *norm, **shares;
  weir_tensor **watched; /* values of the last update that a summary shows */
  bool updated;          /* they are those of the variables */
  bool touched;          /* variables may have other than their first values */
} weir_ps_engine;

/* Of one server. |pool| and |job| are lent for the life. Errors: those of
 * sessions, W6001. */
weir_status weir_ps_engine_create(const weir_env *env, weir_pool *pool,
                                  const weir_ps_job *job, uint32_t server,
                                  weir_ps_engine **out_engine, weir_error *err);
/* After all sets and buffers. NULL-safe. */
void weir_ps_engine_release(weir_ps_engine *e);

/* Without values. Any thread, as what follows. Errors: W6001. */
weir_status weir_ps_buffer_create(const weir_ps_engine *e,
                                  weir_ps_buffer **out_buffer, weir_error *err);
void weir_ps_buffer_release(const weir_ps_engine *e, weir_ps_buffer *b);
/* Makes the values that are missing, uninitialised. Errors: W6001. */
weir_status weir_ps_buffer_fill(const weir_ps_engine *e, weir_ps_buffer *b,
                                weir_error *err);
/* Gives rooms back, or to the variables whose values they have become. */
void weir_ps_buffer_leave(const weir_ps_engine *e, weir_ps_buffer *b);

/* ---- By one thread. */

/* Runs the update for |b|, whose values are gone then: all of it, or, not
 * |last|, what the first pushes of several change. |step|: the number of
 * updates that rate and step follow from, where it is given. |age|: the updates
 * since its values. Errors: the programs' own, W6001. */
weir_status weir_ps_engine_run(weir_ps_engine *e, weir_ps_buffer *b, bool last,
                               uint64_t step, uint64_t age, weir_error *err);
/* Computes |e->shares| from the first pushes and |b|, the last. Changes nothing
 * else. Errors: as above. */
weir_status weir_ps_engine_shares(weir_ps_engine *e, weir_ps_buffer *b,
                                  weir_error *err);
/* Fills |set|, which has room for all, with the lent values of now. A given
 * step is a number of its own, for weir_ps_set_version. Errors: W6001. */
weir_status weir_ps_engine_values(weir_ps_engine *e, weir_ps_set *set,
                                  weir_error *err);
/* Gives all variables their first values. Errors: the programs', W6001. */
weir_status weir_ps_engine_first(weir_ps_engine *e, weir_error *err);
/* Sets variable |var|, of the split; of another server's: does nothing.
 * Errors: W4009. */
weir_status weir_ps_engine_set(weir_ps_engine *e, uint32_t var,
                               const weir_tensor *tensor, weir_error *err);
/* Whether this server's session has |var|. */
bool weir_ps_engine_has(const weir_ps_engine *e, uint32_t var);

/* An own value as it is now; |zero|: a sum that is not 0 is to be taken for it.
 * Any thread, while no update is under way. Errors: W6001. */
weir_status weir_ps_engine_hold(weir_ps_engine *e, uint32_t place, bool zero,
                                weir_tensor **out, weir_error *err);

/* ---- Sets. */

/* Room for all values, none there. Errors: W6001. */
weir_status weir_ps_set_init(weir_ps_engine *e, weir_ps_set *set,
                             weir_error *err);
/* Gives the references back. */
void weir_ps_set_clear(weir_ps_set *set);
/* The given step, where the server holds it, is |version|. */
void weir_ps_set_version(const weir_ps_engine *e, weir_ps_set *set,
                         uint64_t version);

#endif
