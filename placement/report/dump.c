/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>

#include "placement/lower/lower_kernels.h"
#include "placement/lower/lower_rules_read.h"
#include "placement/replica/replica_dump.h"
#include "placement/report/dump_figures.h"
#include "placement/report/dump_internal.h"
#include "runtime/base/map.h"
#include "runtime/graph/pattern.h"

bool weir_place_print(const weir_writer *out, const char *fmt, ...) {
  char line[1024];
  va_list args;
  va_start(args, fmt);
  int n = vsnprintf(line, sizeof line, fmt, args);
  va_end(args);
  size_t size = n < 0 ? 0 : (size_t)n;
  return out->write(out->self, line,
                    size < sizeof line ? size : sizeof line - 1);
}

const char *weir_place_node_text(const weir_place_problem *p, uint32_t node,
                                 char *text) {
  weir_sv name = p->names[node];
  if (name.size == 0)
    snprintf(text, 300, "#%u", node);
  else
    snprintf(text, 300, "%.*s", name.size < 256 ? (int)name.size : 256,
             name.data);
  return text;
}

const char *weir_place_op_text(const weir_place_view *v, uint32_t node) {
  if (v->placement == NULL) return "task";
  const weir_unit *u = &v->placement->units[node];
  return v->placement->graph->nodes[u->anchor].op->name;
}

bool weir_place_is_wanted(const weir_place_view *v, uint32_t node) {
  const weir_placement *p = v->placement;
  if (v->nodes.size == 0) return true;
  if (p == NULL) return weir_pattern_fits(v->nodes, v->problem->names[node]);
  const weir_unit *u = &p->units[node];
  for (uint32_t i = 0; i < u->member_count; i++)
    if (weir_place_pattern_matches(
            v->nodes, &p->graph->nodes[p->members[u->first_member + i]]))
      return true;
  return false;
}

uint64_t weir_place_plan_hash(const weir_place_view *v) {
  size_t n = v->plan->node_count;
  uint64_t h = weir_hash_bytes(v->plan->device, n * sizeof(uint32_t), 1);
  h = weir_hash_bytes(v->plan->start_ns, n * sizeof(int64_t), h);
  for (size_t i = 0; i < n; i++)
    h = weir_hash_bytes(
        v->problem->names[i].data == NULL ? "" : v->problem->names[i].data,
        v->problem->names[i].size, h);
  return h;
}

/* ---- Summary */

/* The name of device |d|; task:* for all replicas; |text| of 160 bytes. */
static weir_sv device_text(const weir_place_view *v, uint32_t d, char *text) {
  return v->placement == NULL
             ? v->problem->devices[d].name
             : weir_replica_device(v->replica, v->placement->cluster, d, text,
                                   160);
}

static bool write_device(const weir_place_view *v, const weir_writer *out,
                         uint32_t d) {
  const weir_place_plan *plan = v->plan;
  char name[160];
  int64_t busy = 0;
  uint32_t count = 0;
  char peak[32], cap[32];
  for (uint32_t n = 0; n < plan->node_count; n++)
    if (plan->device[n] == d) {
      busy += plan->end_ns[n] - plan->start_ns[n];
      count++;
    }
  int64_t limit = v->problem->devices[d].memory_bytes;
  double share = plan->makespan_ns == 0
                     ? 0
                     : 100.0 * (double)busy / (double)plan->makespan_ns;
  return weir_place_print(
      out, "  %-38.*s %6u nodes  busy %3.0f %%  peak %s%s%s\n",
      WEIR_SV(device_text(v, d, name)), count, share,
      weir_quantity_print_bytes(v->peaks[d], peak),
      limit == INT64_MAX ? "" : " of ",
      limit == INT64_MAX ? "" : weir_quantity_print_bytes(limit, cap));
}

