/* SPDX-License-Identifier: Apache-2.0 */
/* Blobs: asked for by name, waited for here, and checked by their hash.
 *
 * A file of weights has memory of its whole size, of which the system gives the
 * pages that are written: those of pieces that some reader needed. So tensors
 * have addresses from the start, the graph is loaded and rewritten as in any
 * process, and only bytes that are copied into a variable ever come.
 *
 * A reader waits until all its pieces are there, WINDOW of them on their way at
 * once; a piece is kept, so it comes once for each bundle. One reader at a
 * time. */
#include "runtime/dist/run/run_blobs.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "runtime/net/wire.h"

enum { BLOB_MOST_LOG2 = 40, WINDOW = 4, PAGE = 4096 };

/* A blob under way. */
typedef struct wanted_blob {
  weir_engine_event event;
  run_engine *engine;
  weir_channel_done done;
  atomic_int refs; /* the event's, the waiter's */
  bool ended;      /* under the engine's lock */
  weir_status status;
  weir_error error;
  weir_bytes bytes;
} wanted_blob;

static void blob_unref(wanted_blob *w) {
  if (atomic_fetch_sub(&w->refs, 1) == 1) weir_free(w->engine->env.alloc, w);
}

static void blob_read(weir_engine_event *event) {
  blob_unref((wanted_blob *)event);
}

static void blob_here(void *self, weir_status status, const weir_error *err) {
  wanted_blob *w = self;
  run_engine *e = w->engine;
  w->status = status;
  if (err != NULL) w->error = *err;
  pthread_mutex_lock(&e->lock);
  w->ended = true;
  pthread_cond_broadcast(&e->more);
  pthread_mutex_unlock(&e->lock);
}

/* Asks for the blob, to be received at |dst|, or in memory of its own. */
static weir_status ask(run_engine *e, const uint8_t *name, void *dst,
                       wanted_blob **out, weir_error *err) {
  uint64_t size = weir_blob_size(name);
  *out = NULL;
  if (size >> BLOB_MOST_LOG2 != 0)
    return weir_fail(err, WEIR_W7012, NULL, "a blob of %" PRIu64 " bytes",
                     size);
  wanted_blob *w = weir_alloc_array(e->env.alloc, 1, sizeof *w);
  if (w == NULL) return weir_fail_memory(err, sizeof *w);
  w->engine = e;
  w->error = (weir_error)WEIR_ERROR_INIT;
  w->done = (weir_channel_done){.fn = blob_here, .self = w};
  atomic_init(&w->refs, 2);
  pthread_mutex_lock(&e->lock);
  uint32_t number = ++e->blob_number;
  pthread_mutex_unlock(&e->lock);
  w->event = (weir_engine_event){.kind = WEIR_ENGINE_WANT,
                                 .release = blob_read,
                                 .number = number,
                                 .error = WEIR_ERROR_INIT};
  memcpy(w->event.blob, name, WEIR_BLOB_NAME_BYTES);
  weir_slot slot = {WEIR__V1__VALUE_KIND__BLOB, number, 0};
  if (dst != NULL) {
    w->bytes = (weir_bytes){dst, (size_t)size};
    weir_exchange_recv(e->exchange, WEIR_PEER_DRIVER, &slot, dst, (size_t)size,
                       &w->done);
  } else {
    weir_exchange_recv_owned(e->exchange, WEIR_PEER_DRIVER, &slot, size,
                             &w->bytes, &w->done);
  }
  run_post_event(e, &w->event);
  *out = w;
  return WEIR_OK;
}

/* Waits for it and drops |w|. |*out| is there whenever the bytes came. */
static weir_status wait_for(wanted_blob *w, const uint8_t *name,
                            weir_bytes *out, weir_error *err) {
  run_engine *e = w->engine;
  uint8_t got[WEIR_BLOB_NAME_BYTES];
  pthread_mutex_lock(&e->lock);
  while (!w->ended) pthread_cond_wait(&e->more, &e->lock);
  pthread_mutex_unlock(&e->lock);
  weir_status s = w->status;
  *out = (weir_bytes){NULL, 0};
  if (s == WEIR_OK)
    *out = w->bytes;
  else
    weir_error_copy(err, &w->error);
  blob_unref(w);
  if (s != WEIR_OK) return s;
  weir_blob_name(*out, got);
  if (memcmp(got, name, sizeof got) == 0) return WEIR_OK;
  return weir_fail(err, WEIR_W7051, NULL,
                   "the bytes that came have another hash than was announced");
}

weir_status weir_run_blob(run_engine *e, const uint8_t *name, weir_bytes *out,
                          weir_error *err) {
  for (const run_blob *b = e->blobs; b != NULL; b = b->next)
    if (memcmp(b->name, name, sizeof b->name) == 0) {
      *out = b->bytes;
      return WEIR_OK;
    }
  wanted_blob *w = NULL;
  run_blob *b = weir_alloc_array(e->env.alloc, 1, sizeof *b);
  if (b == NULL) return weir_fail_memory(err, sizeof *b);
  weir_status s = ask(e, name, NULL, &w, err);
  if (s == WEIR_OK) s = wait_for(w, name, &b->bytes, err);
  if (s != WEIR_OK) {
    weir_free(e->env.alloc, (void *)(uintptr_t)b->bytes.data);
    weir_free(e->env.alloc, b);
    return s;
  }
  memcpy(b->name, name, sizeof b->name);
  b->next = e->blobs;
  e->blobs = b;
  *out = b->bytes;
  return WEIR_OK;
}

