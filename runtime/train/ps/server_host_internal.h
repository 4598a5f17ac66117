/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_TRAIN_PS_SERVER_HOST_INTERNAL_H_
#define WEIR_TRAIN_PS_SERVER_HOST_INTERNAL_H_

#include "runtime/base/strbuf.h"
#include "runtime/train/ps/seed/server_seed.h"
#include "runtime/train/ps/server_engine.h"
#include "runtime/train/ps/server_errand.h"
#include "runtime/train/ps/server_generation.h"
#include "runtime/train/ps/server_host.h"

/* Shared by the files of a server's host. What a piece of work reads and fills
 * is that thread's from weir_ps_runner_give to |done|; all else is the control
 * thread's. */

/* Values on their way out. */
typedef struct weir_ps_out {
  weir_ps_values values;
  struct weir_ps_host *host;
  weir_ps_piece *pieces;
  weir_tensor **tensors;
  uint32_t count;
  struct weir_ps_out *next, *all;
} weir_ps_out;

typedef enum weir_ps_compute_kind {
  WEIR_PS_COMPUTE_APPLY,
  WEIR_PS_COMPUTE_ADD,
  WEIR_PS_COMPUTE_KEEP, /* the last push of a step: it waits for the end */
  WEIR_PS_COMPUTE_NORM, /* the same, for the norm's share */
  WEIR_PS_COMPUTE_FINISH
} weir_ps_compute_kind;

/* One update at a time. */
typedef struct weir_ps_compute {
  weir_ps_errand errand;
  bool busy;
  weir_ps_compute_kind kind;
  uint64_t ticket, step, age, round;
  weir_ps_buffer *buffer;
  weir_status status;
  weir_error err;
} weir_ps_compute;

typedef struct weir_ps_load {
  weir_ps_errand errand;
  bool busy, again; /* again: another one was asked for meanwhile */
  uint64_t ticket, generation, next_ticket, next_generation;
  weir_ps_seed *next_seed;
  uint64_t version;
  weir_ps_seed *seed; /* in place of a generation; NULL: none */
  weir_ps_ledger *ledger;
  weir_status status;
  weir_error err;
} weir_ps_load;

typedef struct weir_ps_save {
  weir_ps_errand errand;
  struct weir_ps_host *host;
  bool busy;
  uint64_t generation;
  weir_strbuf text;
  char run[24];
  weir_checkpoint_entry *entries; /* a reference to each tensor */
  uint32_t count;
  weir_status status;
  weir_error err;
} weir_ps_save;

/* An epoch to be kept, or a generation to be sealed. */
typedef struct weir_ps_note {
  weir_ps_errand errand;
  uint64_t number, chief;
  uint32_t tries;
  weir_status status;
  weir_error err;
} weir_ps_note;

/* The share of another server, on its way in. */
typedef struct weir_ps_arrival {
  weir_ps_piece piece;
  double sums[];
} weir_ps_arrival;

/* Of the step at hand; NULLs where there is no norm over servers. */
typedef struct weir_ps_norm {
  double *sums;             /* of all servers, in the norm's order */
  double *own;              /* computed; to be sent */
  weir_ps_arrival **coming; /* per server */
  uint32_t own_count;
} weir_ps_norm;

enum { WEIR_PS_SAVES = 2 };

struct weir_ps_host {
  const weir_env *env;
  weir_arena arena;
  weir_ps_host_options options;
  weir_ps_host_net net;
  const weir_ps_job *job;
  const weir_ps_lists *lists;
  weir_ps_server *machine;
  weir_ps_engine *engine;
  weir_ps_generations *files; /* NULL: there is no folder */
  bool ended;                 /* over() was called */
  /* Values. |next| is the computing thread's until its work is told of. */
  weir_ps_set current, next;
  /* An update was begun that is not published: own values are of neither
   * version. Sums have a part of the next one. */
  bool unsettled, summed;
  bool fetch_waits; /* the chief wants all values, when they are of a version */
  weir_ps_task fetcher;
  weir_ps_message fetch;
  uint32_t *pull_at; /* places of pulls among what is held */
  weir_ps_buffer *buffers, *all_buffers; /* free ones; all */
  uint64_t buffer_count;                 /* free ones */
  weir_ps_out *outs, *all_outs;
  /* Computing. */
  weir_ps_runner computer;
  weir_ps_compute compute;
  weir_ps_load load;
  /* On its way in; came along with the restore that is next. */
  weir_ps_seed *seed_coming, *seed;
  weir_ps_buffer *last; /* sync: of the step, waits for its end */
  weir_ps_norm norm;
  uint64_t round; /* restores so far */
  /* The disk. */
  weir_ps_runner disk;
  weir_ps_save saves[WEIR_PS_SAVES];
  weir_ps_note keep, seal;
  weir_node_call given_up; /* of a save that found no room */
  uint64_t given_up_generation;
};

/* The server cannot go on. */
void weir_ps_host_fail(weir_ps_host *h, const weir_error *why);
/* Answers the chief that wants all values, if it does and they are there. */
void weir_ps_host_fetch(weir_ps_host *h);
void weir_ps_host_log(const weir_ps_host *h, const char *format, ...)
    WEIR_PRINTF(2, 3);
/* "generation 3 is given up: W6005 ..., in FILE". */
void weir_ps_host_log_loss(const weir_ps_host *h, uint64_t generation,
                           const char *what, const weir_error *why);

#endif
