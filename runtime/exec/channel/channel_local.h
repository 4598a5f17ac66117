/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_EXEC_CHANNEL_LOCAL_H_
#define WEIR_EXEC_CHANNEL_LOCAL_H_

#include "runtime/exec/channel/channel.h"

/* A channel within one process. */

/* A depth: an edge holds no bytes, a send ends with its receive. */
#define WEIR_CHANNEL_MEET UINT32_MAX

/* All ends in one process. |depth|: steps that an edge may hold (0: 2). It
 * allocates the first time an edge or group is used and whenever bytes grow,
 * not in a steady step. Errors: W6001. */
weir_status weir_channel_local_create(const weir_env *env, uint32_t depth,
                                      weir_channel **out_channel,
                                      weir_error *err);

#endif
