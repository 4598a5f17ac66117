/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/io/checkpoint/checkpoint_open.h"

#include <inttypes.h>

#include "runtime/io/checkpoint/checkpoint_common.h"
#include "runtime/io/checkpoint/checkpoint_internal.h"
#include "runtime/io/checkpoint/checkpoint_load.h"
#include "runtime/io/checkpoint/checkpoint_names.h"

/* Choosing a generation to restore: the newest that is sound in all its bytes.
 *
 * No lock is taken, since a run may be saving to the folder meanwhile. It may
 * remove a generation while it is read here: then the folder is listed again,
 * because its successor is there; a few times, as each listing that loses the
 * race has seen a whole save go by. */

enum { kListings = 3 /* of a folder that a run is saving to */ };

void weir_checkpoint_warn_of_values(const weir_checkpoint *c,
                                    const weir_diag_sink *sink) {
  for (size_t i = 0; sink != NULL && i < weir_checkpoint_count(c); i++) {
    weir_tensor *t = weir_checkpoint_tensor(c, i);
    weir_error err = WEIR_ERROR_INIT;
    bool odd = weir_checkpoint_odd_values(t, weir_checkpoint_name(c, i),
                                          weir_checkpoint_path_of(c), &err);
    weir_tensor_unref(t);
    if (odd) weir_diag_warn(sink, &err);
  }
}

/* --- generations --- */

typedef struct opener {
  const weir_env *env;
  const char *root, *dir; /* |root| NULL: |dir| as it is */
  void *folder;           /* held while its generations are read */
  int64_t step;           /* -1: any */
  const weir_diag_sink *sink;
  const weir_checkpoint_taker *taker; /* NULL: tensors are read */
  size_t tried;
  weir_error first; /* the fault of the newest */
} opener;

/* Damage is passed over; other failures are this process's, and a newer format
 * is sound: going on from an older generation would throw work away. */
bool weir_checkpoint_is_damage(const weir_error *err) {
  static const char *const kDamage[] = {"W4001", "W4002", "W4005", "W4015",
                                        "W4041", "W4045", "W4046"};
  for (size_t i = 0; i < sizeof kDamage / sizeof kDamage[0]; i++)
    if (strcmp(err->id, kDamage[i]) == 0) return true;
  return false;
}

static void close_folder(opener *o) {
  const weir_fs *fs = o->env->fs;
  fs->folders->close(fs->self, o->folder);
  o->folder = NULL;
}

/* Opens o->folder, anew, and lists it. */
static weir_status list(opener *o, weir_checkpoint_files *files,
                        weir_error *err) {
  const weir_fs *fs = o->env->fs;
  weir_error inner = WEIR_ERROR_INIT;
  close_folder(o);
  weir_status s =
      fs->folders->open(fs->self, o->root, o->dir, false, &o->folder, &inner);
  if (s == WEIR_OK) s = weir_checkpoint_list(o->env, o->folder, files, &inner);
  if (s == WEIR_OK) return WEIR_OK;
  if (weir_checkpoint_is_damage(&inner))
    return weir_fail(err, WEIR_W4040, NULL,
                     "there is no checkpoint in '%.200s': %s", o->dir,
                     inner.message);
  weir_error_copy(err, &inner);
  return s;
}

static bool still_there(const opener *o, const char *name) {
  weir_checkpoint_files files = {0};
  bool found = false;
  weir_status s = weir_checkpoint_list(o->env, o->folder, &files, NULL);
  for (size_t i = 0; s == WEIR_OK && i < files.count; i++)
    found = found || strcmp(files.items[i].name, name) == 0;
  weir_vec_free(o->env->alloc, &files);
  return found || s != WEIR_OK;
}

static weir_status load_one(const opener *o, const weir_checkpoint_folder *dir,
                            const char *name, weir_checkpoint **out_checkpoint,
                            weir_error *err) {
  if (o->taker == NULL)
    return weir_checkpoint_load(o->env, dir, name, out_checkpoint, err);
  WEIR_TRY(weir_checkpoint_load_bare(o->env, dir, name, out_checkpoint, err));
  weir_status s = o->taker->take(o->taker->self, *out_checkpoint, err);
  if (s == WEIR_OK) return WEIR_OK;
  weir_checkpoint_release(*out_checkpoint);
  *out_checkpoint = NULL;
  return s;
}

