/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_EXEC_TASKS_TASK_WORLD_H_
#define TESTS_EXEC_TASKS_TASK_WORLD_H_

#include "placement/place.h"
#include "runtime/exec/session/session_internal.h"
#include "runtime/graph/goal.h"
#include "tests/exec/support.h"

/* The tasks of a cluster as sessions of one process: each owns its share, all
 * are joined by one local channel, and a step runs them on a thread each. */

enum { TASK_FETCHES = 32, TASK_FEEDS = 8, TASK_MOST = 4 };

/* The text of the graph file at |path|; the caller frees |data|. */
weir_sv task_graph_text(const char *path);

/* The feeds and the fetches of a purpose of a graph. */
typedef struct task_job {
  weir_goal *goal;
  weir_exec_feed feeds[TASK_FEEDS];
  uint32_t feed_count;
} task_job;

/* One session, or one for each task. */
typedef struct task_world {
  const weir_env *env;
  const task_job *job;
  uint32_t count, task_count; /* of sessions, of the cluster */
  weir_pool *pools[TASK_MOST];
  weir_exec_session *sessions[TASK_MOST];
  bool owns[TASK_MOST][TASK_MOST];
  weir_channel *channel; /* counts its calls; NULL: one process */
  weir_exec_fetch fetches[TASK_MOST][TASK_FETCHES];
  weir_status status[TASK_MOST];
  weir_error errors[TASK_MOST];
  uint64_t step;
  bool may_fail; /* steps; else one that fails ends the test */
} task_world;

/* Inputs without a default are fed; open sizes are 16. */
void task_job_open(const weir_env *env, const weir_graph *graph, bool inference,
                   task_job *job);
void task_job_close(task_job *job);

/* |placing| NULL: one process, one device. |sessions|: among which the tasks
 * are dealt; 0: one for each. */
void task_world_open(const weir_env *env, const task_job *job,
                     const weir_placing *placing, const weir_plan *plan,
                     uint32_t sessions, task_world *world);
void task_world_close(task_world *world);

/* One step of all sessions, which must succeed. */
void task_world_step(task_world *world, const char *what);
void task_world_drop_fetches(task_world *world);

/* Fetches and variables of |tasks| are those of |one|, bit by bit, each in one
 * task; |what| is for messages. */
void task_world_compare(task_world *one, task_world *tasks, const char *what);

/* The compiled parts of the tasks send and receive exactly the values of the
 * table that all tasks share, and of the rows that people read. Of tasks with
 * one device each, a session for each. */
void task_world_check_rows(const task_world *tasks, const char *what);

/* Ranks of collectives that are on another task than their first one. */
uint32_t task_world_far_ranks(const task_world *tasks);

/* Values and tokens that went over the channel. */
uint64_t task_world_values(const task_world *world);
uint64_t task_world_bytes(const task_world *world);
/* Values that were computed with as they came. */
uint64_t task_world_taken(const task_world *world);

#endif
