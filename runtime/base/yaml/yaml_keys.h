/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_BASE_YAML_KEYS_H_
#define WEIR_BASE_YAML_KEYS_H_

#include "runtime/base/yaml/yaml_build.h"

/* Checks the keys of a map and merges `<<`. */

/* The entries of the map that |frame| ends, from |pending|[frame->first] on:
 * refuses duplicates, resolves `<<`. */
bool weir_yaml_finish_map(weir_yaml_builder *b, const weir_yaml_frame *frame);

#endif
