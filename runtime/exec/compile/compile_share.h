/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_EXEC_COMPILE_SHARE_H_
#define WEIR_EXEC_COMPILE_SHARE_H_

#include "runtime/exec/compile/compile_internal.h"

/* Compiles the parts of some tasks only. */

/* Finds the parts of this process and the constants that it needs. Does nothing
 * where it has all tasks. Errors: W6001. */
weir_status weir_compile_share_begin(weir_compiler *c, weir_error *err);

/* Whether the bytes of one of |e|'s outputs are needed in this process, if they
 * are constant. */
bool weir_compile_needs_bytes(const weir_compiler *c, const weir_emit *e);

/* The same of one value. */
static inline bool weir_compile_value_here(const weir_compiler *c,
                                           weir_value_id id) {
  return !c->elsewhere || c->bytes_here[id];
}

/* weir_program_add_instr, but for another process's part: that gets a number
 * and no instruction. */
uint32_t weir_compile_add_instr(weir_compiler *c, const weir_instr_spec *spec);

/* An edge from one part to another, by its number on the channel: the frame's
 * own where both parts are of this process, else the one between tasks. */
typedef struct weir_compile_way {
  uint32_t from, to, edge;
} weir_compile_way;

/* weir_instr_send and weir_instr_recv; the instruction is then |builder|'s. */
weir_status weir_compile_send(const weir_compiler *c,
                              weir_program_builder *builder,
                              const weir_compile_way *way, size_t bytes,
                              weir_instr_spec *spec);
weir_status weir_compile_recv(const weir_compiler *c,
                              weir_program_builder *builder,
                              const weir_compile_way *way, size_t bytes,
                              weir_instr_spec *spec);

#endif
