/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_EXEC_INSTR_GPU_H_
#define WEIR_EXEC_INSTR_GPU_H_

#include "runtime/exec/program/program.h"

/* Copies of a GPU's part: in[0] to out[0], the same bytes, in the order of the
 * run's queue. */
typedef enum weir_gpu_way {
  WEIR_GPU_IN,     /* from the host's memory */
  WEIR_GPU_OUT,    /* to the host's */
  WEIR_GPU_WITHIN, /* both are the GPU's */
  WEIR_GPU_WAYS
} weir_gpu_way;

/* The kernels' names. */
#define WEIR_GPU_COPY_IN "copy.host_to_gpu"
#define WEIR_GPU_COPY_OUT "copy.gpu_to_host"

/* Fills |spec|'s run, state and costs. Errors: W6001, which sticks. */
weir_status weir_instr_gpu_copy(weir_program_builder *builder,
                                weir_instr_kind kind, weir_gpu_way way,
                                size_t bytes, weir_instr_spec *spec);

/* The same from an address of |src|, another GPU than the part's. It is put
 * into the queue before the task's other work, so out[0] is |all_run|. */
weir_status weir_instr_gpu_peer(weir_program_builder *builder,
                                weir_instr_kind kind, struct weir_exec_gpu *src,
                                size_t bytes, weir_instr_spec *spec);

/* The same in a part of the host, from an address of |src|; waits for it. */
weir_status weir_instr_gpu_read(weir_program_builder *builder,
                                weir_instr_kind kind, struct weir_exec_gpu *src,
                                size_t bytes, weir_instr_spec *spec);

/* The same between two addresses of the host, by as many threads as its bytes
 * are worth; |spec|'s |when| is BEFORE or AFTER. */
weir_status weir_instr_host_copy(weir_program_builder *builder,
                                 weir_instr_kind kind, size_t bytes,
                                 weir_instr_spec *spec);

#endif
