/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_GRAPH_DATA_FORM_H_
#define WEIR_GRAPH_DATA_FORM_H_

#include <stdbool.h>
#include <stddef.h>

/* The part of a data source that the loader needs to check a section of
 * `data:`.
 *
 * The loader never opens data, and it has no list of sources: the room that
 * has one (runtime/train) hands over the forms of its rows. So a new source
 * does not touch the loader, and a misspelt key is still reported while the
 * graph is read. */

/* A key of a section. */
typedef struct weir_data_key {
  const char *name; /* NULL ends a list */
  /* The keys of a map as its value, NULL-ended; NULL: any. */
  const char *const *keys;
  bool by_column; /* the value maps columns, whose values may be such maps */
  bool must_be_map;
} weir_data_key;

/* A source and the keys that not every source takes. */
typedef struct weir_data_form {
  const char *name; /* `source: NAME` */
  const weir_data_key *keys;
} weir_data_form;

/* The form of source |i|; NULL past the last one. */
typedef const weir_data_form *(*weir_data_form_fn)(size_t i);

#endif
