/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_DIST_CLUSTER_TURN_H_
#define WEIR_DIST_CLUSTER_TURN_H_

#include "runtime/dist/cluster/cluster_internal.h"

/* Turns of this process among the drivers of a share. Without a share all of it
 * does nothing. Locks are taken in this order: preparing, the turn, the gate,
 * moment. */

/* Waits for the turn: to write, alone, or to read, with other calls that read.
 * |options|: its cancel flag and deadline end the waiting; may be NULL. |out|
 * (may be NULL) tells what the home said. Errors: the session's, W5005, W5006.
 */
weir_status weir_dist_turn_enter(weir_dist_session *s, bool writes,
                                 const weir_run_options *options,
                                 weir_driver_turn *out, weir_error *err);
/* Ends one call in it; the last one gives the turn back. |made|: the variables
 * of the share are on all tasks. Any thread. */
void weir_dist_turn_leave(weir_dist_session *s, bool made);
/* For calls that set variables from outside. Errors: W7088. */
weir_status weir_dist_turn_check_alone(const weir_dist_session *s,
                                       const weir_driver_turn *turn,
                                       weir_error *err);

/* The driver's callback; control thread. */
void weir_dist_turned(void *self, const weir_driver_turn *turn,
                      const weir_error *err);
/* Whether |op| waits for a turn and must stop: then it is over. Control thread,
 * under the lock. |*next_ns|: when to look again. */
bool weir_dist_turn_stops(weir_dist_op *op, int64_t now_ns, int64_t *next_ns);
/* Why a run with such options must stop now; false: it need not. */
bool weir_dist_must_stop(const weir_run_options *options, int64_t now_ns,
                         weir_error *why);

#endif
