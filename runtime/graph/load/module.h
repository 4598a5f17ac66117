/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_GRAPH_MODULE_H_
#define WEIR_GRAPH_MODULE_H_

#include "runtime/graph/load/loader.h"

/* Modules: the main file and its imports. */

/* Loads the main file |text| and all that it imports. */
bool weir_modules_load(weir_loader *l, weir_sv text, const char *path);

/* Frees the parts that are not in an arena. */
void weir_module_release(weir_loader *l, weir_module *module);

/* The module that |m| imports as |alias|, or NULL. */
weir_module *weir_module_import(const weir_module *m, weir_sv alias);

/* The keys of a graph file; NULL ends the list. */
extern const char *const weir_graph_keys[];

#endif
