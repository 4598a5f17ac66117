/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/graph/split/split_deal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* Dealing variables to servers: a variable with its slots is one unit, and so
 * is each part of one that may be cut; units go from the largest to the
 * smallest, each to the server with the fewest bytes. The parts of a variable
 * that came to one server are then made one range of rows, its piece: pieces
 * lie in the order of servers, and have as many rows as the parts.
 *
 * Source: the longest processing time first rule, Graham, SIAM J. Appl. Math.
 * 17 (1969) 416-429: no server has more than 4/3 of the best possible largest
 * share. Ties go by the order of variables and of servers, so equal graphs are
 * dealt equally. Cost: units x (servers + log units), once. */

typedef struct unit {
  uint64_t bytes;
  uint32_t var;  /* the first of it */
  uint32_t part; /* 0 of a whole one */
} unit;

typedef struct dealer {
  weir_splitter *s;
  const weir_split_cut *cuts;
  uint32_t count, servers; /* variables; servers */
  unit *units;
  size_t unit_count;
  uint64_t *load;  /* per server */
  uint64_t *bytes; /* per variable: of its unit */
  uint32_t *taken; /* per variable and server: parts */
} dealer;

/* The variable of node |node|; |count|: there is none. */
static uint32_t find(const weir_splitter *s, weir_node_id node) {
  uint32_t low = 0, high = s->out->var_count;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (s->vars[middle].node < node)
      low = middle + 1;
    else
      high = middle;
  }
  return low < s->out->var_count && s->vars[low].node == node
             ? low
             : s->out->var_count;
}

void weir_split_find_units(weir_splitter *s) {
  for (uint32_t i = 0; i < s->out->var_count; i++) {
    weir_node_id of = s->vars[i].of;
    uint32_t to = of == UINT32_MAX ? i : find(s, of);
    s->unit_of[i] = to < s->out->var_count ? to : i;
  }
}

/* Large ones first, then in the order of variables. */
static int by_bytes(const void *a, const void *b) {
  const unit *x = a, *y = b;
  if (x->bytes != y->bytes) return x->bytes > y->bytes ? -1 : 1;
  if (x->var != y->var) return x->var < y->var ? -1 : 1;
  return x->part < y->part ? -1 : x->part > y->part;
}

/* Bytes of a unit's rows |from| to |to|: each row has as many. */
static uint64_t part_bytes(const dealer *d, uint32_t var, int64_t from,
                           int64_t to) {
  return d->bytes[var] / (uint64_t)d->cuts[var].rows * (uint64_t)(to - from);
}

static void list_unit(dealer *d, uint32_t var) {
  const weir_split_cut *cut = &d->cuts[var];
  if (cut->parts == 0)
    d->units[d->unit_count++] = (unit){d->bytes[var], var, 0};
  for (uint32_t k = 0; k < cut->parts; k++)
    d->units[d->unit_count++] = (unit){
        part_bytes(d, var, weir_split_row(cut, k), weir_split_row(cut, k + 1)),
        var, k};
}

static void list(dealer *d) {
  const weir_splitter *s = d->s;
  for (uint32_t i = 0; i < d->count; i++)
    if (s->vars[i].server != WEIR_SPLIT_ALL)
      d->bytes[s->unit_of[i]] += s->vars[i].bytes;
  for (uint32_t i = 0; i < d->count; i++)
    if (s->unit_of[i] == i && s->vars[i].server != WEIR_SPLIT_ALL)
      list_unit(d, i);
}

static uint32_t *taken(const dealer *d, uint32_t var, uint32_t server) {
  return &d->taken[(size_t)var * d->servers + server];
}

static void deal(dealer *d) {
  if (d->unit_count > 0)
    qsort(d->units, d->unit_count, sizeof *d->units, by_bytes);
  for (size_t k = 0; k < d->unit_count; k++) {
    uint32_t to = 0;
    for (uint32_t i = 1; i < d->servers; i++)
      if (d->load[i] < d->load[to]) to = i;
    d->load[to] += d->units[k].bytes;
    ++*taken(d, d->units[k].var, to);
  }
}

/* ---- Pieces */

