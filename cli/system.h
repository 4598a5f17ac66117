/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_SYSTEM_H_
#define CLI_SYSTEM_H_

#include "runtime/weir.h"

/* The system's services for commands: time, the environment, bytes. */

/* Nanoseconds of a clock that only goes forward. */
int64_t cli_now_ns(void);

/* Nanoseconds since 1970. */
int64_t cli_wall_ns(void);

/* The most memory that this process held so far, in bytes. */
int64_t cli_peak_bytes(void);

/* For a command of phases, each with tables of its own: freed ones go back to
 * the system at once. The C library would keep them, and a million units take a
 * quarter more. Call it before the first allocation that matters. */
void cli_free_at_once(void);

/* The environment variable |name|, or NULL; a `getenv` of options. |self| is
 * not used. */
const char *cli_look_up_env(void *self, const char *name);

/* Fails with W6001. */
weir_status cli_no_memory(weir_error *err);

/* All bytes of |fd|, to be freed; NULL with errno when they cannot be read.
 * Stops soon after |limit| bytes: a caller to whom the rest matters compares
 * |*out_size| with it. */
char *cli_read_all(int fd, size_t limit, size_t *out_size);

#endif
