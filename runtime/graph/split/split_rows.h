/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_GRAPH_SPLIT_ROWS_H_
#define WEIR_GRAPH_SPLIT_ROWS_H_

#include "runtime/graph/split/split_cut.h"

/* Which variables may be cut into ranges of rows, and at which rows. */

/* The places where a variable with its slots may be cut: before row |begin|,
 * and every |step| rows after it. Between them lie |parts| ranges, nearly the
 * same in rows and never of more bytes than asked for, but one step. */
typedef struct weir_split_cut {
  int64_t rows, begin, step;
  uint32_t parts; /* 0: it is whole */
} weir_split_cut;

/* The row where part |k| begins; that of part |parts| is the end. */
int64_t weir_split_row(const weir_split_cut *cut, uint32_t k);

/* Fills |cuts|, one for each variable, which are whole yet and all server 0's:
 * that of a slot is its variable's. Enters in s->follows the variable whose
 * rows a value has that crosses, and |whole_for| of variables that stay whole.
 * Errors: W6001. */
weir_status weir_split_find_cuts(weir_splitter *s, weir_split_cut *cuts);

#endif
