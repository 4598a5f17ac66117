/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_BASE_YAML_SIMPLE_H_
#define WEIR_BASE_YAML_SIMPLE_H_

#include "runtime/base/yaml/yaml_build.h"

/* Reads simple files without libyaml. */

/* True when |text| is of the simple kind that is read without libyaml; then
 * weir_yaml_read_simple builds the same tree several times faster. False when
 * |alloc| has no time left. */
bool weir_yaml_is_simple(weir_sv text, const weir_allocator *alloc);

/* Reads such a text; false: an error was reported. */
bool weir_yaml_read_simple(weir_yaml_builder *b);

#endif
