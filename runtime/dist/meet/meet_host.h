/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_DIST_MEET_HOST_H_
#define WEIR_DIST_MEET_HOST_H_

#include "runtime/dist/meet/meet.h"

/* The scheduler's side of a meeting. */

typedef struct weir_meet_host weir_meet_host;

/* Takes connections at |options->address|, from now on until its release.
 * Errors: W7002 (another scheduler is there), W7082, those of the transports,
 * W6001, W6003. */
weir_status weir_meet_host_create(const weir_env *env,
                                  const weir_meet_options *options,
                                  weir_meet_host **out_host, weir_error *err);
/* Where it takes connections, with the port that was found. */
const char *weir_meet_host_address(const weir_meet_host *host);
void weir_meet_host_release(weir_meet_host *host); /* NULL-safe */

#endif
