/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_TRAIN_PS_SERVER_SEED_H_
#define WEIR_TRAIN_PS_SERVER_SEED_H_

#include "runtime/dist/ps/ledger.h"
#include "runtime/train/ps/server_engine.h"

/* First values of a server that a chief hands over, with the step that they
 * are of: a file's, or those of a checkpoint of one process. They come along
 * with RESTORE in place of a generation, each time that the chief asks for it,
 * and are gone once they are in the session. */

typedef struct weir_ps_seed {
  weir_tensor **tensors; /* of all that the server holds, in that order */
  weir_ps_piece *pieces; /* the same */
  uint64_t version;
} weir_ps_seed;

/* Uninitialised values. Errors: W6001. */
weir_status weir_ps_seed_create(const weir_ps_engine *e,
                                weir_ps_seed **out_seed, weir_error *err);
void weir_ps_seed_release(const weir_ps_engine *e, weir_ps_seed *seed);

/* On the thread that computes: the variables have these values. Errors: W4009,
 * W6001. */
weir_status weir_ps_seed_load(const weir_ps_seed *seed, weir_ps_engine *e,
                              weir_error *err);
/* Server 0's ledger of a job that begins with |seed|, whose limit is |limit|
 * or that step. Errors: W6001. */
weir_status weir_ps_seed_ledger(const weir_ps_seed *seed,
                                const weir_ps_engine *e, uint64_t limit,
                                weir_ps_ledger **out_ledger, weir_error *err);

#endif
