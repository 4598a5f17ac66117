/* SPDX-License-Identifier: Apache-2.0 */
#include "placement/lower/lower_carry.h"

#include "placement/lower/lower_cost.h"
#include "placement/lower/lower_internal.h"
#include "placement/lower/lower_units.h"

/* A variable has no kernel, so it may be anywhere, and costs nothing there; on
 * a device where no reader has a kernel it would only be copied away. Groups
 * in which nothing is work (a variable that nothing assigns, an input, and
 * their views) so lose the kinds of devices on which no reader can be. Without
 * readers they are with the host's kinds. A group that a request would leave
 * without a device keeps all. Runs only where a kind of the cluster lacks
 * kernels. Cost: O(units + inputs). */

typedef struct carrier {
  weir_lowering *l;
  bool *works;    /* per root: one of its units is work */
  bool *wanted;   /* per root: a request wants another kind */
  uint32_t *read; /* per root: bits of kinds on which a reader can be */
} carrier;

/* Bits: kinds of the devices in a unit's set. */
static uint32_t kinds_of(const weir_lowering *l, uint32_t unit) {
  const uint64_t *set = weir_lower_set(l, unit);
  uint32_t kinds = 0;
  for (uint32_t d = 0; d < l->cluster->device_count; d++)
    if (weir_lower_set_has(set, d))
      kinds |= UINT32_C(1) << l->cluster->devices[d].name.type;
  return kinds;
}

static bool is_work(const weir_lowering *l, uint32_t unit) {
  const weir_unit *u = &l->units[unit];
  for (uint32_t m = 0; m < u->member_count; m++)
    if (weir_place_takes_time(l->graph, l->members[u->first_member + m]))
      return true;
  return false;
}

static void note_reads(carrier *c, uint32_t unit) {
  weir_lowering *l = c->l;
  const weir_unit *u = &l->units[unit];
  uint32_t kinds = kinds_of(l, unit);
  for (uint32_t m = 0; m < u->member_count; m++) {
    const weir_node *n = &l->graph->nodes[l->members[u->first_member + m]];
    for (uint32_t i = 0; i < n->input_count; i++) {
      if (n->inputs[i] == WEIR_NO_VALUE) continue;
      uint32_t from = l->unit_of[l->graph->values[n->inputs[i]].node];
      if (from != WEIR_PLACE_NONE) c->read[weir_lower_root(l, from)] |= kinds;
    }
  }
}

static uint32_t host_kinds(void) {
  uint32_t kinds = 0;
  for (int k = 0; k < WEIR_DEVICE_KINDS; k++)
    if (weir_device_kinds[k]->host) kinds |= UINT32_C(1) << k;
  return kinds;
}

static void look(carrier *c) {
  weir_lowering *l = c->l;
  for (uint32_t u = 0; u < l->unit_count; u++) {
    if (!is_work(l, u)) continue;
    c->works[weir_lower_root(l, u)] = true;
    note_reads(c, u);
  }
  for (uint32_t u = 0; u < l->unit_count; u++)
    if (c->read[u] == 0) c->read[u] = host_kinds();
  for (uint32_t u = 0; u < l->unit_count; u++) {
    uint32_t root = weir_lower_root(l, u);
    if ((kinds_of(l, u) & c->read[root]) == 0) c->wanted[root] = true;
  }
}

static void restrict_sets(carrier *c) {
  weir_lowering *l = c->l;
  for (uint32_t u = 0; u < l->unit_count; u++) {
    uint32_t root = weir_lower_root(l, u);
    uint64_t *set = weir_lower_set(l, u);
    if (c->works[root] || c->wanted[root] || l->units[u].home ||
        (kinds_of(l, u) & ~c->read[root]) == 0)
      continue;
    l->units[u].with_readers = true;
    for (uint32_t d = 0; d < l->cluster->device_count; d++)
      if (((c->read[root] >> l->cluster->devices[d].name.type) & 1) == 0)
        set[d >> 6] &= ~(UINT64_C(1) << (d & 63));
  }
}

/* Whether a kind of the cluster's devices lacks kernels for some unit. */
static bool kernels_are_missing(const weir_lowering *l) {
  for (uint32_t u = 0; u < l->unit_count; u++)
    if (l->units[u].lacks != 0) return true;
  return false;
}

weir_status weir_lower_carry(weir_lowering *l) {
  carrier c = {.l = l};
  if (!kernels_are_missing(l)) return WEIR_OK;
  size_t n = (size_t)l->unit_count + 1;
  c.works = weir_alloc_array(l->alloc, n, sizeof *c.works);
  c.wanted = weir_alloc_array(l->alloc, n, sizeof *c.wanted);
  c.read = weir_alloc_array(l->alloc, n, sizeof *c.read);
  weir_status s = WEIR_OK;
  if (c.works == NULL || c.wanted == NULL || c.read == NULL) {
    s = weir_fail_memory(l->err, n * sizeof *c.read);
  } else {
    look(&c);
    restrict_sets(&c);
  }
  weir_free(l->alloc, c.works);
  weir_free(l->alloc, c.wanted);
  weir_free(l->alloc, c.read);
  return s;
}
