/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_EXEC_COMPILE_LAYOUT_H_
#define WEIR_EXEC_COMPILE_LAYOUT_H_

#include "runtime/exec/compile/compile_internal.h"

/* Chooses layouts of values. */

/* Fills c->reader. */
void weir_compile_find_readers(weir_compiler *c);

/* Bytes of a value in its layout. */
size_t weir_compile_bytes(const weir_compiler *c, weir_value_id id);

/* Gives all values their layouts, once readers and groups are known. */
weir_status weir_compile_layouts(weir_compiler *c, weir_error *err);

/* Sees to it that |id| is plain from here on, by a COPY if it is not. */
weir_status weir_compile_plain(weir_compiler *c, weir_value_id id,
                               weir_error *err);

#endif
