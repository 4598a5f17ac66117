/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_EXEC_CHANNEL_NULL_H_
#define WEIR_EXEC_CHANNEL_NULL_H_

#include "runtime/exec/channel/channel.h"

/* A channel that does nothing. */

/* A channel without peers: every call ends at once with W7001. Static,
 * immutable; release does nothing. */
weir_channel *weir_channel_null(void);

#endif
