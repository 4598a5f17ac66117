/* SPDX-License-Identifier: Apache-2.0 */
/* Where each unit may be: kernels, requests, rules, groups, balance (lower.h).
 *
 * A unit's set of devices only shrinks: devices with kernels for it, then those
 * of the request that counts (home, pin, own device, first matching rule), then
 * those where its readers can run (lower_carry.c), then the preferred type,
 * then the sets of all units that it must be with. A request that would leave
 * nothing is an error or, where it is soft, is dropped whole. Invariant: when
 * weir_lower_apply_rules succeeds no set is empty and the units of a group have
 * the same set. Cost: O(units * devices / 64 words), and the rules of each
 * member (lower_rules_read.h). */
#include "placement/lower/lower_rules.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "placement/lower/lower_carry.h"
#include "placement/lower/lower_cost.h"
#include "placement/lower/lower_internal.h"
#include "placement/lower/lower_kernels.h"
#include "placement/lower/lower_memory.h"
#include "placement/lower/lower_rules_read.h"
#include "placement/lower/lower_together.h"
#include "placement/lower/lower_units.h"
#include "runtime/base/size.h"

typedef struct ruler {
  weir_lowering *l;
  weir_lower_rules rules;
} ruler;

/* ---- Sets of devices */

/* Devices that have kernels for all of the unit's members; the kinds that have
 * none are noted. */
static void runnable(const weir_lowering *l, weir_unit *u, uint64_t *set) {
  for (int k = 0; k < WEIR_DEVICE_KINDS; k++) {
    bool runs = ((l->options->absent_kinds >> k) & 1) == 0;
    if (l->cluster->kind_count[k] == 0) continue;
    for (uint32_t i = 0; i < u->member_count && runs; i++)
      runs = ((l->options->assumed_kinds >> k) & 1) != 0 ||
             weir_place_has_kernel(l->graph, l->members[u->first_member + i],
                                   (weir_device_kind)k);
    if (!runs) u->lacks |= UINT32_C(1) << k;
  }
  for (uint32_t d = 0; d < l->cluster->device_count; d++)
    if (((u->lacks >> l->cluster->devices[d].name.type) & 1) == 0)
      weir_lower_set_add(set, d);
}

/* Takes devices that |name| does not match out of |set|. */
static void keep_matching(const weir_lowering *l, const weir_device_name *name,
                          uint64_t *set) {
  for (uint32_t d = 0; d < l->cluster->device_count; d++)
    if (!weir_device_name_matches(name, &l->cluster->devices[d].name))
      set[d >> 6] &= ~(UINT64_C(1) << (d & 63));
}

/* ---- One unit */

uint32_t weir_lower_rule_of(const weir_lowering *l,
                            const weir_lower_rules *rules, uint32_t unit) {
  const weir_unit *u = &l->units[unit];
  uint32_t best = WEIR_PLACE_NONE;
  for (uint32_t m = 0; m < u->member_count && rules->count > 0; m++) {
    weir_node_id id = l->members[u->first_member + m];
    uint32_t at = weir_lower_rules_find(rules, &l->graph->nodes[id]);
    if (at < best) best = at;
  }
  if (best != WEIR_PLACE_NONE && l->options->rule_used != NULL)
    l->options->rule_used[best] = true;
  return best;
}

/* The device that a member of the unit asks for itself. */
static weir_sv own_device(const weir_lowering *l, const weir_unit *u) {
  for (uint32_t m = 0; m < u->member_count; m++) {
    const weir_node *n = &l->graph->nodes[l->members[u->first_member + m]];
    if (n->device.size > 0) return n->device;
  }
  return (weir_sv){0};
}

/* The pin of a member of the unit, the last one given, or NULL. */
static const weir_place_pin *find_pin(const weir_lowering *l,
                                      const weir_unit *u) {
  for (uint32_t i = l->options->pin_count; i-- > 0;)
    for (uint32_t m = 0; m < u->member_count; m++)
      if (l->members[u->first_member + m] == l->options->pins[i].node)
        return &l->options->pins[i];
  return NULL;
}

