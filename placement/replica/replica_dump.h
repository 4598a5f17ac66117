/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_PLACEMENT_REPLICA_DUMP_H_
#define WEIR_PLACEMENT_REPLICA_DUMP_H_

#include "placement/replica/replica.h"
#include "runtime/base/json/json.h"

/* Tells in words which job a template is of. |replica| may be NULL: then
 * nothing is written. false: writing failed. */

/* The mode, the number of replicas, and a line per server: what a replica pulls
 * from it and pushes to it. */
bool weir_replica_write(const weir_place_replica *replica,
                        const weir_writer *out);
/* A line per edge whose name fits |pattern|; empty: all. */
bool weir_replica_write_edges(const weir_place_replica *replica,
                              weir_sv pattern, const weir_writer *out);
/* Key "replicas". */
void weir_replica_write_json(const weir_place_replica *replica,
                             weir_json_writer *w);

#endif
