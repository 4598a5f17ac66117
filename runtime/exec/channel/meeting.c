/* SPDX-License-Identifier: Apache-2.0
 *
 * A table of groups, each a list of meetings, which are used again: a steady
 * step allocates nothing. */
#include "runtime/exec/channel/meeting.h"

#include <string.h>

#include "runtime/exec/channel/collective.h"

static weir_meeting_list *group_meetings(weir_meetings *ch, uint32_t group) {
  while (ch->groups.count <= group)
    if (!weir_vec_push(ch->alloc, &ch->groups, (weir_meeting_list){0}))
      return NULL;
  return &ch->groups.items[group];
}

static bool meeting_fits(weir_meetings *ch, weir_meeting *m, uint32_t ranks,
                         size_t scratch_bytes) {
  if (m->ranks != ranks) {
    weir_free(ch->alloc, m->parts);
    weir_free(ch->alloc, m->done);
    m->parts = weir_alloc_array(ch->alloc, ranks, sizeof *m->parts);
    m->done = weir_alloc_array(ch->alloc, ranks, sizeof *m->done);
    m->ranks = m->parts != NULL && m->done != NULL ? ranks : 0;
  }
  if (m->scratch == NULL || m->scratch_bytes < scratch_bytes) {
    weir_free(ch->alloc, m->scratch);
    m->scratch = weir_alloc_aligned(ch->alloc, scratch_bytes, 64);
    m->scratch_bytes = m->scratch != NULL ? scratch_bytes : 0;
  }
  return m->ranks == ranks && m->scratch != NULL;
}

/* The meeting of |step| that has begun, else a free one. */
static weir_meeting *find_meeting(weir_meetings *ch,
                                  const weir_collective *part, uint64_t step,
                                  size_t scratch_bytes) {
  weir_meeting_list *list = group_meetings(ch, part->group);
  if (list == NULL) return NULL;
  weir_meeting *unused = NULL;
  for (size_t i = 0; i < list->count; i++) {
    weir_meeting *m = &list->items[i];
    if (m->arrived > 0 && m->step == step) return m;
    if (m->arrived == 0 && unused == NULL) unused = m;
  }
  if (unused == NULL) {
    if (!weir_vec_push(ch->alloc, list, (weir_meeting){0})) return NULL;
    unused = &list->items[list->count - 1];
  }
  if (!meeting_fits(ch, unused, part->ranks, scratch_bytes)) return NULL;
  unused->step = step;
  memset(unused->parts, 0, part->ranks * sizeof *unused->parts);
  return unused;
}

/* Whether |part| is another rank of the same collective. */
static weir_status join(weir_meeting *m, const weir_collective *part,
                        weir_channel_done *done, weir_error *err) {
  for (uint32_t r = 0; m->arrived > 0 && r < m->ranks; r++) {
    const weir_collective *other = m->parts[r];
    if (other == NULL) continue;
    if (other->kind != part->kind || other->dtype != part->dtype ||
        other->count != part->count || other->ranks != part->ranks)
      return weir_fail(err, WEIR_W9001, NULL,
                       "group %u: ranks %u and %u differ in kind, dtype or "
                       "count",
                       part->group, other->rank, part->rank);
    break;
  }
  if (m->parts[part->rank] != NULL)
    return weir_fail(err, WEIR_W9001, NULL, "group %u: rank %u came twice",
                     part->group, part->rank);
  m->parts[part->rank] = part;
  m->done[part->rank] = done;
  m->arrived++;
  return WEIR_OK;
}

void weir_meetings_join(weir_meetings *ch, uint64_t step,
                        const weir_collective *part, weir_channel_done *done,
                        weir_ended *out) {
  size_t scratch_bytes = 0;
  weir_meeting *m = NULL;
  weir_status s = weir_collective_check(part, &scratch_bytes, &out->err);
  if (s == WEIR_OK) {
    m = find_meeting(ch, part, step, scratch_bytes);
    s = m != NULL ? join(m, part, done, &out->err)
                  : weir_fail_memory(&out->err, scratch_bytes);
  }
  if (s != WEIR_OK) {
    weir_ended_add(out, done, s);
  } else if (m->arrived == m->ranks) {
    weir_collective_compute(m->parts, m->scratch);
    for (uint32_t r = 0; r < m->ranks; r++)
      weir_ended_add(out, m->done[r], WEIR_OK);
    m->arrived = 0;
  }
}

void weir_meetings_end(weir_meetings *ch, const uint64_t *step,
                       weir_ended *out) {
  for (size_t g = 0; g < ch->groups.count; g++)
    for (size_t i = 0; i < ch->groups.items[g].count; i++) {
      weir_meeting *m = &ch->groups.items[g].items[i];
      if (m->arrived == 0 || (step != NULL && m->step != *step)) continue;
      for (uint32_t r = 0; r < m->ranks; r++)
        if (m->parts[r] != NULL) weir_ended_add(out, m->done[r], out->err.code);
      m->arrived = 0;
    }
}

void weir_meetings_release(weir_meetings *ch) {
  for (size_t g = 0; g < ch->groups.count; g++) {
    weir_meeting_list *list = &ch->groups.items[g];
    for (size_t i = 0; i < list->count; i++) {
      weir_free(ch->alloc, list->items[i].scratch);
      weir_free(ch->alloc, list->items[i].parts);
      weir_free(ch->alloc, list->items[i].done);
    }
    weir_vec_free(ch->alloc, list);
  }
  weir_vec_free(ch->alloc, &ch->groups);
}
