/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_EXEC_VAR_MEMORY_H_
#define WEIR_EXEC_VAR_MEMORY_H_

#include "runtime/exec/store/var_store.h"

/* Where a variable's value is: in the host's memory or on a GPU. All under the
 * lock of the cells; they block while bytes are copied, which happens when a
 * value is wanted in another memory than it was last written to. */

/* Has the value in |gpu|'s memory, or in the host's when |gpu| is NULL, and
 * gives its address there. Errors: those of the device, W6001. */
weir_status weir_var_buffer_read(weir_var_buffer *buffer,
                                 struct weir_exec_gpu *gpu, void **out_data,
                                 weir_error *err);

/* Where the next value is to be written. */
weir_status weir_var_buffer_write(weir_var_buffer *buffer,
                                  struct weir_exec_gpu *gpu, void **out_data,
                                  weir_error *err);

/* The value was written there, and is nowhere else. */
void weir_var_buffer_written(weir_var_buffer *buffer,
                             struct weir_exec_gpu *gpu);

#endif
