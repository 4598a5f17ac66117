/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_EXEC_COMPILE_EMIT_H_
#define WEIR_EXEC_COMPILE_EMIT_H_

#include "runtime/exec/compile/compile_internal.h"

/* Writes instructions and values into the program. */

/* Adds the instruction of |emit|, or computes its outputs now. Takes over the
 * prepared state, also on failure. */
weir_status weir_compile_emit(weir_compiler *c, weir_emit *emit,
                              weir_error *err);

/* Whether |emit|'s kernel is prepared: it becomes an instruction of this
 * process, or its outputs are computed here. */
bool weir_compile_prepares(const weir_compiler *c, const weir_emit *emit);

/* Whether |emit|'s outputs are computed now, if its kernel can. */
bool weir_compile_folds(const weir_compiler *c, const weir_emit *emit);

/* Adds the program's value for graph value |id|. */
weir_status weir_compile_value(weir_compiler *c, weir_value_id id,
                               weir_value_spec *spec, weir_error *err);

/* Stands for a constant's bytes where only sizes are wanted: not NULL, and
 * never read. */
extern const uint64_t weir_compile_no_bytes[8];

#endif
