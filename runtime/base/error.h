/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_BASE_ERROR_H_
#define WEIR_BASE_ERROR_H_

#include <stddef.h>
#include <stdint.h>

/* Status and errors, as programs see them.
 *
 * Every function that can fail returns a weir_status and must not be ignored.
 * Detail goes to the caller's weir_error: fixed size, may be NULL, nothing to
 * free, so that running out of memory can be reported too. The library never
 * aborts, exits or prints. Installed; status.h has what the library's own code
 * needs besides. */

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
