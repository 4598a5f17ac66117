/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/dist/predict/batcher.h"

#include <inttypes.h>

/* One list, in the order of coming. A batch is its first item and all later
 * ones that fit into the rest, in order; one that does not fit is passed over
 * and comes first in a later batch, so none starves. */

void weir_batcher_init(weir_batcher *b, const weir_batcher_options *options) {
  *b = (weir_batcher){.options = *options};
  b->end = &b->first;
}

weir_status weir_batcher_add(weir_batcher *b, weir_batch_item *item,
                             int64_t now_ns, weir_error *err) {
  if (b->stopping) return weir_fail(err, WEIR_W7078, NULL, "the server stops");
  if (item->deadline_ns <= now_ns)
    return weir_fail(err, WEIR_W5006, NULL, "the deadline is over");
  if (b->count >= b->options.queue)
    return weir_fail(err, WEIR_W7077, NULL,
                     "%" PRIu32 " requests wait, and the queue takes %" PRIu32,
                     b->count, b->options.queue);
  size_t most = b->options.queue_bytes;
  if (b->count > 0 && (b->bytes > most || item->bytes > most - b->bytes))
    return weir_fail(err, WEIR_W7077, NULL,
                     "requests of %zu bytes wait, and the queue takes %zu",
                     b->bytes, most);
  item->next = NULL;
  item->arrived_ns = now_ns;
  *b->end = item;
  b->end = &item->next;
  b->count++;
  b->bytes += item->bytes;
  return WEIR_OK;
}

/* Takes the item that |link| points to, which puts the next one there. */
static weir_batch_item *unlink_item(weir_batcher *b, weir_batch_item **link) {
  weir_batch_item *item = *link;
  *link = item->next;
  if (b->end == &item->next) b->end = link;
  item->next = NULL;
  b->count--;
  b->bytes -= item->bytes;
  return item;
}

static weir_batch_item *take_late(weir_batcher *b, int64_t now_ns) {
  weir_batch_item *late = NULL;
  for (weir_batch_item **link = &b->first; *link != NULL;) {
    if ((*link)->deadline_ns > now_ns) {
      link = &(*link)->next;
      continue;
    }
    weir_batch_item *item = unlink_item(b, link);
    item->next = late;
    late = item;
  }
  return late;
}

/* When |item| must leave. */
static int64_t due_of(const weir_batcher *b, const weir_batch_item *item) {
  int64_t due = item->arrived_ns + b->options.wait_ns;
  int64_t last = item->deadline_ns == INT64_MAX ? INT64_MAX
                                                : item->deadline_ns - b->run_ns;
  return due < last ? due : last;
}

/* Whether the first batch is full; else when it is due. */
static bool is_full(const weir_batcher *b, int64_t *out_due_ns) {
  int64_t rows = 0;
  *out_due_ns = INT64_MAX;
  for (const weir_batch_item *i = b->first; i != NULL; i = i->next) {
    if (i->rows > b->options.rows - rows) return true;
    rows += i->rows;
    int64_t due = due_of(b, i);
    if (due < *out_due_ns) *out_due_ns = due;
  }
  return rows == b->options.rows;
}

static weir_batch_item *take_first(weir_batcher *b) {
  int64_t rows = 0;
  weir_batch_item *batch = NULL, **end = &batch;
  for (weir_batch_item **link = &b->first;
       *link != NULL && rows < b->options.rows;) {
    if ((*link)->rows > b->options.rows - rows) {
      link = &(*link)->next;
      continue;
    }
    *end = unlink_item(b, link);
    rows += (*end)->rows;
    end = &(*end)->next;
  }
  return batch;
}

/* Whether the first batch may leave; else |*out_next_ns| says when to ask. */
static bool may_leave(const weir_batcher *b, int64_t now_ns,
                      int64_t *out_next_ns) {
  int64_t due;
  *out_next_ns = INT64_MAX;
  if (b->first == NULL) return false;
  if (is_full(b, &due) || b->stopping || due <= now_ns) return true;
  *out_next_ns = due;
  return false;
}

bool weir_batcher_ready(const weir_batcher *b, int64_t now_ns,
                        int64_t *out_next_ns) {
  for (const weir_batch_item *i = b->first; i != NULL; i = i->next)
    if (i->deadline_ns <= now_ns) return true;
  return may_leave(b, now_ns, out_next_ns);
}

bool weir_batcher_take(weir_batcher *b, int64_t now_ns,
                       weir_batch_item **out_batch, weir_batch_item **out_late,
                       int64_t *out_next_ns) {
  *out_late = take_late(b, now_ns);
  *out_batch = NULL;
  if (!may_leave(b, now_ns, out_next_ns)) return false;
  *out_batch = take_first(b);
  return true;
}

void weir_batcher_ran(weir_batcher *b, int64_t ns) {
  b->run_ns = b->run_ns == 0 ? ns : (3 * b->run_ns + ns) / 4;
}

void weir_batcher_stop(weir_batcher *b) {
  b->stopping = true;
}
