/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_DIST_TASK_FRONT_H_
#define WEIR_DIST_TASK_FRONT_H_

#include "runtime/dist/task/task.h"

/* The front of a task's process: several drivers at once, if they share.
 *
 * Each driver's session has a lane: a task (task.h) with an engine, connections
 * to the other tasks and step numbers of its own, so that nothing of two
 * sessions can be mixed up. They have two things in common: the variables,
 * which are the engines', and the turn to use them (task_turn.c), which the
 * home of the variables gives.
 *
 * A driver may begin beside others if all have the same share and the same
 * tasks; else it is refused, W7024, as if there was one lane. The first lane is
 * there from the beginning, the others are made when they are wanted and stay.
 *
 * One thread calls everything; events of the link and of the engines go to the
 * functions below, as those of one task. */

typedef struct weir_front weir_front;

typedef struct weir_front_calls {
  void *self;
  /* Makes an engine, which its owner releases, for a new lane, and fills the
   * calls of its task. Its events are those of weir_front_on_engine. */
  weir_status (*lane)(void *self, uint32_t lane, weir_engine **out_engine,
                      weir_task_calls *out_calls, weir_error *err);
} weir_front_calls;

/* |link| is lent; |options|: its lane and turns are not looked at. Errors:
 * those of calls.lane, W6001. */
weir_status weir_front_create(const weir_allocator *alloc, weir_link *link,
                              const weir_task_options *options,
                              const weir_front_calls *calls,
                              weir_front **out_front, weir_error *err);
/* Before the engines. NULL-safe. */
void weir_front_release(weir_front *front);

/* Events of the link. */
void weir_front_up(weir_front *front, int64_t now_ns, weir_peer *peer);
/* Likewise. */
void weir_front_message(weir_front *front, int64_t now_ns, weir_peer *peer,
                        const struct Weir__V1__Control *message);
/* Likewise. */
void weir_front_lost(weir_front *front, int64_t now_ns, weir_peer *peer,
                     const weir_error *why);
/* An event of the lane's engine; releases it. */
void weir_front_on_engine(weir_front *front, int64_t now_ns, uint32_t lane,
                          weir_engine_event *event);
/* As weir_task_tick. */
int64_t weir_front_tick(weir_front *front, int64_t now_ns);
/* Ends all sessions without a word. */
void weir_front_shut(weir_front *front);
/* Whether there is no session. */
bool weir_front_is_free(const weir_front *front);
/* Of all lanes. */
void weir_front_describe(const weir_front *front, weir_task_state *out);

#endif
