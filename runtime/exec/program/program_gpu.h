/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_EXEC_PROGRAM_GPU_H_
#define WEIR_EXEC_PROGRAM_GPU_H_

#include "runtime/exec/program/program_internal.h"

/* Constants of a GPU's part, in that GPU's memory: made once, when the program
 * is, each once however many values have its bytes. */

/* Sets |offset| of constant values and |constants|. Errors: those of the
 * device, W6001, W2001. */
weir_status weir_program_gpu_constants(weir_program *program, weir_error *err);

void weir_program_gpu_release(weir_program *program);

#endif
