/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_TRAIN_DATA_FILES_H_
#define WEIR_TRAIN_DATA_FILES_H_

#include "runtime/train/data/data_source.h"

/* The files of a section. */

/* The paths that |files| names, patterns ('*' and '?' in the last part)
 * replaced by their matches, sorted. At least one.
 * Errors: W4001, W4002, W4024, W6001. */
weir_status weir_data_paths(const weir_source_context *context,
                            const weir_files_spec *files,
                            const char *const **out_paths, uint32_t *out_count,
                            weir_error *err);

/* The root of a section: |option| (may be NULL), data.root, or the folder of
 * the graph's file. In |arena|. */
weir_status weir_data_root(const weir_graph *graph, const char *option,
                           weir_arena *arena, const char **out_root,
                           weir_error *err);

/* |name|, a path that does not leave the folder of the graph's file, beneath
 * that. In |arena|. Errors: W4002, W6001. */
weir_status weir_data_beside_graph(const weir_graph *graph, weir_sv name,
                                   weir_arena *arena, const char **out_path,
                                   weir_error *err);

/* Fills bytes and elements of a column from its dtype and dims. W4022. */
weir_status weir_source_column_size(weir_source_column *column,
                                    weir_error *err);

/* The column's entry in the spec, or NULL. */
const weir_column_spec *weir_data_column_spec(const weir_data_spec *spec,
                                              weir_sv name);

#endif
