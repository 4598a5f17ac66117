/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/io/array/safetensors.h"

#include <inttypes.h>
#include <string.h>

#include "runtime/base/bytes/reader.h"
#include "runtime/io/array/safetensors_header.h"
#include "runtime/io/checkpoint/convert.h"

enum { kLengthBytes = 8 };

struct weir_safetensors {
  atomic_int refs; /* the handle's, and one of each view */
  const weir_allocator *alloc;
  const weir_fs *fs; /* NULL: |bytes| are borrowed */
  weir_file file;
  weir_bytes data;       /* all bytes after the header */
  uint64_t header_bytes; /* with the eight before it */
  weir_arena arena;
  const char *name;
  weir_safetensors_entries entries;
  weir_safetensors_pairs metadata;
};

bool weir_safetensors_is(weir_bytes bytes) {
  weir_reader r = weir_reader_of(bytes.data, bytes.size);
  uint64_t length = weir_reader_u64le(&r);
  return weir_reader_u8(&r) == '{' && length <= bytes.size - kLengthBytes;
}

static void unref(weir_safetensors *f) {
  if (atomic_fetch_sub(&f->refs, 1) != 1) return;
  if (f->fs != NULL) f->fs->close(f->fs->self, &f->file);
  weir_vec_free(f->alloc, &f->entries);
  weir_vec_free(f->alloc, &f->metadata);
  weir_arena_release(&f->arena);
  weir_free(f->alloc, f);
}

void weir_safetensors_release(weir_safetensors *file) {
  if (file != NULL) unref(file);
}

static weir_status need(const weir_safetensors *f, uint64_t offset,
                        uint64_t size, weir_error *err) {
  const weir_file *file = &f->file;
  return file->need == NULL ? WEIR_OK
                            : file->need(file->self, offset, (size_t)size, err);
}

static weir_status read_header(weir_safetensors *f, weir_bytes bytes,
                               weir_error *err) {
  weir_reader r = weir_reader_of(bytes.data, bytes.size);
  weir_mark at = {.file = f->name};
  if (bytes.size >= kLengthBytes) WEIR_TRY(need(f, 0, kLengthBytes, err));
  uint64_t length = weir_reader_u64le(&r);
  if (r.failed || length > weir_reader_left(&r))
    return weir_fail(err, WEIR_W4005, &at,
                     "the header has %" PRIu64 " bytes, the file has %zu",
                     length, bytes.size);
  if (length > WEIR_SAFETENSORS_HEADER_BYTES)
    return weir_fail(err, WEIR_W4005, &at,
                     "the header has %" PRIu64 " bytes, at most %d are read",
                     length, WEIR_SAFETENSORS_HEADER_BYTES);
  WEIR_TRY(need(f, kLengthBytes, length, err));
  weir_sv text = {(const char *)weir_reader_bytes(&r, (size_t)length),
                  (size_t)length};
  if (length == 0 || text.data[0] != '{')
    return weir_fail(err, WEIR_W4005, &at,
                     "the header does not start with '{', at byte 8");
  f->header_bytes = r.at;
  f->data.size = weir_reader_left(&r);
  f->data.data = weir_reader_bytes(&r, f->data.size);
  return weir_safetensors_parse(text, f->data.size, f->name, &f->arena,
                                &f->entries, &f->metadata, err);
}

weir_status weir_safetensors_from(const weir_allocator *alloc, weir_bytes bytes,
                                  const char *name, const weir_fs *fs,
                                  const weir_file *take_file,
                                  weir_safetensors **out_file,
                                  weir_error *err) {
  *out_file = NULL;
  weir_safetensors *f = weir_alloc_array(alloc, 1, sizeof *f);
  if (f == NULL) return weir_fail_memory(err, sizeof *f);
  atomic_init(&f->refs, 1);
  f->alloc = alloc;
  weir_arena_init(&f->arena, alloc);
  name = name != NULL ? name : "";
  f->name = weir_arena_string(&f->arena, name, strlen(name));
  if (take_file != NULL) f->file = *take_file;
  weir_status s = f->name != NULL ? read_header(f, bytes, err)
                                  : weir_fail_memory(err, strlen(name));
  if (s != WEIR_OK) {
    unref(f);
    return s;
  }
  if (take_file != NULL) f->fs = fs;
  *out_file = f;
  return WEIR_OK;
}

