/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_DIST_OBSERVE_OBSERVE_H_
#define WEIR_DIST_OBSERVE_OBSERVE_H_

#include "runtime/dist/driver/driver.h"
#include "runtime/dist/task/task.h"
#include "runtime/dist/transports.h"

/* Tasks, seen from outside: one call that connects to all of them, asks, and
 * ends. Tasks answer it beside any session of a driver, from what their control
 * thread knows, so no step waits for it.
 *
 * Each task is asked for its state, then for |pings| round trips, then for
 * |bandwidth_bytes| in each direction, then, with |stop|, to end; all tasks at
 * once. A task that cannot be reached, refuses or falls silent ends its own row
 * with the reason; the call itself succeeds. */

enum { WEIR_OBSERVE_PINGS = 100000, WEIR_OBSERVE_VERSION_BYTES = 64 };

/* One round trip; control thread. |rtt_ns| < 0: no answer in |wait_ns|. */
typedef void (*weir_observe_pinged)(void *self, uint32_t task, uint32_t number,
                                    int64_t rtt_ns);

/* All is lent for the call. */
typedef struct weir_observe_options {
  const weir_transports *transports;
  const weir_driver_task *tasks;
  uint32_t task_count;
  uint64_t cluster_hash;
  bool insecure;              /* unencrypted to other machines, too */
  const weir_net_tls *tls;    /* the driver's certificates; NULL: none */
  int64_t wait_ns;            /* for a connection, for each answer; 0: 5 s */
  uint32_t pings;             /* at most WEIR_OBSERVE_PINGS */
  int64_t interval_ns;        /* from ping to ping; 0: at once */
  uint64_t bandwidth_bytes;   /* each way; 0: not measured */
  bool stop, force;           /* |force|: also in a session */
  weir_observe_pinged pinged; /* may be NULL */
  void *self;
} weir_observe_options;

/* Round trips in ns; |lost| had no answer. All 0: there was none. */
typedef struct weir_observe_trips {
  uint32_t sent, lost;
  int64_t min_ns, mean_ns, p50_ns, p99_ns, max_ns;
} weir_observe_trips;

/* A task. |error|.id "": all went well. Then and, as far as it came, else too,
 * |known| says that the state counts. */
typedef struct weir_observe_row {
  weir_error error;
  bool known;
  weir_task_state state;
  uint64_t memory_bytes, uptime_ns, profile;
  char version[WEIR_OBSERVE_VERSION_BYTES];
  weir_observe_trips trips;
  double up_bytes_per_s, down_bytes_per_s; /* 0: not measured */
  bool stopped;                            /* its process ends */
} weir_observe_row;

/* Fills |rows|, one for each task in their order. Blocks: |wait_ns| for each
 * answer at most. |env| is lent for the call. Errors: those of the transports,
 * W6001, W6003. */
weir_status weir_observe(const weir_env *env,
                         const weir_observe_options *options,
                         weir_observe_row *rows, weir_error *err);

#endif
