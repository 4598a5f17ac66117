/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/train/source/records.h"

#include <assert.h>

#include "runtime/base/vec.h"
#include "runtime/train/data/data_files.h"

/* Records of any length have no place that could be computed, so some places
 * are kept: every |stride|-th. When the index is full, every second entry goes
 * and the stride doubles. So one scan is enough, without knowing the number of
 * records before, and a record is reached in less than |stride| steps.
 *
 * Batches of a stream (source_window.c) read from as many places in turn as
 * there are lanes. A small table, from the number of a record to its place,
 * keeps the place after each read: the next window of a lane begins there. A
 * collision costs a walk from the index, nothing else. */

enum {
  kWindow = 65536,
  kIndexBytes = 1 << 18,
  kIndexShare = 64, /* of the files' bytes */
  kHints = 8,
  kMostHints = 1 << 16
};

weir_status weir_records_open(weir_records *r,
                              const weir_source_context *context,
                              const weir_files_spec *files, weir_error *err) {
  const char *const *paths = NULL;
  uint32_t count = 0;
  uint64_t bytes = 0;
  *r = (weir_records){.env = context->env, .stride = 1};
  WEIR_TRY(weir_data_paths(context, files, &paths, &count, err));
  r->blobs = weir_arena_array(context->arena, count, sizeof *r->blobs);
  if (r->blobs == NULL) return weir_fail_memory(err, count * sizeof *r->blobs);
  uint64_t left = context->spec->memory_bytes;
  while (r->blob_count < count) {
    weir_blob **blob = &r->blobs[r->blob_count];
    WEIR_TRY(weir_blob_open(context->env, context->root, paths[r->blob_count],
                            blob, err));
    r->blob_count++;
    WEIR_TRY(weir_blob_load(*blob, left, err));
    if ((*blob)->content != NULL) left -= (*blob)->file.bytes;
    bytes += (*blob)->file.bytes;
  }
  uint64_t most = bytes / kIndexShare;
  if (most < kIndexBytes) most = kIndexBytes;
  r->index_most = (size_t)(most / sizeof *r->index);
  return WEIR_OK;
}

void weir_records_close(weir_records *r) {
  for (uint32_t i = 0; i < r->blob_count; i++) weir_blob_release(r->blobs[i]);
  if (r->env != NULL) weir_free(r->env->alloc, r->index);
  *r = (weir_records){0};
}

bool weir_records_packed(const weir_records *r, const char **out_file) {
  for (uint32_t i = 0; i < r->blob_count; i++)
    if (r->blobs[i]->gzip) {
      *out_file = r->blobs[i]->path;
      return true;
    }
  return false;
}

/* ---- The index */

static bool grow_index(weir_records *r) {
  return r->index_count < r->index_capacity ||
         weir_vec_grow(r->env->alloc, (void **)&r->index, &r->index_capacity,
                       r->index_count, 1, sizeof *r->index);
}

/* Keeps every second place. */
static void thin_index(weir_records *r) {
  size_t kept = 0;
  for (size_t i = 0; i < r->index_count; i += 2) r->index[kept++] = r->index[i];
  r->index_count = kept;
  r->stride *= 2;
}

static weir_status add_place(weir_records *r, const weir_record_place *place,
                             weir_error *err) {
  if ((r->count & (r->stride - 1)) == 0) {
    if (r->index_count >= r->index_most) thin_index(r);
    if ((r->count & (r->stride - 1)) == 0) {
      if (!grow_index(r)) return weir_fail_memory(err, sizeof *r->index);
      r->index[r->index_count++] = *place;
    }
  }
  r->count++;
  return WEIR_OK;
}

/* ---- Cursors */

