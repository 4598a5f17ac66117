/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_BASE_YAML_SCALAR_H_
#define WEIR_BASE_YAML_SCALAR_H_

#include "runtime/base/yaml/yaml.h"

/* The meaning of plain scalars. */

/* Plain scalars in the YAML 1.2 core schema. Each returns false when the node
 * is something else. Integers: [-+]digits, 0x hex, 0o octal; "010", "1_000" and
 * "1e3" are not integers. Floats: also .inf, -.inf, .nan and integers. */
bool weir_yaml_int(const weir_yaml *node, int64_t *out);

/* A number. */
bool weir_yaml_float(const weir_yaml *node, double *out);

/* true, True, TRUE or false, False, FALSE. */
bool weir_yaml_bool(const weir_yaml *node, bool *out);

/* Nothing, ~, null, Null or NULL. */
bool weir_yaml_null(const weir_yaml *node);

/* The same for bare text, as found inside calls. */
bool weir_text_int(weir_sv text, int64_t *out);

/* A number in bare text. */
bool weir_text_float(weir_sv text, double *out);
/* The float nearest to |text|, whose double is |value|: rounding that again may
 * give its neighbour. */
float weir_text_single(weir_sv text, double value);

#endif
