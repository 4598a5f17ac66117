/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_TRAIN_PS_WORKER_SETS_H_
#define WEIR_TRAIN_PS_WORKER_SETS_H_

#include "runtime/base/vec.h"
#include "runtime/train/ps/worker/worker_compute.h"

/* The sets of a worker, and values of them on their way.
 *
 * A set is a run's from its beginning until the machine forgets the run, and
 * until no send of it is under way: a server may have a push before the link
 * says that its memory is no more read. One thread. */

typedef struct weir_worker_parcel {
  weir_ps_values values;
  struct weir_worker_sets *of;
  weir_worker_set *set;
  struct weir_worker_parcel *next; /* of the free ones */
} weir_worker_parcel;

typedef struct weir_worker_sets {
  const weir_allocator *alloc;
  weir_worker_compute *compute;
  size_t most; /* sets */
  WEIR_VEC(weir_worker_set *) items;
  WEIR_VEC(weir_worker_parcel *) parcels; /* all */
  weir_worker_parcel *free_parcels;
  /* A send has ended: a set may be free. */
  void (*freed)(void *self);
  void *self;
} weir_worker_sets;

void weir_worker_sets_release(weir_worker_sets *sets);

/* A set that is no run's; |*out| NULL and WEIR_OK: there is none now. Errors:
 * as weir_worker_set_create. */
weir_status weir_worker_sets_find(weir_worker_sets *sets, weir_worker_set **out,
                                  weir_error *err);
/* The set of |run|; NULL: none. */
weir_worker_set *weir_worker_sets_of(const weir_worker_sets *sets,
                                     uint64_t run);
/* |run| needs its set no more; of all runs. */
void weir_worker_sets_drop(weir_worker_sets *sets, uint64_t run);
void weir_worker_sets_drop_all(weir_worker_sets *sets);

/* |pieces| of |set|, to be sent; NULL: out of memory. */
weir_ps_values *weir_worker_sets_wrap(weir_worker_sets *sets,
                                      weir_worker_set *set,
                                      const weir_ps_piece *pieces,
                                      uint32_t count);

#endif
