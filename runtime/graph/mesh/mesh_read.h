/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_GRAPH_MESH_READ_H_
#define WEIR_GRAPH_MESH_READ_H_

#include "runtime/graph/load/loader.h"

/* The loader's part of meshes. Findings are reported; false after one. */

/* Reads `mesh` and `layout` into the graph. Reports W3050-W3052, W3054, W3055.
 */
bool weir_mesh_read(weir_loader *l, const weir_module *m);
/* Whether every value can be laid out: W3053. Once the graph is complete. */
bool weir_mesh_check(weir_loader *l);

/* The keys of `mesh`; NULL ends the list. */
extern const char *const weir_mesh_keys[];

#endif
