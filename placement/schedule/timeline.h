/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PLACEMENT_TIMELINE_H_
#define PLACEMENT_TIMELINE_H_

#include <stdint.h>
#include <string.h>

/* The busy times of a device or link: from 0 to |tail| but for the gaps that
 * are remembered, at most WEIR_GAPS of the latest. So an insertion costs a
 * bounded time however long the schedule is. */

enum { WEIR_GAPS = 16 };

typedef struct weir_gap {
  int64_t start, end;
} weir_gap;

typedef struct weir_timeline {
  int64_t tail;
  uint32_t count;
  weir_gap gaps[WEIR_GAPS]; /* by start */
} weir_timeline;

/* The earliest time, not before |ready|, at which |ns| are free. */
static inline int64_t weir_timeline_find(const weir_timeline *t, int64_t ready,
                                         int64_t ns) {
  uint32_t i = t->count;
  if (ready >= t->tail) return ready;
  while (i > 0 && t->gaps[i - 1].end >= ready + ns)
    i--; /* can fit, from i on */
  for (; i < t->count; i++) {
    int64_t start = t->gaps[i].start > ready ? t->gaps[i].start : ready;
    if (start + ns <= t->gaps[i].end) return start;
  }
  return t->tail;
}

static inline void weir_timeline_insert(weir_timeline *t, uint32_t at,
                                        int64_t start, int64_t end) {
  if (t->count == WEIR_GAPS) { /* the earliest is forgotten */
    if (at == 0) return;
    memmove(t->gaps, t->gaps + 1, (at - 1) * sizeof *t->gaps);
    t->gaps[at - 1] = (weir_gap){start, end};
    return;
  }
  memmove(t->gaps + at + 1, t->gaps + at, (t->count - at) * sizeof *t->gaps);
  t->gaps[at] = (weir_gap){start, end};
  t->count++;
}

/* Takes |ns| from |start|, a time that _find gave. */
static inline void weir_timeline_take(weir_timeline *t, int64_t start,
                                      int64_t ns) {
  if (ns == 0) return;
  if (start >= t->tail) {
    if (start > t->tail) weir_timeline_insert(t, t->count, t->tail, start);
    t->tail = start + ns;
    return;
  }
  for (uint32_t i = t->count; i-- > 0;) {
    weir_gap g = t->gaps[i];
    if (start < g.start || start + ns > g.end) continue;
    if (start == g.start && start + ns == g.end) {
      t->count--;
      memmove(t->gaps + i, t->gaps + i + 1, (t->count - i) * sizeof *t->gaps);
    } else if (start == g.start) {
      t->gaps[i].start = start + ns;
    } else {
      t->gaps[i].end = start;
      if (start + ns < g.end) weir_timeline_insert(t, i + 1, start + ns, g.end);
    }
    return;
  }
}

#endif
