/* SPDX-License-Identifier: Apache-2.0 */
#include "placement/lower/cost_file_fit.h"

#include "placement/lower/cost_file.h"

/* Estimates from measured units.
 *
 * The roofline (Williams, Waterman and Patterson, CACM 52 (2009) 65-76) needs
 * two rates and an overhead. They are fitted by rounds: each unit counts for
 * the side of the roof that the rates of the last round put it under, and a
 * side's rate is its work over its time. A few rounds settle it. An op that
 * runs below the roof (a softmax, say) is corrected by the ratio that its
 * measured neighbours in size show, interpolated between two of them. Cost:
 * O(entries) a fit and an estimate. */

enum { ROUNDS = 8 };

static int64_t to_ns(double ns) {
  return ns >= 4e18 ? INT64_C(4000000000000000000) : ns < 0 ? 0 : (int64_t)ns;
}

int64_t weir_roofline_ns(const weir_device_model *model, int64_t flops,
                         int64_t bytes) {
  return weir_device_work_ns(model, flops, bytes) + model->overhead_ns;
}

/* Work that took time: units that were folded away and views tell nothing. */
static bool tells(const weir_cost_entry *e, const weir_cost_fit *fit) {
  return e->cls == fit->cls && e->threads == fit->threads &&
         e->sample.median_ns > 0 && e->sample.count > 0 &&
         (e->flops > 0 || e->bytes > 0);
}

/* The least time of a unit that does next to nothing. */
static int64_t fit_overhead(const weir_cost_fit *fit, int64_t fallback) {
  const weir_costs *c = fit->costs;
  int64_t least = INT64_MAX;
  for (size_t i = 0; i < c->entries.count; i++) {
    const weir_cost_entry *e = c->entries.items[i];
    if (tells(e, fit) && e->sample.median_ns < least)
      least = e->sample.median_ns;
  }
  return least < fallback ? least : fallback;
}

/* One round: each unit counts for the side of the roof that it is under. */
static bool fit_round(weir_cost_fit *fit) {
  const weir_costs *c = fit->costs;
  weir_device_model *m = &fit->model;
  double flops = 0, flop_ns = 0, bytes = 0, byte_ns = 0;
  for (size_t i = 0; i < c->entries.count; i++) {
    const weir_cost_entry *e = c->entries.items[i];
    if (!tells(e, fit)) continue;
    double ns = (double)(e->sample.median_ns - m->overhead_ns);
    if (ns <= 0) continue;
    bool compute = (double)e->flops * (double)m->bytes_per_us >
                   (double)e->bytes * (double)m->mflops;
    *(compute ? &flops : &bytes) += (double)(compute ? e->flops : e->bytes);
    *(compute ? &flop_ns : &byte_ns) += ns;
  }
  if (flop_ns > 0 && flops * 1e3 / flop_ns >= 1)
    m->mflops = (int64_t)(flops * 1e3 / flop_ns);
  if (byte_ns > 0 && bytes * 1e3 / byte_ns >= 1)
    m->bytes_per_us = (int64_t)(bytes * 1e3 / byte_ns);
  return flop_ns > 0 || byte_ns > 0;
}

weir_cost_fit weir_costs_fit(const weir_costs *costs,
                             const weir_cluster_class *cls) {
  weir_cost_fit fit = {.costs = costs,
                       .model = cls->model,
                       .cls = (int)cls->kind,
                       .threads = cls->threads};
  if (costs == NULL) return fit;
  fit.model.overhead_ns = fit_overhead(&fit, cls->model.overhead_ns);
  for (int round = 0; round < ROUNDS; round++) fit.fitted = fit_round(&fit);
  if (!fit.fitted) fit.model = cls->model;
  return fit;
}

/* The op that a key begins with, behind a group's brace. */
static weir_sv first_op(weir_sv key) {
  if (key.size > 0 && key.data[0] == '{') {
    key.data++;
    key.size--;
  }
  size_t n = 0;
  while (n < key.size &&
         ((key.data[n] >= 'a' && key.data[n] <= 'z') ||
          (key.data[n] >= '0' && key.data[n] <= '9') || key.data[n] == '_'))
    n++;
  return (weir_sv){key.data, n};
}

/* A measured unit of the same op, below or above the wanted size: the
 * roofline's time, and measured over that. */
typedef struct neighbour {
  double at, ratio;
  bool there;
} neighbour;

static void look_at(const weir_cost_entry *e, const weir_cost_fit *fit,
                    double at, neighbour *below, neighbour *above) {
  double roof = (double)weir_roofline_ns(&fit->model, e->flops, e->bytes);
  if (roof <= 0) return;
  neighbour n = {roof, (double)e->sample.median_ns / roof, true};
  if (n.at <= at && (!below->there || n.at > below->at)) *below = n;
  if (n.at >= at && (!above->there || n.at < above->at)) *above = n;
}

int64_t weir_costs_estimate(const weir_cost_fit *fit, weir_sv key,
                            int64_t flops, int64_t bytes) {
  double roof = (double)weir_roofline_ns(&fit->model, flops, bytes);
  neighbour below = {0}, above = {0};
  weir_sv op = first_op(key);
  double ratio = 1;
  for (size_t i = 0; fit->fitted && i < fit->costs->entries.count; i++) {
    const weir_cost_entry *e = fit->costs->entries.items[i];
    if (tells(e, fit) && weir_sv_equal(first_op(e->key), op))
      look_at(e, fit, roof, &below, &above);
  }
  if (below.there && above.there && above.at > below.at)
    ratio = below.ratio + (above.ratio - below.ratio) * (roof - below.at) /
                              (above.at - below.at);
  else if (below.there || above.there)
    ratio = below.there ? below.ratio : above.ratio;
  return to_ns(roof * ratio);
}
