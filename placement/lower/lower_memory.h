/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PLACEMENT_LOWER_MEMORY_H_
#define PLACEMENT_LOWER_MEMORY_H_

#include "placement/lower/lower_internal.h"

/* The memory of units beside the tensors that pass between them: what lasts
 * from run to run, what a unit needs while it runs, and constants. */

typedef struct weir_lower_memory {
  uint8_t *lasting;       /* per value */
  uint32_t *variable;     /* per value that is its new value: its unit */
  uint32_t *readers;      /* per value: nodes */
  bool *assigned;         /* per unit: a variable that is assigned */
  int64_t *copied_bytes;  /* per unit: outputs that are copies of its value */
  uint32_t *constant;     /* per value: of the problem, or NONE */
  uint32_t *last_reader;  /* per value: a member of the unit in hand */
  weir_lower_needs needs; /* zeros where nobody was asked */
} weir_lower_memory;

/* Fills |out|, which _end frees, also after a failure. Errors: W6001. */
weir_status weir_lower_memory_begin(weir_lowering *l, weir_lower_memory *out);
void weir_lower_memory_end(const weir_lowering *l, weir_lower_memory *m);

/* Bytes of |v|; 0 where its shape is not known. */
int64_t weir_lower_value_bytes(const weir_graph *g, weir_value_id v);
/* Bytes of a variable; 0 for other units. */
int64_t weir_lower_resident(const weir_lowering *l, uint32_t unit);
/* The unit that holds |v|'s memory among what lasts, where that unit is; NONE:
 * |v| is a tensor like any other. */
uint32_t weir_lower_keeper(const weir_lowering *l, const weir_lower_memory *m,
                           weir_value_id v);
/* Marks units that only make constants, whose values no step copies: |read|
 * (per value: by another unit) is false then. */
void weir_lower_forget_constants(weir_lowering *l, const weir_lower_memory *m,
                                 bool *read);
/* Bytes that |unit| holds for ever: inputs, outputs, variables, packed
 * constants. */
int64_t weir_lower_lasting(const weir_lowering *l, const weir_lower_memory *m,
                           uint32_t unit);
/* Bytes that it needs while it runs, one node after the other: scratch, and
 * values that no other unit reads, less the inputs that it writes over. */
int64_t weir_lower_passing(const weir_lowering *l, const weir_lower_memory *m,
                           const bool *read, uint32_t unit);
/* Whether |unit| writes |*y| where |*x|, which others make, was, on a device
 * that has neither in a unit's lasting memory; where both pass, _passing counts
 * that. */
bool weir_lower_over(const weir_lowering *l, const weir_lower_memory *m,
                     const bool *read, uint32_t unit, weir_value_id *x,
                     weir_value_id *y);
/* Says which constants problem node |n|, the unit's, reads. */
void weir_lower_add_reads(const weir_lowering *l, weir_lower_memory *m,
                          weir_place_builder *b, uint32_t unit, uint32_t n);

#endif
