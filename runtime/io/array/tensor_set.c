/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/io/array/tensor_set.h"

#include "runtime/base/diag/nearest.h"
#include "runtime/io/checkpoint/checkpoint_load.h"
#include "runtime/io/checkpoint/checkpoint_open.h"
#include "runtime/io/format/format.h"

/* One list of named tensors for checkpoints and files alike. Tensors are
 * references, views of a mapped file among them; names are copied, so a
 * renaming can replace them. */

static weir_status add(weir_tensor_set *set, weir_sv name,
                       weir_checkpoint_role role, weir_tensor *take_tensor,
                       weir_error *err) {
  weir_tensor_set_item item = {.role = role, .tensor = take_tensor};
  item.name.data = weir_arena_string(&set->arena, name.data, name.size);
  item.name.size = name.size;
  if (item.name.data != NULL &&
      weir_vec_push(set->env->alloc, &set->items, item))
    return WEIR_OK;
  weir_tensor_unref(take_tensor);
  return weir_fail_memory(err, name.size);
}

static weir_status read_checkpoint(weir_tensor_set *set, const char *path,
                                   const weir_diag_sink *sink,
                                   weir_error *err) {
  WEIR_TRY(
      weir_checkpoint_open(set->env, path, -1, sink, &set->checkpoint, err));
  const weir_checkpoint *c = set->checkpoint;
  for (size_t i = 0; i < weir_checkpoint_count(c); i++)
    WEIR_TRY(add(set, weir_checkpoint_name(c, i), weir_checkpoint_role_of(c, i),
                 weir_checkpoint_tensor(c, i), err));
  return WEIR_OK;
}

static weir_status add_members(weir_tensor_set *set, const weir_format *f,
                               void *self, weir_error *err) {
  for (size_t i = 0; i < f->count(self); i++) {
    weir_tensor *t = NULL;
    WEIR_TRY(f->get(self, i, &t, err));
    WEIR_TRY(add(set, f->name_at(self, i), WEIR_CHECKPOINT_VARIABLE, t, err));
  }
  return WEIR_OK;
}

static weir_status read_file(weir_tensor_set *set, const char *path,
                             weir_error *err) {
  const weir_fs *fs = set->env->fs;
  weir_mark at = {.file = path};
  weir_file file = {0};
  void *self = NULL;
  char names[128];
  WEIR_TRY(fs->read(fs->self, NULL, path, SIZE_MAX, false, &file, err));
  weir_format_input in = {set->env->alloc, file.bytes, path, fs, &file};
  const weir_format *f = weir_format_of(file.bytes, path);
  weir_status s;
  if (f == NULL || f->open == NULL)
    s = weir_fail(
        err, WEIR_W4008, &at,
        "'%.200s' is neither a checkpoint nor a file of several tensors (%s)",
        path,
        weir_format_names(weir_format_holds_several, names, sizeof names));
  else
    s = f->open(&in, &self, err);
  if (s == WEIR_OK) s = add_members(set, f, self, err);
  if (self != NULL) f->release(self);
  fs->close(fs->self, &file);
  return s;
}

static bool is_folder(const weir_env *env, const char *path) {
  const weir_fs_folders *folders = env->fs->folders;
  void *folder = NULL;
  if (folders == NULL) return false;
  weir_status s =
      folders->open(env->fs->self, NULL, path, false, &folder, NULL);
  folders->close(env->fs->self, folder);
  return s == WEIR_OK;
}

static bool is_manifest(const char *path) {
  size_t size = strlen(path);
  return size > 5 && strcmp(path + size - 5, ".json") == 0;
}

weir_status weir_tensor_set_read(const weir_env *env, const char *path,
                                 const weir_diag_sink *sink,
                                 weir_tensor_set *out_set, weir_error *err) {
  *out_set = (weir_tensor_set){.env = env};
  weir_arena_init(&out_set->arena, env->alloc);
  return is_manifest(path) || is_folder(env, path)
             ? read_checkpoint(out_set, path, sink, err)
             : read_file(out_set, path, err);
}

void weir_tensor_set_release(weir_tensor_set *set) {
  if (set->env == NULL) return;
  for (size_t i = 0; i < set->items.count; i++)
    weir_tensor_unref(set->items.items[i].tensor);
  weir_vec_free(set->env->alloc, &set->items);
  weir_arena_release(&set->arena);
  weir_checkpoint_release(set->checkpoint);
  *set = (weir_tensor_set){0};
}

const weir_tensor_set_item *weir_tensor_set_find(const weir_tensor_set *set,
                                                 weir_sv name) {
  for (size_t i = 0; i < set->items.count; i++)
    if (weir_sv_equal(set->items.items[i].name, name))
      return &set->items.items[i];
  return NULL;
}

/* --- renaming --- */

static weir_sv name_at(const void *self, size_t i) {
  return ((const weir_tensor_set *)self)->items.items[i].name;
}

static weir_status rename_one(weir_tensor_set *set, const char *map,
                              weir_sv *new_names, weir_error *err) {
  const char *equals = strchr(map, '=');
  if (equals == NULL || equals == map || equals[1] == '\0')
    return weir_fail(err, WEIR_W0002, NULL,
                     "'%.200s' is not a renaming: OLD=NEW", map);
  weir_sv old = {map, (size_t)(equals - map)};
  const weir_tensor_set_item *item = weir_tensor_set_find(set, old);
  if (item == NULL) {
    weir_status s =
        weir_fail(err, WEIR_W4010, NULL, "there is no tensor '%.*s' to rename",
                  WEIR_SV(old));
    weir_sv near = weir_nearest_name(old, set->items.count, name_at, set);
    if (near.size > 0) weir_hint(err, "did you mean '%.*s'?", WEIR_SV(near));
    return s;
  }
  weir_sv *name = &new_names[item - set->items.items];
  if (name->data != NULL)
    return weir_fail(err, WEIR_W0002, NULL, "'%.*s' is renamed twice",
                     WEIR_SV(old));
  name->size = strlen(equals + 1);
  name->data = weir_arena_string(&set->arena, equals + 1, name->size);
  return name->data != NULL ? WEIR_OK : weir_fail_memory(err, name->size);
}

weir_status weir_tensor_set_rename(weir_tensor_set *set,
                                   const char *const *maps, size_t count,
                                   weir_error *err) {
  weir_sv *names =
      weir_alloc_array(set->env->alloc, set->items.count + 1, sizeof *names);
  weir_status s =
      names != NULL ? WEIR_OK : weir_fail_memory(err, set->items.count);
  for (size_t i = 0; s == WEIR_OK && i < count; i++)
    s = rename_one(set, maps[i], names, err);
  for (size_t i = 0; s == WEIR_OK && i < set->items.count; i++)
    if (names[i].data != NULL) set->items.items[i].name = names[i];
  weir_free(set->env->alloc, names);
  return s;
}
