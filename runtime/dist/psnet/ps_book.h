/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_DIST_PS_BOOK_H_
#define WEIR_DIST_PS_BOOK_H_

#include "runtime/base/alloc.h"
#include "runtime/dist/ps/ps.h"
#include "runtime/net/transport.h"

/* Addresses of a job's tasks that are not known in advance, or change.
 *
 * A net that has a book notes in it where it listens itself, and dials others
 * where the book says; those of which it says nothing are dialled later.
 * Whoever learns of an address (runtime/dist/meet) notes it. Each note that
 * changes something is told to the listeners. Any thread may call. */

typedef struct weir_ps_book weir_ps_book;

/* Two may listen: the net, and the one that learns. */
typedef enum weir_ps_reader {
  WEIR_PS_READER_NET,
  WEIR_PS_READER_MEET,
  WEIR_PS_READER_COUNT
} weir_ps_reader;

/* Of the chief and |servers| servers; all unknown. Errors: W6001. */
weir_status weir_ps_book_create(const weir_allocator *alloc, uint32_t servers,
                                weir_ps_book **out_book, weir_error *err);
void weir_ps_book_release(weir_ps_book *book); /* NULL-safe */

/* Notes that |task| takes connections at |address|. A worker's, an empty one
 * and one that is too long are not noted. */
void weir_ps_book_set(weir_ps_book *book, weir_ps_task task,
                      const char *address);
/* Copies the address of |task|; "": not known. */
void weir_ps_book_get(weir_ps_book *book, weir_ps_task task,
                      char out[WEIR_NET_ADDRESS_BYTES]);
/* From here on |changed| is called after each change, on the thread that made
 * it, with the book locked: it may post and nothing more. NULL: no more, and no
 * call is under way when this returns. */
void weir_ps_book_listen(weir_ps_book *book, weir_ps_reader reader,
                         void (*changed)(void *self), void *self);

#endif
