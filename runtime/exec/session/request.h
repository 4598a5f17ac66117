/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_EXEC_REQUEST_H_
#define WEIR_EXEC_REQUEST_H_

#include "runtime/base/env.h"
#include "runtime/graph/graph.h"
#include "runtime/tensor/tensor.h"

/* Requests to a session: of one run, or of a binding for many. */

typedef struct weir_trace weir_trace;

typedef struct weir_exec_feed {
  weir_value_id value; /* output 0 of an `input` node */
  weir_tensor *tensor; /* borrowed for the run */
} weir_exec_feed;

/* |tensor|: in, NULL or a tensor of the right dtype and shape to be filled;
 * out, the result, a reference for the caller (the same tensor when given). On
 * failure of this fetch alone |status| and |error| say why; others are still
 * delivered. The result of one that |stays| is on the GPU that makes the value,
 * or on the host where none does. */
typedef struct weir_exec_fetch {
  weir_value_id value;
  weir_tensor *tensor;
  weir_status status;
  weir_error *error; /* may be NULL */
  bool elsewhere;    /* out: another task makes it (session.h) */
  bool stays;        /* in: on the GPU, if one makes it; not with a remote */
} weir_exec_fetch;

/* Is called for every failed node, and every fetched or dumped value. */
typedef struct weir_run_observer {
  void *self;
  /* A value computed by this run; called on some thread, one at a time. */
  void (*value)(void *self, weir_sv node, uint32_t port,
                const weir_tensor *tensor);
  void (*failed)(void *self, const weir_error *error);
} weir_run_observer;

typedef struct weir_run_options {
  int64_t deadline_ns;       /* on the env's clock; 0: none */
  const atomic_bool *cancel; /* set it to stop the run; may be NULL */
  uint64_t step;             /* for random ops */
  uint64_t channel_step;     /* this run's number on the session's channel,
                                larger than those before it */
  bool trap_nan;             /* fail at the first NaN or infinity */
  bool alone;                /* on the caller's thread only, where the program
                                has one part and no channel: several runs at
                                once take less of the cores so */
  const weir_node_id *dump;  /* their outputs go to the observer */
  size_t dump_count;
  const weir_run_observer *observer; /* may be NULL */
  weir_trace *trace;                 /* may be NULL */
  /* Called when all has succeeded, before variables change; any status but
   * WEIR_OK fails the run, and no variable changes. May be NULL. */
  weir_status (*accept)(void *self, weir_error *err);
  void *accept_self;
} weir_run_options;

/* A list of count 0 may be NULL. A run borrows all until it returns. A binding
 * borrows the lists while it is made, and keeps references to the tensors. */
typedef struct weir_exec_request {
  const weir_exec_feed *feeds; /* inputs that are given, each once */
  size_t feed_count;
  weir_exec_fetch *fetches; /* values that are wanted; results go there */
  size_t fetch_count;
  const weir_node_id *targets; /* nodes wanted for their effect */
  size_t target_count;
  /* Of a run; NULL: all zero. NULL in a binding's request: each run of the
   * binding brings its own. */
  const weir_run_options *options;
} weir_exec_request;

#endif
