/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/train/source/source_window.h"

#include <inttypes.h>
#include <string.h>

#include "runtime/base/size.h"
#include "runtime/train/data/data_files.h"
#include "runtime/train/data/data_source.h"

/* Windows over another source: example i is |length| of its examples in a row,
 * from i * shift on. With a target, one more is read: the column holds the
 * first |length|, `target` the last |length|.
 *
 * Streams: the source's examples are laid out in |lanes| equal pieces, and
 * batch s holds window s of each piece, so that a state that is carried from
 * batch to batch sees each piece from its start to its end (truncated
 * backpropagation through time; Mikolov et al., Interspeech 2010). Example i is
 * then window i / lanes of piece i % lanes. Shards are equal spans of the
 * source, each laid out in this way. */

typedef struct window_source {
  weir_source base;
  weir_source *inner; /* owned */
  int64_t length, shift, extra;
  int64_t lanes, first, lane_length; /* streams; lanes 0: none */
  weir_source_column *infos;
} window_source;

typedef struct window_cursor {
  weir_source_cursor *inner;
  void **dst;       /* by column of |inner| */
  uint8_t *scratch; /* one window and its target */
} window_cursor;

static void window_release(weir_source *base) {
  window_source *s = (window_source *)base;
  weir_source_release(s->inner);
  weir_free(base->env->alloc, s);
}

static void cursor_release(const weir_source *base,
                           weir_source_cursor *cursor) {
  const window_source *s = (const window_source *)base;
  window_cursor *c = (window_cursor *)cursor;
  if (c == NULL) return;
  s->inner->vtable->cursor_release(s->inner, c->inner);
  weir_free(base->env->alloc, c->dst);
  weir_free(base->env->alloc, c->scratch);
  weir_free(base->env->alloc, c);
}

static weir_status cursor_create(const weir_source *base,
                                 weir_source_cursor **out_cursor,
                                 weir_error *err) {
  const window_source *s = (const window_source *)base;
  const weir_allocator *alloc = base->env->alloc;
  size_t bytes = 0;
  *out_cursor = NULL;
  if (!weir_size_mul(s->inner->columns[0].bytes, (size_t)s->length + 1, &bytes))
    return weir_fail_memory(err, SIZE_MAX);
  window_cursor *c = weir_alloc_array(alloc, 1, sizeof *c);
  if (c == NULL) return weir_fail_memory(err, sizeof *c);
  weir_status status = WEIR_OK;
  c->dst = weir_alloc_array(alloc, s->inner->column_count, sizeof *c->dst);
  if (s->extra > 0) c->scratch = weir_alloc_aligned(alloc, bytes, 64);
  if (c->dst == NULL || (s->extra > 0 && c->scratch == NULL))
    status = weir_fail_memory(err, bytes);
  if (status == WEIR_OK)
    status = s->inner->vtable->cursor_create(s->inner, &c->inner, err);
  if (status == WEIR_OK)
    *out_cursor = (weir_source_cursor *)c;
  else
    cursor_release(base, (weir_source_cursor *)c);
  return status;
}

/* The first example of window |i| in the inner source. */
static int64_t start_of(const window_source *s, int64_t i) {
  if (s->lanes == 0) return i * s->shift;
  return s->first + (i % s->lanes) * s->lane_length +
         (i / s->lanes) * s->length;
}

static weir_status window_read(const weir_source *base,
                               weir_source_cursor *cursor, int64_t first,
                               int64_t count, void *const *dst,
                               weir_error *err) {
  const window_source *s = (const window_source *)base;
  window_cursor *c = (window_cursor *)cursor;
  for (int64_t r = 0; r < count; r++) {
    for (uint32_t k = 0; k < s->inner->column_count; k++)
      c->dst[k] = dst[k] == NULL
                      ? NULL
                      : (uint8_t *)dst[k] + base->columns[k].bytes * (size_t)r;
    size_t bytes = base->columns[0].bytes;
    /* Column and target overlap: read once, copied twice. */
    if (s->extra > 0) c->dst[0] = c->scratch;
    WEIR_TRY(s->inner->vtable->read(s->inner, c->inner, start_of(s, first + r),
                                    s->length + s->extra, c->dst, err));
    if (s->extra == 0) continue;
    const uint8_t *next = c->scratch + s->inner->columns[0].bytes;
    if (dst[0] != NULL)
      memcpy((uint8_t *)dst[0] + bytes * (size_t)r, c->scratch, bytes);
    if (dst[1] != NULL)
      memcpy((uint8_t *)dst[1] + bytes * (size_t)r, next, bytes);
  }
  return WEIR_OK;
}

