/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_DIST_STATES_H_
#define WEIR_DIST_STATES_H_

#include <stddef.h>

/* The states of a process of a cluster, for the program around it. */

typedef enum weir_process_state {
  WEIR_PROCESS_LISTENING,     /* text: the address */
  WEIR_PROCESS_PEER_JOINED,   /* text: its address, "" where it dialled */
  WEIR_PROCESS_SESSION_BEGUN, /* a driver's: with all tasks */
  WEIR_PROCESS_SESSION_OVER,  /* text: why, "" at its natural end */
  WEIR_PROCESS_PEER_LOST,     /* text: why */
  WEIR_PROCESS_STATE_COUNT
} weir_process_state;

/* Called on the control thread, which waits for it; NULL: nobody listens.
 * |peer|: "the driver", "worker:1", or "" where the state is of no peer. Text
 * is lent for the call. */
typedef struct weir_states {
  void *self;
  void (*tell)(void *self, weir_process_state state, const char *peer,
               const char *text);
} weir_states;

static inline void weir_states_tell(const weir_states *s,
                                    weir_process_state state, const char *peer,
                                    const char *text) {
  if (s->tell != NULL) s->tell(s->self, state, peer, text);
}

#endif
