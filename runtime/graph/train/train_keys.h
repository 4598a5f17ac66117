/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_GRAPH_TRAIN_KEYS_H_
#define WEIR_GRAPH_TRAIN_KEYS_H_

#include <stdbool.h>
#include <stddef.h>

#include "runtime/base/yaml/yaml.h"

/* Maps with known keys, by table: train_read.h reads by it, the schema for
 * editors is written from it. */

typedef struct weir_train_reader weir_train_reader;

typedef enum weir_train_kind {
  WEIR_TRAIN_TEXT,   /* weir_sv */
  WEIR_TRAIN_FOLDER, /* weir_sv, to write to: runtime/io/run_folder.h */
  WEIR_TRAIN_FILE,   /* likewise, a file in such a folder */
  WEIR_TRAIN_COUNT,  /* uint64_t, min or more */
  WEIR_TRAIN_COUNT4, /* uint32_t */
  WEIR_TRAIN_NUMBER, /* double, in [min, max] */
  WEIR_TRAIN_BOOL,
  WEIR_TRAIN_EVERY,  /* weir_every: 100, 600s, 1 epoch */
  WEIR_TRAIN_TIME,   /* int64_t ns: 30m */
  WEIR_TRAIN_BYTES,  /* int64_t: 64MiB; none is 0 */
  WEIR_TRAIN_MAP,    /* |sub| at the same offset */
  WEIR_TRAIN_CHOICE, /* weir_sv, one of |choices|, "a|b" */
  WEIR_TRAIN_CUSTOM, /* |read|; |sub|: the keys of a map, if it is one */
  WEIR_TRAIN_KIND_COUNT
} weir_train_kind;

typedef struct weir_train_key weir_train_key;
struct weir_train_key {
  const char *name; /* NULL ends the table */
  weir_train_kind kind;
  size_t offset; /* of its field in the target */
  double min, max;
  const weir_train_key *sub;
  const char *choices;
  bool (*read)(weir_train_reader *r, const weir_yaml_entry *e, void *target);
};

/* The keys of `train`, and of its map `ps`. */
extern const weir_train_key weir_train_keys[];
extern const weir_train_key weir_train_ps_keys[];

#endif
