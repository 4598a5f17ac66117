/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_EXEC_COMPILE_GPU_H_
#define WEIR_EXEC_COMPILE_GPU_H_

#include "runtime/exec/compile/compile_internal.h"

/* Parts of GPUs: what their values need to meet the host's. */

/* The kind of part |part|'s device; without a partition the host's. */
weir_device_kind weir_compile_part_kind(const weir_compiler *c, uint32_t part);

/* The GPU of the part that is being written, where it is one of this process;
 * else NULL. */
struct weir_exec_gpu *weir_compile_gpu(const weir_compiler *c);
struct weir_device *weir_compile_device(const weir_compiler *c);
struct weir_tuning *weir_compile_tuning(const weir_compiler *c);

/* Finds the GPUs of this process's parts. Errors: W6004, W6001, W6003. */
weir_status weir_compile_gpus(weir_compiler *c, weir_error *err);

/* Adds |id| as |spec|, a feed, says; where it lies elsewhere than the part's
 * values, a copy too. Errors: W6001, W6004 (the feed's GPU is not there). */
weir_status weir_compile_fed(weir_compiler *c, weir_value_id id,
                             weir_value_spec *spec, weir_error *err);

/* Adds a copy of |*value| to external |external|, by an instruction of |kind|,
 * FETCH or VAR_COMMIT, in the GPU's part that is being written; |*value| is the
 * copy then. |stays|: the external is memory of that GPU. */
weir_status weir_compile_gpu_out(weir_compiler *c, uint32_t *value,
                                 uint32_t external, weir_instr_kind kind,
                                 bool stays, const weir_instr_spec *as,
                                 weir_error *err);

/* Whether |value| of part |from| goes to part |to| by a copy between the
 * memories of their GPUs: both are this process's, and it has bytes. */
bool weir_compile_is_direct(const weir_compiler *c, uint32_t from, uint32_t to,
                            uint32_t value);

/* Where |value| of |part| is read by an instruction of the host, such as a
 * send: itself, or in a GPU's part a staged copy, made by an instruction that
 * takes |as|'s names. Errors: W6001. */
weir_status weir_compile_to_host(weir_compiler *c, uint32_t part,
                                 uint32_t *value, const weir_instr_spec *as,
                                 weir_error *err);

/* The other way: where an instruction of the host writes |value| of |part|. In
 * a GPU's part |*out_staged| is another value, whose copy to |value| the caller
 * adds behind that instruction by weir_compile_from_host. Errors: W6001. */
weir_status weir_compile_stage(weir_compiler *c, uint32_t part, uint32_t value,
                               uint32_t *out_staged, weir_error *err);
weir_status weir_compile_from_host(weir_compiler *c, uint32_t part,
                                   uint32_t staged, uint32_t value,
                                   const weir_instr_spec *as, weir_error *err);

#endif
