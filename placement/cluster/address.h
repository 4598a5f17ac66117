/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PLACEMENT_CLUSTER_ADDRESS_H_
#define PLACEMENT_CLUSTER_ADDRESS_H_

#include "runtime/base/status.h"
#include "runtime/base/yaml/yaml.h"

/* The addresses of tasks. */

/* Entry |entry| of a cluster's section, a job: each of its addresses must be
 * HOST:PORT or unix:/PATH and stand in the section once. Errors: W3020 with a
 * place. */
weir_status weir_cluster_check_addresses(const weir_yaml *section,
                                         uint32_t entry, weir_error *err);

#endif