/* The pin's device as text that lives as long as the placement. */
static weir_status keep_pin(weir_lowering *l, const weir_place_pin *pin,
                            weir_sv *out) {
  char text[160];
  weir_device_name_print(&pin->device, text, sizeof text);
  char *kept = weir_arena_string(l->arena, text, strlen(text));
  if (kept == NULL) return weir_fail_memory(l->err, strlen(text));
  *out = weir_sv_from(kept);
  return WEIR_OK;
}

/* Adds the names of the cluster's devices, the first ones, to |err|. */
static void hint_devices(const weir_lowering *l) {
  char devices[200] = "";
  size_t used = 0;
  for (uint32_t d = 0; d < l->cluster->device_count && used < 150; d++)
    used += (size_t)snprintf(devices + used, sizeof devices - used, "%s%.*s",
                             d > 0 ? ", " : "",
                             WEIR_SV(l->cluster->devices[d].text));
  weir_hint(l->err, "the cluster has %s", devices);
}

/* No device can run the unit, requests aside. */
static weir_status no_kernel(weir_lowering *l, const weir_unit *u) {
  const weir_node *n = &l->graph->nodes[u->node];
  weir_status s =
      weir_fail(l->err, WEIR_W3001, &n->mark,
                "no device of the cluster has a kernel for %s", n->op->name);
  hint_devices(l);
  weir_error_set_node(l->err, n->name.data, n->name.size);
  return s;
}

/* Adds the reason why the unit has no kernel on |name|'s kind of device, where
 * the cluster has that kind, to the message of |s|. */
static weir_status say_why(weir_lowering *l, const weir_unit *u,
                           const weir_device_name *name, weir_status s) {
  char why[WEIR_LOWER_WHY_BYTES];
  if (name->type == WEIR_DEVICE_ANY || ((u->lacks >> name->type) & 1) == 0 ||
      ((l->options->absent_kinds >> name->type) & 1) != 0)
    return s;
  weir_lower_why(l->graph, l->members + u->first_member, u->member_count,
                 name->type, why);
  size_t used = strlen(l->err->message);
  snprintf(l->err->message + used, sizeof l->err->message - used, ": %s", why);
  return s;
}

static weir_status no_such_device(weir_lowering *l, const weir_unit *u,
                                  const weir_device_name *name,
                                  const weir_mark *rule_mark) {
  char text[160];
  const weir_node *n = &l->graph->nodes[u->node];
  weir_status s =
      weir_fail(l->err, WEIR_W3002, rule_mark == NULL ? &n->mark : rule_mark,
                "%.*s asks for %s, but no such device has a kernel for %s",
                WEIR_SV(n->name),
                weir_device_name_print(name, text, sizeof text), n->op->name);
  hint_devices(l);
  weir_error_set_node(l->err, n->name.data, n->name.size);
  return say_why(l, u, name, s);
}

/* A request was dropped. A rule gets one warning, for its first unit: it may
 * match thousands. */
static void tell_relaxed(weir_lowering *l, weir_unit *u, weir_lower_rule *by,
                         const weir_device_name *name) {
  u->relaxed = true;
  if (u->own_device) by = NULL;
  if (l->options->sink == NULL || (by != NULL && by->told)) return;
  if (by != NULL) by->told = true;
  weir_error warning = WEIR_ERROR_INIT, *err = l->err;
  l->err = &warning;
  (void)no_such_device(l, u, name, by != NULL ? &by->mark : NULL);
  l->err = err;
  weir_diag_warn(l->options->sink, &warning);
}

/* The device that a node of a mesh without devices asks for. */
static void find_logical(const weir_lowering *l, weir_device_name *name) {
  uint32_t count = l->cluster->device_count;
  if (!l->options->logical || name->job[0] != 0 || name->index.first < 0)
    return;
  *name = l->cluster->devices[(uint32_t)name->index.first % count].name;
}

/* A variable with a home may be nowhere else: it was decided by the same rules.
 */
static bool stays_home(const weir_lowering *l, weir_unit *u, uint64_t *set) {
  const weir_node *n = &l->graph->nodes[u->node];
  if (l->options->homes == NULL || n->op->instr != WEIR_INSTR_VAR_READ)
    return false;
  uint32_t home = weir_map_get(l->options->homes, n->name);
  if (home == WEIR_MAP_NONE || home >= l->cluster->device_count) return false;
  memset(set, 0, l->words * sizeof *set);
  weir_lower_set_add(set, home);
  return u->home = true;
}