void weir_run_blobs_release(run_engine *e) {
  while (e->blobs != NULL) {
    run_blob *b = e->blobs;
    e->blobs = b->next;
    weir_free(e->env.alloc, (void *)(uintptr_t)b->bytes.data);
    weir_free(e->env.alloc, b);
  }
}

/* ---- Files in pieces */

/* Piece i is at [starts[i], starts[i + 1]). */
typedef struct run_file {
  struct run_file *next;
  run_engine *engine;
  const weir_bundle_missing *missing;
  weir_sv path;
  uint8_t *data;
  uint64_t *starts;
  bool *here;
  pthread_mutex_t lock; /* of readers */
} run_file;

/* The piece that holds byte |at|, which is one of the file's. */
static uint32_t piece_at(const run_file *f, uint64_t at) {
  uint32_t low = 0, high = f->missing->count - 1;
  while (low < high) {
    uint32_t middle = low + (high - low + 1) / 2;
    if (f->starts[middle] <= at)
      low = middle;
    else
      high = middle - 1;
  }
  return low;
}

/* Fetches at most WINDOW pieces of [*at, end) that are not here. */
static weir_status fetch_some(run_file *f, uint32_t *at, uint32_t end,
                              weir_error *err) {
  wanted_blob *wanted[WINDOW];
  uint32_t pieces[WINDOW], count = 0;
  weir_status s = WEIR_OK;
  for (; s == WEIR_OK && *at < end && count < WINDOW; ++*at) {
    if (f->here[*at]) continue;
    s = ask(f->engine, f->missing->names[*at], f->data + f->starts[*at],
            &wanted[count], err);
    if (s == WEIR_OK) pieces[count++] = *at;
  }
  /* All that was asked for ends here: it is received into the file. */
  for (uint32_t i = 0; i < count; i++) {
    weir_error why = WEIR_ERROR_INIT;
    weir_bytes bytes;
    weir_status own =
        wait_for(wanted[i], f->missing->names[pieces[i]], &bytes, &why);
    f->here[pieces[i]] = own == WEIR_OK;
    if (own == WEIR_OK || s != WEIR_OK) continue;
    s = own;
    *err = why;
    snprintf(err->message, sizeof err->message, "piece %u of %.*s: %.400s",
             pieces[i], WEIR_SV(f->path), why.message);
  }
  return s;
}

static weir_status need(void *self, uint64_t offset, size_t size,
                        weir_error *err) {
  run_file *f = self;
  uint64_t total = f->missing->bytes;
  if (size == 0) return WEIR_OK;
  if (offset >= total || size > total - offset)
    return weir_fail(err, WEIR_W7051, NULL, "%.*s ends before what is read",
                     WEIR_SV(f->path));
  pthread_mutex_lock(&f->lock);
  uint32_t at = piece_at(f, offset), end = piece_at(f, offset + size - 1) + 1;
  weir_status s = WEIR_OK;
  while (s == WEIR_OK && at < end) s = fetch_some(f, &at, end, err);
  pthread_mutex_unlock(&f->lock);
  return s;
}

static void release_file(run_file *f) {
  const weir_allocator *a = f->engine->env.alloc;
  pthread_mutex_destroy(&f->lock);
  weir_free(a, f->data);
  weir_free(a, f->starts);
  weir_free(a, f->here);
  weir_free(a, f);
}

static weir_status open_file(run_engine *e, run_bundle *b, uint32_t i,
                             weir_error *err) {
  const weir_allocator *a = e->env.alloc;
  const weir_bundle_missing *m = &b->unpacked.missing[i];
  run_file *f = weir_alloc_array(a, 1, sizeof *f);
  if (f == NULL) return weir_fail_memory(err, sizeof *f);
  f->engine = e;
  f->missing = m;
  f->path = b->unpacked.files[m->file].path;
  pthread_mutex_init(&f->lock, NULL);
  f->data = weir_alloc_aligned(a, (size_t)m->bytes + 1, PAGE);
  f->starts = weir_alloc_array(a, (size_t)m->count + 1, sizeof *f->starts);
  f->here = weir_alloc_array(a, (size_t)m->count + 1, sizeof *f->here);
  if (f->data == NULL || f->starts == NULL || f->here == NULL) {
    release_file(f);
    return weir_fail_memory(err, (size_t)m->bytes);
  }
  for (uint32_t k = 0; k < m->count; k++)
    f->starts[k + 1] = f->starts[k] + weir_blob_size(m->names[k]);
  f->next = b->files;
  b->files = f;
  weir_bundle_supply_later(&b->unpacked, i, f->data, need, f);
  return WEIR_OK;
}

weir_status weir_run_files_open(run_engine *e, run_bundle *b, weir_error *err) {
  for (uint32_t i = 0; i < b->unpacked.missing_count; i++) {
    const weir_bundle_missing *m = &b->unpacked.missing[i];
    weir_bytes file;
    if (m->in_pieces) {
      WEIR_TRY(open_file(e, b, i, err));
      continue;
    }
    WEIR_TRY(weir_run_blob(e, m->names[0], &file, err));
    WEIR_TRY(weir_bundle_supply(&b->unpacked, i, file, err));
  }
  return WEIR_OK;
}

void weir_run_files_release(run_bundle *b) {
  while (b->files != NULL) {
    run_file *f = b->files;
    b->files = f->next;
    release_file(f);
  }
}
