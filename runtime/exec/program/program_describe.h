/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_EXEC_PROGRAM_DESCRIBE_H_
#define WEIR_EXEC_PROGRAM_DESCRIBE_H_

#include "runtime/base/writer.h"
#include "runtime/exec/program/program.h"

/* Writes each instruction of |program| and of the parts behind it as a line of
 * fields apart by tabs: number, node, op, kernel, algorithm, layout, offset,
 * bytes, reason; a line "# DEVICE" before each part of a placed program.
 * false: |out| failed. */
bool weir_program_describe(const weir_program *program, const weir_writer *out);

#endif