weir_status weir_safetensors_open(const weir_env *env, const char *root,
                                  const char *path, size_t limit,
                                  weir_safetensors **out_file,
                                  weir_error *err) {
  weir_file file = {0};
  *out_file = NULL;
  WEIR_TRY(env->fs->read(env->fs->self, root, path, limit, true, &file, err));
  weir_status s = weir_safetensors_from(env->alloc, file.bytes, path, env->fs,
                                        &file, out_file, err);
  if (s != WEIR_OK) env->fs->close(env->fs->self, &file);
  return s;
}

size_t weir_safetensors_count(const weir_safetensors *file) {
  return file->entries.count;
}

weir_sv weir_safetensors_name(const void *self, size_t i) {
  return ((const weir_safetensors *)self)->entries.items[i].name;
}

weir_sv weir_safetensors_metadata(const weir_safetensors *file,
                                  const char *key) {
  for (size_t i = 0; i < file->metadata.count; i++)
    if (weir_sv_is(file->metadata.items[i].key, key))
      return file->metadata.items[i].value;
  return (weir_sv){NULL, 0};
}

uint64_t weir_safetensors_offset(const weir_safetensors *file, size_t i) {
  return file->header_bytes + file->entries.items[i].begin;
}

/* --- tensors --- */

static void release_view(void *self, void *data) {
  (void)data;
  unref(self);
}

static weir_status make_view(weir_safetensors *f,
                             const weir_safetensors_entry *e,
                             const uint8_t *data, weir_tensor **out_tensor,
                             weir_error *err) {
  atomic_fetch_add(&f->refs, 1);
  weir_tensor_memory memory = {e->dtype, &e->shape, (void *)data, release_view,
                               f};
  weir_status s = weir_tensor_wrap(f->alloc, &memory, out_tensor, err);
  if (s == WEIR_OK)
    (*out_tensor)->read_only = true;
  else
    unref(f);
  return s;
}

static weir_status make_copy(const weir_safetensors *f,
                             const weir_safetensors_entry *e,
                             const uint8_t *data, weir_tensor **out_tensor,
                             weir_error *err) {
  WEIR_TRY(weir_tensor_create_shaped(f->alloc, e->dtype, &e->shape, out_tensor,
                                     err));
  weir_tensor *t = *out_tensor;
  if (t->bytes > 0) memcpy(t->data, data, t->bytes);
  if (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__)
    weir_io_swap(t->data, (size_t)weir_shape_elements(&t->shape),
                 weir_dtype_size(t->dtype));
  if (t->dtype == WEIR_BOOL) weir_io_normalise_bool(t->data, t->bytes);
  return WEIR_OK;
}

/* Whether the bytes of |e| can be a tensor's data as they stand: aligned, in
 * the machine's byte order, bools 0 or 1. Looking at all bools costs a pass
 * over them, less than copying them would. */
static bool can_view(const weir_safetensors_entry *e, const uint8_t *data) {
  size_t size = weir_dtype_size(e->dtype), bytes = (size_t)(e->end - e->begin);
  if ((uintptr_t)data % size != 0 || bytes == 0) return false;
  if (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ && size > 1) return false;
  return e->dtype != WEIR_BOOL || weir_io_is_bool(data, bytes);
}

weir_status weir_safetensors_get(weir_safetensors *file, size_t i,
                                 weir_tensor **out_tensor, weir_error *err) {
  const weir_safetensors_entry *e = &file->entries.items[i];
  const uint8_t *data = file->data.data + e->begin;
  weir_mark at = {.file = file->name};
  *out_tensor = NULL;
  if (e->dtype == WEIR_DTYPE_NONE) {
    weir_status s = weir_fail(err, WEIR_W4005, &at,
                              "tensor '%.*s' has dtype %s, which is not read",
                              WEIR_SV(e->name), e->dtype_name);
    weir_hint(err, "F32, F64, I32, I64, U8 and BOOL are");
    return s;
  }
  if (e->dtype != WEIR_BOOL && can_view(e, data))
    return make_view(file, e, data, out_tensor, err);
  WEIR_TRY(need(file, file->header_bytes + e->begin, e->end - e->begin, err));
  if (can_view(e, data)) return make_view(file, e, data, out_tensor, err);
  return make_copy(file, e, data, out_tensor, err);
}

bool weir_safetensors_views(const weir_safetensors *file,
                            const weir_tensor *tensor) {
  return tensor->release_data == release_view && tensor->release_self == file;
}

weir_status weir_safetensors_need(weir_safetensors *file,
                                  const weir_tensor *view, weir_error *err) {
  uint64_t at = (uint64_t)((const uint8_t *)view->data - file->data.data);
  return need(file, file->header_bytes + at, view->bytes, err);
}
