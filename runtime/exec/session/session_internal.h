/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_EXEC_SESSION_INTERNAL_H_
#define WEIR_EXEC_SESSION_INTERNAL_H_

#include "runtime/base/map.h"
#include "runtime/exec/compile/compile.h"
#include "runtime/exec/run/frame.h"
#include "runtime/exec/run/turn.h"
#include "runtime/exec/session/session.h"
#include "runtime/exec/store/var_store.h"
#include "runtime/graph/mesh/mesh.h"

enum { WEIR_SESSION_PROGRAMS = 8 };

typedef struct weir_variable {
  weir_sv name;
  weir_node_id node;
  weir_value_id init; /* its first value */
  weir_dtype dtype;
  const weir_shape *shape;
  size_t bytes;
  bool assigned;  /* by some node; if not, programs take it for a constant */
  bool elsewhere; /* its home is another process's task */
  weir_var_cell *cell; /* |own|, or one of the store's */
  weir_var_cell own;
} weir_variable;

/* A plan that came from another process, and the channel to the tasks of its
 * parts; of the list and of the programs that were made by it. */
typedef struct weir_route {
  struct weir_route *next;
  int refs; /* under the session's lock */
  const weir_plan *plan;
  struct weir_channel *channel;
} weir_route;

/* A compiled program in the cache, and its key. Reference-counted under the
 * session's lock: bindings and runs hold one. */
typedef struct weir_cached {
  int refs;
  weir_compiled *compiled;
  weir_frame *free_frames;     /* under the session's lock */
  struct weir_stream *streams; /* the devices; NULL: one part */
  uint32_t *vars;              /* of compiled->vars: the session's variables */
  uint64_t used;               /* when, for LRU */
  /* Per variable of the session: the buffer compiled in as a constant. */
  weir_var_buffer **constants;
  atomic_bool stale;                  /* one of those was set since */
  struct weir_remote_program *remote; /* runs elsewhere; NULL: here */
  weir_route *route;                  /* held; NULL: the session's channel */
  /* The key. */
  uint32_t *ids; /* feeds, fetches, targets */
  uint32_t feed_count, fetch_count, target_count;
  weir_shape *feed_shapes;
  weir_fed_at *fed_at; /* per feed */
  bool *stays;         /* per fetch */
  bool no_fusion, init, unplaced;
} weir_cached;

/* The value of an input that is not fed. */
typedef struct weir_default {
  bool known;          /* |varies| was found out */
  bool varies;         /* from run to run, or with other inputs */
  weir_tensor *tensor; /* else: its value, once it was wanted */
} weir_default;

struct weir_exec_session {
  const weir_env *env;
  weir_pool *pool;
  const weir_graph *graph; /* the one that runs: lowered from |given|'s mesh */
  const weir_graph *given; /* the callers'; they use its ids */
  weir_mesh_graph *mesh;   /* from those to the others; NULL: the same */
  weir_session_options options; /* |placing| and |plan| held */
  weir_session_share share;     /* |tasks| NULL: all */
  weir_default *defaults;       /* per input; of a placed session */
  weir_variable *vars;
  uint32_t var_count;
  weir_map var_names;
  pthread_mutex_t lock;       /* cache, frames */
  pthread_mutex_t *vars_lock; /* buffers: |lock|, or the store's */
  weir_turn turn;             /* of runs that assign */
  weir_turn opening;          /* of steps that were started */
  size_t idle_bytes;          /* under |vars_lock|: see weir_session_var_left */
  pthread_mutex_t init_lock;  /* held while variables get their first value */
  weir_cached *cache[WEIR_SESSION_PROGRAMS];
  uint64_t clock; /* of the LRU */
  /* The last plans that were made, held: a program that is compiled again,
   * because a constant was set or the cache was full, has the plan it had. */
  weir_plan *plans[WEIR_SESSION_PROGRAMS];
  uint32_t plan_count; /* ever made */
  weir_route *routes;  /* prepare.h */
};

/* The request of a run or a binding, checked. */
typedef struct weir_wanted {
  const weir_exec_feed *feeds;
  const weir_value_id *fetches;
  const weir_node_id *targets;
  const bool *stays; /* per fetch: weir_exec_fetch.stays; NULL: none does */
  uint32_t feed_count, fetch_count, target_count;
  bool no_fusion;
  bool init;     /* for first values: variables are read, none is made */
  bool unplaced; /* on one device, in a session that places programs */
} weir_wanted;

/* session_defaults.c: the feeds of a placed program, with those that the caller
 * leaves out. */
typedef struct weir_default_feeds {
  weir_exec_feed *feeds;  /* the caller's, those that stay, those that vary */
  weir_value_id *varying; /* defaults of the latter: values of the graph */
  uint32_t feed_count, stay_count, varying_count;
} weir_default_feeds;
/* Checks feeds against the graph's inputs. Errors: W4009, W4011, W0004. */
weir_status weir_session_check(const weir_exec_session *session,
                               const weir_wanted *wanted, weir_error *err);

#endif
