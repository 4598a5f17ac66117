/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_BASE_STATUS_H_
#define WEIR_BASE_STATUS_H_

#include "runtime/base/error.h"

/* Making errors. One table, errors.def, gives each id its status, its exit code
 * and its explanation:
 *
 *   if (k != n)
 *     return weir_fail(err, WEIR_W2012, at, "inner dimensions differ: "
 *                      "%" PRId64 " and %" PRId64, k, n);
 *
 * Not installed: programs get filled errors (error.h). */

/* Error ids are frozen once released: W0 usage and environment, W1 YAML and
 * language, W2 ops and shapes, W3 placement, W4 data and checkpoint files,
 * W5 run, W6 resources, W7 cluster and net, W9 internal. */
typedef enum weir_error_id {
  WEIR_W_NONE = 0,
#define WEIR_ERROR(id, status, exit_code, title, text) WEIR_##id,
#include "runtime/base/errors.def"
#undef WEIR_ERROR
  WEIR_W_COUNT
} weir_error_id;

/* A span of a source file. Lines and columns count from 1, columns in code
 * points; line 0 means "no place". |file| is borrowed. */
typedef struct weir_mark {
  const char *file;
  uint32_t line, col, end_line, end_col;
} weir_mark;

/* Fills |err| (NULL-safe) and returns the status that errors.def gives |id|.
 * |at| may be NULL. Clears node and hint. Long messages are cut at a code
 * point; control bytes are escaped as \xNN. */
weir_status weir_fail(weir_error *err, weir_error_id id, const weir_mark *at,
                      const char *fmt, ...) WEIR_PRINTF(4, 5);

/* Adds a hint ("did you mean ...") to a filled |err|. NULL-safe. */
void weir_hint(weir_error *err, const char *fmt, ...) WEIR_PRINTF(2, 3);

/* Copies |src| to |dst| (NULL-safe), as much as both have room for: the error
 * of a program that was built with an older header is shorter than ours. */
void weir_error_copy(weir_error *dst, const weir_error *src);

/* Names the node that a filled |err| is about, unless one is named. */
void weir_error_set_node(weir_error *err, const char *name, size_t size);

#endif
