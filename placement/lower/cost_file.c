/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of measured costs: find, set, compare, write (cost_file.h).
 *
 * Entries are found by "KIND KEY" or "KIND*THREADS KEY" in a hash map and kept
 * in the order in which they came; writing sorts them by text, so equal tables
 * make equal files. Entries lie in the arena and never move: placements point
 * to them. Cost: O(1) to find or set, O(n log n) to write. */
#include "placement/lower/cost_file.h"

#include <inttypes.h>
#include <stdlib.h>

#include "placement/report/dump_internal.h"
#include "runtime/base/strbuf.h"

weir_status weir_costs_create(const weir_allocator *alloc,
                              weir_costs **out_costs, weir_error *err) {
  weir_costs *c = weir_alloc_array(alloc, 1, sizeof *c);
  *out_costs = c;
  if (c == NULL) return weir_fail_memory(err, sizeof *c);
  atomic_init(&c->refs, 1);
  c->alloc = alloc;
  weir_arena_init(&c->arena, alloc);
  weir_map_init(&c->index, alloc);
  return WEIR_OK;
}

weir_costs *weir_costs_ref(weir_costs *c) {
  atomic_fetch_add_explicit(&c->refs, 1, memory_order_relaxed);
  return c;
}

void weir_costs_release(weir_costs *c) {
  if (c == NULL) return;
  if (atomic_fetch_sub_explicit(&c->refs, 1, memory_order_acq_rel) != 1) return;
  weir_vec_free(c->alloc, &c->entries);
  weir_map_release(&c->index);
  weir_arena_release(&c->arena);
  weir_free(c->alloc, c);
}

/* Texts live as long as the table; a replaced one stays until then. */
static weir_status keep(weir_costs *c, weir_sv text, weir_sv *out,
                        weir_error *err) {
  char *copy = weir_arena_string(&c->arena, text.data, text.size);
  if (copy == NULL) return weir_fail_memory(err, text.size);
  *out = (weir_sv){copy, text.size};
  return WEIR_OK;
}

weir_status weir_costs_set_fact(weir_costs *c, weir_sv name, weir_sv text,
                                weir_error *err) {
  uint32_t at = 0;
  while (at < c->fact_count && !weir_sv_equal(c->facts[at].name, name)) at++;
  if (at == WEIR_COST_FACTS) return WEIR_OK;
  weir_cost_fact fact;
  WEIR_TRY(keep(c, name, &fact.name, err));
  WEIR_TRY(keep(c, text, &fact.text, err));
  c->facts[at] = fact;
  if (at == c->fact_count) c->fact_count++;
  return WEIR_OK;
}

/* "cpu" or "cpu*4". */
static const char *device_text(int cls, uint32_t threads, char *text,
                               size_t capacity) {
  if (threads <= 1) return weir_device_kinds[cls]->name;
  snprintf(text, capacity, "%s*%u", weir_device_kinds[cls]->name, threads);
  return text;
}

enum { DEVICE_BYTES = WEIR_DEVICE_KIND_BYTES + 16 };

/* "cpu KEY" in |text|. */
static weir_sv full_text(int cls, uint32_t threads, weir_sv key, char *text,
                         size_t capacity) {
  char device[DEVICE_BYTES];
  int n =
      snprintf(text, capacity, "%s %.*s",
               device_text(cls, threads, device, sizeof device), WEIR_SV(key));
  size_t size = n < 0 ? 0 : (size_t)n;
  return (weir_sv){text, size < capacity ? size : capacity - 1};
}

static void name_entry(weir_cost_entry *e, int cls, weir_sv text) {
  const char *space = memchr(text.data, ' ', text.size);
  size_t begin = (size_t)(space - text.data) + 1;
  e->cls = cls;
  if (e->threads == 0) e->threads = 1;
  e->text = text;
  e->key = (weir_sv){text.data + begin, text.size - begin};
}

weir_status weir_costs_set(weir_costs *c, int cls, weir_sv key,
                           const weir_cost_entry *entry, weir_error *err) {
  char text[WEIR_COST_KEY_BYTES + DEVICE_BYTES];
  weir_sv full = full_text(cls, entry->threads, key, text, sizeof text);
  uint32_t at = weir_map_get(&c->index, full);
  if (at != WEIR_MAP_NONE) {
    const weir_cost_entry old = *c->entries.items[at];
    *c->entries.items[at] = *entry;
    name_entry(c->entries.items[at], cls, old.text);
    return WEIR_OK;
  }
  weir_cost_entry *e = weir_arena_array(&c->arena, 1, sizeof *e);
  if (e == NULL) return weir_fail_memory(err, sizeof *e);
  *e = *entry;
  WEIR_TRY(keep(c, full, &full, err));
  name_entry(e, cls, full);
  if (!weir_vec_reserve(c->alloc, &c->entries, 1) ||
      !weir_map_put(&c->index, e->text, (uint32_t)c->entries.count, NULL))
    return weir_fail_memory(err, sizeof *e);
  c->entries.items[c->entries.count++] = e;
  return WEIR_OK;
}

const weir_cost_entry *weir_costs_find(const weir_costs *c, int cls,
                                       uint32_t threads, weir_sv key) {
  char text[WEIR_COST_KEY_BYTES + DEVICE_BYTES];
  uint32_t at =
      weir_map_get(&c->index, full_text(cls, threads, key, text, sizeof text));
  return at == WEIR_MAP_NONE ? NULL : c->entries.items[at];
}

/* ---- Steps */

