/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_IO_SAFETENSORS_H_
#define WEIR_IO_SAFETENSORS_H_

#include "runtime/base/env.h"
#include "runtime/base/strbuf.h"
#include "runtime/tensor/tensor.h"

/* safetensors: many named tensors in one file, made to be mapped.
 *
 * Eight bytes give the length of a JSON header; it gives each tensor its dtype,
 * shape and range of bytes; the ranges fill the rest of the file without holes
 * and without overlap. All of that is checked when the file is opened. A tensor
 * is then a read-only view of the mapped file, which stays mapped until the
 * last of its views and the handle are released. Tensors are copied only if
 * their bytes do not stand at a multiple of their element's size, or if they
 * are bools that hold other bytes than 0 and 1.
 * Source: github.com/huggingface/safetensors, section Format of its README. */
typedef struct weir_safetensors weir_safetensors;

enum { WEIR_SAFETENSORS_HEADER_BYTES = 100000000 }; /* the longest read */

/* The first bytes could be those of this format. */
bool weir_safetensors_is(weir_bytes bytes);

/* Opens file |path| beneath |root| as weir_fs.read does, mapped. env->fs and
 * env->alloc must outlive the handle and its views.
 * Errors: W4005, those of weir_fs.read, W6001. */
weir_status weir_safetensors_open(const weir_env *env, const char *root,
                                  const char *path, size_t limit,
                                  weir_safetensors **out_file, weir_error *err);

/* The same for bytes in memory. |fs| and |take_file| (both may be NULL: the
 * bytes are borrowed) give the file to close at the end; on failure nothing
 * was taken. |name| is for messages, and copied. */
weir_status weir_safetensors_from(const weir_allocator *alloc, weir_bytes bytes,
                                  const char *name, const weir_fs *fs,
                                  const weir_file *take_file,
                                  weir_safetensors **out_file, weir_error *err);
/* NULL-safe. Views stay good. */
void weir_safetensors_release(weir_safetensors *file);

/* Tensors in the order of the header; names are lent until release. |self| is a
 * weir_safetensors, for weir_nearest_name. */
size_t weir_safetensors_count(const weir_safetensors *file);
weir_sv weir_safetensors_name(const void *self, size_t i);

/* The text of |key| in the header's `__metadata__`; lent until release. Empty
 * (with NULL) when there is none. */
weir_sv weir_safetensors_metadata(const weir_safetensors *file,
                                  const char *key);

/* Where tensor |i|'s data begin, from the first byte of the file. */
uint64_t weir_safetensors_offset(const weir_safetensors *file, size_t i);

/* Gives tensor |i|. From any thread. Of a file whose bytes are not all here
 * (weir_file.need), those of a view come with weir_safetensors_need.
 * Errors: W4005 for a dtype that weir does not have (f16, i8 ...), W6001, those
 * of weir_file.need. */
weir_status weir_safetensors_get(weir_safetensors *file, size_t i,
                                 weir_tensor **out_tensor, weir_error *err);

/* Whether |tensor| is a view of |file|. */
bool weir_safetensors_views(const weir_safetensors *file,
                            const weir_tensor *tensor);
/* Makes the bytes of |view| good. Blocks, any thread. Errors: those of
 * weir_file.need. */
weir_status weir_safetensors_need(weir_safetensors *file,
                                  const weir_tensor *view, weir_error *err);

/* A text for `__metadata__`. */
typedef struct weir_safetensors_pair {
  weir_sv key, value;
} weir_safetensors_pair;

/* The contents of a file to be written. */
typedef struct weir_safetensors_source {
  const weir_sv *names;
  weir_tensor *const *tensors;
  size_t count;
  const weir_safetensors_pair *metadata;
  size_t metadata_count;
} weir_safetensors_source;

#endif
