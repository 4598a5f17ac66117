/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_DIST_NODE_NODE_H_
#define WEIR_DIST_NODE_NODE_H_

#include "runtime/net/transport.h"

/* The threads around a task's protocol.
 *
 * Protocol code has no thread, lock or clock. A node gives it two threads, one
 * for the control transport and one for the bulk transport. Each repeats:
 *
 *   poll of its transport until the deadline     -> the transport's callbacks
 *   all that was posted to it, in order of posts -> the posts' functions
 *   machine->step(self, now)                     -> the next deadline
 *
 * So data of the control thread needs no lock, and other threads reach it by a
 * post. Functions of a transport that belong to its thread (connect, close,
 * listen) are reached in the same way.
 *
 * The end: weir_node_stop, on any thread, also from a callback; then
 * weir_node_release, not on a thread of the node. */

typedef struct weir_node weir_node;

typedef struct weir_node_machine {
  void *self;
  /* By class; NULL: nothing is done there. Returns the next deadline on the
   * env's clock: 0: at once, INT64_MAX: none. */
  int64_t (*step[2])(void *self, int64_t now_ns);
  /* A poll has failed, for lack of memory; its thread calls. false, and NULL:
   * the node stops. */
  bool (*failed)(void *self, weir_net_class cls, const weir_error *err);
} weir_node_machine;

/* A call on another thread. The caller's memory, untouched until |fn| is called
 * with |runs|, or without: the thread has ended, then on any thread. */
typedef struct weir_node_call {
  void (*fn)(void *self, bool runs);
  void *self;
  struct weir_node_call *next; /* the node's */
} weir_node_call;

/* Takes both transports, on success only; |bulk| may be NULL. No thread runs
 * yet: listen and connect may be called. Errors: W6001. */
weir_status weir_node_create(const weir_env *env, weir_transport *control,
                             weir_transport *bulk,
                             const weir_node_machine *machine,
                             weir_node **out_node, weir_error *err);
/* Starts the threads. Once. Errors: W6003 (no thread), then none runs. */
weir_status weir_node_start(weir_node *node, weir_error *err);

/* Has |call| made on the thread of class |cls|; never fails, never waits. Any
 * thread. Calls to one thread are made in the order of their posts. */
void weir_node_post(weir_node *node, weir_net_class cls, weir_node_call *call);

/* ---- A caller in place of the thread
 *
 * A call and its answer cost two changes of threads: from the caller to the
 * node's thread and back. A caller that makes many calls, each soon after the
 * last, may be that thread meanwhile: it offers, the node's thread rests, and
 * then the caller polls until its own call is over. The node's thread goes on
 * when nobody has come for a millisecond, or when something is posted. */

typedef enum weir_node_over {
  WEIR_NODE_GOES_ON,
  WEIR_NODE_OVER,
  WEIR_NODE_OVER_BUSY /* other calls wait: the node's thread goes on at once */
} weir_node_over;

/* Makes |call| and does the work of class |cls| on this thread, until |over|
 * says so, asked after each turn, or the node stops. false: nothing was done,
 * for the thread of the node, or another caller, is at work; post the call. The
 * caller holds no lock that the node's thread takes. */
bool weir_node_stand_in(weir_node *node, weir_net_class cls,
                        weir_node_call *call,
                        weir_node_over (*over)(void *self), void *self);
/* A caller has nothing under way and will be back soon. */
void weir_node_offer(weir_node *node, weir_net_class cls);

/* Lets both threads end after all calls posted so far. Any thread. */
void weir_node_stop(weir_node *node);
/* Waits until both threads have ended. One thread at a time, none of them. */
void weir_node_join(weir_node *node);
/* Stops, joins, tells posts that they will not run, releases the transports.
 * NULL-safe. */
void weir_node_release(weir_node *node);

#endif
