/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_IO_NAMES_H_
#define WEIR_IO_NAMES_H_

#include "runtime/base/alloc.h"
#include "runtime/base/status.h"
#include "runtime/base/sv.h"

/* Names of tensors that are to be written: callers may pass anything. */

/* The form that holds the names, and the names it takes. */
typedef struct weir_names {
  size_t count;
  const void *self;
  weir_sv (*name_at)(const void *self, size_t i);
  bool (*is_sound)(weir_sv name);
  const char *one, *several; /* "a tensor in a file", "tensors" */
} weir_names;

/* Each must be sound, and no two the same. Errors: W5009, W6001. */
weir_status weir_names_check(const weir_allocator *alloc,
                             const weir_names *names, weir_error *err);

/* |self| is an array of weir_sv. */
weir_sv weir_names_at(const void *self, size_t i);
/* A name that safetensors can have: UTF-8, and not that of its metadata. */
bool weir_names_is_sound(weir_sv name);

#endif
