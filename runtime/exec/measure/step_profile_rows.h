/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_EXEC_STEP_PROFILE_ROWS_H_
#define WEIR_EXEC_STEP_PROFILE_ROWS_H_

#include "runtime/base/vec.h"
#include "runtime/exec/measure/step_profile.h"

/* The rows of a profile: one for each instruction of a program, of the parts
 * behind it and of all bodies. */

/* The instructions of one program, whose rows follow each other. */
typedef struct weir_profile_piece {
  const struct weir_program *program;
  uint32_t first;  /* row */
  uint32_t parent; /* row, or WEIR_NO_INDEX */
} weir_profile_piece;

typedef struct weir_profile_rows {
  const weir_allocator *alloc;
  weir_arena arena; /* texts */
  WEIR_VEC(weir_profile_row) list;
  WEIR_VEC(weir_profile_piece) pieces; /* once made: by address */
} weir_profile_rows;

void weir_profile_rows_init(weir_profile_rows *rows,
                            const weir_allocator *alloc);
void weir_profile_rows_release(weir_profile_rows *rows);

/* Makes the rows of |program|. Errors: W6001. */
weir_status weir_profile_rows_make(weir_profile_rows *rows,
                                   const struct weir_program *program,
                                   weir_error *err);

/* The row of an instruction; WEIR_NO_INDEX: it has none. */
uint32_t weir_profile_rows_find(const weir_profile_rows *rows,
                                const struct weir_instr *instr);

#endif
