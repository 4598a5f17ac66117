/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/dist/run/run_held.h"

void run_held_unref(run_engine *e, run_held *h) {
  if (h == NULL) return;
  pthread_mutex_lock(&e->lock);
  bool last = --h->refs == 0;
  pthread_mutex_unlock(&e->lock);
  if (!last) return;
  for (uint32_t i = 0; h->tensors != NULL && i < h->count; i++)
    weir_tensor_unref(h->tensors[i]);
  weir_free(e->env.alloc, h->tensors);
  weir_free(e->env.alloc, h->nodes);
  weir_free(e->env.alloc, h);
}

run_held *run_held_get(run_engine *e, uint64_t number) {
  pthread_mutex_lock(&e->lock);
  run_held *h = e->held;
  while (h != NULL && h->number != number) h = h->next;
  if (h != NULL) h->refs++;
  pthread_mutex_unlock(&e->lock);
  return h;
}

void run_held_add(run_engine *e, run_held *h) {
  pthread_mutex_lock(&e->lock);
  h->next = e->held;
  e->held = h;
  pthread_mutex_unlock(&e->lock);
}

void run_held_drop(run_engine *e, uint64_t number) {
  pthread_mutex_lock(&e->lock);
  run_held **at = &e->held;
  while (*at != NULL && (*at)->number != number) at = &(*at)->next;
  run_held *h = *at;
  if (h != NULL) *at = h->next;
  pthread_mutex_unlock(&e->lock);
  run_held_unref(e, h);
}

void run_drop_held(run_engine *e) {
  while (e->held != NULL) run_held_drop(e, e->held->number);
}

uint32_t run_held_find(const run_held *h, uint32_t node, uint32_t from) {
  for (uint32_t k = 0; k < h->count; k++) {
    uint32_t i = (uint32_t)(((uint64_t)from + k) % h->count);
    if (h->nodes[i] == node) return i;
  }
  return UINT32_MAX;
}
