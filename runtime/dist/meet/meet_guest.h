/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_DIST_MEET_GUEST_H_
#define WEIR_DIST_MEET_GUEST_H_

#include "runtime/dist/meet/meet.h"

/* The side of a meeting that registers. */

typedef struct weir_meet_guest weir_meet_guest;

typedef struct weir_meet_guest_options {
  weir_meet_options meet;
  weir_ps_role role; /* a server or a worker */
  bool ranked;       /* it wants |rank|, and takes it from another process */
  uint32_t rank;
  /* The scheduler takes it no more, which weir_meet_guest_error says; control
   * thread. May be NULL. */
  void (*refused)(void *self);
  void *self;
} weir_meet_guest_options;

/* Dials until its release. Errors: W7082, those of the transports, W6001,
 * W6003. */
weir_status weir_meet_guest_create(const weir_env *env,
                                   const weir_meet_guest_options *options,
                                   weir_meet_guest **out_guest,
                                   weir_error *err);
/* Waits for a rank, however long it takes, and says every ten seconds for whom.
 * False in |*out_seated|: it was stopped. Errors: W7082, W7083. */
weir_status weir_meet_guest_wait(weir_meet_guest *guest, bool *out_seated,
                                 uint32_t *out_rank, weir_error *err);
/* Ends the wait; any thread. NULL-safe. */
void weir_meet_guest_stop(weir_meet_guest *guest);
/* Why the scheduler has refused it; OK: it has not. */
weir_status weir_meet_guest_error(weir_meet_guest *guest, weir_error *err);
void weir_meet_guest_release(weir_meet_guest *guest); /* NULL-safe */

#endif
