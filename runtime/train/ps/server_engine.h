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
 * A push has a buffer of its own from the first byte until it is applied: the
 * link writes into its tensors, a program that is bound to them reads them.
 * Buffers go around.
 *
 * A set of values holds each variable of the server as it is at that moment,
 * without a copy: an update that follows is computed into other buffers. So two
 * sets, the current one and the one to be, are the two buffers of server.h. */

/* The values of a push. */
typedef struct weir_ps_buffer {
  weir_tensor **tensors; /* in the order of the server's pushes */
  weir_ps_piece *pieces; /* the same */
  weir_binding *last, *more, *shares;
  struct weir_ps_buffer *next, *all; /* the holder's */
} weir_ps_buffer;

/* Values of all that the server holds, in that order. */
typedef struct weir_ps_set {
  weir_tensor **tensors;
  uint32_t count;       /* 0: there are none */
  weir_tensor *watched; /* f64 of the update that made them; NULL: no summary */
} weir_ps_set;

typedef struct weir_ps_engine {
  const weir_env *env;
  weir_arena arena;
  const weir_ps_job *job;
  const weir_ps_lists *lists;
  const weir_update_graph *update;
  uint32_t server;
  weir_pool *pool;
  weir_exec_session *session;
  weir_tensor *step; /* i64: fed with each push, or NULL */
  weir_tensor *age;  /* i64: its staleness, where the update divides by it */
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

/* Uninitialised values. Any thread. Errors: W6001. */
weir_status weir_ps_buffer_create(const weir_ps_engine *e,
                                  weir_ps_buffer **out_buffer, weir_error *err);
void weir_ps_buffer_release(const weir_ps_engine *e, weir_ps_buffer *b);

/* ---- By one thread. */

/* Runs the update for |b|: all of it, or, not |last|, what the first pushes of
 * several change. |step|: the number of updates that rate and step follow from,
 * where it is given. |age|: the updates since its values. Errors: the programs'
 * own, W6001. */
weir_status weir_ps_engine_run(weir_ps_engine *e, weir_ps_buffer *b, bool last,
                               uint64_t step, uint64_t age, weir_error *err);
/* Computes |e->shares| from the first pushes and |b|, the last. Changes nothing
 * else. Errors: as above. */
weir_status weir_ps_engine_shares(weir_ps_engine *e, weir_ps_buffer *b,
                                  weir_error *err);
/* Fills |set|, which has room for all, with the values of now. A given step is
 * a number of its own, for weir_ps_set_version. Errors: W6001. */
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
