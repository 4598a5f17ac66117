/* SPDX-License-Identifier: Apache-2.0 */
#include "placement/memory/memory_reuse.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "placement/memory/memory_plan.h"
#include "runtime/base/vec.h"

/* Buffers are written in order of birth over a picture of the block that knows
 * the last writer of each byte; a buffer reuses the bytes that it covers.
 * Earlier owners need no mention: the buffers that covered them wait for them
 * already.
 *
 * Invariant: ranges are sorted and never overlap. Each write adds at most two
 * of them, so the list stays linear. */

/* The last writer of each part of the block, as a sorted list of ranges. */
typedef struct owned_range {
  size_t begin, end;
  uint32_t buffer;
} owned_range;

typedef WEIR_VEC(owned_range) owned_list;

typedef struct reuse_walk {
  const weir_lifetime *lifetimes;
  const weir_memory_plan *plan;
  void (*reuse)(void *self, uint32_t earlier, uint32_t later);
  void *self;
  uint32_t last_reported; /* the buffer just reported for the present one */
} reuse_walk;

/* Buffers whose lives touch share memory only when made in place, and then one
 * already comes after the other. */
static void report(reuse_walk *w, uint32_t earlier, uint32_t later) {
  if (earlier == w->last_reported) return;
  if (w->lifetimes[earlier].last >= w->lifetimes[later].first) return;
  w->last_reported = earlier;
  w->reuse(w->self, earlier, later);
}

/* Index of the first range that ends after |offset|. */
static size_t find_range(const owned_list *list, size_t offset) {
  size_t low = 0, high = list->count;
  while (low < high) {
    size_t mid = low + (high - low) / 2;
    if (list->items[mid].end <= offset)
      low = mid + 1;
    else
      high = mid;
  }
  return low;
}

/* Puts |r| in place of everything it covers. */
static bool overwrite(reuse_walk *w, const weir_allocator *scratch,
                      owned_list *list, owned_range r) {
  if (!weir_vec_reserve(scratch, list, 2)) return false;
  assert(r.begin < r.end);
  size_t from = find_range(list, r.begin), to = from;
  assert(from == 0 || list->items[from - 1].end <= r.begin);
  owned_range parts[3];
  size_t n = 0;
  for (; to < list->count && list->items[to].begin < r.end; to++)
    report(w, list->items[to].buffer, r.buffer);
  if (to > from && list->items[from].begin < r.begin)
    parts[n++] = (owned_range){list->items[from].begin, r.begin,
                               list->items[from].buffer};
  parts[n++] = r;
  if (to > from && list->items[to - 1].end > r.end)
    parts[n++] = (owned_range){r.end, list->items[to - 1].end,
                               list->items[to - 1].buffer};
  assert(to == list->count || list->items[to].begin >= r.end);
  memmove(&list->items[from + n], &list->items[to],
          (list->count - to) * sizeof(owned_range));
  memcpy(&list->items[from], parts, n * sizeof(owned_range));
  list->count += n - (to - from);
  return true;
}

/* A buffer and the moment it is written, to be sorted. */
typedef struct birth {
  uint32_t first, buffer;
} birth;

static int by_time(const void *a, const void *b) {
  const birth *x = a, *y = b;
  if (x->first != y->first) return x->first < y->first ? -1 : 1;
  return x->buffer < y->buffer ? -1 : x->buffer > y->buffer;
}

weir_status weir_memory_plan_reuses(weir_lifetimes lives,
                                    const weir_memory_plan *plan,
                                    const weir_allocator *scratch,
                                    void (*reuse)(void *self, uint32_t earlier,
                                                  uint32_t later),
                                    void *self, weir_error *err) {
  const weir_lifetime *lifetimes = lives.items;
  uint32_t count = lives.count;
  reuse_walk w = {lifetimes, plan, reuse, self, WEIR_MEMORY_NO_BUFFER};
  owned_list list = {0};
  birth *births = weir_alloc_array(scratch, count, sizeof *births);
  bool ok = births != NULL;
  for (uint32_t b = 0; ok && b < count; b++)
    births[b] = (birth){lifetimes[b].first, b};
  if (ok) qsort(births, count, sizeof *births, by_time);
  for (uint32_t i = 0; ok && i < count; i++) {
    uint32_t b = births[i].buffer;
    size_t begin = plan->offsets[b];
    w.last_reported = WEIR_MEMORY_NO_BUFFER;
    if (lifetimes[b].bytes > 0)
      ok = overwrite(&w, scratch, &list,
                     (owned_range){begin, begin + lifetimes[b].bytes, b});
  }
  weir_vec_free(scratch, &list);
  weir_free(scratch, births);
  return ok ? WEIR_OK : weir_fail_memory(err, sizeof(owned_range));
}
