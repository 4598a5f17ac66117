/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_BASE_YAML_ERROR_H_
#define WEIR_BASE_YAML_ERROR_H_

#include "runtime/base/yaml/yaml_build.h"

/* Reports errors of a YAML text. */

/* Another place that an error is about. */
typedef struct weir_yaml_label {
  const weir_mark *at;
  const char *text; /* beside the place */
} weir_yaml_label;

/* Reports one error: the first fills |err|, each goes to the sink, with |other|
 * (may be NULL). Returns true while reading may go on. */
bool weir_yaml_report(weir_yaml_builder *b, weir_error_id id,
                      const weir_mark *at, const weir_yaml_label *other,
                      const char *fmt, ...) WEIR_PRINTF(5, 6);

/* The same for an error that nothing can be read after; always false. */
bool weir_yaml_stop(weir_yaml_builder *b, weir_error_id id, const weir_mark *at,
                    const weir_yaml_label *other, const char *fmt, ...)
    WEIR_PRINTF(5, 6);

/* Reports W6001; always false. */
bool weir_yaml_no_memory(weir_yaml_builder *b, size_t bytes);

/* False, with W5006 reported, when the builder's allocator has no time left
 * (alloc.h). Asked for every some thousand bytes of text. */
bool weir_yaml_in_time(weir_yaml_builder *b);

/* Reports the reason why |parser| stopped; always false. */
bool weir_yaml_parser_failed(weir_yaml_builder *b, const yaml_parser_t *parser);

/* Refuses text that libyaml must not see: too large, not UTF-8, NUL bytes, a
 * flood of directives. Skips a byte order mark. */
bool weir_yaml_check_text(weir_yaml_builder *b);

/* A span from libyaml's marks, which count from 0. */
weir_mark weir_yaml_span(const weir_yaml_builder *b, const yaml_mark_t *start,
                         const yaml_mark_t *end);

#endif
