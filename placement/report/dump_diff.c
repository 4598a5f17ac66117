/* SPDX-License-Identifier: Apache-2.0 */
#include "placement/report/dump_diff.h"

#include <stdlib.h>

#include "placement/lower/lower_kernels.h"
#include "placement/report/dump_internal.h"

/* Two plans for the same nodes; their devices may be other ones, so devices are
 * compared by name. Moved nodes are grouped by the reason of their new place,
 * as one change (a device less, say) moves many for one reason. */

enum { SHOWN = 20 };

static weir_sv device_of(const weir_place_view *v, uint32_t node) {
  return v->problem->devices[v->plan->device[node]].name;
}

static bool is_moved(const weir_place_view *a, const weir_place_view *b,
                     uint32_t node) {
  return !weir_sv_equal(device_of(a, node), device_of(b, node));
}

static int64_t moved_bytes(const weir_place_view *v) {
  int64_t bytes = 0;
  for (uint32_t i = 0; i < v->plan->copy_count; i++)
    bytes += v->problem->tensor_bytes[v->plan->copies[i].tensor];
  return bytes;
}

static bool write_step(const weir_place_view *a, const weir_place_view *b,
                       const weir_writer *out) {
  char from[32], to[32], less[32], more[32];
  int64_t x = a->plan->makespan_ns, y = b->plan->makespan_ns;
  double share = x == 0 ? 0 : 100.0 * (double)llabs(y - x) / (double)x;
  return weir_place_print(out, "step %s -> %s",
                          weir_quantity_print_time(x, from),
                          weir_quantity_print_time(y, to)) &&
         (x == y ? weir_place_print(out, ", the same\n")
                 : weir_place_print(out, ", %.1f %% %s\n", share,
                                    y < x ? "shorter" : "longer")) &&
         weir_place_print(out, "copies %u, %s -> %u, %s\n", a->plan->copy_count,
                          weir_quantity_print_bytes(moved_bytes(a), less),
                          b->plan->copy_count,
                          weir_quantity_print_bytes(moved_bytes(b), more));
}

/* A line for each kind of the cluster's devices that no work can use. */
static bool write_unused(const weir_place_view *v, const weir_writer *out) {
  const weir_placement *p = v->placement;
  bool ok = true;
  for (int k = 0; p != NULL && k < WEIR_DEVICE_KINDS && ok; k++)
    if (p->cluster->kind_count[k] > 0 && !weir_device_kinds[k]->every_op &&
        !weir_lower_has_use(p, (weir_device_kind)k))
      ok = weir_place_print(
          out, "nothing can use a %s: no unit has a %s kernel\n",
          weir_device_kinds[k]->spelling, weir_device_kinds[k]->spelling);
  return ok;
}

/* The device of |v| called |name|, or NONE. */
static uint32_t find_device(const weir_place_view *v, weir_sv name) {
  for (uint32_t d = 0; d < v->problem->device_count; d++)
    if (weir_sv_equal(v->problem->devices[d].name, name)) return d;
  return WEIR_PLACE_NONE;
}

static bool write_peaks(const weir_place_view *a, const weir_place_view *b,
                        const weir_writer *out) {
  char from[32], to[32];
  bool ok = true;
  if (a->peaks == NULL || b->peaks == NULL) return true;
  for (uint32_t d = 0; d < b->problem->device_count && ok; d++) {
    weir_sv name = b->problem->devices[d].name;
    uint32_t was = find_device(a, name);
    if (was != WEIR_PLACE_NONE && a->peaks[was] == b->peaks[d]) continue;
    ok = weir_place_print(out, "  %-38.*s peak %s -> %s%s\n", WEIR_SV(name),
                          was == WEIR_PLACE_NONE
                              ? "-"
                              : weir_quantity_print_bytes(a->peaks[was], from),
                          weir_quantity_print_bytes(b->peaks[d], to),
                          was == WEIR_PLACE_NONE ? " (new)" : "");
  }
  for (uint32_t d = 0; d < a->problem->device_count && ok; d++)
    if (find_device(b, a->problem->devices[d].name) == WEIR_PLACE_NONE)
      ok = weir_place_print(out, "  %-38.*s peak %s -> - (gone)\n",
                            WEIR_SV(a->problem->devices[d].name),
                            weir_quantity_print_bytes(a->peaks[d], from));
  return ok;
}

/* The moved nodes with |reason|, the first ones by name. */
static bool write_group(const weir_place_view *a, const weir_place_view *b,
                        uint8_t reason, uint32_t count,
                        const weir_writer *out) {
  char name[300];
  uint32_t shown = 0;
  bool ok = weir_place_print(out, "  %s: %u\n",
                             weir_place_reason_text((weir_place_reason)reason),
                             count);
  for (uint32_t n = 0; n < b->plan->node_count && ok && shown < SHOWN; n++) {
    if (b->plan->reason[n] != reason || !is_moved(a, b, n)) continue;
    shown++;
    ok = weir_place_print(out, "    %s: %.*s -> %.*s\n",
                          weir_place_node_text(b->problem, n, name),
                          WEIR_SV(device_of(a, n)), WEIR_SV(device_of(b, n)));
  }
  return ok && (shown == count ||
                weir_place_print(out, "    ... and %u more\n", count - shown));
}

bool weir_place_write_diff(const weir_place_view *a, const weir_place_view *b,
                           const weir_writer *out, bool *same) {
  uint32_t by_reason[WEIR_PLACE_REASONS] = {0}, moved = 0, shifted = 0;
  for (uint32_t n = 0; n < b->plan->node_count; n++) {
    if (is_moved(a, b, n)) {
      moved++;
      by_reason[b->plan->reason[n]]++;
    } else if (a->plan->start_ns[n] != b->plan->start_ns[n] ||
               a->plan->end_ns[n] != b->plan->end_ns[n]) {
      shifted++;
    }
  }
  bool sound = a->peaks != NULL || b->peaks == NULL;
  *same = moved == 0 && shifted == 0 && sound &&
          a->plan->copy_count == b->plan->copy_count &&
          a->plan->makespan_ns == b->plan->makespan_ns;
  bool ok =
      write_step(a, b, out) && write_unused(b, out) && write_peaks(a, b, out) &&
      (sound ||
       weir_place_print(out,
                        "the plan before is not sound under these costs, so "
                        "its peaks are not known (--verify says why)\n")) &&
      weir_place_print(out,
                       "%u nodes moved, %u stay and start or end at another "
                       "time%s\n",
                       moved, shifted,
                       moved > 0 ? "; why they are where they are now:" : "");
  for (uint8_t r = 0; r < WEIR_PLACE_REASONS && ok; r++)
    if (by_reason[r] > 0) ok = write_group(a, b, r, by_reason[r], out);
  return ok;
}
