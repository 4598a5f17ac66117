/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_TRAIN_PS_WORKER_PULLS_H_
#define WEIR_TRAIN_PS_WORKER_PULLS_H_

#include "runtime/train/ps/worker/worker_compute.h"

/* Where the values go that servers send: into the tensors that the next run
 * reads, or aside. One thread. */

/* The values of one server. */
typedef struct weir_worker_pull {
  const weir_ps_piece *pieces;
  weir_ps_piece *aside; /* for values that nobody wants */
  uint32_t count, changing;
  uint64_t request; /* of its last PULL */
  bool expected;    /* which is not answered */
  bool torn;
  bool waits; /* |message| is sent when no run is under way */
  weir_ps_message message;
} weir_worker_pull;

typedef struct weir_worker_pulls {
  const weir_allocator *alloc;
  weir_worker_pull *items; /* per server */
  uint32_t count;
  uint8_t *scratch; /* of the largest piece; all that is set aside goes there */
  size_t scratch_bytes;
} weir_worker_pulls;

/* Of all servers of |job|. |pulls| is zero but for alloc. Errors: W6001. */
weir_status weir_worker_pulls_init(weir_worker_pulls *pulls,
                                   const weir_ps_job *job,
                                   const weir_worker_compute *compute,
                                   weir_error *err);
/* NULL-safe members; what init left after a failure, too. */
void weir_worker_pulls_release(weir_worker_pulls *pulls);

/* The server that |m| from |from| has values of; NULL: it has none. */
weir_worker_pull *weir_worker_pulls_of(const weir_worker_pulls *pulls,
                                       weir_ps_task from,
                                       const weir_ps_message *m);
/* Where the values of |m| go, which pull |p| has. Those that it expects go to
 * the tensors, and |out->data| is |p|. Errors: W6001. */
weir_status weir_worker_pulls_place(weir_worker_pulls *pulls,
                                    weir_worker_pull *p,
                                    const weir_ps_message *m,
                                    weir_ps_place *out, weir_error *err);

#endif
