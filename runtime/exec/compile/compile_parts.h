/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_EXEC_COMPILE_PARTS_H_
#define WEIR_EXEC_COMPILE_PARTS_H_

#include "runtime/exec/compile/compile_internal.h"

/* Compiles a program for several devices. */

/* How the first part is carried out. */
void weir_compile_parts_options(weir_compiler *c,
                                weir_program_options *options);

/* Begins the parts, once layouts are known. */
weir_status weir_compile_parts_begin(weir_compiler *c, weir_error *err);

/* From here on part |part| is written; that of another process leaves no
 * instruction behind. */
void weir_compile_enter(weir_compiler *c, uint32_t part);

/* Enters the part of node |id| and brings its inputs there. */
weir_status weir_compile_arrive(weir_compiler *c, weir_node_id id,
                                weir_error *err);

/* Finishes the other parts and hangs them behind |head|. */
weir_status weir_compile_parts_end(weir_compiler *c, weir_program *head,
                                   const weir_program_options *options,
                                   weir_error *err);

/* Gives all builders back. */
void weir_compile_parts_release(weir_compiler *c);

#endif
