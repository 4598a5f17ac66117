/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_GRAPH_SOURCES_H_
#define WEIR_GRAPH_SOURCES_H_

#include "runtime/graph/graph.h"

/* All that a load has read: with it another process loads the same graph,
 * without the files. A graph that was loaded with |keep_sources| has it.
 * Immutable once the graph is there; lives as long as the graph. */

typedef struct weir_source_file {
  bool beneath; /* a folder was given: |root| */
  weir_sv root, path;
  weir_bytes bytes;
  bool mapped; /* weights: read where they are needed, not by every process */
  /* As those of weir_file. */
  weir_status (*need)(void *self, uint64_t offset, size_t size,
                      weir_error *err);
  void *need_self;
} weir_source_file;

/* A variable of `${env:NAME}`; |value.data| NULL: there was none. */
typedef struct weir_source_env {
  weir_sv name, value;
} weir_source_env;

typedef struct weir_sources {
  bool is_text; /* the main file came as text; then it is no file of |files| */
  weir_sv main; /* its path, or its name in messages */
  weir_sv text;
  const weir_source_file *files; /* in the order in which they were read */
  const weir_source_env *env;
  const weir_param_value *params, *overrides;
  size_t file_count, env_count, param_count, override_count;
  weir_yaml_limits limits;
  uint64_t max_nodes, seed;
  weir_sv labels; /* data NULL: none */
  weir_fs fs;     /* of weir_graph_load_sources */
} weir_sources;

/* ---- Of the loader: a file system that notes down each file it reads */

typedef struct weir_source_keeper weir_source_keeper;

/* |env| and |options| are lent until the load has ended; |env->fs| for as long
 * as the graph's weights are mapped. NULL: no memory. */
weir_source_keeper *weir_source_keeper_create(const weir_env *env,
                                              const weir_load_options *options);
void weir_source_keeper_release(weir_source_keeper *keeper); /* NULL-safe */
/* The environment and options to load with. */
const weir_env *weir_source_keeper_env(weir_source_keeper *keeper);
const weir_load_options *weir_source_keeper_options(weir_source_keeper *keeper);
/* Ends the noting; the files' bytes are lent for the keeper's life. |text.data|
 * NULL: |name| is a file. Errors: W6001. */
weir_status weir_source_keeper_end(weir_source_keeper *keeper, const char *name,
                                   weir_sv text, const weir_sources **out,
                                   weir_error *err);

/* ---- To load from sources instead of files */

/* Loads the graph of |sources|, which is lent for as long as the graph lives;
 * |options| gives registry, sink and data_form. A file that it lacks is W4001.
 * Errors: those of weir_graph_load. */
weir_status weir_graph_load_sources(const weir_env *env, weir_sources *sources,
                                    const weir_load_options *options,
                                    weir_graph **out_graph, weir_error *err);

#endif