static uint32_t find_step(const weir_costs *c, int cls, uint32_t threads) {
  uint32_t i = 0;
  while (i < c->step_count &&
         (c->steps[i].cls != cls || c->steps[i].threads != threads))
    i++;
  return i;
}

bool weir_costs_set_step(weir_costs *c, const weir_cost_step *step) {
  uint32_t at = find_step(c, step->cls, step->threads);
  if (at == WEIR_COST_STEPS) return false;
  c->steps[at] = *step;
  if (at == c->step_count) c->step_count++;
  return true;
}

weir_cost_sample weir_costs_step(const weir_costs *c, int cls,
                                 uint32_t threads) {
  uint32_t at = find_step(c, cls, threads);
  return at < c->step_count ? c->steps[at].sample : (weir_cost_sample){0};
}

/* ---- Facts */

static weir_sv fact_of(const weir_costs *c, weir_sv name) {
  for (uint32_t i = 0; i < c->fact_count; i++)
    if (weir_sv_equal(c->facts[i].name, name)) return c->facts[i].text;
  return (weir_sv){"", 0};
}

const weir_cost_fact *weir_costs_differ(const weir_costs *c,
                                        const weir_costs *other,
                                        weir_sv *theirs) {
  for (uint32_t i = 0; i < c->fact_count; i++) {
    *theirs = fact_of(other, c->facts[i].name);
    if (!weir_sv_equal(c->facts[i].text, *theirs)) return &c->facts[i];
  }
  return NULL;
}

/* ---- Writing */

static int by_text(const void *a, const void *b) {
  const weir_cost_entry *x = *(const weir_cost_entry *const *)a;
  const weir_cost_entry *y = *(const weir_cost_entry *const *)b;
  size_t n = x->text.size < y->text.size ? x->text.size : y->text.size;
  int order = memcmp(x->text.data, y->text.data, n);
  if (order != 0) return order;
  return (x->text.size > y->text.size) - (x->text.size < y->text.size);
}

static int by_name(const void *a, const void *b) {
  const weir_cost_fact *x = a, *y = b;
  return strcmp(x->name.data, y->name.data);
}

static int by_device(const void *a, const void *b) {
  const weir_cost_step *x = a, *y = b;
  if (x->cls != y->cls) return x->cls < y->cls ? -1 : 1;
  return (x->threads > y->threads) - (x->threads < y->threads);
}

static bool write_entry(const weir_cost_entry *e, const weir_writer *out) {
  char device[DEVICE_BYTES];
  return weir_place_print(
             out, "unit %s %" PRId64 " %u %u %" PRId64 " %" PRId64 " ",
             device_text(e->cls, e->threads, device, sizeof device),
             e->sample.median_ns, e->sample.spread_permille, e->sample.count,
             e->flops, e->bytes) &&
         out->write(out->self, e->key.data, e->key.size) &&
         out->write(out->self, "\n", 1);
}

static bool write_piece(const weir_cost_piece *p, const char *between,
                        const weir_writer *out) {
  return weir_place_print(out,
                          "link %s %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64
                          " %" PRId64 " %u %u\n",
                          between, p->from_bytes, p->latency_ns, p->fs_per_byte,
                          p->send_ns, p->send_fs_per_byte, p->spread_permille,
                          p->count);
}

static bool write_links(const weir_costs *c, const weir_writer *out) {
  char between[2 * WEIR_DEVICE_KIND_BYTES + 8];
  bool ok = true;
  for (uint32_t i = 0; i < c->piece_count && ok; i++)
    ok = write_piece(&c->pieces[i], "in-process", out);
  for (int i = 0; i < WEIR_DEVICE_KINDS; i++)
    for (int k = 0; k < WEIR_DEVICE_KINDS && ok; k++) {
      if (c->ways[i][k].count == 0) continue;
      snprintf(between, sizeof between, "%s->%s", weir_device_kinds[i]->name,
               weir_device_kinds[k]->name);
      ok = write_piece(&c->ways[i][k], between, out);
    }
  return ok;
}

static bool write_head(const weir_costs *c, const weir_writer *out) {
  weir_cost_fact facts[WEIR_COST_FACTS];
  weir_cost_step steps[WEIR_COST_STEPS];
  char device[DEVICE_BYTES];
  bool ok = weir_place_print(out, "weir-costs 1\n");
  memcpy(facts, c->facts, sizeof facts);
  qsort(facts, c->fact_count, sizeof *facts, by_name);
  for (uint32_t i = 0; i < c->fact_count && ok; i++)
    ok = weir_place_print(out, "machine %.*s %.*s\n", WEIR_SV(facts[i].name),
                          WEIR_SV(facts[i].text));
  memcpy(steps, c->steps, sizeof steps);
  qsort(steps, c->step_count, sizeof *steps, by_device);
  for (uint32_t i = 0; i < c->step_count && ok; i++)
    ok = weir_place_print(
        out, "step %s %" PRId64 " %u %u\n",
        device_text(steps[i].cls, steps[i].threads, device, sizeof device),
        steps[i].sample.median_ns, steps[i].sample.spread_permille,
        steps[i].sample.count);
  return ok && write_links(c, out);
}

bool weir_costs_write(const weir_costs *c, const weir_writer *out) {
  size_t n = c->entries.count;
  weir_cost_entry **order = weir_alloc_array(c->alloc, n + 1, sizeof *order);
  if (order == NULL) return false;
  if (n > 0) memcpy(order, c->entries.items, n * sizeof *order);
  qsort(order, n, sizeof *order, by_text);
  bool ok = write_head(c, out);
  for (size_t i = 0; i < n && ok; i++) ok = write_entry(order[i], out);
  weir_free(c->alloc, order);
  return ok;
}