weir_sv weir_split_label(weir_splitter *s, weir_sv name,
                         const weir_split_rows *rows) {
  char text[560];
  if (rows->all == 0) return name;
  int n = snprintf(text, sizeof text, "%.*s[%" PRId64 ":%" PRId64 "]",
                   WEIR_SV(name), rows->first, rows->first + rows->count);
  size_t size = n < 0 ? 0 : (size_t)n < sizeof text ? (size_t)n : 0;
  return (weir_sv){weir_arena_string(&s->out->arena, text, size), size};
}

/* Servers that have some of variable |i|. */
static uint32_t pieces_of(const dealer *d, uint32_t i) {
  uint32_t count = 0;
  for (uint32_t k = 0; k < d->servers; k++)
    count += *taken(d, d->s->unit_of[i], k) > 0;
  return count > 0 ? count : 1; /* each server has it */
}

/* The pieces of |v|, whose unit is |head|'s, one behind the other. */
static weir_status put_pieces(dealer *d, const weir_split_var *v, uint32_t head,
                              weir_split_var *out) {
  const weir_split_cut *cut = &d->cuts[head];
  uint32_t part = 0;
  for (uint32_t k = 0; k < d->servers; k++) {
    uint32_t count = *taken(d, head, k);
    if (count == 0) continue;
    *out = *v;
    out->server = k;
    if (count < cut->parts) {
      int64_t first = weir_split_row(cut, part);
      int64_t end = weir_split_row(cut, part += count);
      uint64_t row = v->bytes / (uint64_t)cut->rows;
      out->rows = (weir_split_rows){first, end - first, cut->rows,
                                    row * (uint64_t)first};
      out->bytes = row * (uint64_t)(end - first);
    }
    out->label = weir_split_label(d->s, v->name, &out->rows);
    if (out->label.data == NULL) return weir_fail_memory(d->s->err, 560);
    out++;
  }
  return WEIR_OK;
}

/* The list of pieces, in place of the list of variables. */
static weir_status replace(dealer *d) {
  weir_splitter *s = d->s;
  size_t count = 0, at = 0;
  for (uint32_t i = 0; i < d->count; i++) count += pieces_of(d, i);
  weir_split_var *out = weir_arena_array(&s->out->arena, count, sizeof *out);
  if (out == NULL) return weir_fail_memory(s->err, count * sizeof *out);
  for (uint32_t i = 0; i < d->count; i++) {
    s->var_of[s->vars[i].node] = (uint32_t)at;
    if (s->vars[i].server == WEIR_SPLIT_ALL)
      out[at] = s->vars[i];
    else
      WEIR_TRY(put_pieces(d, &s->vars[i], s->unit_of[i], &out[at]));
    at += pieces_of(d, i);
  }
  s->vars = out;
  s->out->vars = out;
  s->out->var_count = (uint32_t)count;
  return WEIR_OK;
}

weir_status weir_split_deal(weir_splitter *s, const weir_split_cut *cuts) {
  dealer d = {.s = s,
              .cuts = cuts,
              .count = s->out->var_count,
              .servers = s->out->server_count};
  const weir_allocator *alloc = s->out->alloc;
  size_t room = 0;
  for (uint32_t i = 0; i < d.count; i++)
    room += cuts[i].parts > 0 ? cuts[i].parts : 1;
  d.units = weir_alloc_array(alloc, room, sizeof *d.units);
  d.load = weir_alloc_array(alloc, d.servers, sizeof *d.load);
  d.bytes = weir_alloc_array(alloc, d.count, sizeof *d.bytes);
  d.taken = weir_alloc_array(alloc, d.count, d.servers * sizeof *d.taken);
  weir_status status = WEIR_OK;
  if (!d.units || !d.load || !d.bytes || !d.taken) {
    status = weir_fail_memory(s->err, room * sizeof *d.units);
  } else {
    list(&d);
    deal(&d);
    status = replace(&d);
  }
  weir_free(alloc, d.units);
  weir_free(alloc, d.load);
  weir_free(alloc, d.bytes);
  weir_free(alloc, d.taken);
  return status;
}
