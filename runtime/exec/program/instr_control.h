/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_EXEC_INSTR_CONTROL_H_
#define WEIR_EXEC_INSTR_CONTROL_H_

#include "runtime/exec/program/program.h"

/* Instructions that copy, call and branch. */

/* COPY, FEED, FETCH, VAR_READ, VAR_COMMIT: out[0] = in[0], the same bytes. */
weir_status weir_instr_copy(weir_program_builder *builder, weir_instr_kind kind,
                            size_t bytes, weir_instr_spec *spec);

/* BRANCH: in[0] is a bool or i32 scalar; runs bodies[its value] with the other
 * inputs. Errors when run: W5008 for a value without a body. */
weir_status weir_instr_branch(weir_program_builder *builder, weir_dtype dtype,
                              weir_instr_spec *spec);

#endif
