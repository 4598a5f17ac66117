/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/exec/store/var_store.h"

#include <stdatomic.h>
#include <string.h>

#include "runtime/exec/gpu/gpus.h"

/* Rows are compared by name, each with each other: a session joins once, and a
 * task has some hundred variables.
 *
 * Invariant: a cell lives as long as its row or a session has it, so rows that
 * are replaced do not take values from under a session that is ending. */

typedef struct store_row {
  char *name;
  size_t name_size;
  weir_dtype dtype;
  weir_shape shape;
  bool assigned;
  weir_var_cell *cell;
} store_row;

struct weir_var_store {
  const weir_allocator *alloc;
  atomic_int refs;
  pthread_mutex_t lock;
  bool made; /* the rows count */
  store_row *rows;
  uint32_t count;
};

weir_status weir_var_store_create(const weir_allocator *alloc,
                                  weir_var_store **out_store, weir_error *err) {
  weir_var_store *s = weir_alloc_array(alloc, 1, sizeof *s);
  *out_store = s;
  if (s == NULL) return weir_fail_memory(err, sizeof *s);
  s->alloc = alloc;
  atomic_init(&s->refs, 1);
  pthread_mutex_init(&s->lock, NULL);
  return WEIR_OK;
}

void weir_var_buffer_free(const weir_allocator *alloc, weir_var_buffer *b) {
  if (b->gpu != NULL) {
    weir_device *d = b->gpu->gpu.device;
    d->vt->free(d, &b->memory);
  }
  weir_free(alloc, b);
}

void weir_var_cell_clear(const weir_allocator *alloc, weir_var_cell *cell) {
  while (cell->buffers != NULL) {
    weir_var_buffer *b = cell->buffers;
    cell->buffers = b->next;
    weir_var_buffer_free(alloc, b);
  }
  cell->current = NULL;
}

pthread_mutex_t *weir_var_store_lock(weir_var_store *s) {
  return &s->lock;
}

void weir_var_store_leave(weir_var_store *s, weir_var_cell *cell) {
  pthread_mutex_lock(&s->lock);
  bool last = --cell->refs == 0;
  pthread_mutex_unlock(&s->lock);
  if (!last) return;
  weir_var_cell_clear(s->alloc, cell);
  weir_free(s->alloc, cell);
}

static void free_rows(weir_var_store *s, store_row *rows, uint32_t count) {
  for (uint32_t i = 0; rows != NULL && i < count; i++) {
    if (rows[i].cell != NULL) weir_var_store_leave(s, rows[i].cell);
    weir_free(s->alloc, rows[i].name);
  }
  weir_free(s->alloc, rows);
}

void weir_var_store_ref(weir_var_store *s) {
  atomic_fetch_add(&s->refs, 1);
}

void weir_var_store_unref(weir_var_store *s) {
  if (s == NULL || atomic_fetch_sub(&s->refs, 1) != 1) return;
  free_rows(s, s->rows, s->count);
  pthread_mutex_destroy(&s->lock);
  weir_free(s->alloc, s);
}

/* ---- Rows */

static bool make_row(weir_var_store *s, const weir_var_store_entry *from,
                     store_row *row) {
  row->name = weir_alloc(s->alloc, from->name.size + 1);
  row->cell = weir_alloc_array(s->alloc, 1, sizeof *row->cell);
  if (row->name == NULL || row->cell == NULL) {
    weir_free(s->alloc, row->cell);
    row->cell = NULL;
    return false;
  }
  memcpy(row->name, from->name.data, from->name.size);
  row->name_size = from->name.size;
  row->dtype = from->dtype;
  row->shape = *from->shape;
  row->assigned = from->assigned;
  row->cell->refs = 1;
  return true;
}

static weir_status replace(weir_var_store *s,
                           const weir_var_store_entry *entries, uint32_t count,
                           weir_error *err) {
  store_row *rows = weir_alloc_array(s->alloc, (size_t)count + 1, sizeof *rows);
  bool ok = rows != NULL;
  for (uint32_t i = 0; ok && i < count; i++)
    ok = make_row(s, &entries[i], &rows[i]);
  if (!ok) {
    free_rows(s, rows, count);
    return weir_fail_memory(err, count * sizeof *rows);
  }
  pthread_mutex_lock(&s->lock);
  store_row *old = s->rows;
  uint32_t old_count = s->count;
  s->rows = rows;
  s->count = count;
  s->made = true;
  pthread_mutex_unlock(&s->lock);
  free_rows(s, old, old_count);
  return WEIR_OK;
}

static weir_sv name_of(const store_row *row) {
  return (weir_sv){row->name, row->name_size};
}

static store_row *find(const weir_var_store *s, weir_sv name) {
  for (uint32_t i = 0; i < s->count; i++)
    if (weir_sv_equal(name_of(&s->rows[i]), name)) return &s->rows[i];
  return NULL;
}

static bool has(const weir_var_store_entry *entries, uint32_t count,
                weir_sv name) {
  for (uint32_t i = 0; i < count; i++)
    if (weir_sv_equal(entries[i].name, name)) return true;
  return false;
}

static weir_status compare(const weir_var_store_entry *e, const store_row *row,
                           weir_error *err) {
  char ours[160], theirs[160];
  weir_shape_print(e->shape, NULL, NULL, ours, sizeof ours);
  if (row == NULL)
    return weir_fail(err, WEIR_W7086, NULL,
                     "variable %.*s of this graph is not in the share here",
                     WEIR_SV(e->name));
  weir_shape_print(&row->shape, NULL, NULL, theirs, sizeof theirs);
  if (e->dtype != row->dtype || !weir_shape_equal(e->shape, &row->shape))
    return weir_fail(err, WEIR_W7086, NULL,
                     "variable %.*s is %s%s in this graph, %s%s in the share",
                     WEIR_SV(e->name), weir_dtype_name(e->dtype), ours,
                     weir_dtype_name(row->dtype), theirs);
  if (e->assigned != row->assigned)
    return weir_fail(err, WEIR_W7086, NULL,
                     "variable %.*s is %sassigned in this graph, and is%s in "
                     "that of the share",
                     WEIR_SV(e->name), e->assigned ? "" : "not ",
                     row->assigned ? "" : " not");
  return WEIR_OK;
}

/* Under the lock. */
static weir_status take(weir_var_store *s, weir_var_store_entry *entries,
                        uint32_t count, weir_error *err) {
  if (!s->made)
    return weir_fail(err, WEIR_W7087, NULL, "there are no values of the share");
  for (uint32_t i = 0; i < count; i++)
    WEIR_TRY(compare(&entries[i], find(s, entries[i].name), err));
  for (uint32_t i = 0; i < s->count; i++)
    if (!has(entries, count, name_of(&s->rows[i])))
      return weir_fail(err, WEIR_W7086, NULL,
                       "variable %.*s of the share is not in this graph here",
                       WEIR_SV(name_of(&s->rows[i])));
  for (uint32_t i = 0; i < count; i++) {
    entries[i].cell = find(s, entries[i].name)->cell;
    entries[i].cell->refs++;
  }
  return WEIR_OK;
}

weir_status weir_var_store_join(weir_var_store *s, bool fresh,
                                weir_var_store_entry *entries, uint32_t count,
                                weir_error *err) {
  if (fresh) WEIR_TRY(replace(s, entries, count, err));
  pthread_mutex_lock(&s->lock);
  weir_status st = take(s, entries, count, err);
  pthread_mutex_unlock(&s->lock);
  return st;
}