/* Bytes that were moved, and the time that links worked for it. */
static bool write_moved(const weir_place_view *v, const weir_writer *out) {
  int64_t bytes = 0, ns = 0;
  char a[32], b[32];
  for (uint32_t i = 0; i < v->plan->copy_count; i++) {
    const weir_place_copy *c = &v->plan->copies[i];
    bytes += v->problem->tensor_bytes[c->tensor];
    ns += weir_place_link_ns(&v->problem->links[c->link],
                             v->problem->tensor_bytes[c->tensor]);
  }
  return weir_place_print(
      out, "moved %u tensors, %s, %s on links\n", v->plan->copy_count,
      weir_quantity_print_bytes(bytes, a), weir_quantity_print_time(ns, b));
}

/* Constants that their readers' devices get once, before the first step. */
static bool write_start(const weir_place_view *v, const weir_writer *out) {
  uint32_t stamp[WEIR_PLACE_DEVICES];
  int64_t bytes;
  char text[32];
  uint32_t count =
      weir_place_start_copies(v->problem, v->plan->device, stamp, &bytes);
  return count == 0 ||
         weir_place_print(out, "before the first step: %u weight%s, %s\n",
                          count, count == 1 ? "" : "s",
                          weir_quantity_print_bytes(bytes, text));
}

static bool write_sources(const weir_place_view *v, const weir_writer *out) {
  uint32_t relaxed = 0, by[3] = {0};
  if (v->placement == NULL) return true;
  for (uint32_t u = 0; u < v->placement->unit_count; u++) {
    relaxed += v->placement->units[u].relaxed;
    by[v->placement->units[u].source]++;
  }
  return weir_place_print(out,
                          "relaxed %u requests   costs: %u measured, %u "
                          "estimated, %u given\n",
                          relaxed, by[WEIR_COST_MEASURED],
                          by[WEIR_COST_ESTIMATED], by[WEIR_COST_GIVEN]);
}

/* A plan that was made with other costs. */
static bool write_retimed(const weir_place_view *v, const weir_writer *out) {
  char was[32], now[32];
  int64_t more = v->plan->makespan_ns - v->retimed_from_ns;
  if (v->retimed_from_ns == 0) return true;
  return weir_place_print(
      out,
      "timed anew: the plan is of other costs, step %s -> %s, %.1f %% %s\n",
      weir_quantity_print_time(v->retimed_from_ns, was),
      weir_quantity_print_time(v->plan->makespan_ns, now),
      100.0 * (double)(more < 0 ? -more : more) / (double)v->retimed_from_ns,
      more < 0 ? "shorter" : "longer");
}

/* ---- Devices without kernels */

enum { OPS_SHOWN = 5 };

/* "495 of 498 units that take time have no GPU kernel: conv2d 12, ...", and the
 * reason of the first unit of each of these ops. */
static bool write_lack(const weir_placement *p, weir_device_kind kind,
                       const weir_writer *out) {
  weir_lower_lack l;
  char why[WEIR_LOWER_WHY_BYTES];
  weir_lower_lack_count(p, kind, &l);
  bool ok = weir_place_print(
      out, "%u of %u units that take time have no %s kernel:", l.units, l.of,
      weir_device_kinds[kind]->spelling);
  for (uint32_t i = 0; i < l.ops && i < OPS_SHOWN && ok; i++)
    ok = weir_place_print(out, "%s %s %u", i > 0 ? "," : "", l.by_op[i].name,
                          l.by_op[i].units);
  if (ok && l.ops > OPS_SHOWN)
    ok = weir_place_print(out, " and %u more ops", l.ops - OPS_SHOWN);
  ok = ok && weir_place_print(out, "\n");
  for (uint32_t i = 0; i < l.ops && i < OPS_SHOWN && ok; i++)
    ok = weir_place_print(out, "  %s\n",
                          weir_lower_lack_why(p, l.by_op[i].first, kind, why));
  return ok;
}

/* Nothing is on devices that are not there. */
static bool write_absent(weir_device_kind kind, const weir_writer *out) {
  const char *spelling = weir_device_kinds[kind]->spelling;
  return weir_place_print(
      out, "this process has no %s: the cluster's do nothing\n", spelling);
}