/* Tries the generations from the newest. |*out_gone|: one went away while it
 * was read, because a run is saving; its successor is there. */
static weir_status try_all(opener *o, const weir_checkpoint_files *files,
                           weir_checkpoint **out_checkpoint, bool *out_gone,
                           weir_error *err) {
  weir_checkpoint_folder dir = {o->folder, o->dir};
  for (size_t i = 0; i < files->count; i++) {
    const weir_checkpoint_file *f = &files->items[i];
    weir_error inner = WEIR_ERROR_INIT;
    bool wanted = o->step < 0 || f->stem.step == (uint64_t)o->step;
    if (f->kind != WEIR_CHECKPOINT_MANIFEST || f->temporary || !wanted)
      continue;
    weir_status s = load_one(o, &dir, f->name, out_checkpoint, &inner);
    if (s == WEIR_OK) return WEIR_OK;
    *out_gone = weir_checkpoint_is_damage(&inner) && !still_there(o, f->name);
    if (*out_gone) return WEIR_OK;
    if (!weir_checkpoint_is_damage(&inner)) {
      weir_error_copy(err, &inner);
      return s;
    }
    if (o->tried++ == 0) o->first = inner;
    weir_diag_warn(o->sink, &inner);
  }
  return WEIR_OK;
}

/* The error when no sound generation was found. */
static weir_status fail_none(const opener *o, weir_error *err) {
  if (o->tried > 0 && o->step >= 0) {
    weir_error_copy(err, &o->first);
    return o->first.code;
  }
  if (o->tried > 0)
    return weir_fail(err, WEIR_W4040, NULL,
                     "none of the %zu checkpoints in '%.100s' is sound; the "
                     "newest: %s",
                     o->tried, o->dir, o->first.message);
  if (o->step >= 0)
    return weir_fail(err, WEIR_W4048, NULL,
                     "there is no checkpoint of step %" PRId64 " in '%.200s'",
                     o->step, o->dir);
  return weir_fail(err, WEIR_W4040, NULL, "there is no checkpoint in '%.200s'",
                   o->dir);
}

static weir_status open_newest(opener *o, weir_checkpoint **out_checkpoint,
                               weir_error *err) {
  bool gone = true;
  weir_status s = WEIR_OK;
  for (int n = 0; s == WEIR_OK && gone && n < kListings; n++) {
    weir_checkpoint_files files = {0};
    gone = false;
    o->tried = 0;
    s = list(o, &files, err);
    if (s == WEIR_OK) s = try_all(o, &files, out_checkpoint, &gone, err);
    weir_vec_free(o->env->alloc, &files);
  }
  close_folder(o);
  if (s != WEIR_OK) return s;
  return *out_checkpoint != NULL ? WEIR_OK : fail_none(o, err);
}

/* |path| names a manifest, perhaps one that was renamed. */
static weir_status open_manifest(const opener *o,
                                 weir_checkpoint **out_checkpoint,
                                 weir_error *err) {
  const char *path = o->dir;
  char dir[WEIR_CHECKPOINT_PATH_BYTES];
  const weir_fs *fs = o->env->fs;
  weir_checkpoint_folder in = {NULL, dir};
  const char *slash = strrchr(path, '/');
  size_t n = slash != NULL ? (size_t)(slash - path) : 0;
  if (n >= sizeof dir)
    return weir_fail(err, WEIR_W4002, NULL, "'%.200s' is too long for a path",
                     path);
  memcpy(dir, slash != NULL ? path : ".", n);
  dir[n] = '\0';
  if (slash == NULL) memcpy(dir, ".", 2);
  if (slash == path) memcpy(dir, "/", 2);
  WEIR_TRY(fs->folders->open(fs->self, NULL, dir, false, &in.folder, err));
  weir_status s =
      load_one(o, &in, slash != NULL ? slash + 1 : path, out_checkpoint, err);
  fs->folders->close(fs->self, in.folder);
  return s;
}

