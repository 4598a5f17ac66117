/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_EXEC_DEQUE_H_
#define WEIR_EXEC_DEQUE_H_

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* A work-stealing deque of pointers with a fixed capacity. One owner pushes and
 * takes at the bottom, any thread steals at the top. Never allocates.
 * Source: Chase and Lev, SPAA 2005; C11 orders after Le, Pop, Cohen and Zappa
 * Nardelli, PPoPP 2013, with sequentially consistent accesses in place of
 * fences, which the thread sanitizer cannot see. */
enum { WEIR_DEQUE_CAPACITY = 1024 };

typedef struct weir_deque {
  _Alignas(64) _Atomic(int64_t) top;
  _Alignas(64) _Atomic(int64_t) bottom;
  _Atomic(void *) items[WEIR_DEQUE_CAPACITY];
} weir_deque;

/* Owner only. false when full. */
bool weir_deque_push(weir_deque *deque, void *item);
/* Owner only: the newest item, or NULL. */
void *weir_deque_take(weir_deque *deque);
/* Any thread: the oldest item, or NULL when empty or lost to another thread. */
void *weir_deque_steal(weir_deque *deque);

#endif
