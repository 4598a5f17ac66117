/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/exec/measure/calibrate.h"

#include "placement/lower/lower_cost.h"
#include "placement/lower/signature.h"

/* From times of units to entries of a cost file. A cost file knows no graph:
 * its key is a unit's signature (ops, types, shapes), so that times serve other
 * graphs with the same work. Units of one signature are averaged within a run,
 * before the median over runs is taken: their difference is in caches and
 * neighbours, which a plan does not know. O(runs * units). */

/* Units of one signature. */
typedef struct same {
  weir_sv key;
  weir_place_work work;
  uint32_t units;
} same;

typedef struct calibration {
  const weir_allocator *alloc;
  const weir_placement *placement;
  const weir_measured *measured;
  const weir_plan *plan; /* that was measured; or NULL */
  weir_device_kind kind; /* of the units that get entries */
  uint32_t threads;      /* of the device that was measured */
  weir_arena arena;      /* keys */
  weir_map keys;         /* to place in |list| */
  same *list;
  uint32_t count;
  uint32_t *of; /* per unit: place in |list|; NONE: a task */
  int64_t *times;
  weir_error *err;
} calibration;

/* Of a plan's units those on GPUs: one thread has been all of the others'. */
static bool is_measured(const calibration *c, uint32_t u) {
  if (c->plan == NULL) return true;
  uint32_t device = c->plan->result.plan->device[u];
  return c->placement->cluster->devices[device].name.type == c->kind;
}

static weir_status add_unit(calibration *c, const weir_signer *signer,
                            weir_strbuf *text, uint32_t u) {
  const weir_unit *unit = &c->placement->units[u];
  const weir_node_id *members = c->placement->members + unit->first_member;
  weir_place_work work;
  c->of[u] = WEIR_PLACE_NONE;
  if (!is_measured(c, u)) return WEIR_OK;
  WEIR_TRY(weir_place_work_of(c->placement->graph, members, unit->member_count,
                              &work, c->err));
  if (work.given) return WEIR_OK;
  WEIR_TRY(weir_sign(signer, members, unit->member_count, text, c->err));
  weir_sv key = weir_strbuf_view(text);
  uint32_t at = weir_map_get(&c->keys, key);
  if (at == WEIR_MAP_NONE) {
    at = c->count;
    char *copy = weir_arena_string(&c->arena, key.data, key.size);
    if (copy == NULL ||
        !weir_map_put(&c->keys, (weir_sv){copy, key.size}, at, NULL))
      return weir_fail_memory(c->err, key.size);
    c->list[c->count++] =
        (same){.key = {copy, key.size}, .work = work, .units = 0};
  }
  c->list[at].units++;
  c->of[u] = at;
  return WEIR_OK;
}

static weir_status group_units(calibration *c) {
  size_t n = (size_t)c->placement->unit_count + 1;
  weir_signer signer;
  weir_strbuf text;
  c->list = weir_alloc_array(c->alloc, n, sizeof *c->list);
  c->of = weir_alloc_array(c->alloc, n, sizeof *c->of);
  c->times = weir_alloc_array(c->alloc, (size_t)c->measured->runs * n,
                              sizeof *c->times);
  if (c->list == NULL || c->of == NULL || c->times == NULL)
    return weir_fail_memory(c->err, n * sizeof *c->list);
  WEIR_TRY(weir_signer_create(c->alloc, c->placement->graph, &signer, c->err));
  weir_strbuf_init(&text, c->alloc);
  weir_status s = WEIR_OK;
  for (uint32_t u = 0; u < c->placement->unit_count && s == WEIR_OK; u++)
    s = add_unit(c, &signer, &text, u);
  weir_strbuf_release(&text);
  weir_signer_release(&signer);
  return s;
}

/* times[entry * runs + run]: the mean of its units. */
static void add_up(calibration *c) {
  const weir_measured *m = c->measured;
  for (uint32_t r = 0; r < m->runs; r++)
    for (uint32_t u = 0; u < m->unit_count; u++)
      if (c->of[u] != WEIR_PLACE_NONE)
        c->times[(size_t)c->of[u] * m->runs + r] +=
            m->samples[(size_t)r * m->unit_count + u];
  for (uint32_t k = 0; k < c->count; k++)
    for (uint32_t r = 0; r < m->runs; r++)
      c->times[(size_t)k * m->runs + r] /= c->list[k].units;
}

static weir_status set_entries(calibration *c, weir_costs *costs) {
  const weir_measured *m = c->measured;
  for (uint32_t k = 0; k < c->count; k++) {
    weir_cost_entry e = {
        .threads = c->threads,
        .sample = weir_sample_of(c->times + (size_t)k * m->runs, m->runs),
        .flops = c->list[k].work.flops,
        .bytes = c->list[k].work.bytes};
    WEIR_TRY(weir_costs_set(costs, (int)c->kind, c->list[k].key, &e, c->err));
  }
  if (c->plan != NULL) return WEIR_OK; /* devices work side by side */
  (void)weir_costs_set_step(
      costs, &(weir_cost_step){.cls = (int)weir_device_kind_host(),
                               .threads = c->threads,
                               .sample = m->beside});
  return WEIR_OK;
}

weir_status weir_calibrate(const weir_env *env,
                           const weir_measure_request *request,
                           weir_costs *costs, weir_error *err) {
  weir_measured *measured = NULL;
  WEIR_TRY(weir_measure(env, request, &measured, err));
  calibration c = {
      .alloc = env->alloc,
      .placement = request->placement,
      .measured = measured,
      .plan = request->plan,
      .kind = request->plan != NULL ? WEIR_GPU : weir_device_kind_host(),
      .threads = request->plan == NULL && request->threads > 0
                     ? (uint32_t)request->threads
                     : 1,
      .err = err};
  weir_arena_init(&c.arena, c.alloc);
  weir_map_init(&c.keys, c.alloc);
  weir_status s = group_units(&c);
  if (s == WEIR_OK) {
    add_up(&c);
    s = set_entries(&c, costs);
  }
  weir_free(c.alloc, c.list);
  weir_free(c.alloc, c.of);
  weir_free(c.alloc, c.times);
  weir_map_release(&c.keys);
  weir_arena_release(&c.arena);
  weir_measured_release(measured);
  return s;
}