static bool ends_with(const char *text, const char *end) {
  size_t size = strlen(text), n = strlen(end);
  return size > n && strcmp(text + size - n, end) == 0;
}

static weir_status open_any(opener *o, weir_checkpoint **out_checkpoint,
                            weir_error *err) {
  *out_checkpoint = NULL;
  o->first = (weir_error)WEIR_ERROR_INIT;
  if (o->env->fs->folders == NULL)
    return weir_fail(err, WEIR_W0004, NULL, "this file system has no folders");
  weir_status s = o->root == NULL && ends_with(o->dir, ".json")
                      ? open_manifest(o, out_checkpoint, err)
                      : open_newest(o, out_checkpoint, err);
  if (s == WEIR_OK && o->taker == NULL)
    weir_checkpoint_warn_of_values(*out_checkpoint, o->sink);
  return s;
}

weir_status weir_checkpoint_open(const weir_env *env, const char *dir,
                                 int64_t step, const weir_diag_sink *sink,
                                 weir_checkpoint **out_checkpoint,
                                 weir_error *err) {
  opener o = {.env = env, .dir = dir, .step = step, .sink = sink};
  return open_any(&o, out_checkpoint, err);
}

weir_status weir_checkpoint_open_newest(const weir_env *env, const char *root,
                                        const char *dir,
                                        const weir_diag_sink *sink,
                                        weir_checkpoint **out_checkpoint,
                                        weir_error *err) {
  opener o = {.env = env, .root = root, .dir = dir, .step = -1, .sink = sink};
  return open_any(&o, out_checkpoint, err);
}

bool weir_checkpoint_can_take(const weir_env *env) {
  const weir_fs *fs = env->fs;
  return fs->folders != NULL && fs->folders->pieces != NULL &&
         fs->pieces != NULL;
}

weir_status weir_checkpoint_take_newest(const weir_env *env, const char *root,
                                        const char *dir,
                                        const weir_diag_sink *sink,
                                        const weir_checkpoint_taker *taker,
                                        weir_checkpoint **out_checkpoint,
                                        weir_error *err) {
  opener o = {.env = env,
              .root = root,
              .dir = dir,
              .step = -1,
              .sink = sink,
              .taker = taker};
  return open_any(&o, out_checkpoint, err);
}

/* --- all of them --- */

static bool is_ours(const weir_error *err) {
  return weir_checkpoint_is_damage(err) || strcmp(err->id, "W4044") == 0;
}

weir_status weir_checkpoint_each(
    const weir_env *env, const char *dir, void *self,
    bool (*each)(void *self, const weir_checkpoint_found *found),
    weir_error *err) {
  opener o = {.env = env, .dir = dir};
  weir_checkpoint_files files = {0};
  bool more = true;
  if (env->fs->folders == NULL)
    return weir_fail(err, WEIR_W0004, NULL, "this file system has no folders");
  weir_status s = list(&o, &files, err);
  weir_checkpoint_folder in = {o.folder, dir};
  for (size_t i = 0; s == WEIR_OK && more && i < files.count; i++) {
    const weir_checkpoint_file *f = &files.items[i];
    weir_checkpoint *c = NULL;
    weir_error inner = WEIR_ERROR_INIT;
    if (f->kind != WEIR_CHECKPOINT_MANIFEST || f->temporary) continue;
    s = weir_checkpoint_load(env, &in, f->name, &c, &inner);
    if (s != WEIR_OK && !is_ours(&inner)) {
      weir_error_copy(err, &inner);
      break;
    }
    s = WEIR_OK;
    weir_checkpoint_found found = {f->name, f->stem.step, c, &inner};
    more = each(self, &found);
    weir_checkpoint_release(c);
  }
  weir_vec_free(env->alloc, &files);
  close_folder(&o);
  return s;
}
