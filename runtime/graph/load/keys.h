/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_GRAPH_KEYS_H_
#define WEIR_GRAPH_KEYS_H_

#include "runtime/graph/load/loader.h"

/* Known keys of maps. */

/* Reports unknown keys of |map| (W1009, with a suggestion) against the
 * NULL-ended |known|; `x-` keys pass when |extensions|. */
bool weir_check_keys(weir_loader *l, const weir_yaml *map, const char *where,
                     const char *const *known, bool extensions);

/* A key of other tools, and what to write here. A list ends with NULL. */
typedef struct weir_foreign_key {
  const char *name, *hint;
} weir_foreign_key;

/* The same with `x-` keys, and a better suggestion for foreign keys. */
bool weir_check_keys_with(weir_loader *l, const weir_yaml *map,
                          const char *where, const char *const *known,
                          const weir_foreign_key *foreign);

/* Whether |y| is of |kind|; reports W1010 for |what| if not. */
bool weir_want_kind(weir_loader *l, const weir_yaml *y, weir_yaml_kind kind,
                    const char *what);

#endif
