/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/exec/deque.h"

#include <assert.h>
#include <stddef.h>

/* Items live at [top, bottom), taken modulo the capacity. |top| only grows, and
 * only by a compare-exchange, so each item has one winner and a thief with an
 * old |top| loses (64 bits do not come round). Only the owner writes |bottom|,
 * so push needs no read-modify-write. All operations are O(1). */

enum { kMask = WEIR_DEQUE_CAPACITY - 1 };

bool weir_deque_push(weir_deque *deque, void *item) {
  int64_t bottom = atomic_load_explicit(&deque->bottom, memory_order_relaxed);
  int64_t top = atomic_load_explicit(&deque->top, memory_order_acquire);
  assert(top <= bottom && item != NULL);
  if (bottom - top >= WEIR_DEQUE_CAPACITY) return false;
  atomic_store_explicit(&deque->items[bottom & kMask], item,
                        memory_order_relaxed);
  atomic_store_explicit(&deque->bottom, bottom + 1, memory_order_release);
  return true;
}

void *weir_deque_take(weir_deque *deque) {
  int64_t bottom =
      atomic_load_explicit(&deque->bottom, memory_order_relaxed) - 1;
  int64_t seen = atomic_load_explicit(&deque->top, memory_order_relaxed);
  if (seen > bottom) return NULL; /* only the owner makes it longer */
  /* Lower |bottom| first, then read |top|: both in the one order of all
   * sequentially consistent accesses, so that a thief either sees the lower
   * bottom or has raised top before it is read here. */
  atomic_store(&deque->bottom, bottom);
  int64_t top = atomic_load(&deque->top);
  void *item = NULL;
  if (top <= bottom) {
    item = atomic_load_explicit(&deque->items[bottom & kMask],
                                memory_order_relaxed);
    if (top < bottom) return item;
    /* The last one: a thief may be after it. */
    if (!atomic_compare_exchange_strong(&deque->top, &top, top + 1))
      item = NULL;
  }
  atomic_store_explicit(&deque->bottom, bottom + 1, memory_order_release);
  return item;
}

void *weir_deque_steal(weir_deque *deque) {
  int64_t top = atomic_load(&deque->top);
  int64_t bottom = atomic_load(&deque->bottom);
  if (top >= bottom) return NULL;
  void *item =
      atomic_load_explicit(&deque->items[top & kMask], memory_order_relaxed);
  /* The item was read before it is won: after that its place may be reused. */
  if (!atomic_compare_exchange_strong(&deque->top, &top, top + 1)) return NULL;
  return item;
}
