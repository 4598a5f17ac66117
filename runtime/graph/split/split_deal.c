/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/graph/split/split_deal.h"

#include <stdlib.h>

/* Dealing variables to servers: a variable with its slots is one unit; units go
 * from the largest to the smallest, each to the server with the fewest bytes.
 *
 * Source: the longest processing time first rule, Graham, SIAM J. Appl. Math.
 * 17 (1969) 416-429: no server has more than 4/3 of the best possible largest
 * share. Ties go by the order of variables and of servers, so equal graphs are
 * dealt equally. Cost: variables x (servers + log variables), once. */

typedef struct unit {
  uint64_t bytes;
  uint32_t var; /* the first of it */
} unit;

typedef struct dealer {
  weir_split_var *vars; /* by node */
  uint32_t count, servers;
  uint32_t *first; /* per variable: the one that it goes with */
  unit *units;     /* per variable */
  uint64_t *load;  /* per server */
} dealer;

/* The variable of node |node|; |count|: there is none. */
static uint32_t find(const dealer *d, weir_node_id node) {
  uint32_t low = 0, high = d->count;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (d->vars[middle].node < node)
      low = middle + 1;
    else
      high = middle;
  }
  return low < d->count && d->vars[low].node == node ? low : d->count;
}

static void join(dealer *d) {
  for (uint32_t i = 0; i < d->count; i++) {
    const weir_split_var *v = &d->vars[i];
    uint32_t to = v->of == UINT32_MAX ? i : find(d, v->of);
    d->first[i] = to < d->count ? to : i;
    d->units[i].var = i;
    if (v->server != WEIR_SPLIT_ALL) d->units[d->first[i]].bytes += v->bytes;
  }
}

/* Large ones first, then in the order of variables. */
static int by_bytes(const void *a, const void *b) {
  const unit *x = a, *y = b;
  if (x->bytes != y->bytes) return x->bytes > y->bytes ? -1 : 1;
  return x->var < y->var ? -1 : x->var > y->var;
}

static void deal(dealer *d) {
  if (d->count > 0) qsort(d->units, d->count, sizeof *d->units, by_bytes);
  for (uint32_t k = 0; k < d->count; k++) {
    uint32_t i = d->units[k].var, to = 0;
    if (d->first[i] != i || d->vars[i].server == WEIR_SPLIT_ALL) continue;
    for (uint32_t s = 1; s < d->servers; s++)
      if (d->load[s] < d->load[to]) to = s;
    d->load[to] += d->units[k].bytes;
    d->vars[i].server = to;
  }
  for (uint32_t i = 0; i < d->count; i++)
    if (d->vars[i].server != WEIR_SPLIT_ALL)
      d->vars[i].server = d->vars[d->first[i]].server;
}

weir_status weir_split_deal(const weir_allocator *alloc, weir_split_var *vars,
                            uint32_t count, uint32_t servers, weir_error *err) {
  dealer d = {.vars = vars, .count = count, .servers = servers};
  d.first = weir_alloc_array(alloc, count, sizeof *d.first);
  d.units = weir_alloc_array(alloc, count, sizeof *d.units);
  d.load = weir_alloc_array(alloc, servers, sizeof *d.load);
  weir_status s = WEIR_OK;
  if (d.first == NULL || d.units == NULL || d.load == NULL) {
    s = weir_fail_memory(err, count * sizeof *d.units);
  } else {
    join(&d);
    deal(&d);
  }
  weir_free(alloc, d.first);
  weir_free(alloc, d.units);
  weir_free(alloc, d.load);
  return s;
}
