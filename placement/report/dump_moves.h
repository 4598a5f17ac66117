/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_PLACEMENT_DUMP_MOVES_H_
#define WEIR_PLACEMENT_DUMP_MOVES_H_

#include "placement/report/dump.h"

typedef struct weir_place_mover weir_place_mover;

/* The plan scheduled again with one node elsewhere. */

/* |*out_all| for |view->alternatives|, the caller's to free with |view->alloc|;
 * NULL for a problem that this would take seconds for. Errors: W6001. */
weir_status weir_place_alternatives_create(const weir_place_view *view,
                                           weir_place_alternative **out_all,
                                           weir_error *err);

/* |m| is to be ended also after a failure. Errors: W6001. */
weir_status weir_place_mover_begin(weir_place_mover *m,
                                   const weir_place_view *view,
                                   weir_error *err);

/* Gives back the memory of |m|. */
void weir_place_mover_end(weir_place_mover *m);

/* The verdict on a node on a device. */
typedef enum weir_place_chance_kind {
  WEIR_PLACE_HERE, /* it is there */
  WEIR_PLACE_POSSIBLE,
  WEIR_PLACE_NOT_ALLOWED,     /* by a request, its own or its group's */
  WEIR_PLACE_KERNEL_MISSING,  /* for it, or for one of its group */
  WEIR_PLACE_READERS_MISSING, /* it is no work, and nothing reads it there */
  WEIR_PLACE_ROOM_MISSING,    /* beside the others */
  WEIR_PLACE_TOO_LARGE,       /* alone, for the device's memory */
  WEIR_PLACE_CHANCES          /* how many */
} weir_place_chance_kind;

typedef struct weir_place_chance {
  weir_place_chance_kind kind;
  weir_place_alternative then; /* all else as it is, scheduled again */
} weir_place_chance;

/* Why |node| cannot be on |device|, where it is not and no schedule has put it.
 */
weir_place_chance_kind weir_place_refusal(const weir_place_view *view,
                                          uint32_t node, uint32_t device);
/* "chosen", "", "no kernel", "a request forbids it", ... */
const char *weir_place_chance_text(weir_place_chance_kind kind);
/* |node| and its group on |device|. Errors: W3012, W3014, W6001. */
weir_status weir_place_chance_of(const weir_place_view *view, uint32_t node,
                                 uint32_t device, weir_place_chance *out,
                                 weir_error *err);
/* The same with a mover that is there. */
weir_status weir_place_mover_try(weir_place_mover *m, uint32_t node,
                                 uint32_t device, weir_place_chance *out,
                                 weir_error *err);

#endif
