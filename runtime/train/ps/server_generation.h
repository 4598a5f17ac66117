/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_TRAIN_PS_SERVER_GENERATION_H_
#define WEIR_TRAIN_PS_SERVER_GENERATION_H_

#include "runtime/io/checkpoint/checkpoint.h"
#include "runtime/train/ps/server_part.h"

/* Generations of parameter servers on disk: a folder that all servers see.
 *
 *   DIR/server-00000/   checkpoints of server 0 (io/checkpoint): its variables,
 *                       its state (server_part.h) as `extra`; the step is the
 *                       generation's number
 *   DIR/sealed          the last generation that all servers have, and the one
 *                       before it
 *   DIR/epoch           the last epoch that was granted, and its chief
 *
 * The last two are lines of JSON with a CRC32C, replaced as a whole. Each
 * server keeps the generations that |sealed| names and those that it has saved
 * since. A piece of a variable is saved by its rows, "w[0:512]". A job of
 * another number of servers, or of other pieces, reads all parts; folders of
 * servers that a job has no more are left as they are.
 *
 * Calls of one thread at a time; reading and saving may be of different
 * threads. All of them block. */

typedef struct weir_ps_generations weir_ps_generations;

/* Makes folders as needed, holds the lock of this server's. Errors: those of
 * weir_checkpoint_store_open. */
weir_status weir_ps_generations_open(const weir_env *env, const char *dir,
                                     uint32_t server,
                                     weir_ps_generations **out_generations,
                                     weir_error *err);
void weir_ps_generations_release(weir_ps_generations *g); /* NULL-safe */

/* What earlier processes have kept and sealed; zeros: nothing. */
typedef struct weir_ps_kept {
  uint64_t epoch, chief;
  uint64_t generation, before; /* the last that are sealed */
} weir_ps_kept;
/* Errors: W7091 (damaged; by name), those of reading. */
weir_status weir_ps_generations_kept(const weir_ps_generations *g,
                                     weir_ps_kept *out, weir_error *err);
/* Whether the job whose generations are in |dir| has ended: the last one says
 * so, and no run failed. |*out_limit|: all runs below that step count; 0: it
 * was stopped before. False where the folder cannot be read. Makes nothing. */
bool weir_ps_generations_over(const weir_env *env, const char *dir,
                              uint64_t *out_limit);
/* Both are on disk when they return. Errors: W5009, W6005, those of kept. */
weir_status weir_ps_generations_keep(const weir_ps_generations *g,
                                     uint64_t epoch, uint64_t chief,
                                     weir_error *err);
weir_status weir_ps_generations_seal(const weir_ps_generations *g,
                                     uint64_t generation, weir_error *err);

/* Saves this server's part of generation |info->step|, whose text is
 * |info->extra|; what is no more needed goes. Errors: those of
 * weir_checkpoint_save. */
weir_status weir_ps_generations_save(weir_ps_generations *g,
                                     const weir_checkpoint_info *info,
                                     const weir_checkpoint_entry *entries,
                                     size_t count, weir_error *err);

/* ---- A generation to go on from, with the parts of all its servers. */

typedef struct weir_ps_saved {
  const weir_env *env;
  uint32_t count;              /* servers that saved it */
  const weir_ps_state *states; /* [count] */
  struct weir_ps_saved_part *parts;
} weir_ps_saved;

/* Opens all parts; variables are read later. The caller releases |out|, also
 * after a failure. Errors: W4040, W4041, W4045 (by file), W7091, W6001,
 * W6003. */
weir_status weir_ps_saved_open(const weir_ps_generations *g,
                               uint64_t generation, weir_ps_saved *out,
                               weir_error *err);
void weir_ps_saved_release(weir_ps_saved *saved);
/* The variables of server |server|; lent. rows/server_rows.h reads them. */
const weir_checkpoint *weir_ps_saved_part_of(const weir_ps_saved *saved,
                                             uint32_t server);

#endif
