/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_EXEC_PROGRAM_HELD_H_
#define WEIR_EXEC_PROGRAM_HELD_H_

#include "runtime/exec/program/program.h"

/* The memory of one part of a program: what its device holds while it runs. */

typedef struct weir_program_memory {
  size_t arena_bytes;    /* planned for a run: values, scratch, bodies */
  size_t external_bytes; /* inputs, outputs, variables: read and written */
  size_t constant_bytes; /* that its instructions read, each once */
  size_t kept_bytes;     /* packed constants */
  /* The node that takes most of it at once. */
  weir_sv most;
  size_t most_bytes;
} weir_program_memory;

/* Of |part| alone, not of those behind it. Frames and tables aside. Errors:
 * W6001. */
weir_status weir_program_held(const weir_program *part,
                              weir_program_memory *out, weir_error *err);
static inline size_t weir_program_memory_sum(const weir_program_memory *m) {
  return m->arena_bytes + m->external_bytes + m->constant_bytes + m->kept_bytes;
}

/* Packed constants of |spec| and of the bodies in it. Bodies nest as deep as
 * the graph's limits allow. */
size_t weir_instr_kept(const weir_instr_spec *spec);

#endif