static weir_status allow(ruler *r, uint32_t id, uint64_t *spare) {
  weir_lowering *l = r->l;
  weir_unit *u = &l->units[id];
  uint64_t *set = weir_lower_set(l, id);
  weir_device_name name = weir_device_name_any();
  const weir_place_pin *pin = find_pin(l, u);
  weir_sv own = own_device(l, u);
  weir_lower_rule *by = NULL;
  runnable(l, u, set);
  if (weir_lower_set_is_empty(l, set)) return no_kernel(l, u);
  u->own_device = own.size > 0 || pin != NULL;
  u->asked = own;
  if (pin != NULL) WEIR_TRY(keep_pin(l, pin, &u->asked));
  u->rule = u->follows ? WEIR_PLACE_NONE : weir_lower_rule_of(l, &r->rules, id);
  if (stays_home(l, u, set)) return WEIR_OK;
  if (u->rule != WEIR_PLACE_NONE) by = &r->rules.items[u->rule];
  if (pin != NULL) {
    name = pin->device;
  } else if (own.size > 0) {
    WEIR_TRY(weir_device_name_parse(own, &name, NULL, l->err));
    find_logical(l, &name);
  } else if (by != NULL && by->has_device) {
    name = by->device;
  }
  memcpy(spare, set, l->words * sizeof *set);
  keep_matching(l, &name, spare);
  if (weir_lower_set_is_empty(l, spare)) {
    bool soft = l->options->strictness == WEIR_PLACE_SOFT ||
                (l->options->strictness == WEIR_PLACE_WARN && by != NULL &&
                 !u->own_device && by->soft);
    if (!soft)
      return no_such_device(l, u, &name,
                            u->own_device || by == NULL ? NULL : &by->mark);
    tell_relaxed(l, u, by, &name);
  } else {
    memcpy(set, spare, l->words * sizeof *set);
  }
  return WEIR_OK;
}

/* ---- Preferences */

/* Whether the cluster has a device that |name| and the rule's own name fit. */
static bool is_there(const weir_lowering *l, const weir_lower_rule *by,
                     const weir_unit *u, const weir_device_name *name) {
  bool bound = by->has_device && !u->relaxed && !u->own_device;
  for (uint32_t d = 0; d < l->cluster->device_count; d++) {
    const weir_device_name *full = &l->cluster->devices[d].name;
    if (weir_device_name_matches(name, full) &&
        (!bound || weir_device_name_matches(&by->device, full)))
      return true;
  }
  return false;
}

/* The unit cannot be on a preferred device that is there. */
static weir_status no_preferred(weir_lowering *l, const weir_unit *u,
                                const weir_lower_rule *by,
                                const weir_device_name *name) {
  char text[160];
  const weir_node *n = &l->graph->nodes[u->node];
  weir_device_name_print(name, text, sizeof text);
  weir_status s =
      u->with_readers
          ? weir_fail(
                l->err, WEIR_W3002, &by->mark,
                "%.*s prefers %s, but nothing that reads it can run there",
                WEIR_SV(n->name), text)
          : weir_fail(l->err, WEIR_W3002, &by->mark,
                      "%.*s prefers %s, but no such device has a kernel for %s",
                      WEIR_SV(n->name), text, n->op->name);
  weir_error_set_node(l->err, n->name.data, n->name.size);
  return u->with_readers ? s : say_why(l, u, name, s);
}

/* A preference is not met. A rule gets one warning, for its first unit. */
static void tell_fallback(weir_lowering *l, weir_unit *u, weir_lower_rule *by,
                          const weir_device_name *name) {
  u->fallback = true;
  if (l->options->sink == NULL || by->told_fallback) return;
  by->told_fallback = true;
  weir_error warning = WEIR_ERROR_INIT, *err = l->err;
  l->err = &warning;
  (void)no_preferred(l, u, by, name);
  l->err = err;
  weir_diag_warn(l->options->sink, &warning);
}

/* Keeps the first preferred devices that the set still has; none: all. One that
 * is in the cluster and has no kernel for the unit is passed by and noted. */
