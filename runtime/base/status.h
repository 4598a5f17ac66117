/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_BASE_STATUS_H_
#define WEIR_BASE_STATUS_H_

#include <stddef.h>
#include <stdint.h>

/* Status and errors.
 *
 * Every function that can fail returns a weir_status and must not be ignored.
 * Detail goes to the caller's weir_error: fixed size, may be NULL, nothing to
 * free, so that running out of memory can be reported too. One table,
 * errors.def, gives each id its status, its exit code and its explanation:
 *
 *   if (k != n)
 *     return weir_fail(err, WEIR_W2012, at, "inner dimensions differ: "
 *                      "%" PRId64 " and %" PRId64, k, n);
 *
 * The library never aborts, exits or prints. */

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_API __attribute__((visibility("default")))
#define WEIR_MUST_USE __attribute__((warn_unused_result))
#define WEIR_PRINTF(f, a) __attribute__((format(printf, f, a)))

/* The same numbers as gRPC's codes. */
typedef enum weir_status {
  WEIR_OK = 0,
  WEIR_CANCELLED = 1,
  WEIR_UNKNOWN = 2,
  WEIR_INVALID_ARGUMENT = 3,
  WEIR_DEADLINE_EXCEEDED = 4,
  WEIR_NOT_FOUND = 5,
  WEIR_ALREADY_EXISTS = 6,
  WEIR_PERMISSION_DENIED = 7,
  WEIR_RESOURCE_EXHAUSTED = 8,
  WEIR_FAILED_PRECONDITION = 9,
  WEIR_ABORTED = 10,
  WEIR_OUT_OF_RANGE = 11,
  WEIR_UNIMPLEMENTED = 12,
  WEIR_INTERNAL = 13,
  WEIR_UNAVAILABLE = 14,
  WEIR_DATA_LOSS = 15,
  WEIR_UNAUTHENTICATED = 16
} weir_status;

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

/* The description of a failure, in the caller's memory. Set |struct_size|
 * before use. */
typedef struct weir_error {
  uint32_t struct_size;
  weir_status code;
  char id[8];                            /* "W2012"; "" when no error */
  char file[256];                        /* "" when no place */
  uint32_t line, col, end_line, end_col; /* from 1; 0 when no place */
  char node[128];                        /* node name, "" when none */
  char message[512];
  char hint[256]; /* "" when none */
} weir_error;

/* In this form for C++ too, where -Wextra wants every field. */
#define WEIR_ERROR_INIT \
  { sizeof(weir_error), WEIR_OK, "", "", 0, 0, 0, 0, "", "", "" }

/* Returns on the first status that is not WEIR_OK. */
#define WEIR_TRY(expr)                              \
  do {                                              \
    weir_status try_status_ = (expr);               \
    if (try_status_ != WEIR_OK) return try_status_; \
  } while (0)

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

/* "INVALID_ARGUMENT". Static text, never NULL. */
WEIR_API const char *weir_status_name(weir_status status);

/* Table look-ups by id text ("W2012"); NULL or -1 when the id is unknown. */
WEIR_API const char *weir_error_title(const char *id);
WEIR_API const char *weir_error_explain(const char *id);
WEIR_API int weir_error_exit_code(const char *id);

/* The id's text for the index-th error (from 0); NULL past the end. */
WEIR_API const char *weir_error_id_at(int index);

#ifdef __cplusplus
}
#endif

#endif
