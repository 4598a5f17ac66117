/* SPDX-License-Identifier: Apache-2.0 */
/* A bundle as bytes: a mark, options, the ops that the driver's program has
 * registered, what the loader was given, the files that it read, the placing.
 */
#include "runtime/dist/bundle/bundle.h"

#include <string.h>

#include "placement/carry/carry_bytes.h"
#include "placement/carry/carry_placing.h"

enum {
  BUNDLE_MARK = 0x344c4442, /* BDL4 */
  PAIR_BYTES = 16,          /* of two texts, at least */
  ENV_BYTES = 20,
  FILE_BYTES = 28
};

/* ---- Writing */

/* How the bytes of a file come. */
enum { FILE_INLINE, FILE_BLOB, FILE_PIECES };

/* A text that may be missing. */
static void put_optional(weir_strbuf *out, weir_sv text) {
  weir_carry_u32(out, text.data != NULL);
  weir_carry_text(out, text);
}

/* |at|: the first blob of the file, or of a later one. */
static void put_file(weir_strbuf *out, const weir_sources *s, uint32_t file,
                     const weir_bundle_blobs *blobs, size_t *at) {
  const weir_source_file *f = &s->files[file];
  size_t end = *at;
  while (end < blobs->rows.count && blobs->rows.items[end].file == file) end++;
  weir_carry_u32(out, f->beneath);
  weir_carry_text(out, f->root);
  weir_carry_text(out, f->path);
  if (end == *at) {
    weir_carry_u32(out, FILE_INLINE);
    weir_carry_text(out, (weir_sv){(const char *)f->bytes.data, f->bytes.size});
    return;
  }
  weir_carry_u32(out, f->mapped ? FILE_PIECES : FILE_BLOB);
  if (f->mapped) weir_carry_u32(out, (uint32_t)(end - *at));
  for (; *at < end; ++*at)
    (void)weir_strbuf_append(out, (const char *)blobs->rows.items[*at].name,
                             WEIR_BLOB_NAME_BYTES);
}

static void put_pairs(weir_strbuf *out, const weir_param_value *pairs,
                      size_t count) {
  weir_carry_u32(out, (uint32_t)count);
  for (size_t i = 0; i < count; i++) {
    weir_carry_text(out, pairs[i].name);
    weir_carry_text(out, pairs[i].text);
  }
}

static void put_ops(weir_strbuf *out, const weir_registry *registry) {
  size_t count = weir_registry_op_count(registry);
  uint32_t registered = 0;
  for (size_t i = 0; i < count; i++)
    registered += weir_registry_op_at(registry, i)->signature != NULL;
  weir_carry_u32(out, registered);
  for (size_t i = 0; i < count; i++) {
    const weir_op_def *op = weir_registry_op_at(registry, i);
    if (op->signature == NULL) continue;
    weir_carry_text(out, weir_sv_from(op->name));
    weir_carry_text(out, weir_sv_from(op->signature));
  }
}

static void put_sources(weir_strbuf *out, const weir_sources *s,
                        const weir_bundle_blobs *blobs) {
  size_t at = 0;
  weir_carry_u32(out, s->is_text);
  weir_carry_text(out, s->main);
  weir_carry_text(out, s->text);
  weir_carry_u64(out, s->limits.bytes);
  weir_carry_u32(out, s->limits.depth);
  weir_carry_u64(out, s->limits.nodes);
  weir_carry_u64(out, s->max_nodes);
  weir_carry_u64(out, s->seed);
  put_optional(out, s->labels);
  put_pairs(out, s->params, s->param_count);
  put_pairs(out, s->overrides, s->override_count);
  weir_carry_u32(out, (uint32_t)s->env_count);
  for (size_t i = 0; i < s->env_count; i++) {
    weir_carry_text(out, s->env[i].name);
    put_optional(out, s->env[i].value);
  }
  weir_carry_u32(out, (uint32_t)s->file_count);
  for (uint32_t i = 0; i < (uint32_t)s->file_count; i++)
    put_file(out, s, i, blobs, &at);
}

