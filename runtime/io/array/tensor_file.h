/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_IO_TENSOR_FILE_H_
#define WEIR_IO_TENSOR_FILE_H_

#include "runtime/base/env.h"
#include "runtime/base/sv.h"
#include "runtime/tensor/tensor.h"

/* A tensor from a file of any known format, and tensors to one.
 *
 * The formats are those of format.h. When reading, the first bytes tell the
 * format; the name does where they do not, and when writing. In a file that
 * holds several tensors |member| names the one that is wanted; one alone needs
 * no name. */

/* Reads a tensor from |path| beneath folder |root| (NULL: |path| as it is).
 * The tensor may be a read-only view of a mapped safetensors file, so env->fs
 * and env->alloc must outlive it.
 * Errors: W4008 for no known format; W4010, with the nearest name, when
 * |member| does not exist, is needed, or cannot be; W4003-W4007 when the file
 * is bad; those of weir_fs.read; W6001. */
weir_status weir_tensor_file_read(const weir_env *env, const char *root,
                                  const char *path, const char *member,
                                  weir_tensor **out_tensor, weir_error *err);

/* The same from bytes in memory, which are borrowed for the call, so the tensor
 * is always a copy. |name| is for messages. */
weir_status weir_tensor_bytes_read(const weir_allocator *alloc,
                                   weir_bytes bytes, const char *name,
                                   const char *member, weir_tensor **out_tensor,
                                   weir_error *err);

/* Writes |count| tensors to |path|, replacing it as a whole. A format of one
 * tensor, such as .npy, takes one; |names| may then be NULL. Errors: W4008 for
 * an ending of no format that is written, W5009, W6001, W6005. */
weir_status weir_tensor_file_write(const weir_env *env, const char *path,
                                   const weir_sv *names,
                                   weir_tensor *const *tensors, size_t count,
                                   weir_error *err);

#endif
