/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_DIST_MEET_H_
#define WEIR_DIST_MEET_H_

#include "runtime/dist/ps/ps.h"
#include "runtime/dist/psnet/ps_book.h"
#include "runtime/dist/transports.h"

/* How the processes of a job find each other when nobody has a list of them:
 * all know where one process is, the *scheduler*, and register there.
 *
 *   guest                      scheduler
 *     KNOCK (role, counts)  ->
 *                           <- SEAT (how many are there)     it waits
 *                           <- SEAT (rank, addresses)        all are there
 *     KNOCK (rank, address) ->                               it listens by now
 *                           <- SEAT (rank, addresses)        after each change
 *
 * A *rank* is the index of a server or the slot of a worker. Ranks are dealt
 * when all processes of a role have knocked, in the order in which they came:
 * so a scheduler that was started again, and knows nothing, takes no rank away
 * from a process that has one and has not knocked again yet. A process whose
 * link to the scheduler is lost frees its rank, and the next one gets it.
 *
 * A guest keeps its link, and dials again when it is lost, for as long as it
 * lives. What it learns goes to its book (psnet/ps_book.h), from which its net
 * dials; what its net notes there goes to the scheduler. The scheduler is the
 * chief of the job: the chief's address is in its own book.
 *
 * The two sides are meet_host.h and meet_guest.h. Observers' links are used
 * (link.h): one control connection, no session. */

enum {
  WEIR_MEET_WAITING = 64 /* that wait for a rank beyond the job's numbers */
};

/* What all processes of a job are to say alike. */
typedef struct weir_meet_options {
  const weir_transports *transports; /* lent for the life; so is |tls| */
  const weir_net_tls *tls;           /* NULL: none */
  bool insecure;
  const char *address;       /* of the scheduler; lent for create */
  uint32_t servers, workers; /* of the job */
  int64_t heartbeat_ns;      /* 0: 1 s; lost after five */
  weir_ps_book *book;        /* lent for the life */
  /* A line; on a thread of its own. May be NULL. */
  void (*log)(void *self, const char *text);
  void *log_self;
} weir_meet_options;

#endif