weir_status weir_bundle_pack(const weir_allocator *alloc, const weir_bundle *b,
                             const weir_bundle_blobs *blobs,
                             const weir_graph *run_graph, weir_strbuf *out,
                             weir_error *err) {
  weir_strbuf placing;
  weir_carry_u32(out, BUNDLE_MARK);
  weir_carry_u32(out, b->train);
  weir_carry_u32(out, b->no_fusion);
  weir_carry_u32(out, b->no_fold);
  weir_carry_u32(out, b->ref_kernels);
  weir_carry_u32(out, b->no_layout);
  weir_carry_u32(out, b->tf32);
  weir_carry_u64(out, b->session_seed);
  weir_carry_u64(out, b->memory_limit);
  weir_carry_u64(out, b->number);
  put_ops(out, run_graph->registry);
  put_sources(out, b->sources, blobs);
  weir_strbuf_init(&placing, alloc);
  weir_status s = weir_placing_pack(b->placing, run_graph, &placing, err);
  weir_carry_text(out, weir_strbuf_view(&placing));
  weir_strbuf_release(&placing);
  return s == WEIR_OK ? weir_strbuf_status(out, err) : s;
}

/* ---- Reading */

typedef struct taker {
  weir_reader r;
  weir_unpacked_bundle *b;
  weir_error *err;
  bool no_memory;
} taker;

static weir_status malformed(const taker *t, const char *what) {
  if (t->no_memory) return weir_fail_memory(t->err, t->r.size);
  return weir_fail(t->err, WEIR_W7051, NULL,
                   "the bundle that came is malformed: %s", what);
}

/* A copy that ends with NUL; one inside makes the reader fail. */
static weir_sv take_text(taker *t, bool binary) {
  weir_sv text = weir_carried_text(&t->r);
  if (!binary && text.size > 0 && memchr(text.data, 0, text.size) != NULL)
    t->r.failed = true;
  if (t->r.failed) return (weir_sv){"", 0};
  text.data = weir_arena_string(&t->b->arena, text.data, text.size);
  if (text.data == NULL) t->no_memory = t->r.failed = true;
  return text;
}

static weir_sv take_optional(taker *t) {
  bool there = weir_reader_u32le(&t->r) != 0;
  weir_sv text = take_text(t, false);
  return there ? text : (weir_sv){NULL, 0};
}

static void *take_rows(taker *t, uint32_t count, size_t bytes) {
  void *rows = weir_arena_array(&t->b->arena, (size_t)count + 1, bytes);
  if (rows == NULL) t->no_memory = t->r.failed = true;
  return rows;
}

static const weir_param_value *take_pairs(taker *t, size_t *out_count) {
  uint32_t count = weir_carried_count(&t->r, PAIR_BYTES);
  weir_param_value *pairs = take_rows(t, count, sizeof *pairs);
  for (uint32_t i = 0; i < count && !t->r.failed; i++) {
    pairs[i].name = take_text(t, false);
    pairs[i].text = take_text(t, false);
  }
  *out_count = count;
  return pairs;
}

static void take_env(taker *t) {
  weir_sources *s = &t->b->sources;
  uint32_t count = weir_carried_count(&t->r, ENV_BYTES);
  weir_source_env *env = take_rows(t, count, sizeof *env);
  for (uint32_t i = 0; i < count && !t->r.failed; i++) {
    env[i].name = take_text(t, false);
    env[i].value = take_optional(t);
  }
  s->env = env;
  s->env_count = count;
}

/* Names of pieces, each of a size that may be asked for. */
static void take_names(taker *t, bool in_pieces, weir_bundle_missing *m) {
  m->in_pieces = in_pieces;
  m->count = in_pieces ? weir_carried_count(&t->r, WEIR_BLOB_NAME_BYTES) : 1;
  uint8_t(*names)[WEIR_BLOB_NAME_BYTES] =
      take_rows(t, m->count, WEIR_BLOB_NAME_BYTES);
  for (uint32_t i = 0; i < m->count && !t->r.failed; i++) {
    const uint8_t *name = weir_reader_bytes(&t->r, WEIR_BLOB_NAME_BYTES);
    if (name == NULL) break;
    memcpy(names[i], name, WEIR_BLOB_NAME_BYTES);
    uint64_t bytes = weir_blob_size(name);
    if (in_pieces && (bytes == 0 || bytes > WEIR_BUNDLE_PIECE_BYTES))
      t->r.failed = true;
    m->bytes += bytes;
  }
  m->names = (const uint8_t(*)[WEIR_BLOB_NAME_BYTES])names;
}

