/* SPDX-License-Identifier: Apache-2.0 */
#include "placement/solve/objective.h"
#include "placement/solve/placer.h"
#include "runtime/tools/weir_tools.h"

/* The library's lists, row by row, for helps and checks of options. */

bool weir_tools_placer(size_t i, weir_tools_row *out) {
  const weir_placer *p = weir_placer_at(i);
  if (p == NULL) return false;
  *out = (weir_tools_row){p->name, p->args, p->summary};
  return true;
}

bool weir_tools_objective(size_t i, weir_tools_row *out) {
  const weir_place_objective *o = weir_place_objective_at(i);
  if (o == NULL) return false;
  *out = (weir_tools_row){o->name, NULL, o->summary};
  return true;
}
