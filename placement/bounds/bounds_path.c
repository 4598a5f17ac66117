/* SPDX-License-Identifier: Apache-2.0 */
#include "placement/bounds/bounds_path.h"

#include <assert.h>
#include <string.h>

/* end[n][c]: node n ends no earlier where it is on a device of class c. Of each
 * input the class is best that lets it arrive first; that inputs of one group
 * may choose differently makes the bound weaker, not wrong.
 *
 * A tensor may go by way of a third device, so that a copy is taken to be as
 * fast as over the fastest of all links. Cost: O(uses * classes^2). */

enum { CLASSES = 8 };

typedef struct path {
  const weir_items *s;
  const weir_place_problem *p;
  uint32_t classes;
  int64_t cap[CLASSES]; /* the largest */
  bool there[CLASSES];  /* has devices */
  weir_place_link link; /* the least latency, the least time per byte */
  int64_t *end;         /* [node * classes + class]; FAR: not possible */
} path;

#define FAR (INT64_MAX / 4)

static int64_t bounded(int64_t a, int64_t b) {
  return a >= FAR - b ? FAR : a + b;
}

static void find_classes(path *b) {
  const weir_place_problem *p = b->p;
  bool linked = false;
  b->link = (weir_place_link){.latency_ns = FAR, .fs_per_byte = FAR};
  for (uint32_t d = 0; d < p->device_count; d++) {
    uint32_t c = p->devices[d].cls;
    b->there[c] = true;
    if (p->devices[d].memory_bytes > b->cap[c])
      b->cap[c] = p->devices[d].memory_bytes;
  }
  for (uint32_t l = 0; l < p->link_count; l++) {
    linked = true;
    if (p->links[l].latency_ns < b->link.latency_ns)
      b->link.latency_ns = p->links[l].latency_ns;
    if (p->links[l].fs_per_byte < b->link.fs_per_byte)
      b->link.fs_per_byte = p->links[l].fs_per_byte;
  }
  if (!linked) b->link = (weir_place_link){0};
}

/* Whether |node| may be on a device of class |c|, its group's bytes included.
 */
static bool may(const path *b, uint32_t node, uint32_t c) {
  const weir_place_problem *p = b->p;
  if (!b->there[c] || b->s->resident[b->s->of[node]] > b->cap[c] ||
      p->cost[(size_t)node * b->classes + c] == WEIR_PLACE_NO_KERNEL)
    return false;
  if (p->allowed[node] == 0) return true;
  for (uint32_t d = 0; d < p->device_count; d++)
    if (p->devices[d].cls == c && weir_place_allows(p, node, d)) return true;
  return false;
}

/* When |t| is where a node of |item| is, on class |c|. */
static int64_t arrival(const path *b, uint32_t t, uint32_t item, uint32_t c) {
  uint32_t from = b->p->tensor_node[t], other = b->s->of[from];
  int64_t ns = weir_place_copy_ns(&b->link, b->p->tensor_bytes[t]);
  int64_t kept, first = FAR;
  if (__builtin_add_overflow(b->s->resident[item], b->s->resident[other],
                             &kept))
    kept = INT64_MAX;
  for (uint32_t d = 0; d < b->classes; d++) {
    int64_t at = b->end[(size_t)from * b->classes + d];
    if (d != c && other == item) continue; /* they share a device */
    if (d != c || (other != item && kept > b->cap[c]))
      at = bounded(at, ns < FAR ? ns : FAR);
    if (at < first) first = at;
  }
  return first;
}

static int64_t longest(path *b) {
  const weir_place_problem *p = b->p;
  int64_t most = 0;
  for (uint32_t n = 0; n < p->node_count; n++) {
    int64_t least = FAR;
    for (uint32_t c = 0; c < b->classes; c++) {
      int64_t *end = &b->end[(size_t)n * b->classes + c], start = 0;
      *end = FAR;
      if (!may(b, n, c)) continue;
      for (uint32_t k = p->in_first[n]; k < p->in_first[n + 1]; k++) {
        int64_t at = arrival(b, p->in_tensor[k], b->s->of[n], c);
        if (at > start) start = at;
      }
      int64_t cost = p->cost[(size_t)n * b->classes + c];
      *end = bounded(start, cost < FAR ? cost : FAR);
      if (*end < least) least = *end;
    }
    if (least < FAR && least > most) most = least;
  }
  return most;
}

weir_status weir_bound_path(const weir_items *s, int64_t *out_ns,
                            weir_error *err) {
  path b = {.s = s, .p = s->p, .classes = s->p->class_count};
  *out_ns = 0;
  if (b.classes > CLASSES) return WEIR_OK;
  b.end = weir_alloc_array(s->alloc, ((size_t)s->p->node_count + 1) * b.classes,
                           sizeof *b.end);
  if (b.end == NULL)
    return weir_fail_memory(err, s->p->node_count * sizeof *b.end);
  find_classes(&b);
  *out_ns = longest(&b);
  weir_free(s->alloc, b.end);
  return WEIR_OK;
}