static void take_file(taker *t, weir_source_file *f, uint32_t at,
                      weir_bundle_missing *missing) {
  f->beneath = weir_reader_u32le(&t->r) != 0;
  f->root = take_text(t, false);
  f->path = take_text(t, false);
  uint32_t kind = weir_reader_u32le(&t->r);
  if (kind == FILE_INLINE) {
    weir_sv bytes = take_text(t, true);
    f->bytes = (weir_bytes){(const uint8_t *)bytes.data, bytes.size};
    return;
  }
  f->mapped = kind == FILE_PIECES;
  if (kind > FILE_PIECES) t->r.failed = true;
  take_names(t, f->mapped, &missing[t->b->missing_count++]);
  missing[t->b->missing_count - 1].file = at;
}

static void take_files(taker *t) {
  weir_unpacked_bundle *b = t->b;
  uint32_t count = weir_carried_count(&t->r, FILE_BYTES);
  b->files = take_rows(t, count, sizeof *b->files);
  weir_bundle_missing *missing = take_rows(t, count, sizeof *missing);
  for (uint32_t i = 0; i < count && !t->r.failed; i++)
    take_file(t, &b->files[i], i, missing);
  b->missing = missing;
  b->sources.files = b->files;
  b->sources.file_count = count;
}

static void take_sources(taker *t) {
  weir_sources *s = &t->b->sources;
  weir_reader *r = &t->r;
  s->is_text = weir_reader_u32le(r) != 0;
  s->main = take_text(t, false);
  s->text = take_text(t, true);
  s->limits.bytes = (size_t)weir_reader_u64le(r);
  s->limits.depth = weir_reader_u32le(r);
  s->limits.nodes = weir_reader_u64le(r);
  s->max_nodes = weir_reader_u64le(r);
  s->seed = weir_reader_u64le(r);
  s->labels = take_optional(t);
  s->params = take_pairs(t, &s->param_count);
  s->overrides = take_pairs(t, &s->override_count);
  take_env(t);
  take_files(t);
}

static weir_status take_bundle(taker *t) {
  weir_unpacked_bundle *b = t->b;
  weir_reader *r = &t->r;
  if (weir_reader_u32le(r) != BUNDLE_MARK)
    return malformed(t, "another kind of data");
  b->bundle.train = weir_reader_u32le(r) != 0;
  b->bundle.no_fusion = weir_reader_u32le(r) != 0;
  b->bundle.no_fold = weir_reader_u32le(r) != 0;
  b->bundle.ref_kernels = weir_reader_u32le(r) != 0;
  b->bundle.no_layout = weir_reader_u32le(r) != 0;
  b->bundle.tf32 = weir_reader_u32le(r) != 0;
  b->bundle.session_seed = weir_reader_u64le(r);
  b->bundle.memory_limit = (size_t)weir_reader_u64le(r);
  b->bundle.number = weir_reader_u64le(r);
  b->ops = take_pairs(t, &b->op_count);
  take_sources(t);
  weir_sv placing = take_text(t, true);
  b->placing = (weir_bytes){(const uint8_t *)placing.data, placing.size};
  return r->failed || weir_reader_left(r) != 0
             ? malformed(t, "it is cut short or too long")
             : WEIR_OK;
}

weir_status weir_bundle_unpack(const weir_allocator *alloc, weir_bytes bytes,
                               weir_unpacked_bundle *out, weir_error *err) {
  *out = (weir_unpacked_bundle){.missing_count = 0};
  weir_arena_init(&out->arena, alloc);
  out->bundle.sources = &out->sources;
  taker t = {weir_reader_of(bytes.data, bytes.size), out, err, false};
  return take_bundle(&t);
}

weir_status weir_bundle_supply(weir_unpacked_bundle *b, uint32_t i,
                               weir_bytes bytes, weir_error *err) {
  const weir_bundle_missing *m = &b->missing[i];
  uint8_t name[WEIR_BLOB_NAME_BYTES];
  weir_blob_name(bytes, name);
  if (m->in_pieces || memcmp(name, m->names[0], sizeof name) != 0)
    return weir_fail(err, WEIR_W7051, NULL,
                     "the bytes of %.*s are not those that were announced",
                     WEIR_SV(b->files[m->file].path));
  b->files[m->file].bytes = bytes;
  return WEIR_OK;
}

void weir_bundle_supply_later(weir_unpacked_bundle *b, uint32_t i,
                              const void *memory,
                              weir_status (*need)(void *self, uint64_t offset,
                                                  size_t size, weir_error *err),
                              void *self) {
  weir_source_file *f = &b->files[b->missing[i].file];
  f->bytes = (weir_bytes){memory, (size_t)b->missing[i].bytes};
  f->need = need;
  f->need_self = self;
}

void weir_unpacked_bundle_release(weir_unpacked_bundle *b) {
  weir_arena_release(&b->arena);
}
