/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_API_PART_MEET_H_
#define WEIR_API_PART_MEET_H_

#include <pthread.h>

#include "runtime/dist/meet/meet_guest.h"
#include "runtime/dist/meet/meet_host.h"

/* Inside of weir_train_part: how a process whose job has a scheduler gets its
 * place, and how the others are found. */

typedef struct weir_part_meet {
  weir_ps_book *book; /* NULL: the job has no scheduler */
  weir_meet_host *host;
  weir_meet_guest *guest; /* changes under the part's lock */
} weir_part_meet;

/* Opens the scheduler. Errors: those of weir_meet_host_create. */
weir_status weir_part_meet_lead(weir_part_meet *meet, const weir_env *env,
                                const weir_meet_options *options,
                                weir_error *err);
/* Makes the guest, with |lock|; |stopped|, under the lock: it waits for
 * nothing. Errors: those of weir_meet_guest_create. */
weir_status weir_part_meet_knock(weir_part_meet *meet, const weir_env *env,
                                 const weir_meet_guest_options *options,
                                 pthread_mutex_t *lock, const bool *stopped,
                                 weir_error *err);
/* Why the scheduler wants this process no more; OK: there is no reason. */
weir_status weir_part_meet_error(const weir_part_meet *meet, weir_error *err);
/* After all nets. */
void weir_part_meet_end(weir_part_meet *meet);

#endif