static const weir_source_vtable kWindows = {cursor_create, cursor_release,
                                            window_read, window_release};

/* ---- Opening */

static weir_status make_columns(const weir_source_context *context,
                                window_source *s, weir_error *err) {
  uint32_t n = s->inner->column_count + (uint32_t)s->extra;
  s->infos = weir_arena_array(context->arena, n, sizeof *s->infos);
  if (s->infos == NULL) return weir_fail_memory(err, n * sizeof *s->infos);
  for (uint32_t c = 0; c < n; c++) {
    uint32_t from = c < s->inner->column_count ? c : 0;
    weir_source_column *info = &s->infos[c];
    *info = s->inner->columns[from];
    if (c != from) info->name = WEIR_SV_LIT("target");
    if (info->rank + 2 > WEIR_MAX_RANK)
      return weir_fail(err, WEIR_W4022, &info->mark,
                       "column '%.*s' has too many dimensions for windows",
                       WEIR_SV(info->name));
    memmove(info->dims + 1, info->dims,
            (size_t)info->rank * sizeof info->dims[0]);
    info->dims[0] = s->length;
    info->rank++;
    WEIR_TRY(weir_source_column_size(info, err));
  }
  s->base.columns = s->infos;
  s->base.column_count = n;
  return WEIR_OK;
}

/* Pieces of the shard's span; a piece gives as many windows as it holds, the
 * one example more for the last target included. */
static void lay_out(const weir_source_context *x, window_source *s) {
  int64_t n = s->inner->examples, shards = 1, shard = 0;
  if (x->spec->sharded && x->shards > 0) {
    shards = x->shards;
    shard = x->shard;
  }
  int64_t rest = n % shards, share = n / shards;
  s->first = shard * share + (shard < rest ? shard : rest);
  if (shard < rest) share++;
  s->lane_length = share / s->lanes;
  int64_t windows = (s->lane_length - s->extra) / s->length;
  s->base.examples = windows > 0 ? windows * s->lanes : 0;
}

weir_status weir_source_window_open(const weir_source_context *context,
                                    weir_source *inner,
                                    weir_source **out_source, weir_error *err) {
  const weir_data_spec *spec = context->spec;
  *out_source = NULL;
  window_source *s = weir_alloc_array(context->env->alloc, 1, sizeof *s);
  if (s == NULL) {
    weir_source_release(inner);
    return weir_fail_memory(err, sizeof *s);
  }
  s->base = (weir_source){.vtable = &kWindows,
                          .env = context->env,
                          .forward_only = inner->forward_only,
                          .file = inner->file};
  s->inner = inner;
  s->length = spec->length;
  s->shift = spec->shift;
  s->extra = spec->target_next ? 1 : 0;
  s->lanes = spec->stream ? context->batch : 0;
  weir_status status = WEIR_OK;
  if (s->extra > 0 && inner->column_count != 1)
    status = weir_fail(err, WEIR_W4024, &spec->mark,
                       "`target: next` is for data sets with one column");
  if (status == WEIR_OK) status = make_columns(context, s, err);
  int64_t room = inner->examples - s->length - s->extra;
  s->base.examples = room >= 0 ? room / s->shift + 1 : 0;
  if (s->lanes > 0) lay_out(context, s);
  if (status == WEIR_OK)
    *out_source = &s->base;
  else
    window_release(&s->base);
  return status;
}
