/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_INTERNAL_H_
#define WEIR_INTERNAL_H_

#include <pthread.h>

#include "placement/cluster.h"
#include "placement/solve/assign.h"
#include "runtime/api/weir_opts.h"
#include "runtime/base/env.h"
#include "runtime/exec/session/session.h"
#include "runtime/graph/graph.h"
#include "runtime/weir.h"

/* The structs behind the handles of weir.h. A weir_graph, weir_tensor and
 * weir_trace are the inner rooms' own; the others are these. */

/* Memory that is counted against a limit. A heap lives until its owner and the
 * last of its blocks are gone, so tensors may outlive their runtime. */
typedef struct weir_heap weir_heap;

typedef struct weir_heap_opts {
  uint64_t limit_bytes; /* 0: none */
  int64_t deadline_ns;  /* on |clock|; 0: none */
  const weir_clock *clock;
} weir_heap_opts;

/* A heap whose blocks are |inner|'s. NULL when out of memory. */
weir_heap *weir_heap_create(const weir_allocator *inner,
                            const weir_heap_opts *opts);
void weir_heap_release(weir_heap *heap); /* NULL-safe */
const weir_allocator *weir_heap_allocator(weir_heap *heap);

struct weir_runtime {
  atomic_int refs;
  weir_heap *heap; /* NULL: no limit and no hook */
  weir_env env;
  char *device_locks;                 /* NULL: the user's own */
  uint64_t memory_limit, build_limit; /* 0: none */
  int64_t deadline_ns;                /* on env.clock; 0: none */
  int threads;
  void (*on_log)(void *self, weir_log_level level, const char *text);
  void (*on_device)(void *self, const char *text);
  void *on_log_self;
  pthread_mutex_t lock;    /* guards the rest */
  weir_pool *pool;         /* made by the first session */
  struct weir_op_set *ops; /* registered; NULL: none */
  bool ops_sealed;         /* no more may be */
  atomic_flag insecure_told;
  _Atomic uint64_t warned; /* the last warning of a file of choices, hashed */
};

/* Whether the one warning that frames are not encrypted is still to be said; it
 * counts as said from here on. */
static inline bool weir_runtime_tells_insecure(weir_runtime *runtime) {
  return !atomic_flag_test_and_set(&runtime->insecure_told);
}
#define WEIR_INSECURE_WORDS                                                 \
  "frames to other machines are not encrypted, and whoever reaches a task " \
  "may drive it (insecure)"

/* A failure for lack of memory, or of time, with its reason: W6001 becomes
 * W5006 or W6002 where |alloc| says so. Others stay. |what| as for
 * weir_fail_refused. */
weir_status weir_settle(const weir_allocator *alloc, const char *what,
                        weir_status status, weir_error *err);

/* One more reference, which is returned. */
weir_runtime *weir_runtime_ref(weir_runtime *runtime);

/* The built-in ops with the host's before them; from here on none is added.
 * Lent as long as the runtime; graphs hold it longer. */
const weir_registry *weir_runtime_registry(weir_runtime *runtime);

/* |text| as the API lends it. */
static inline weir_text weir_text_of(weir_sv text) {
  return (weir_text){text.data, text.size};
}

/* weir_tensor.c: W0004 where |tensor| is on a GPU, for calls that read or write
 * elements of |what| on the host. |tensor| may be NULL. */
weir_status weir_check_on_host(const weir_tensor *tensor, const char *what,
                               weir_error *err);

/* weir_log.c: a line to the host's log, if it wants one. */
void weir_log(const weir_runtime *runtime, weir_log_level level,
              const char *fmt, ...) WEIR_PRINTF(3, 4);
/* A diagnostic that no callback receives. */
void weir_log_diag(const weir_runtime *runtime, const weir_diag *diag);

/* A run under way, so that it can be cancelled. */
typedef struct weir_run_entry weir_run_entry;
struct weir_run_entry {
  atomic_bool cancel;
  weir_run_entry *prev, *next;
};

