/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_GRAPH_SPLIT_DEAL_H_
#define WEIR_GRAPH_SPLIT_DEAL_H_

#include "runtime/graph/split/split_rows.h"

/* Which server holds which variable, or which rows of it. */

/* Fills s->unit_of: of a slot its variable's place, of others their own. */
void weir_split_find_units(weir_splitter *s);

/* Deals the |s->out->var_count| whole variables, but for those of
 * WEIR_SPLIT_ALL: balanced by bytes, slots beside their variable. Those that
 * |cuts| cuts are replaced by their pieces, in s->vars and s->out. Errors:
 * W6001. */
weir_status weir_split_deal(weir_splitter *s, const weir_split_cut *cuts);

/* "w[0:512]", in the split's arena; data NULL: no memory. */
weir_sv weir_split_label(weir_splitter *s, weir_sv name,
                         const weir_split_rows *rows);

#endif
