/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_IO_FORMAT_H_
#define WEIR_IO_FORMAT_H_

#include "runtime/base/env.h"
#include "runtime/base/strbuf.h"
#include "runtime/base/sv.h"
#include "runtime/tensor/tensor.h"

/* Formats of files of tensors.
 *
 * A format is one const struct in NAME.c here, and one name in the list of
 * runtime/io/meson.build; null.c is one to copy. Readers and writers of files
 * of any format (tensor_file.h, tensor_set.h, array_file.h) go through the
 * list, so they need no line for a new one.
 *
 * Reading: sniff tells by a file's first bytes whether the file is of the
 * format. One of a single tensor then has |read|; one of several has |open|,
 * |count|, |name_at|, |get| and |release|. Writing is optional. All functions
 * are pure of state; a handle is used by one thread at a time. */

enum { WEIR_FORMAT_ENDINGS = 4, WEIR_FORMAT_HEAD_BYTES = 65536 + 16 };

/* All of a file's bytes. */
typedef struct weir_format_input {
  const weir_allocator *alloc;
  weir_bytes bytes;
  const char *name; /* for messages */
  /* The file, for tensors that are views of it: a format that keeps it clears
   * the struct. NULL: the bytes are borrowed for the call, so tensors must be
   * copies. */
  const weir_fs *fs;
  weir_file *file;
} weir_format_input;

/* Where the elements of a file of one array lie, for reading it by rows. */
typedef struct weir_format_head {
  weir_dtype dtype;  /* of the tensor */
  weir_shape shape;  /* checked */
  size_t elem_bytes; /* of an element in the file; fewer: widened to i32 */
  uint64_t data_at;  /* byte of the content where they start */
  bool swap;         /* their bytes stand the other way round */
  bool is_bool;      /* any byte but 0 is true */
  bool fortran;      /* the first index runs fastest */
  weir_error_id bad; /* reported when the file is too short or long */
} weir_format_head;

typedef struct weir_format {
  const char *name;
  const char *summary;
  /* Ends of names, the one that is written first; NULL ends the list. */
  const char *endings[WEIR_FORMAT_ENDINGS];
  /* Its value in weir_file_format, which hosts write streams by; 0: only read.
   * Never changed once given. */
  int number;
  bool maps; /* files with such names are mapped to be read */
  bool (*sniff)(weir_bytes start);

  /* ---- One tensor. */
  weir_status (*read)(const weir_format_input *in, weir_tensor **out_tensor,
                      weir_error *err);
  /* Reads the head from the first WEIR_FORMAT_HEAD_BYTES, or all, of the plain
   * content; NULL: the format cannot be read by rows. */
  weir_status (*head)(weir_bytes start, const char *file,
                      weir_format_head *out_head, weir_error *err);

  /* ---- Several tensors; |self| was made by open. */
  weir_status (*open)(const weir_format_input *in, void **out_self,
                      weir_error *err);
  void (*release)(void *self); /* NULL-safe */
  size_t (*count)(const void *self);
  weir_sv (*name_at)(const void *self, size_t i); /* lent until release */
  weir_status (*get)(void *self, size_t i, weir_tensor **out_tensor,
                     weir_error *err);

  /* Appends a file to |out|; NULL: the format is only read. A format of one
   * tensor gets one, and no name. Errors: W5009, W6001. */
  weir_status (*write)(const weir_sv *names, weir_tensor *const *tensors,
                       size_t count, weir_strbuf *out, weir_error *err);
} weir_format;

/* Format |i| of the list, in the order in which they are tried; NULL past the
 * last one. */
const weir_format *weir_format_at(size_t i);

/* The format of that number, from 1; NULL: none. */
const weir_format *weir_format_of_number(int number);
/* The format of a file by its bytes, else by the end of its name; NULL: none of
 * the list. */
const weir_format *weir_format_of(weir_bytes bytes, const char *name);
/* The format that a name ends for; NULL: none. */
const weir_format *weir_format_of_name(const char *name);

/* "npz, safetensors": the names of formats that |of| is true for (NULL: all).
 * Returns |text|. */
const char *weir_format_names(bool (*of)(const weir_format *format), char *text,
                              size_t size);
bool weir_format_is_written(const weir_format *format);
bool weir_format_holds_several(const weir_format *format);

#endif