static weir_status keep_preferred(ruler *r, uint32_t id, uint64_t *spare) {
  weir_lowering *l = r->l;
  weir_unit *u = &l->units[id];
  uint64_t *set = weir_lower_set(l, id);
  if (u->rule == WEIR_PLACE_NONE || u->home) return WEIR_OK;
  weir_lower_rule *by = &r->rules.items[u->rule];
  for (uint32_t i = 0; by->prefer != NULL && i < by->prefer->count; i++) {
    weir_device_name name;
    WEIR_TRY(weir_device_name_parse(by->prefer->items[i]->text, &name, NULL,
                                    l->err));
    memcpy(spare, set, l->words * sizeof *set);
    keep_matching(l, &name, spare);
    if (!weir_lower_set_is_empty(l, spare)) {
      memcpy(set, spare, l->words * sizeof *set);
      return WEIR_OK;
    }
    if (u->own_device || !is_there(l, by, u, &name)) continue;
    if (l->options->strictness == WEIR_PLACE_STRICT)
      return no_preferred(l, u, by, &name);
    tell_fallback(l, u, by, &name);
  }
  return WEIR_OK;
}

/* ---- Groups */

/* Whether the units of group |root| without those that |out| marks still have
 * a device in common. */
static bool agree(weir_lowering *l, uint32_t root, const bool *out,
                  uint64_t *spare) {
  memset(spare, 0xff, l->words * sizeof *spare);
  for (uint32_t u = root; u < l->unit_count; u++)
    if (!out[u] && weir_lower_root(l, u) == root)
      for (uint32_t w = 0; w < l->words; w++)
        spare[w] &= weir_lower_set(l, u)[w];
  return !weir_lower_set_is_empty(l, spare);
}

/* Names a smallest set of members that clash: each is left out on trial and put
 * back if the others agree without it. In the set that is left every member is
 * needed, so the message names causes only. O(members^2) words; errors only. */
static weir_status conflict(weir_lowering *l, uint32_t root, bool *out,
                            uint64_t *spare) {
  char text[400];
  size_t used = 0;
  for (uint32_t u = root; u < l->unit_count; u++) {
    if (weir_lower_root(l, u) != root) continue;
    out[u] = true;
    if (agree(l, root, out, spare)) out[u] = false;
  }
  uint32_t first = WEIR_PLACE_NONE;
  for (uint32_t u = root; u < l->unit_count && used < sizeof text - 120; u++) {
    if (weir_lower_root(l, u) != root || out[u]) continue;
    const weir_node *n = &l->graph->nodes[l->units[u].node];
    uint32_t d = 0;
    while (d + 1 < l->cluster->device_count &&
           !weir_lower_set_has(weir_lower_set(l, u), d))
      d++;
    used += (size_t)snprintf(
        text + used, sizeof text - used, "%s%.*s (line %" PRIu32 ", e.g. %.*s)",
        used > 0 ? " and " : "", n->name.size < 60 ? (int)n->name.size : 60,
        n->name.data, n->mark.line, WEIR_SV(l->cluster->devices[d].text));
    if (first == WEIR_PLACE_NONE) first = l->units[u].node;
  }
  const weir_node *n = &l->graph->nodes[first];
  return weir_fail(l->err, WEIR_W3012, &n->mark,
                   "these must share a device and may not: %s", text);
}

/* Sets of a group become their intersection, kept at the root, then copied to
 * all members. */
static weir_status join_sets(weir_lowering *l, uint64_t *spare) {
  bool *out =
      weir_alloc_array(l->alloc, (size_t)l->unit_count + 1, sizeof *out);
  if (out == NULL) return weir_fail_memory(l->err, l->unit_count);
  weir_status s = WEIR_OK;
  for (uint32_t u = 0; u < l->unit_count && s == WEIR_OK; u++) {
    uint32_t root = weir_lower_root(l, u);
    if (root == u) continue;
    uint64_t *mine = weir_lower_set(l, root);
    memcpy(spare, mine, l->words * sizeof *spare);
    for (uint32_t w = 0; w < l->words; w++) spare[w] &= weir_lower_set(l, u)[w];
    if (weir_lower_set_is_empty(l, spare)) {
      s = conflict(l, root, out, spare);
      break;
    }
    memcpy(mine, spare, l->words * sizeof *spare);
  }
  for (uint32_t u = 0; u < l->unit_count && s == WEIR_OK; u++)
    memcpy(weir_lower_set(l, u), weir_lower_set(l, weir_lower_root(l, u)),
           l->words * sizeof *spare);
  weir_free(l->alloc, out);
  return s;
}

