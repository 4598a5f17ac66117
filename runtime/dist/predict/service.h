/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_DIST_PREDICT_SERVICE_H_
#define WEIR_DIST_PREDICT_SERVICE_H_

#include "runtime/exec/session/session.h"
#include "runtime/net/rpc/rpc_server.h"

/* A session as a service: requests come, are put together to batches, and
 * answered (runtime/net/proto/weir/v1/predict.proto).
 *
 *   weir_predict_service_create(env, &options, &server, err);   listens
 *   weir_predict_service_run(server, err);                      until stopped
 *   weir_predict_service_release(server);
 *
 * Threads: the caller of run polls and reads requests; each runner is one more,
 * which carries out a batch at a time, on the session's pool.
 *
 * An answer has the bits that its request gets alone: that is checked when the
 * server is made (slots.h), and where it does not hold, requests are not put
 * together. A batch that fails is run again request by request, so that nobody
 * pays for the index of another. */

typedef struct weir_predict_service weir_predict_service;

/* All is lent for create; |session|, |graph| and |log| for the life. */
typedef struct weir_predict_service_options {
  const weir_rpc_maker *maker;
  const char *address;
  weir_exec_session *session; /* its variables have their values */
  const weir_graph *graph;
  bool insecure;
  const weir_net_tls *tls; /* of weir_rpc_options; lent for the life */
  int64_t rows;     /* of a batch, where the graph leaves it open; 0: 32 */
  uint32_t queue;   /* requests that may wait; 0: 256 */
  uint32_t runners; /* 0: 2, or weir_exec_session_width if that is more */
  int64_t wait_ns;  /* of a batch for more requests */
  size_t max_message_bytes; /* 0: 64 MiB */
  int64_t log_ns;           /* between lines about the traffic; 0: 10 s */
  void (*log)(void *self, const char *text); /* the thread of run */
  void *log_self;
} weir_predict_service_options;

typedef struct weir_predict_counts {
  uint64_t answered; /* requests */
  uint64_t refused;  /* the queue was full, or the server was stopping */
  uint64_t wrong;    /* bad requests */
  uint64_t failed;   /* the run failed */
  uint64_t late;     /* the deadline passed, or the client left */
  uint64_t batches, rows;
  int64_t largest;        /* batch, in requests */
  int64_t p50_ns, p99_ns; /* from a request's coming to its answer's leaving */
} weir_predict_counts;

/* Compiles, checks the rows, listens. Errors: W0002, W4016, W7002, W7060, those
 * of the session's first run, W6001. */
weir_status weir_predict_service_create(
    const weir_env *env, const weir_predict_service_options *options,
    weir_predict_service **out_service, weir_error *err);
/* The address to dial. */
const char *weir_predict_service_address(const weir_predict_service *s);
/* Serves until it is stopped; then answers what has been accepted, refuses
 * what comes, and returns. Once. Errors: W6003 (no thread). */
weir_status weir_predict_service_run(weir_predict_service *s, weir_error *err);
/* Any thread, also before run. */
void weir_predict_service_stop(weir_predict_service *s);
/* Any thread. */
weir_predict_counts weir_predict_service_counts(weir_predict_service *s);
/* Rows of the largest batch; 0: each request by itself, and |*out_why| (may be
 * NULL) says why, lent. */
int64_t weir_predict_service_rows(const weir_predict_service *s,
                                  const char **out_why);
void weir_predict_service_release(weir_predict_service *s); /* NULL-safe */

#endif
