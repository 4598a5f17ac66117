/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/io/array/tensor_file.h"

#include <string.h>

#include "runtime/base/nearest.h"
#include "runtime/base/strbuf.h"
#include "runtime/io/array/idx.h"
#include "runtime/io/array/npy.h"
#include "runtime/io/array/npz.h"
#include "runtime/io/array/npz_write.h"
#include "runtime/io/array/safetensors.h"
#include "runtime/io/array/safetensors_write.h"

enum { kShownNames = 8 };

typedef weir_sv (*name_at_fn)(const void *self, size_t i);

/* --- members --- */

/* A few of the names, as a hint. */
static void hint_names(size_t count, name_at_fn name_at, const void *self,
                       weir_error *err) {
  char text[sizeof err->hint];
  size_t used = 0;
  for (size_t i = 0; err != NULL && i < count && i < kShownNames; i++) {
    weir_sv name = name_at(self, i);
    if (name.size + 3 > sizeof text - used) break;
    if (i > 0) text[used++] = ',';
    if (i > 0) text[used++] = ' ';
    memcpy(text + used, name.data, name.size);
    used += name.size;
  }
  if (used > 0)
    weir_hint(err, "it holds %.*s%s", (int)used, text,
              count > kShownNames ? ", ..." : "");
}

/* Finds |member| among the names; NULL finds the only one. */
static weir_status find(const char *file, const char *member, size_t count,
                        name_at_fn name_at, const void *self, size_t *out_i,
                        weir_error *err) {
  weir_mark at = {.file = file};
  weir_sv want = weir_sv_from(member), near;
  for (size_t i = 0; i < count; i++)
    if (member == NULL ? count == 1 : weir_sv_equal(name_at(self, i), want)) {
      *out_i = i;
      return WEIR_OK;
    }
  weir_status s;
  if (member == NULL)
    s = weir_fail(err, WEIR_W4010, &at,
                  "the file holds %zu tensors; name one, as in file#name",
                  count);
  else
    s = weir_fail(err, WEIR_W4010, &at, "the file holds no tensor '%.200s'",
                  member);
  near = weir_nearest_name(want, member != NULL ? count : 0, name_at, self);
  if (near.size > 0)
    weir_hint(err, "did you mean '%.*s'?", WEIR_SV(near));
  else
    hint_names(count, name_at, self, err);
  return s;
}

/* --- reading --- */

/* The bytes, and the file to hand over to a view (NULL: views are copied). */
typedef struct input {
  const weir_allocator *alloc;
  weir_bytes bytes;
  const char *name, *member;
  const weir_fs *fs;
  weir_file *file;
} input;

static weir_status read_npz(const input *in, weir_tensor **out_tensor,
                            weir_error *err) {
  weir_npz *npz = NULL;
  size_t i = 0;
  weir_status s = weir_npz_open(in->alloc, in->bytes, in->name, &npz, err);
  if (s == WEIR_OK)
    s = find(in->name, in->member, weir_npz_count(npz), weir_npz_name, npz, &i,
             err);
  if (s == WEIR_OK) s = weir_npz_read(npz, i, out_tensor, err);
  weir_npz_release(npz);
  return s;
}

/* A view of borrowed bytes would outlive them. */
static weir_status own(const input *in, weir_tensor **tensor, weir_error *err) {
  weir_tensor *view = *tensor;
  *tensor = NULL;
  weir_status s = weir_tensor_copy(in->alloc, view, tensor, err);
  weir_tensor_unref(view);
  return s;
}

static weir_status read_safetensors(const input *in, weir_tensor **out_tensor,
                                    weir_error *err) {
  weir_safetensors *f = NULL;
  size_t i = 0;
  weir_status s = weir_safetensors_from(in->alloc, in->bytes, in->name, in->fs,
                                        in->file, &f, err);
  if (s == WEIR_OK && in->file != NULL) *in->file = (weir_file){0}; /* taken */
  if (s == WEIR_OK)
    s = find(in->name, in->member, weir_safetensors_count(f),
             weir_safetensors_name, f, &i, err);
  if (s == WEIR_OK) s = weir_safetensors_get(f, i, out_tensor, err);
  if (s == WEIR_OK && in->file == NULL && (*out_tensor)->read_only)
    s = own(in, out_tensor, err);
  weir_safetensors_release(f);
  return s;
}

static bool ends_with(const char *path, const char *ending) {
  size_t n = strlen(path), m = strlen(ending);
  return n >= m && memcmp(path + n - m, ending, m) == 0;
}

static weir_status read_any(const input *in, weir_tensor **out_tensor,
                            weir_error *err) {
  weir_mark at = {.file = in->name};
  bool npy = weir_npy_is(in->bytes);
  if (weir_npz_is(in->bytes)) return read_npz(in, out_tensor, err);
  if (weir_safetensors_is(in->bytes) || ends_with(in->name, ".safetensors"))
    return read_safetensors(in, out_tensor, err);
  if (!npy && !weir_idx_is(in->bytes) && !weir_gzip_is(in->bytes))
    return weir_fail(err, WEIR_W4008, &at,
                     "the file is neither .npy, .npz, safetensors nor IDX "
                     "(plain or gzip)");
  if (in->member != NULL)
    return weir_fail(err, WEIR_W4010, &at,
                     "the file is one tensor; it has no members to name");
  return npy ? weir_npy_read(in->alloc, in->bytes, in->name, out_tensor, err)
             : weir_idx_read(in->alloc, in->bytes, in->name, out_tensor, err);
}

weir_status weir_tensor_bytes_read(const weir_allocator *alloc,
                                   weir_bytes bytes, const char *name,
                                   const char *member, weir_tensor **out_tensor,
                                   weir_error *err) {
  input in = {.alloc = alloc, .bytes = bytes, .name = name, .member = member};
  *out_tensor = NULL;
  return read_any(&in, out_tensor, err);
}

weir_status weir_tensor_file_read(const weir_env *env, const char *root,
                                  const char *path, const char *member,
                                  weir_tensor **out_tensor, weir_error *err) {
  weir_file file = {0};
  bool map = ends_with(path, ".safetensors");
  *out_tensor = NULL;
  WEIR_TRY(
      env->fs->read(env->fs->self, root, path, SIZE_MAX / 2, map, &file, err));
  input in = {env->alloc, file.bytes, path, member, env->fs, &file};
  weir_status s = read_any(&in, out_tensor, err);
  env->fs->close(env->fs->self, &file);
  return s;
}

/* --- writing --- */

weir_status weir_tensor_file_write(const weir_env *env, const char *path,
                                   const weir_sv *names,
                                   weir_tensor *const *tensors, size_t count,
                                   weir_error *err) {
  weir_strbuf out;
  weir_mark at = {.file = path};
  weir_status s;
  weir_strbuf_init(&out, env->alloc);
  if (ends_with(path, ".npz"))
    s = weir_npz_write(names, tensors, count, &out, err);
  else if (ends_with(path, ".safetensors"))
    s = weir_safetensors_write(names, tensors, count, &out, err);
  else if (!ends_with(path, ".npy"))
    s = weir_fail(err, WEIR_W4008, &at,
                  "'%.200s' does not end with .npy, .npz or .safetensors",
                  path);
  else if (count != 1)
    s = weir_fail(err, WEIR_W5009, &at,
                  "an .npy file holds one tensor, not %zu; write .npz", count);
  else
    s = weir_npy_write(tensors[0], &out, err);
  weir_bytes content = {(const uint8_t *)out.data, out.size};
  if (s == WEIR_OK) s = env->fs->write(env->fs->self, path, content, err);
  weir_strbuf_release(&out);
  return s;
}
