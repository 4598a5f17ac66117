/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PLACEMENT_CARRY_PLACING_H_
#define PLACEMENT_CARRY_PLACING_H_

#include "placement/place.h"
#include "runtime/base/strbuf.h"

/* Placings and plans as bytes, for the tasks of a cluster: they get the very
 * plan of their driver instead of looking for one, and need none of the files
 * and figures of the driver's machine. The bytes hold the cluster as it was
 * resolved, measured costs, requests, and the homes of variables; a plan's hold
 * devices, times and copies. Both are read as untrusted. */

/* Appends |placing|, with the homes of |graph|'s variables. |graph| is the one
 * that sessions run (a mesh is lowered). Errors: W6001. */
weir_status weir_placing_pack(const weir_placing *placing,
                              const weir_graph *graph, weir_strbuf *out,
                              weir_error *err);

/* The placing of |bytes|. |ask| and |ask_self| as in weir_placing_options; used
 * where the placing that was packed asked too.
 * Errors: W7051 (malformed), W3045, W6001. */
weir_status weir_placing_unpack(const weir_allocator *alloc, weir_bytes bytes,
                                weir_lower_ask ask, const void *ask_self,
                                weir_placing **out_placing, weir_error *err);

#endif
