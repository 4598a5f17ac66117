/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_TRAIN_PS_SERVER_HOST_H_
#define WEIR_TRAIN_PS_SERVER_HOST_H_

#include "runtime/dist/ps/server.h"
#include "runtime/dist/psnet/psnet.h"
#include "runtime/exec/pool.h"
#include "runtime/train/ps/job.h"

/* A parameter server with tensors: the machine of dist/ps/server.h, the
 * session that has its variables, its files.
 *
 * Three threads. The control thread is the machine's: it takes the events of
 * the net, hands work over and never waits. One thread computes: updates, in
 * the order in which the machine begins them, and restores. One is the disk's:
 * saves, epochs, seals. Each piece of work is told of by a post.
 *
 *   PULLED    lends the buffers that are current, until they are sent
 *   PUSH      is received into the spare buffers of variables, where the update
 *             reads gradients and leaves new values (server_engine.h)
 *   publish   the set of values that the last update left becomes current
 *
 * Sync: the sum of a step grows as pushes come, in order of k; the last one is
 * added by the program that finishes the step, so one that never gets its last
 * push changes nothing that counts.
 *
 * FETCH of the chief is answered here, by FETCHED: with |newer| all that the
 * server holds comes along, without it there is no state yet. OVER of the chief
 * ends the server; so does a chief or a server that stays away. */

typedef struct weir_ps_host weir_ps_host;

/* A net's calls, or a test's: weir_ps_net_send, _give_up, _post. */
typedef struct weir_ps_host_net {
  void *self;
  void (*send)(void *self, weir_ps_task to, const weir_ps_message *m,
               weir_ps_values *values);
  void (*give_up)(void *self, weir_ps_task peer, const weir_error *why);
  void (*post)(void *self, weir_node_call *call);
} weir_ps_host_net;

typedef struct weir_ps_host_options {
  const weir_ps_job *job; /* lent for the life, as all here */
  uint32_t index;
  weir_pool *pool;
  /* Folder of generations, which all servers see. NULL: none; then nothing
   * outlives a server: saves are told to be done at once, and whatever is
   * restored are the first values, so the job begins again. First values are
   * the graph's, or come along with the chief's RESTORE. */
  const char *dir;
  uint64_t limit; /* server 0: steps of the job; WEIR_PS_NONE: no limit */
  weir_ps_failpoints failpoints;
  /* The job is over (NULL), or the server cannot go on. Once; control thread.
   */
  void (*over)(void *self, const weir_error *failure);
  /* A line. May be NULL. Any thread of the server. */
  void (*log)(void *self, const char *text);
  void *self;
} weir_ps_host_options;

/* Starts the threads; they call |net|, so it is there. Errors: those of
 * sessions and folders, W7090, W7091, W6001, W6003. */
weir_status weir_ps_host_create(const weir_env *env,
                                const weir_ps_host_options *options,
                                const weir_ps_host_net *net,
                                weir_ps_host **out_host, weir_error *err);
/* Ends the threads; posts of theirs are not waited for. Not on one of them. */
void weir_ps_host_stop(weir_ps_host *host);
/* When no event comes any more and no value is lent: after the net. Stops.
 * NULL-safe. */
void weir_ps_host_release(weir_ps_host *host);

/* The events of the net, with |host| as self. */
weir_ps_net_events weir_ps_host_events(weir_ps_host *host);

/* Of the control thread, or when there is none any more. */
const weir_ps_server *weir_ps_host_machine(const weir_ps_host *host);

#endif
