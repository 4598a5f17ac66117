/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_BASE_VEC_H_
#define WEIR_BASE_VEC_H_

#include "runtime/base/alloc.h"

/* Growable arrays.
 *
 *   WEIR_VEC(int) v = {0};
 *   if (!weir_vec_push(alloc, &v, 7)) return weir_fail_memory(err, 4);
 *   for (size_t i = 0; i < v.count; i++) use(v.items[i]);
 *   weir_vec_free(alloc, &v); */
#define WEIR_VEC(T)         \
  struct {                  \
    T *items;               \
    size_t count, capacity; \
  }

/* Makes room for |extra| more items. false when out of memory. */
#define weir_vec_reserve(alloc, v, extra)                                   \
  ((v)->capacity - (v)->count >= (size_t)(extra) ||                         \
   weir_vec_grow((alloc), (void **)&(v)->items, &(v)->capacity, (v)->count, \
                 (extra), sizeof *(v)->items))

/* Appends an item. false when out of memory, then nothing changed. */
#define weir_vec_push(alloc, v, ...)    \
  (weir_vec_reserve((alloc), (v), 1) && \
   ((v)->items[(v)->count++] = (__VA_ARGS__), true))

#define weir_vec_free(alloc, v)     \
  do {                              \
    weir_free((alloc), (v)->items); \
    (v)->items = NULL;              \
    (v)->count = (v)->capacity = 0; \
  } while (0)

/* The function behind the macros. */
bool weir_vec_grow(const weir_allocator *alloc, void **items, size_t *capacity,
                   size_t count, size_t extra, size_t elem_bytes);

#endif
