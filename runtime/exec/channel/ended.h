/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_EXEC_ENDED_H_
#define WEIR_EXEC_ENDED_H_

#include "runtime/exec/channel/channel.h"

/* Calls that have ended; they are called back once the lock is given back. For
 * implementations. */
typedef struct weir_ended {
  weir_channel_done *first;
  weir_error err; /* of those that failed */
} weir_ended;

static inline void weir_ended_add(weir_ended *list, weir_channel_done *done,
                                  weir_status status) {
  done->status = status;
  done->next = list->first;
  list->first = done;
}

/* Without the lock. */
static inline void weir_ended_tell(const weir_ended *list) {
  weir_channel_done *next;
  for (weir_channel_done *d = list->first; d != NULL; d = next) {
    next = d->next; /* |d| may be gone after the call */
    d->fn(d->self, d->status, d->status == WEIR_OK ? NULL : &list->err);
  }
}

#endif
