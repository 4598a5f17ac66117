/* SPDX-License-Identifier: Apache-2.0 */
#include "placement/solve/search.h"

const weir_placer weir_placer_search = {
    .name = "search",
    .summary = "the best of many list schedules, then local search",
    .searches = true,
    .solve = weir_place_search};
