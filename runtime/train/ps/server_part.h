/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_TRAIN_PS_SERVER_PART_H_
#define WEIR_TRAIN_PS_SERVER_PART_H_

#include "runtime/base/strbuf.h"
#include "runtime/dist/ps/generation.h"

/* A server's part of a generation, beside its variables, as a JSON object of
 * lists of numbers: marks, and server 0's ledger. */

typedef struct weir_ps_part {
  const weir_allocator *alloc;
  weir_ps_state state; /* marks and ledger are the part's own */
  uint64_t life;       /* in which it was saved: the same in all parts */
  uint32_t server, servers, workers;
  weir_ps_mark *marks;    /* workers */
  weir_ps_ledger *ledger; /* of server 0; else NULL */
} weir_ps_part;

/* Appends the text of |state|, of server |part->server|; |part|'s life, servers
 * and workers count, its state does not. Errors: W6001. */
weir_status weir_ps_part_write(const weir_ps_part *part,
                               const weir_ps_state *state, weir_strbuf *out,
                               weir_error *err);
/* Reads it back. |file|: for messages. The caller releases |out|, also after a
 * failure. Errors: W7091 (it is none, or contradicts itself), W4013, W6001. */
weir_status weir_ps_part_read(const weir_allocator *alloc, weir_sv text,
                              const char *file, weir_ps_part *out,
                              weir_error *err);
void weir_ps_part_release(weir_ps_part *part);

#endif
