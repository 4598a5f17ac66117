/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_TRAIN_PS_WORKER_HOST_H_
#define WEIR_TRAIN_PS_WORKER_HOST_H_

#include "runtime/dist/ps/worker.h"
#include "runtime/train/ps/worker/worker_compute.h"

/* The host of a worker's machine (dist/ps/worker.h): messages and values
 * between links, the machine and the compute.
 *
 * All of it is on one thread, the net's control thread; the compute has its
 * own, and says that a run has ended by a post. The net is a port, so that a
 * test can be one. */

typedef struct weir_worker_host weir_worker_host;

/* As the functions of weir_ps_net (psnet.h). */
typedef struct weir_worker_port {
  void *self;
  void (*send)(void *self, weir_ps_task to, const weir_ps_message *m,
               weir_ps_values *values);
  void (*give_up)(void *self, weir_ps_task peer, const weir_error *why);
  void (*post)(void *self, weir_node_call *call);
  void (*describe)(void *self, weir_ps_task peer, char *text,
                   size_t size); /* may be NULL */
} weir_worker_port;

typedef struct weir_worker_host_options {
  const weir_ps_job *job; /* lent for the life */
  uint32_t index;
  weir_pool *pool;
  weir_session_options session;
  weir_dataset_options data;
  weir_ps_failpoints failpoints;
  /* The end; control thread, once. |failed|: the status of a run that has
   * failed, with |err|, which is lent for the call; WEIR_OK: none has. */
  void (*over)(void *self, bool drained, weir_status failed,
               const weir_error *err);
  void (*log)(void *self, const char *text); /* may be NULL */
  void *self;
  int64_t hang_ns; /* a wait of so long is logged; 0: 10 s */
} weir_worker_host_options;

typedef struct weir_worker_numbers {
  weir_ps_worker_counts runs;
  uint64_t rows;   /* examples of the runs that were computed */
  int64_t wait_ns; /* that computing waited for data */
} weir_worker_numbers;

/* Errors: W7090, those of weir_worker_compute_create. */
weir_status weir_worker_host_create(const weir_env *env,
                                    const weir_worker_host_options *options,
                                    weir_worker_host **out_host,
                                    weir_error *err);
/* The port; before the first event. */
void weir_worker_host_connect(weir_worker_host *host,
                              const weir_worker_port *port);
/* What the net calls; its lines go to the host's log. */
weir_ps_net_events weir_worker_host_events(weir_worker_host *host);

/* As weir_ps_worker_drain. Control thread. */
void weir_worker_host_drain(weir_worker_host *host);
/* Ends the compute's thread. When no more events come; values may be called
 * sent after it. */
void weir_worker_host_stop(weir_worker_host *host);
/* After all values that were sent. NULL-safe. */
void weir_worker_host_release(weir_worker_host *host);

/* Control thread, or after stop. */
weir_worker_numbers weir_worker_host_count(const weir_worker_host *host);

#endif
