/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_DIST_CLUSTER_CLUSTER_PROGRAMS_H_
#define WEIR_DIST_CLUSTER_CLUSTER_PROGRAMS_H_

#include "runtime/dist/cluster/cluster_internal.h"

/* Programs of a remote, and their registration with the tasks. */

void weir_dist_registered(void *dist, const weir_driver_program *program,
                          const weir_error *err);
weir_status weir_dist_prepare(weir_remote *remote,
                              const weir_remote_request *request,
                              weir_remote_program **out_program,
                              bool *out_writes, weir_error *err);
void weir_dist_forget(weir_remote *remote, weir_remote_program *program);
/* The empty program: it makes the session on all tasks. */
weir_status weir_dist_open_session(weir_dist_session *session, weir_error *err);
void weir_dist_unregister(weir_dist *dist, uint32_t program);

#endif
