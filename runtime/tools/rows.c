/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "placement/solve/objective.h"
#include "placement/solve/placer.h"
#include "runtime/graph/pass/pass_def.h"
#include "runtime/io/format/format.h"
#include "runtime/tools/tools.h"
#include "runtime/train/data/data_source.h"

/* The library's lists, row by row, for helps and checks of options. */

bool weir_tools_placer(size_t i, weir_tools_row *out) {
  const weir_placer *p = weir_placer_at(i);
  if (p == NULL) return false;
  *out = (weir_tools_row){p->name, p->args, p->summary};
  return true;
}

bool weir_tools_placer_searches(const char *text) {
  const weir_placer *placer;
  uint64_t seed;
  return text == NULL ||
         !weir_placer_parse(weir_sv_from(text), &placer, &seed) ||
         placer->searches;
}

bool weir_tools_objective(size_t i, weir_tools_row *out) {
  const weir_place_objective *o = weir_place_objective_at(i);
  if (o == NULL) return false;
  *out = (weir_tools_row){o->name, NULL, o->summary};
  return true;
}

bool weir_tools_pass(size_t i, weir_tools_row *out) {
  const weir_pass_def *p = weir_pass_at(i);
  if (p == NULL) return false;
  *out = (weir_tools_row){p->name, NULL, p->summary};
  return true;
}

bool weir_tools_format(size_t i, weir_tools_row *out) {
  const weir_format *f = weir_format_at(i);
  if (f == NULL) return false;
  *out = (weir_tools_row){f->name, NULL, f->summary};
  return true;
}

bool weir_tools_tensor_file(const char *path) {
  return weir_format_of_name(path) != NULL || strchr(path, '#') != NULL;
}

bool weir_tools_source(size_t i, weir_tools_row *out) {
  const weir_source_def *s = weir_source_at(i);
  if (s == NULL) return false;
  *out = (weir_tools_row){s->form.name, NULL, s->summary};
  return true;
}
