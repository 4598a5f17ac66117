/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_DIST_PREDICT_BATCHER_H_
#define WEIR_DIST_PREDICT_BATCHER_H_

#include <stdbool.h>
#include <stddef.h>

#include "runtime/base/status.h"

/* Requests that wait, and which of them make a batch.
 *
 * A state machine without memory, lock, thread or clock: the time is passed in,
 * the next moment to ask again comes out.
 *
 *   weir_batcher_add(b, item, now, err)              a request has come
 *   weir_batcher_take(b, now, &list, &late, &next)   a runner is free
 *
 * A batch is ready when it is full, when its first request has waited long
 * enough, when a deadline would pass otherwise, or when the batcher stops. */

/* A request, in the memory of its owner. */
typedef struct weir_batch_item {
  struct weir_batch_item *next;
  int64_t rows;        /* 1 or more, at most a batch's */
  size_t bytes;        /* that it keeps */
  int64_t arrived_ns;  /* set by add */
  int64_t deadline_ns; /* INT64_MAX: none */
} weir_batch_item;

typedef struct weir_batcher_options {
  int64_t rows;       /* of a full batch */
  uint32_t queue;     /* requests that may wait */
  size_t queue_bytes; /* that they may keep, all together */
  int64_t wait_ns;    /* of the first request of a batch; 0: none waits */
} weir_batcher_options;

typedef struct weir_batcher {
  weir_batcher_options options;
  weir_batch_item *first, **end; /* in the order of their coming */
  uint32_t count;
  size_t bytes;
  int64_t run_ns; /* how long a batch takes, by the last ones */
  bool stopping;
} weir_batcher;

/* At one place in memory from here on. */
void weir_batcher_init(weir_batcher *b, const weir_batcher_options *options);
/* Errors: W7077 (too many wait), W7078 (it stops), W5006 (the deadline is
 * over). */
weir_status weir_batcher_add(weir_batcher *b, weir_batch_item *item,
                             int64_t now_ns, weir_error *err);
/* Whether there is a batch: a list of items that are no longer the batcher's.
 * |*out_late| is a list of those whose deadline is over, or NULL, also without
 * a batch. |*out_next_ns|: when to ask again, if nothing is added before;
 * INT64_MAX: never. Time is linear in the items that wait. */
bool weir_batcher_take(weir_batcher *b, int64_t now_ns,
                       weir_batch_item **out_batch, weir_batch_item **out_late,
                       int64_t *out_next_ns);
/* Whether take would give a batch, or a late item; else |*out_next_ns| is as
 * there. */
bool weir_batcher_ready(const weir_batcher *b, int64_t now_ns,
                        int64_t *out_next_ns);
/* A batch took |ns|. */
void weir_batcher_ran(weir_batcher *b, int64_t ns);
/* Takes nothing more, and lets nobody wait. */
void weir_batcher_stop(weir_batcher *b);

#endif
