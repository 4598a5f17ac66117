/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_GRAPH_SECTIONS_DATA_H_
#define WEIR_GRAPH_SECTIONS_DATA_H_

#include "runtime/graph/load/data_form.h"
#include "runtime/graph/load/loader.h"

/* The form of section `data`. */

/* The form of `data` (may be NULL). */
void weir_section_check_data(weir_loader *l, const weir_yaml *y);

/* The |i|-th key that data sets of every source take; NULL past the last. */
const weir_data_key *weir_data_common_key(size_t i);

#endif
