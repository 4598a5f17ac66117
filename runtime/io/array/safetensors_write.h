/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_IO_SAFETENSORS_WRITE_H_
#define WEIR_IO_SAFETENSORS_WRITE_H_

#include "runtime/io/array/safetensors.h"

/* Writes .safetensors files. */

/* Appends the bytes before the data to |out|, a multiple of 64 of them. The
 * data of the tensors follow in the order that |out_order|, of |count| indices,
 * gives: widest elements first, else as they come. For files too large for
 * memory. Errors: as weir_safetensors_write. */
weir_status weir_safetensors_begin(const weir_safetensors_source *source,
                                   uint32_t *out_order, weir_strbuf *out,
                                   weir_error *err);

/* Appends a file of |count| tensors to |out|, widest elements first, else in
 * the given order; its data starts at a multiple of 64 bytes from its start.
 * Errors: W5009 when a name occurs twice or is not UTF-8, W6001. */
weir_status weir_safetensors_write(const weir_sv *names,
                                   weir_tensor *const *tensors, size_t count,
                                   weir_strbuf *out, weir_error *err);

#endif