/* ---- Balance: the largest variable first, each to the allowed device with the
 * fewest bytes so far. Source: longest processing time first, Graham, SIAM J.
 * Appl. Math. 17 (1969) 416-429; the fullest device is at most 4/3 - 1/(3 m) of
 * the best possible where all devices are allowed. */

typedef struct weight {
  uint32_t root;
  int64_t bytes;
} weight;

static int heavier(const void *x, const void *y) {
  const weight *a = x, *b = y;
  if (a->bytes != b->bytes) return a->bytes > b->bytes ? -1 : 1;
  return a->root < b->root ? -1 : a->root > b->root;
}

static void put_lightest(weir_lowering *l, const weight *w) {
  uint64_t *set = weir_lower_set(l, w->root);
  uint32_t best = WEIR_PLACE_NONE;
  for (uint32_t d = 0; d < l->cluster->device_count; d++)
    if (weir_lower_set_has(set, d) &&
        (best == WEIR_PLACE_NONE || l->load[d] < l->load[best]))
      best = d;
  assert(best != WEIR_PLACE_NONE); /* join_sets left no set empty */
  memset(set, 0, l->words * sizeof *set);
  weir_lower_set_add(set, best);
  weir_sum_add(&l->load[best], w->bytes);
}

static weir_status balance(ruler *r) {
  weir_lowering *l = r->l;
  weight *weights =
      weir_alloc_array(l->alloc, (size_t)l->unit_count + 1, sizeof *weights);
  if (weights == NULL)
    return weir_fail_memory(l->err, l->unit_count * sizeof *weights);
  uint32_t count = 0;
  for (uint32_t u = 0; u < l->unit_count; u++) weights[u].root = u;
  for (uint32_t u = 0; u < l->unit_count; u++)
    weir_sum_add(&weights[weir_lower_root(l, u)].bytes,
                 weir_lower_resident(l, u));
  for (uint32_t u = 0; u < l->unit_count; u++) {
    uint32_t by = l->units[u].rule;
    if (weir_lower_root(l, u) == u && by != WEIR_PLACE_NONE &&
        r->rules.items[by].balance && weights[u].bytes > 0)
      weights[count++] = weights[u];
  }
  qsort(weights, count, sizeof *weights, heavier);
  for (uint32_t i = 0; i < count; i++) put_lightest(l, &weights[i]);
  weir_free(l->alloc, weights);
  for (uint32_t u = 0; u < l->unit_count; u++)
    memcpy(weir_lower_set(l, u), weir_lower_set(l, weir_lower_root(l, u)),
           l->words * sizeof *l->allowed);
  return WEIR_OK;
}

weir_status weir_lower_apply_rules(weir_lowering *l) {
  ruler r = {.l = l};
  l->words = (l->cluster->device_count + 63) / 64;
  l->allowed = weir_alloc_array(
      l->alloc, ((size_t)l->unit_count + 1) * l->words, sizeof *l->allowed);
  l->load =
      weir_alloc_array(l->alloc, l->cluster->device_count, sizeof *l->load);
  uint64_t *spare = weir_alloc_array(l->alloc, l->words, sizeof *spare);
  weir_status s =
      weir_lower_rules_read(l->alloc, l->graph->placement, &r.rules, l->err);
  if (s == WEIR_OK && (l->allowed == NULL || l->load == NULL || spare == NULL))
    s = weir_fail_memory(l->err, l->unit_count * sizeof *l->allowed);
  if (s == WEIR_OK) s = weir_lower_join_by_rules(l, &r.rules);
  for (uint32_t u = 0; u < l->unit_count && s == WEIR_OK; u++)
    s = allow(&r, u, spare);
  if (s == WEIR_OK) s = weir_lower_carry(l);
  for (uint32_t u = 0; u < l->unit_count && s == WEIR_OK; u++)
    s = keep_preferred(&r, u, spare);
  if (s == WEIR_OK) s = join_sets(l, spare);
  if (s == WEIR_OK) s = balance(&r);
  if (s == WEIR_OK) weir_lower_name_roots(l);
  weir_free(l->alloc, spare);
  weir_lower_rules_release(&r.rules);
  return s;
}
