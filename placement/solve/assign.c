/* SPDX-License-Identifier: Apache-2.0 */
#include "placement/solve/assign.h"

#include <string.h>

#include "runtime/base/mix.h"

static const char *const kNames[] = {"search", "first", "round_robin",
                                     "random"};

bool weir_placer_parse(weir_sv name, weir_placer *out, uint64_t *out_seed) {
  const char *const kRandom = "random:";
  *out_seed = 0;
  if (weir_sv_starts_with(name, kRandom)) {
    size_t digits = strlen(kRandom);
    *out = WEIR_PLACER_RANDOM;
    for (size_t i = digits; i < name.size; i++) {
      if (name.data[i] < '0' || name.data[i] > '9') return false;
      *out_seed = *out_seed * 10 + (uint64_t)(name.data[i] - '0');
    }
    return name.size > digits && name.size < digits + 19;
  }
  for (size_t i = 0; i < sizeof kNames / sizeof *kNames; i++)
    if (weir_sv_is(name, kNames[i])) {
      *out = (weir_placer)i;
      return true;
    }
  return false;
}

typedef struct assigner {
  const weir_place_problem *p;
  uint64_t *may;    /* per group */
  uint32_t *chosen; /* per group */
  weir_placer placer;
  uint64_t random;
  uint32_t next;
} assigner;

static void meet_groups(assigner *a) {
  const weir_place_problem *p = a->p;
  memset(a->may, 0xff, (size_t)p->group_count * p->set_words * sizeof *a->may);
  for (uint32_t n = 0; n < p->node_count; n++) {
    if (p->group[n] == WEIR_PLACE_NONE) continue;
    uint64_t *may = a->may + (size_t)p->group[n] * p->set_words;
    for (uint32_t d = 0; d < p->device_count; d++)
      if (weir_place_cost(p, n, d) == WEIR_PLACE_NO_KERNEL)
        may[d >> 6] &= ~((uint64_t)1 << (d & 63));
  }
}

static bool possible(const assigner *a, uint32_t n, uint32_t d) {
  uint32_t group = a->p->group[n];
  if (group == WEIR_PLACE_NONE)
    return weir_place_cost(a->p, n, d) != WEIR_PLACE_NO_KERNEL;
  return (a->may[(size_t)group * a->p->set_words + (d >> 6)] >> (d & 63)) & 1;
}

/* The |skip|-th possible device, counted from |from| and around; NONE. */
static uint32_t pick(const assigner *a, uint32_t n, uint32_t from,
                     uint32_t skip) {
  uint32_t count = a->p->device_count;
  for (uint32_t i = 0; i < count; i++) {
    uint32_t d = (from + i) % count;
    if (possible(a, n, d) && skip-- == 0) return d;
  }
  return WEIR_PLACE_NONE;
}

static uint32_t choose(assigner *a, uint32_t n) {
  uint32_t count = a->p->device_count, options = 0;
  if (a->placer == WEIR_PLACER_FIRST) return pick(a, n, 0, 0);
  if (a->placer == WEIR_PLACER_ROUND) {
    uint32_t d = pick(a, n, a->next, 0);
    if (d != WEIR_PLACE_NONE) a->next = (d + 1) % count;
    return d;
  }
  for (uint32_t d = 0; d < count; d++) options += possible(a, n, d);
  if (options == 0) return WEIR_PLACE_NONE;
  uint64_t drawn = weir_mix_next(&a->random) >> 32;
  return pick(a, n, 0, (uint32_t)((drawn * options) >> 32));
}

static weir_status assign(assigner *a, uint32_t *device, weir_error *err) {
  const weir_place_problem *p = a->p;
  for (uint32_t n = 0; n < p->node_count; n++) {
    uint32_t group = p->group[n];
    if (group != WEIR_PLACE_NONE && a->chosen[group] != WEIR_PLACE_NONE) {
      device[n] = a->chosen[group];
      continue;
    }
    device[n] = choose(a, n);
    if (device[n] == WEIR_PLACE_NONE)
      return weir_fail(err, WEIR_W3012, NULL,
                       "no device may have all that must be with %.*s",
                       WEIR_SV(p->names[n]));
    if (group != WEIR_PLACE_NONE) a->chosen[group] = device[n];
  }
  return WEIR_OK;
}

weir_status weir_place_assign(const weir_allocator *alloc,
                              const weir_place_problem *p, weir_placer placer,
                              uint64_t seed, uint32_t *device,
                              weir_error *err) {
  size_t groups = (size_t)p->group_count + 1;
  assigner a = {.p = p, .placer = placer, .random = seed};
  a.may = weir_alloc_array(alloc, groups * p->set_words, sizeof *a.may);
  a.chosen = weir_alloc_array(alloc, groups, sizeof *a.chosen);
  weir_status s = WEIR_OK;
  if (a.may == NULL || a.chosen == NULL) {
    s = weir_fail_memory(err, groups * sizeof *a.may);
  } else {
    memset(a.chosen, 0xff, groups * sizeof *a.chosen);
    meet_groups(&a);
    s = assign(&a, device, err);
  }
  weir_free(alloc, a.may);
  weir_free(alloc, a.chosen);
  return s;
}
