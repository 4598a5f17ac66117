/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_WATCH_H_
#define CLI_WATCH_H_

#include <stdbool.h>
#include <stdint.h>

#include "runtime/weir.h"

/* The end of a command whose time is over.
 *
 * The runtime ends its work by itself at the deadline, between two pieces of
 * it. A piece that takes long (one call of a library, a kernel that is not cut
 * into blocks) would make the command late, so a thread waits for a fifth of a
 * second more and then ends the process with 138. Files are written beside
 * their place and renamed, so none is left half written. */

/* From now: |timeout_ns|; 0 or less: no watch. At most one a process. Errors:
 * W6003. */
weir_status cli_watch_start(int64_t timeout_ns, weir_error *err);

/* Before the command tells an error: the watch then tells none. Does not return
 * where the watch was first, for it ends the process. */
void cli_watch_tell(void);

/* Whether the time is over; false where there is no watch. */
bool cli_watch_is_over(void);

#endif
