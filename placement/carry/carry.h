/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PLACEMENT_CARRY_H_
#define PLACEMENT_CARRY_H_

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

/* The placing of |bytes|. |ask| and |ask_self| as in weir_placing_options.
 * Errors: W7051 (malformed), W3045, W6001. */
weir_status weir_placing_unpack(const weir_allocator *alloc, weir_bytes bytes,
                                weir_lower_ask ask, const void *ask_self,
                                weir_placing **out_placing, weir_error *err);

/* Appends |plan|. Errors: W6001. */
weir_status weir_plan_pack(const weir_plan *plan, weir_strbuf *out,
                           weir_error *err);

/* The plan of |bytes| for |problem|. Errors: W7051 (malformed, or another
 * problem's), W6001. */
weir_status weir_place_plan_unpack(const weir_allocator *alloc,
                                   const weir_place_problem *problem,
                                   weir_bytes bytes, weir_place_plan **out_plan,
                                   weir_error *err);

/* The plan of |bytes| for |graph|, a cut; it must pass the checker. Errors: as
 * weir_placing_plan, W7051. */
weir_status weir_plan_unpack(const weir_placing *placing,
                             const weir_graph *graph, weir_bytes bytes,
                             weir_plan **out_plan, weir_error *err);

#endif
