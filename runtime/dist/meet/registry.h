/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_DIST_MEET_REGISTRY_H_
#define WEIR_DIST_MEET_REGISTRY_H_

#include "runtime/base/alloc.h"
#include "runtime/dist/ps/ps.h"
#include "runtime/net/transport.h"

/* Who has which rank of a job: the scheduler's machine. It has one thread, no
 * clock and no lock; the time is passed in, it acts through calls, which do not
 * lead back into it. */

typedef struct weir_registry weir_registry;

/* A process at the other end of a link; |key| is its link's. */
typedef struct weir_registry_guest {
  void *key;
  uint64_t incarnation; /* of the process */
} weir_registry_guest;

/* What a process says of itself. */
typedef struct weir_registry_knock {
  weir_ps_role role;
  uint32_t servers, workers; /* that it expects */
  bool ranked, seated;       /* it wants |rank|; a scheduler gave it once */
  uint32_t rank;
  const char *address; /* lent for the call; "": none, or not yet */
} weir_registry_knock;

typedef struct weir_registry_calls {
  void *self;
  /* |rank|: WEIR_REGISTRY_NONE: it is to wait. */
  void (*seat)(void *self, void *key, uint32_t rank);
  /* |key| is not heard of again. */
  void (*refuse)(void *self, void *key, const weir_error *why);
  /* A server takes connections at |address|: all with a rank are to hear. */
  void (*moved)(void *self, uint32_t server, const char *address);
  /* A line for the log. */
  void (*log)(void *self, const char *text);
} weir_registry_calls;

#define WEIR_REGISTRY_NONE UINT32_MAX

/* |patience_ns|: a process that finds all ranks taken waits for so long for one
 * to come free, since its predecessor may not be known to be dead yet. Errors:
 * W7082 (counts that are 0 or too large), W6001. */
weir_status weir_registry_create(const weir_allocator *alloc, uint32_t servers,
                                 uint32_t workers, int64_t patience_ns,
                                 const weir_registry_calls *calls,
                                 weir_registry **out, weir_error *err);
void weir_registry_release(weir_registry *registry); /* NULL-safe */

/* Events: a message of a process, the first or a later one; its link's end. */
void weir_registry_knock_at(weir_registry *registry, int64_t now_ns,
                            weir_registry_guest guest,
                            const weir_registry_knock *knock);
void weir_registry_lost(weir_registry *registry, int64_t now_ns, void *key);
/* Does what is due; when something is next, or INT64_MAX. */
int64_t weir_registry_tick(weir_registry *registry, int64_t now_ns);

/* Processes of |role| that are there: with a rank, and waiting. */
uint32_t weir_registry_here(const weir_registry *registry, weir_ps_role role);

#endif
