/* SPDX-License-Identifier: Apache-2.0 */
/* Constants under caps: bits say which device holds which. A constant comes to
 * a device with the first node that reads it there, or with the first node of
 * that one's group, and stays, like resident bytes.
 *
 * Invariant: a bit in |held| is set exactly when the constant's bytes are in
 * the device's room. Cost: O(reads of the node), or of its group. */
#include "placement/schedule/schedule_constants.h"

#include <string.h>

/* The constants of the nodes of each group, each once: sorted into rows by
 * counting, as in problem.c, then repetitions are taken out. |seen| (per
 * constant): the last group that has it. */
static void list_constants(weir_scheduler *s, uint32_t *seen) {
  const weir_place_problem *p = s->p;
  uint32_t *first = s->memory->group_first, *row = s->memory->group_constant;
  for (uint32_t n = 0; n < p->node_count; n++)
    if (p->group[n] != WEIR_PLACE_NONE)
      first[p->group[n] + 2] += p->read_first[n + 1] - p->read_first[n];
  for (uint32_t g = 2; g < p->group_count + 2; g++) first[g] += first[g - 1];
  for (uint32_t n = 0; n < p->node_count; n++)
    for (uint32_t i = p->read_first[n]; i < p->read_first[n + 1]; i++)
      if (p->group[n] != WEIR_PLACE_NONE)
        row[first[p->group[n] + 1]++] = p->read_constant[i];
  uint32_t kept = 0, from = 0;
  memset(seen, 0xff, p->constant_count * sizeof *seen);
  for (uint32_t g = 0; g < p->group_count; g++) {
    for (; from < first[g + 1]; from++) {
      if (seen[row[from]] == g) continue;
      seen[row[from]] = g;
      row[kept++] = row[from];
    }
    first[g + 1] = kept;
  }
}

bool weir_schedule_constants_begin(weir_scheduler *s) {
  const weir_place_problem *p = s->p;
  const weir_allocator *a = s->alloc;
  weir_schedule_memory *m = s->memory;
  size_t bits = (size_t)p->constant_count * p->set_words;
  if (p->constant_count == 0) return true;
  uint32_t *seen = weir_alloc_array(a, p->constant_count, sizeof *seen);
  m->group_first =
      weir_alloc_array(a, (size_t)p->group_count + 2, sizeof *m->group_first);
  m->group_constant =
      weir_alloc_array(a, (size_t)p->read_count + 1, sizeof *m->group_constant);
  m->held = weir_alloc_array(a, bits, sizeof *m->held);
  m->pinned = weir_alloc_array(a, bits, sizeof *m->pinned);
  bool ok = seen != NULL && m->group_first != NULL &&
            m->group_constant != NULL && m->held != NULL && m->pinned != NULL;
  if (ok) list_constants(s, seen);
  weir_free(a, seen);
  return ok;
}

/* The constants that come with |node|: its own, or all of its group. */
static const uint32_t *constants_of(const weir_scheduler *s, uint32_t node,
                                    uint32_t *count) {
  const weir_place_problem *p = s->p;
  const uint32_t *first = s->memory->group_first;
  uint32_t g = p->group[node];
  if (g == WEIR_PLACE_NONE) {
    *count = p->read_first[node + 1] - p->read_first[node];
    return p->read_constant + p->read_first[node];
  }
  *count = first[g + 1] - first[g];
  return s->memory->group_constant + first[g];
}

void weir_schedule_constants_end(weir_scheduler *s) {
  weir_schedule_memory *m = s->memory;
  weir_free(s->alloc, m->group_first);
  weir_free(s->alloc, m->group_constant);
  weir_free(s->alloc, m->held);
  weir_free(s->alloc, m->pinned);
}

void weir_schedule_constants_reset(weir_scheduler *s) {
  size_t words = (size_t)s->p->constant_count * s->p->set_words;
  weir_schedule_memory *m = s->memory;
  if (words > 0) memcpy(m->held, m->pinned, words * sizeof *m->held);
}

int64_t weir_schedule_constants(const weir_scheduler *s, uint32_t node,
                                uint32_t device, uint64_t *table, bool take) {
  uint32_t count = 0;
  uint64_t bit = UINT64_C(1) << (device & 63);
  int64_t bytes = 0;
  if (s->p->constant_count == 0) return 0;
  const uint32_t *list = constants_of(s, node, &count);
  for (uint32_t i = 0; i < count; i++) {
    uint64_t *word = table + (size_t)list[i] * s->p->set_words + (device >> 6);
    if (*word & bit) continue;
    if (__builtin_add_overflow(bytes, s->p->constant_bytes[list[i]], &bytes))
      bytes = INT64_MAX;
    if (take) *word |= bit;
  }
  return bytes;
}
