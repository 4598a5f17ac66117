/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_IO_NPY_HEADER_H_
#define WEIR_IO_NPY_HEADER_H_

#include "runtime/io/array/npy.h"

/* The header of an .npy file. */

/* Reads the text of a header, a Python dict; |offset| is where it stands in
 * |file|, for messages. Errors: W4003. */
weir_status weir_npy_header_parse(weir_sv text, size_t offset, const char *file,
                                  weir_npy_header *out_header, weir_error *err);

#endif
