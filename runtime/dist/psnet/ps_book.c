/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/dist/psnet/ps_book.h"

#include <pthread.h>
#include <string.h>

#include "runtime/base/size.h"

/* One row for the chief and one for each server: workers are dialled by nobody.
 * Rows have room for the longest address, so that a note needs no memory and
 * cannot fail. */

typedef struct row {
  char address[WEIR_NET_ADDRESS_BYTES];
} row;

struct weir_ps_book {
  const weir_allocator *alloc;
  pthread_mutex_t lock;
  /* Under the lock: */
  struct {
    void (*changed)(void *self);
    void *self;
  } readers[WEIR_PS_READER_COUNT];
  row *rows;
  uint32_t count;
};

weir_status weir_ps_book_create(const weir_allocator *alloc, uint32_t servers,
                                weir_ps_book **out_book, weir_error *err) {
  weir_ps_book *book = weir_alloc_array(alloc, 1, sizeof *book);
  *out_book = NULL;
  if (book == NULL) return weir_fail_memory(err, sizeof *book);
  book->alloc = alloc;
  book->count = 1 + servers;
  book->rows = weir_alloc_array(alloc, book->count, sizeof *book->rows);
  if (book->rows == NULL) {
    weir_free(alloc, book);
    return weir_fail_memory(err, sizeof *book->rows);
  }
  pthread_mutex_init(&book->lock, NULL);
  *out_book = book;
  return WEIR_OK;
}

void weir_ps_book_release(weir_ps_book *book) {
  if (book == NULL) return;
  pthread_mutex_destroy(&book->lock);
  weir_free(book->alloc, book->rows);
  weir_free(book->alloc, book);
}

/* NULL: the task takes no connections. */
static row *row_of(const weir_ps_book *book, weir_ps_task task) {
  uint32_t at = task.role == WEIR_PS_SERVER ? 1 + task.index : 0;
  bool has = task.role == WEIR_PS_SERVER ? task.index < book->count - 1
                                         : task.role == WEIR_PS_CHIEF;
  return has ? &book->rows[at] : NULL;
}

void weir_ps_book_set(weir_ps_book *book, weir_ps_task task,
                      const char *address) {
  size_t bytes = strlen(address) + 1;
  row *r = row_of(book, task);
  if (r == NULL || bytes == 1 || bytes > sizeof r->address) return;
  pthread_mutex_lock(&book->lock);
  bool news = strcmp(r->address, address) != 0;
  if (news) memcpy(r->address, address, bytes);
  for (int i = 0; news && i < WEIR_PS_READER_COUNT; i++)
    if (book->readers[i].changed != NULL)
      book->readers[i].changed(book->readers[i].self);
  pthread_mutex_unlock(&book->lock);
}

void weir_ps_book_get(weir_ps_book *book, weir_ps_task task,
                      char out[WEIR_NET_ADDRESS_BYTES]) {
  const row *r = row_of(book, task);
  out[0] = '\0';
  if (r == NULL) return;
  pthread_mutex_lock(&book->lock);
  memcpy(out, r->address, sizeof r->address);
  pthread_mutex_unlock(&book->lock);
}

void weir_ps_book_listen(weir_ps_book *book, weir_ps_reader reader,
                         void (*changed)(void *self), void *self) {
  pthread_mutex_lock(&book->lock);
  book->readers[reader].changed = changed;
  book->readers[reader].self = self;
  pthread_mutex_unlock(&book->lock);
}
