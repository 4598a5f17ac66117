/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_EXEC_SESSION_INTERNAL_H_
#define WEIR_EXEC_SESSION_INTERNAL_H_

#include "runtime/base/map.h"
#include "runtime/exec/compile/compile.h"
#include "runtime/exec/program/frame.h"
#include "runtime/exec/session/session.h"
#include "runtime/graph/mesh/mesh.h"

enum { WEIR_SESSION_PROGRAMS = 8 };

/* One value that a variable has or had. Runs hold references; a commit gives
 * the variable another buffer, so readers under way keep theirs. */
typedef struct weir_var_buffer {
  struct weir_var_buffer *next; /* of the variable's list */
  int users;                    /* runs that read or write it */
  _Alignas(64) char data[];
} weir_var_buffer;

typedef struct weir_variable {
  weir_sv name;
  weir_node_id node;
  weir_value_id init; /* its first value */
  weir_dtype dtype;
  const weir_shape *shape;
  size_t bytes;
  bool ready;
  bool assigned; /* by some node; if not, programs take it for a constant */
  weir_var_buffer *buffers, *current;
} weir_variable;

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
  atomic_bool stale; /* one of those was set since */
  /* The key. */
  uint32_t *ids; /* feeds, fetches, targets */
  uint32_t feed_count, fetch_count, target_count;
  weir_shape *feed_shapes;
  bool no_fusion, init;
} weir_cached;

struct weir_exec_session {
  const weir_env *env;
  weir_pool *pool;
  const weir_graph *graph; /* what is run: lowered, if |given| has a mesh */
  const weir_graph *given; /* whose ids callers use */
  weir_mesh_graph *mesh;   /* from those to the others; NULL: the same */
  weir_session_options options;
  weir_variable *vars;
  uint32_t var_count;
  weir_map var_names;
  pthread_mutex_t lock;       /* cache, frames, variables' buffers */
  pthread_mutex_t write_lock; /* held by runs that assign */
  pthread_mutex_t init_lock;  /* held while variables get their first value */
  weir_cached *cache[WEIR_SESSION_PROGRAMS];
  uint64_t clock; /* of the LRU */
};

/* What a run or a binding wants, checked. */
typedef struct weir_wanted {
  const weir_exec_feed *feeds;
  const weir_value_id *fetches;
  const weir_node_id *targets;
  uint32_t feed_count, fetch_count, target_count;
  bool no_fusion;
  bool init; /* for first values: variables are read, none is made */
} weir_wanted;

/* session_cache.c: finds or compiles; the caller gets a reference. */
weir_status weir_session_program(weir_exec_session *session,
                                 const weir_wanted *wanted,
                                 weir_cached **out_cached, weir_error *err);
void weir_session_program_release(weir_exec_session *session,
                                  weir_cached *cached);
/* A frame of the program, from those left by earlier runs if there is one. */
weir_status weir_session_frame(weir_exec_session *session, weir_cached *cached,
                               weir_frame **out_frame, weir_error *err);
void weir_session_frame_return(weir_exec_session *session, weir_cached *cached,
                               weir_frame *frame);

/* Drops the programs that took variable |var| for a constant. */
void weir_session_make_stale(weir_exec_session *session, uint32_t var);

/* session_vars.c */
/* The bytes of a variable that nothing assigns, held for |cached|; else NULL.
 */
const void *weir_session_constant(weir_exec_session *session,
                                  weir_cached *cached, weir_sv name);
weir_status weir_session_vars_create(weir_exec_session *session,
                                     weir_error *err);
void weir_session_vars_release(weir_exec_session *session);
/* Gives variables their first values, those that have none. */
weir_status weir_session_vars_init(weir_exec_session *session, weir_error *err);
/* Points |frame| to the values at the start of a step, and to buffers for
 * those to be; |held| gets the buffers, 2 per variable. */
weir_status weir_session_vars_begin(weir_exec_session *session,
                                    const weir_cached *cached,
                                    weir_frame *frame, weir_var_buffer **held,
                                    weir_error *err);
/* Ends the step; |commit| makes the new values current. */
void weir_session_vars_end(weir_exec_session *session,
                           const weir_cached *cached, weir_var_buffer **held,
                           bool commit);

/* session_mesh.c: the same calls in ids of the lowered graph, for sessions
 * whose graph has a mesh. */
weir_status weir_session_mesh_run(
    weir_exec_session *session, const weir_exec_feed *feeds, size_t feed_count,
    weir_exec_fetch *fetches, size_t fetch_count, const weir_node_id *targets,
    size_t target_count, const weir_run_options *options,
    weir_binding **out_binding, weir_error *err);
/* A copy of the whole variable. */
weir_status weir_session_mesh_get(weir_exec_session *session, weir_node_id node,
                                  weir_tensor **out_tensor, weir_error *err);
weir_status weir_session_mesh_set(weir_exec_session *session, weir_node_id node,
                                  const weir_tensor *tensor, weir_error *err);
/* The value of the given graph that |id| stands for, or NULL. */
const weir_value *weir_session_mesh_value(const weir_exec_session *session,
                                          weir_value_id id);

/* session_vars.c, session_run.c, binding.c: what these calls do with ids of
 * the session's own graph. */
weir_status weir_session_set(weir_exec_session *session, weir_node_id node,
                             const weir_tensor *tensor, weir_error *err);
weir_status weir_session_own_run(
    weir_exec_session *session, const weir_exec_feed *feeds, size_t feed_count,
    weir_exec_fetch *fetches, size_t fetch_count, const weir_node_id *targets,
    size_t target_count, const weir_run_options *options, weir_error *err);
weir_status weir_session_own_bind(
    weir_exec_session *session, const weir_exec_feed *feeds, size_t feed_count,
    weir_exec_fetch *fetches, size_t fetch_count, const weir_node_id *targets,
    size_t target_count, weir_binding **out_binding, weir_error *err);

/* session_run.c: one step of |frame|, with variables and commit. |held| has
 * room for 2 buffers per variable. */
weir_status weir_session_step(weir_exec_session *session,
                              const weir_cached *cached, weir_frame *frame,
                              weir_var_buffer **held,
                              const weir_run_options *options, weir_error *err);
/* Makes |fetch|'s tensor, or checks the one that is there. */
weir_status weir_session_output(weir_exec_session *session,
                                const weir_cached *cached, uint32_t k,
                                weir_tensor **tensor, weir_error *err);
/* Checks feeds against the graph's inputs. Errors: W4009, W4011, W0004. */
weir_status weir_session_check(const weir_exec_session *session,
                               const weir_wanted *wanted, weir_error *err);

#endif
