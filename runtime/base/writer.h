/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_BASE_WRITER_H_
#define WEIR_BASE_WRITER_H_

#include <stdbool.h>
#include <stddef.h>

/* Where text goes: a file of the command, a strbuf, a socket. |write| takes
 * all |size| bytes or returns false; after false it is not called again. */
typedef struct weir_writer {
  void *self;
  bool (*write)(void *self, const char *data, size_t size);
} weir_writer;

#endif