/* Lines near the top; none where every kind has kernels for all units. */
static bool write_fallbacks(const weir_place_view *v, const weir_writer *out) {
  const weir_placement *p = v->placement;
  bool ok = true;
  if (p == NULL) return true;
  uint32_t lacks = weir_lower_lacks(p), fallen = weir_lower_fallen_back(p);
  for (int k = 0; k < WEIR_DEVICE_KINDS && ok; k++) {
    if (((p->assumed_kinds >> k) & 1) != 0 && p->cluster->kind_count[k] > 0)
      ok = weir_place_print(out,
                            "%s kernels are assumed: this plan cannot be run\n",
                            weir_device_kinds[k]->spelling);
    if (ok && ((p->absent_kinds >> k) & 1) != 0)
      ok = write_absent((weir_device_kind)k, out);
    else if (ok && ((lacks >> k) & 1) != 0)
      ok = write_lack(p, (weir_device_kind)k, out);
  }
  return ok && (fallen == 0 ||
                weir_place_print(out,
                                 "%u unit%s fell back: no kernel on a device "
                                 "that the rule prefers\n",
                                 fallen, fallen == 1 ? "" : "s"));
}

static bool is_hidden(const weir_place_view *v, uint32_t d) {
  return v->placement != NULL &&
         weir_replica_is_hidden(v->replica, v->placement->cluster, d);
}

static uint32_t visible(const weir_place_view *v) {
  uint32_t count = 0;
  for (uint32_t d = 0; d < v->problem->device_count; d++)
    count += !is_hidden(v, d);
  return count;
}

bool weir_place_write_summary(const weir_place_view *v,
                              const weir_writer *out) {
  char step[32], bound[32];
  const weir_place_problem *p = v->problem;
  double gap = v->bounds->best_ns == 0
                   ? 0
                   : 100.0 *
                         (double)(v->plan->makespan_ns - v->bounds->best_ns) /
                         (double)v->bounds->best_ns;
  uint32_t nodes =
      v->placement == NULL ? p->node_count : v->placement->member_total;
  bool ok = weir_place_print(
      out, "placed %u nodes (%u units) on %u devices by %s   plan %08x\n",
      nodes, p->node_count, visible(v), v->plan->placer,
      (uint32_t)weir_place_plan_hash(v));
  ok = ok && write_fallbacks(v, out);
  ok = ok && weir_replica_write(v->replica, out);
  uint32_t shown = 0, more = 0;
  for (uint32_t d = 0; d < p->device_count && ok; d++) {
    if (is_hidden(v, d)) continue;
    if (shown == 16)
      more++;
    else if (++shown > 0)
      ok = write_device(v, out, d);
  }
  if (ok && more > 0)
    ok = weir_place_print(out, "  ... and %u more devices\n", more);
  return ok &&
         weir_place_print(out,
                          "predicted step %s   lower bound %s (%s)   gap "
                          "%.1f %%\n",
                          weir_quantity_print_time(v->plan->makespan_ns, step),
                          weir_quantity_print_time(v->bounds->best_ns, bound),
                          v->bounds->best, gap) &&
         write_retimed(v, out) && write_moved(v, out) && write_start(v, out) &&
         weir_place_write_figures(v, out) && write_sources(v, out);
}

bool weir_place_write_table(const weir_place_view *v, const weir_writer *out) {
  char name[300], device[160];
  bool ok = weir_place_print(out, "%-32s %-14s %-38s %12s %12s  %s\n", "node",
                             "op", "device", "start ns", "end ns", "reason");
  for (uint32_t n = 0; n < v->plan->node_count && ok; n++)
    if (weir_place_is_wanted(v, n))
      ok = weir_place_print(
          out, "%-32s %-14s %-38.*s %12" PRId64 " %12" PRId64 "  %s\n",
          weir_place_node_text(v->problem, n, name), weir_place_op_text(v, n),
          WEIR_SV(device_text(v, v->plan->device[n], device)),
          v->plan->start_ns[n], v->plan->end_ns[n],
          weir_place_reason_text((weir_place_reason)v->plan->reason[n]));
  return ok && weir_replica_write_edges(v->replica, v->nodes, out);
}
