/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_DIST_PS_MESSAGE_H_
#define WEIR_DIST_PS_MESSAGE_H_

#include "runtime/dist/ps/ledger.h"
#include "runtime/net/wire.h"

/* Messages of the machines, to and from the form that they have on the wire.
 *
 * The numbers of kinds, verdicts, modes, states and ops are those of the enums
 * in ps.h and ledger.h: new ones go at the end. */

/* Values of a message, and their bytes in one message at most. */
enum { WEIR_PS_PIECES = 65536 };

/* A message on its way out. Lent by weir_ps_message_encode. */
typedef struct weir_ps_frame {
  Weir__V1__PsMessage body;
  Weir__V1__PsRange range, op_range;
  Weir__V1__PsLedger ledger;
  Weir__V1__PsOp op;
  weir_arena arena;
} weir_ps_frame;

/* |out->body| becomes |m|, without values: |transfer| and |sizes|, or |values|,
 * are the caller's to set. |out| stays where it is, and is released also after
 * an error. Errors: W7012, W6001. */
weir_status weir_ps_message_encode(const weir_allocator *alloc,
                                   const weir_ps_message *m, weir_ps_frame *out,
                                   weir_error *err);
void weir_ps_frame_release(weir_ps_frame *frame);

/* A message that came, with all that it points to. */
typedef struct weir_ps_parcel {
  struct weir_ps_parcel *next; /* its owner's */
  weir_ps_message m;           /* |data| is NULL */
  weir_ps_ledger ledger;
  weir_ps_op op;
  uint64_t transfer; /* 0: no values follow */
  uint64_t *sizes;
  uint32_t pieces;
  const uint8_t **values; /* that came along: lent by |body|; NULL: none */
  weir_arena arena;
} weir_ps_parcel;

/* |config|: of this process; a ledger of another one is refused, and has it
 * afterwards. |who|: the sender, for messages. Errors: W7011, W6001. */
weir_status weir_ps_message_decode(const weir_allocator *alloc,
                                   const Weir__V1__PsMessage *body,
                                   const weir_ps_config *config,
                                   const char *who, weir_ps_parcel **out_parcel,
                                   weir_error *err);
/* Copies the values that came along: |body| may go. Errors: W6001. */
weir_status weir_ps_parcel_keep(weir_ps_parcel *parcel, weir_error *err);
void weir_ps_parcel_release(weir_ps_parcel *parcel); /* NULL-safe */

#endif