typedef struct weir_placed weir_placed;

/* weir_variable.c: the variables of a graph as sessions and trainers list them.
 * One thread at a time. */
typedef struct weir_variables {
  const weir_graph *graph;   /* lent, as |placed| is */
  const weir_placed *placed; /* or NULL */
  bool *trained; /* per node of |graph|, made when first asked for */
} weir_variables;

/* How many there are. */
size_t weir_variables_count(const weir_graph *graph);
/* The i-th one. Errors: W0004 (there are not so many), W6001. */
weir_status weir_variables_at(weir_variables *variables, size_t i,
                              weir_variable_desc *out_variable,
                              weir_error *err);
void weir_variables_release(weir_variables *variables);

struct weir_session {
  atomic_int refs; /* the handle's and each bound's */
  weir_runtime *runtime;
  const weir_graph *graph;
  weir_exec_session *exec;
  weir_placed *placed; /* or NULL */
  pthread_mutex_t lock;
  weir_run_entry runs;      /* ring; guarded by |lock| */
  weir_variables variables; /* likewise */
};

struct weir_bound {
  weir_session *session;
  weir_binding *binding;
  weir_run_entry entry;
};

/* weir_train.c: the loop behind the handle; lent. */
struct weir_loop *weir_trainer_loop(const weir_trainer *trainer);

/* The runtime's pool, made at the first call; lent. */
weir_status weir_runtime_pool(weir_runtime *runtime, weir_pool **out_pool,
                              weir_error *err);
/* Options of |opts| (read already) for an inner session. */
weir_session_options weir_session_options_of(const weir_runtime *runtime,
                                             const weir_session_opts *opts);

/* weir_placed.c: the placing of a session with `place` or `plan`; NULL without
 * either. Errors: W0002, W0004, W3002-W3020, W6001, those of costs. */
weir_status weir_placed_create(weir_runtime *runtime, const weir_graph *graph,
                               const weir_session_opts *opts,
                               weir_placed **out_placed, weir_error *err);
void weir_placed_release(weir_placed *placed); /* NULL-safe */
/* The device that variable |name| lives on; empty: none was decided. */
weir_sv weir_placed_home(const weir_placed *placed, weir_sv name);
/* Sets the placing in |options|; nothing for NULL. */
void weir_placed_use(weir_placed *placed, weir_session_options *options);
/* With tasks: sets the fields of |options| that need them, for sessions of
 * |run_graph|, which is |graph| or its training graph. Both outlive |placed|.
 * Errors: W6001. */
weir_status weir_placed_open(weir_placed *placed, const weir_graph *graph,
                             const weir_graph *run_graph,
                             weir_session_options *options, weir_error *err);
/* The placer that |name| spells (weir_placer_parse); NULL: the default, which
 * is NULL too. Errors: W0002. */
weir_status weir_placer_choose(const char *name, const weir_placer **out_placer,
                               uint64_t *out_seed, weir_error *err);
/* One more reference, which is returned. */
static inline weir_session *weir_session_ref(weir_session *session) {
  atomic_fetch_add(&session->refs, 1);
  return session;
}
/* Drops a reference; the last one ends the session. */
void weir_session_unref(weir_session *session);

/* Enters and leaves the ring of runs. */
void weir_session_enter(weir_session *session, weir_run_entry *entry);
void weir_session_leave(weir_session *session, weir_run_entry *entry);

/* A value or node by the names that weir_fetch takes; W4016 with a hint. */
weir_status weir_find_value(const weir_graph *graph, const char *name,
                            weir_value_id *out_value, weir_error *err);
weir_status weir_find_node(const weir_graph *graph, const char *name,
                           weir_node_id *out_node, weir_error *err);
/* Likewise an input: W4011. */
weir_status weir_find_input(const weir_graph *graph, const char *name,
                            weir_value_id *out_value, weir_error *err);

#endif
