/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_CLUSTER_OWN_HOST_H_
#define CLI_CLUSTER_OWN_HOST_H_

#include "cli/cli.h"

/* Which of this machine's addresses others reach it at. */

/* That of network interface |name|. Errors: W7082 (there is none). */
weir_status cli_own_host_of(const char *name, char *out, size_t size,
                            weir_error *err);
/* That from which frames to |host|:|port| go out. A name that the system does
 * not know yet is asked for again. Errors: W7082. */
weir_status cli_own_host_towards(const char *host, uint32_t port, char *out,
                                 size_t size, weir_error *err);

#endif
