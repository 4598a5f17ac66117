/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/io/array/tensor_file.h"

#include <string.h>

#include "runtime/base/diag/nearest.h"
#include "runtime/base/strbuf.h"
#include "runtime/io/format/format.h"

/* A tensor from a path, by the list of formats: nothing here names one. A
 * format of several tensors is searched by name; with a single tensor no name
 * is needed. */

enum { kShownNames = 8 };

/* Names of a file's tensors. */
typedef struct name_list {
  size_t count;
  weir_sv (*at)(const void *self, size_t i);
  const void *self;
} name_list;

/* --- members --- */

/* A few of the names, as a hint. */
static void hint_names(const name_list *names, weir_error *err) {
  char text[sizeof err->hint];
  size_t used = 0;
  for (size_t i = 0; err != NULL && i < names->count && i < kShownNames; i++) {
    weir_sv name = names->at(names->self, i);
    if (name.size + 3 > sizeof text - used) break;
    if (i > 0) text[used++] = ',';
    if (i > 0) text[used++] = ' ';
    memcpy(text + used, name.data, name.size);
    used += name.size;
  }
  if (used > 0)
    weir_hint(err, "it holds %.*s%s", (int)used, text,
              names->count > kShownNames ? ", ..." : "");
}

/* Finds |member| among the names; NULL finds the only one. */
static weir_status find(const char *file, const char *member,
                        const name_list *names, size_t *out_i,
                        weir_error *err) {
  size_t count = names->count;
  weir_mark at = {.file = file};
  weir_sv want = weir_sv_from(member), near;
  for (size_t i = 0; i < count; i++)
    if (member == NULL ? count == 1
                       : weir_sv_equal(names->at(names->self, i), want)) {
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
  near = weir_nearest_name(want, member != NULL ? count : 0, names->at,
                           names->self);
  if (near.size > 0)
    weir_hint(err, "did you mean '%.*s'?", WEIR_SV(near));
  else
    hint_names(names, err);
  return s;
}

/* --- reading --- */

/* A view of borrowed bytes would outlive them. */
static weir_status own(const weir_format_input *in, weir_tensor **tensor,
                       weir_error *err) {
  weir_tensor *view = *tensor;
  *tensor = NULL;
  weir_status s = weir_tensor_copy(in->alloc, view, tensor, err);
  weir_tensor_unref(view);
  return s;
}

static weir_status read_member(const weir_format *f,
                               const weir_format_input *in, const char *member,
                               weir_tensor **out_tensor, weir_error *err) {
  void *self = NULL;
  size_t i = 0;
  weir_status s = f->open(in, &self, err);
  name_list names = {.at = f->name_at, .self = self};
  if (s == WEIR_OK) names.count = f->count(self);
  if (s == WEIR_OK) s = find(in->name, member, &names, &i, err);
  if (s == WEIR_OK) s = f->get(self, i, out_tensor, err);
  if (s == WEIR_OK && in->file == NULL && (*out_tensor)->read_only)
    s = own(in, out_tensor, err);
  f->release(self);
  return s;
}

static weir_status read_any(const weir_format_input *in, const char *member,
                            weir_tensor **out_tensor, weir_error *err) {
  weir_mark at = {.file = in->name};
  char names[128];
  const weir_format *f = weir_format_of(in->bytes, in->name);
  if (f == NULL)
    return weir_fail(err, WEIR_W4008, &at,
                     "the file is of no known format; known are %s",
                     weir_format_names(NULL, names, sizeof names));
  if (f->open != NULL) return read_member(f, in, member, out_tensor, err);
  if (member != NULL)
    return weir_fail(err, WEIR_W4010, &at,
                     "the file is one tensor; it has no members to name");
  return f->read(in, out_tensor, err);
}

weir_status weir_tensor_bytes_read(const weir_allocator *alloc,
                                   weir_bytes bytes, const char *name,
                                   const char *member, weir_tensor **out_tensor,
                                   weir_error *err) {
  weir_format_input in = {.alloc = alloc, .bytes = bytes, .name = name};
  *out_tensor = NULL;
  return read_any(&in, member, out_tensor, err);
}

weir_status weir_tensor_file_read(const weir_env *env, const char *root,
                                  const char *path, const char *member,
                                  weir_tensor **out_tensor, weir_error *err) {
  weir_file file = {0};
  const weir_format *f = weir_format_of_name(path);
  bool map = f != NULL && f->maps;
  *out_tensor = NULL;
  WEIR_TRY(
      env->fs->read(env->fs->self, root, path, SIZE_MAX / 2, map, &file, err));
  weir_format_input in = {env->alloc, file.bytes, path, env->fs, &file};
  weir_status s = read_any(&in, member, out_tensor, err);
  env->fs->close(env->fs->self, &file);
  return s;
}

/* --- writing --- */

weir_status weir_tensor_file_write(const weir_env *env, const char *path,
                                   const weir_sv *names,
                                   weir_tensor *const *tensors, size_t count,
                                   weir_error *err) {
  weir_strbuf out;
  char known[128];
  weir_mark at = {.file = path};
  const weir_format *f = weir_format_of_name(path);
  if (f == NULL || f->write == NULL)
    return weir_fail(
        err, WEIR_W4008, &at, "'%.200s' must end as one of %s does", path,
        weir_format_names(weir_format_is_written, known, sizeof known));
  if (f->open == NULL && count != 1)
    return weir_fail(
        err, WEIR_W5009, &at,
        "a file of %s holds one tensor, not %zu; several go into %s", f->name,
        count,
        weir_format_names(weir_format_holds_several, known, sizeof known));
  weir_strbuf_init(&out, env->alloc);
  weir_status s = f->write(names, tensors, count, &out, err);
  weir_bytes content = {(const uint8_t *)out.data, out.size};
  if (s == WEIR_OK) s = env->fs->write(env->fs->self, path, content, err);
  weir_strbuf_release(&out);
  return s;
}
