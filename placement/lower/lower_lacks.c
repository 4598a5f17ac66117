/* SPDX-License-Identifier: Apache-2.0 */
#include "placement/lower/lower_lacks.h"

#include <stdlib.h>
#include <string.h>

#include "placement/lower/lower_cost.h"

/* A unit lacks a kind when one of its nodes has no kernel there; it counts for
 * the op of the first such node. Ops are few, so their counts are a list that
 * is searched. Cost: O(units + units that lack one * ops), for each kind. */

static int more_first(const void *x, const void *y) {
  const weir_lower_op_count *a = x, *b = y;
  if (a->units != b->units) return a->units > b->units ? -1 : 1;
  return strcmp(a->name, b->name);
}

/* The op for which unit |u| has no kernel on devices of |kind|. */
static const char *lacking_op(const weir_placement *p, const weir_unit *u,
                              weir_device_kind kind) {
  uint32_t m = 0;
  while (m + 1 < u->member_count &&
         weir_place_has_kernel(p->graph, p->members[u->first_member + m], kind))
    m++;
  return p->graph->nodes[p->members[u->first_member + m]].op->name;
}

static void count_op(weir_lower_lack *l, const char *name) {
  uint32_t i = 0;
  while (i < l->ops && strcmp(l->by_op[i].name, name) != 0) i++;
  if (i == WEIR_LACK_OPS) return;
  if (i == l->ops) l->by_op[l->ops++] = (weir_lower_op_count){name, 0};
  l->by_op[i].units++;
}

static bool takes_time(const weir_placement *p, const weir_unit *u) {
  for (uint32_t m = 0; m < u->member_count; m++)
    if (weir_place_takes_time(p->graph, p->members[u->first_member + m]))
      return true;
  return false;
}

uint32_t weir_lower_lacks(const weir_placement *p) {
  uint32_t lacks = 0;
  for (uint32_t u = 0; u < p->unit_count; u++) lacks |= p->units[u].lacks;
  return lacks;
}

void weir_lower_lack_count(const weir_placement *p, weir_device_kind kind,
                           weir_lower_lack *out) {
  out->kind = kind;
  out->units = out->of = out->ops = 0;
  for (uint32_t u = 0; u < p->unit_count; u++) {
    out->of += takes_time(p, &p->units[u]);
    if (((p->units[u].lacks >> kind) & 1) == 0) continue;
    out->units++;
    count_op(out, lacking_op(p, &p->units[u], kind));
  }
  qsort(out->by_op, out->ops, sizeof *out->by_op, more_first);
}

uint32_t weir_lower_fallen_back(const weir_placement *p) {
  uint32_t count = 0;
  for (uint32_t u = 0; u < p->unit_count; u++) count += p->units[u].fallback;
  return count;
}

bool weir_lower_has_use(const weir_placement *p, weir_device_kind kind) {
  for (uint32_t u = 0; u < p->unit_count; u++)
    if (((p->units[u].lacks >> kind) & 1) == 0 && takes_time(p, &p->units[u]))
      return true;
  return false;
}