weir_status weir_record_cursor_init(weir_record_cursor *c,
                                    const weir_records *records, int64_t lanes,
                                    weir_error *err) {
  const weir_env *env = records->env;
  size_t hints = kHints;
  while (hints < kMostHints && (int64_t)hints < 4 * lanes) hints *= 2;
  *c = (weir_record_cursor){.records = records, .at = -1};
  c->hints = weir_alloc_array(env->alloc, hints, sizeof *c->hints);
  if (c->hints == NULL) return weir_fail_memory(err, hints * sizeof *c->hints);
  c->hint_mask = hints - 1;
  for (size_t i = 0; i < hints; i++) c->hints[i].at = -1;
  return weir_stream_create(env, kWindow, &c->stream, err);
}

void weir_record_cursor_release(weir_record_cursor *c) {
  if (c->records == NULL) return;
  weir_stream_release(c->stream);
  weir_free(c->records->env->alloc, c->hints);
  *c = (weir_record_cursor){0};
}

/* Reads one record, or goes to the next file and tries again. */
static weir_status step(weir_record_cursor *c, weir_record_next_fn next,
                        void *self, bool *out_end, weir_error *err) {
  const weir_records *r = c->records;
  *out_end = true;
  for (; c->place.file < r->blob_count; c->place.file++) {
    const weir_blob *blob = r->blobs[c->place.file];
    bool end = false;
    WEIR_TRY(weir_stream_attach(c->stream, blob, c->place.offset, err));
    WEIR_TRY(next(self, c->stream, blob->path, &c->place, &end, err));
    if (!end) {
      c->place.offset = weir_stream_at(c->stream);
      c->at++;
      *out_end = false;
      return WEIR_OK;
    }
    c->place.offset = 0;
    c->place.line = 1;
  }
  return WEIR_OK;
}

weir_status weir_records_scan(weir_records *r, weir_record_next_fn next,
                              void *self, weir_error *err) {
  weir_record_cursor c;
  bool end = false;
  weir_status s = weir_record_cursor_init(&c, r, 1, err);
  c.at = 0;
  c.place = (weir_record_place){.line = 1};
  while (s == WEIR_OK && !end) {
    weir_record_place before = c.place;
    s = step(&c, next, self, &end, err);
    /* A place at a file's end is read as the next file's start. */
    if (s == WEIR_OK && !end) s = add_place(r, &before, err);
  }
  weir_record_cursor_release(&c);
  return s;
}

/* Fibonacci hashing: numbers in arithmetic progression, as lanes have them, are
 * spread evenly (Knuth, The Art of Computer Programming 3, 6.4). */
static size_t slot_of(const weir_record_cursor *c, int64_t at) {
  uint64_t h = (uint64_t)at * 0x9e3779b97f4a7c15u;
  return (size_t)(h >> 40) & c->hint_mask;
}

static void remember(weir_record_cursor *c) {
  c->hints[slot_of(c, c->at)] = (weir_record_hint){c->at, c->place};
}

static void go_near(weir_record_cursor *c, int64_t at) {
  const weir_records *r = c->records;
  int64_t indexed = at & ~(r->stride - 1);
  if (c->at == at) return;
  const weir_record_hint *hint = &c->hints[slot_of(c, at)];
  if (hint->at == at) {
    c->at = at;
    c->place = hint->place;
  } else if (c->at < indexed || c->at > at) {
    assert((size_t)(indexed / r->stride) < r->index_count);
    c->at = indexed;
    c->place = r->index[indexed / r->stride];
  }
}

weir_status weir_record_cursor_read(weir_record_cursor *c, int64_t at,
                                    weir_record_next_fn next,
                                    weir_record_next_fn skip, void *self,
                                    weir_error *err) {
  bool end = false;
  go_near(c, at);
  while (c->at < at && !end) WEIR_TRY(step(c, skip, self, &end, err));
  remember(c);
  if (!end) WEIR_TRY(step(c, next, self, &end, err));
  weir_mark mark = {.file = c->records->blobs[0]->path};
  if (end)
    return weir_fail(err, WEIR_W4020, &mark,
                     "record %lld is gone: a file has changed while it was in "
                     "use",
                     (long long)at);
  remember(c);
  return WEIR_OK;
}
