/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_BASE_YAML_EVENTS_H_
#define WEIR_BASE_YAML_EVENTS_H_

#include "runtime/base/yaml/yaml_build.h"

/* Turns libyaml's events into the tree. */

/* One event into the tree. */
bool weir_yaml_build_event(weir_yaml_builder *b, const yaml_event_t *event);

#endif
