/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_EXEC_INSTR_LOOP_H_
#define WEIR_EXEC_INSTR_LOOP_H_

#include "runtime/exec/program/program.h"

/* The instruction of scan and while. */

/* Fills |spec|; its inputs, outputs and bodies are set. Errors: W6001. */
weir_status weir_instr_loop(weir_program_builder *builder,
                            const weir_loop_spec *loop, weir_instr_spec *spec);

#endif
