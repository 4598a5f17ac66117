/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_TRAIN_PS_ACCOUNT_CHIEF_ACCOUNT_H_
#define WEIR_TRAIN_PS_ACCOUNT_CHIEF_ACCOUNT_H_

#include "runtime/train/ps/chief_internal.h"

/* The account of a job, from what workers told, the ledger and the servers. */

/* Errors: W6001. */
weir_status weir_chief_account_create(weir_chief *c, weir_error *err);
void weir_chief_account_release(weir_chief *c);
/* A worker's report, |values| as job.h says. With the lock. */
void weir_chief_account_note(weir_chief *c, uint32_t worker,
                             const double *values);
/* Copies what the coordinator knows. Control thread; with the lock. */
void weir_chief_account_take(weir_chief *c);
/* Hands the account to the loop's callback. The loop's thread. */
void weir_chief_account_tell(weir_chief *c);

#endif
