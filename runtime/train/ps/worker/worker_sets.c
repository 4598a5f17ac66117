/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/train/ps/worker/worker_sets.h"

#include <assert.h>

void weir_worker_sets_release(weir_worker_sets *s) {
  for (size_t i = 0; i < s->items.count; i++)
    weir_worker_set_release(s->compute, s->items.items[i]);
  for (size_t i = 0; i < s->parcels.count; i++)
    weir_free(s->alloc, s->parcels.items[i]);
  weir_vec_free(s->alloc, &s->parcels);
  weir_vec_free(s->alloc, &s->items);
}

weir_status weir_worker_sets_find(weir_worker_sets *s, weir_worker_set **out,
                                  weir_error *err) {
  weir_worker_set *set = NULL;
  *out = NULL;
  for (size_t i = 0; i < s->items.count && *out == NULL; i++)
    if (!s->items.items[i]->held && s->items.items[i]->sending == 0)
      *out = s->items.items[i];
  if (*out != NULL || s->items.count >= s->most) return WEIR_OK;
  WEIR_TRY(weir_worker_set_create(s->compute, &set, err));
  if (!weir_vec_push(s->alloc, &s->items, set)) {
    weir_worker_set_release(s->compute, set);
    return weir_fail_memory(err, sizeof *set);
  }
  *out = set;
  return WEIR_OK;
}

weir_worker_set *weir_worker_sets_of(const weir_worker_sets *s, uint64_t run) {
  for (size_t i = 0; i < s->items.count; i++)
    if (s->items.items[i]->held && s->items.items[i]->run == run)
      return s->items.items[i];
  return NULL;
}

void weir_worker_sets_drop(weir_worker_sets *s, uint64_t run) {
  weir_worker_set *set = weir_worker_sets_of(s, run);
  if (set != NULL) set->held = false;
}

void weir_worker_sets_drop_all(weir_worker_sets *s) {
  for (size_t i = 0; i < s->items.count; i++) s->items.items[i]->held = false;
}

/* ---- Parcels */

static void on_sent(weir_ps_values *values) {
  weir_worker_parcel *p = values->owner;
  weir_worker_sets *s = p->of;
  assert(p->set->sending > 0);
  p->set->sending--;
  p->next = s->free_parcels;
  s->free_parcels = p;
  s->freed(s->self);
}

weir_ps_values *weir_worker_sets_wrap(weir_worker_sets *s, weir_worker_set *set,
                                      const weir_ps_piece *pieces,
                                      uint32_t count) {
  weir_worker_parcel *p = s->free_parcels;
  if (p != NULL) {
    s->free_parcels = p->next;
  } else {
    p = weir_alloc_array(s->alloc, 1, sizeof *p);
    if (p == NULL) return NULL;
    if (!weir_vec_push(s->alloc, &s->parcels, p)) {
      weir_free(s->alloc, p);
      return NULL;
    }
  }
  *p = (weir_worker_parcel){
      .of = s,
      .set = set,
      .values = {
          .pieces = pieces, .count = count, .sent = on_sent, .owner = p}};
  set->sending++;
  return &p->values;
}
