/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_WEIR_SERVE_H_
#define WEIR_WEIR_SERVE_H_

#include "runtime/weir/cluster.h"
#include "runtime/weir/session.h"
#include "runtime/weir/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Predictions as a service, by gRPC (docs/serving.md).
 *
 *   weir_serve_opts opts = {.struct_size = sizeof opts,
 *                                    .address = "localhost:8500"};
 *   s = weir_session_restore(session, "run1", -1, NULL, &err);
 *   if (s == WEIR_OK)
 *     s = weir_predict_server_create(session, &opts, &server, &err);
 *   if (s == WEIR_OK) s = weir_predict_server_run(server, &err);
 *   weir_predict_server_release(server);
 *
 * Clients call weir.v1.Predict; any client of gRPC can, for the server tells
 * its messages by reflection, and its health. Requests are put together to
 * batches where the graph has a batch and its rows do not depend on each other,
 * which is tried when the server is made: an answer has the bits that the
 * request gets alone. gRPC is loaded as for clusters (weir/cluster.h). */

typedef struct weir_serve_opts {
  uint32_t struct_size;
  bool insecure; /* requests, which are not encrypted, may come from other
                  * machines: one warning a runtime */
  const char
      *address;     /* "HOST:PORT" (port 0: one that is free), "unix:/path" */
  uint32_t batch;   /* rows of a batch, where the graph leaves them open; 0: 32;
                     * 1: each request by itself */
  uint32_t queue;   /* requests that may wait, more are refused; 0: 256 */
  uint32_t runners; /* batches under way at once; 0: 2 */
  int64_t batch_wait_ns;  /* how long a request may wait for others */
  uint64_t message_bytes; /* of a request; 0: 64 MiB */
  /* As of weir_task_opts: a line when it listens, when it stops, and each 10 s
   * while there is traffic. */
  void (*on_event)(void *self, const char *text);
  void *on_event_self;
  const char *module_folder;
  /* Requests are encrypted, and come from anywhere: |cert| with its |key|, for
   * the names that clients dial, and where |ca| is not NULL only from clients
   * that show a certificate of an authority in it. Files are checked before it
   * listens and read anew for each connection; not with |insecure|. Lent for
   * the call; NULL: nothing is encrypted. */
  const weir_tls_opts *tls;
} weir_serve_opts;

/* A server of the outputs of |session|'s graph, which listens from here on. The
 * session is retained; its variables have their values by now. Compiles the
 * programs: that may take a while. Errors: W0002 (the graph's batch has another
 * size), W0004, W4016 (no outputs), W6001, W7002, W7004, W7060 (a file of
 * |tls|), those of a run. */
WEIR_API weir_status
weir_predict_server_create(weir_session *session, const weir_serve_opts *opts,
                           weir_predict_server **out_server, weir_error *err);
/* Where it listens; lent. */
WEIR_API const char *weir_predict_server_address(
    const weir_predict_server *server);
/* Serves until weir_predict_server_stop; then answers what was accepted.
 * Blocks; once. Errors: W6003. */
WEIR_API weir_status weir_predict_server_run(weir_predict_server *server,
                                             weir_error *err);
/* Ends weir_predict_server_run, also a later call. Any thread, not a signal
 * handler. NULL-safe. */
WEIR_API void weir_predict_server_stop(weir_predict_server *server);

typedef struct weir_serve_stats {
  uint32_t struct_size;
  uint32_t batch_rows;    /* of the largest batch; 0: each request by itself */
  uint64_t answered;      /* requests */
  uint64_t refused;       /* too many, or while it stopped */
  uint64_t wrong;         /* bad requests */
  uint64_t failed;        /* the run failed */
  uint64_t late;          /* deadlines that passed, clients that left */
  uint64_t batches;       /* runs of the graph */
  uint64_t rows;          /* of all batches, without those that fill them up */
  uint64_t largest;       /* batch, in requests */
  int64_t p50_ns, p99_ns; /* from a request's coming to its answer's leaving;
                           * at most 1/16 too long */
} weir_serve_stats;

/* Fills |out_stats|, whose struct_size is set. Any thread. */
WEIR_API weir_status weir_predict_server_stat(weir_predict_server *server,
                                              weir_serve_stats *out_stats,
                                              weir_error *err);
WEIR_API void weir_predict_server_release(weir_predict_server *server);

#ifdef __cplusplus
}
#endif

#endif
