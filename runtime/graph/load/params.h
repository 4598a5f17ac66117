/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_GRAPH_PARAMS_H_
#define WEIR_GRAPH_PARAMS_H_

#include "runtime/graph/load/loader.h"

/* Constants of a module: params and dims. */

/* The constant of that name, or NULL. */
const weir_named_const *weir_module_const(const weir_module *m, weir_sv name);

/* Reads `params` and `dims` of |m|. */
bool weir_module_params(weir_loader *l, weir_module *m);

/* A YAML value as a constant; false when it is none (a map, a call). */
bool weir_const_from_yaml(weir_loader *l, const weir_yaml *y, weir_const *out);

#endif
