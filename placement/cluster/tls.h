/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PLACEMENT_CLUSTER_TLS_H_
#define PLACEMENT_CLUSTER_TLS_H_

#include "runtime/base/alloc.h"
#include "runtime/base/status.h"
#include "runtime/base/yaml/yaml.h"

/* Where the certificates of a cluster's tasks lie.
 *
 *   tls: certs                        # a folder, as weir cluster certs fills
 * it tls:                              # or each file by itself ca:
 * certs/ca.pem cert: certs/%t.pem              # %t: worker-0, driver; %%: %
 *     key: /etc/weir/%t.key
 *
 * Relative paths begin at the folder of the file that holds the section, so one
 * file serves all hosts. */

/* Templates of paths; empty: there is no `tls`. */
typedef struct weir_cluster_tls {
  weir_sv ca, cert, key;
} weir_cluster_tls;

/* Reads the value of `tls`. Errors: W3020 with a place, W6001. */
weir_status weir_cluster_tls_read(const weir_yaml *y, weir_arena *arena,
                                  weir_cluster_tls *out, weir_error *err);

/* The path of |pattern| for |task|, "worker-0" or "driver", with a NUL. NULL
 * when out of memory. */
const char *weir_cluster_tls_path(weir_sv pattern, const char *task,
                                  weir_arena *arena);

#endif
