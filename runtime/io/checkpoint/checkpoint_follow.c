/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/io/checkpoint/checkpoint_follow.h"

#include "runtime/io/checkpoint/checkpoint_internal.h"
#include "runtime/io/checkpoint/checkpoint_load.h"
#include "runtime/io/checkpoint/checkpoint_manifest.h"
#include "runtime/io/checkpoint/checkpoint_manifest_read.h"
#include "runtime/io/checkpoint/checkpoint_names.h"
#include "runtime/io/checkpoint/checkpoint_open.h"

/* Generations as they appear.
 *
 * A generation is there once its manifest has its name, so a listing of names
 * is all that a look costs while nothing happens. Names order generations: by
 * step, then by the attempt at the step. What was given last is kept, and which
 * newer ones are damaged, so that each is read once.
 *
 * The process that saves may remove a generation between the listing and the
 * reading. Then a newer one is there, for the newest is never removed, and the
 * folder is listed again; a few times, for each of them was a whole save. */

enum { kListings = 3 };

struct weir_checkpoint_follower {
  const weir_env *env;
  weir_arena arena;
  const char *root, *dir;
  const weir_diag_sink *sink;
  bool has_last;
  weir_checkpoint_stem last;          /* given */
  WEIR_VEC(weir_checkpoint_stem) bad; /* newer than |last| */
  weir_strbuf lost;                   /* the newest one's extra, if it is bad */
};

static weir_status copy(weir_checkpoint_follower *f, const char *text,
                        const char **out, weir_error *err) {
  *out = NULL;
  if (text == NULL) return WEIR_OK;
  *out = weir_arena_string(&f->arena, text, strlen(text));
  return *out != NULL ? WEIR_OK : weir_fail_memory(err, strlen(text));
}

weir_status weir_checkpoint_follower_create(const weir_env *env,
                                            const char *root, const char *dir,
                                            const weir_diag_sink *sink,
                                            weir_checkpoint_follower **out,
                                            weir_error *err) {
  *out = NULL;
  if (env->fs->folders == NULL)
    return weir_fail(err, WEIR_W0004, NULL, "this file system has no folders");
  weir_checkpoint_follower *f = weir_alloc_array(env->alloc, 1, sizeof *f);
  if (f == NULL) return weir_fail_memory(err, sizeof *f);
  f->env = env;
  f->sink = sink;
  weir_arena_init(&f->arena, env->alloc);
  weir_strbuf_init(&f->lost, env->alloc);
  weir_status s = copy(f, root, &f->root, err);
  if (s == WEIR_OK) s = copy(f, dir, &f->dir, err);
  if (s == WEIR_OK)
    *out = f;
  else
    weir_checkpoint_follower_release(f);
  return s;
}

void weir_checkpoint_follower_release(weir_checkpoint_follower *f) {
  if (f == NULL) return;
  weir_vec_free(f->env->alloc, &f->bad);
  weir_strbuf_release(&f->lost);
  weir_arena_release(&f->arena);
  weir_free(f->env->alloc, f);
}

weir_sv weir_checkpoint_follower_lost(const weir_checkpoint_follower *f) {
  return weir_strbuf_view(&f->lost);
}

static bool is_newer(weir_checkpoint_stem a, weir_checkpoint_stem b) {
  return a.step != b.step ? a.step > b.step : a.attempt > b.attempt;
}

static bool is_same(weir_checkpoint_stem a, weir_checkpoint_stem b) {
  return a.step == b.step && a.attempt == b.attempt;
}

static bool is_bad(const weir_checkpoint_follower *f, weir_checkpoint_stem x) {
  for (size_t i = 0; i < f->bad.count; i++)
    if (is_same(f->bad.items[i], x)) return true;
  return false;
}

static bool is_manifest(const weir_checkpoint_file *file) {
  return file->kind == WEIR_CHECKPOINT_MANIFEST && !file->temporary;
}

/* The newest never goes while a training saves: a folder whose newest is older
 * than the one given last was emptied, or went back. */
static void forget_what_is_gone(weir_checkpoint_follower *f,
                                const weir_checkpoint_files *files) {
  size_t i = 0;
  while (i < files->count && !is_manifest(&files->items[i])) i++;
  if (i < files->count && !is_newer(f->last, files->items[i].stem)) return;
  f->has_last = false;
  f->bad.count = 0;
}

/* Whether the file is there now. True also when that cannot be told. */
static bool still_there(const weir_checkpoint_follower *f, void *folder,
                        const char *name) {
  weir_checkpoint_files files = {0};
  bool found = false;
  weir_status s = weir_checkpoint_list(f->env, folder, &files, NULL);
  for (size_t i = 0; s == WEIR_OK && i < files.count; i++)
    found = found || strcmp(files.items[i].name, name) == 0;
  weir_vec_free(f->env->alloc, &files);
  return found || s != WEIR_OK;
}

/* Those that are no newer than the last are not looked at any more. */
static void forget_bad(weir_checkpoint_follower *f) {
  size_t kept = 0;
  for (size_t i = 0; i < f->bad.count; i++)
    if (is_newer(f->bad.items[i], f->last))
      f->bad.items[kept++] = f->bad.items[i];
  f->bad.count = kept;
}

/* What a damaged generation's manifest tells, if it can be read itself. */
static weir_status keep_extra(weir_checkpoint_follower *f,
                              const weir_checkpoint_folder *in,
                              const char *name, weir_error *err) {
  weir_manifest m;
  weir_error inner = WEIR_ERROR_INIT;
  weir_manifest_init(&m, f->env->alloc);
  weir_status s = weir_manifest_read(f->env, in, name, &m, &inner);
  if (s == WEIR_OK) weir_strbuf_sv(&f->lost, m.info.extra);
  weir_manifest_release(&m);
  if (s != WEIR_OK && !weir_checkpoint_is_damage(&inner)) {
    weir_error_copy(err, &inner);
    return s;
  }
  return weir_strbuf_status(&f->lost, err);
}

/* Reads |file|: it is given, or it is bad from now on, or |*out_gone|. */
static weir_status read_one(weir_checkpoint_follower *f, void *folder,
                            const weir_checkpoint_file *file, bool newest,
                            weir_checkpoint **out, bool *out_gone,
                            weir_error *err) {
  weir_checkpoint_folder in = {folder, f->dir};
  weir_error inner = WEIR_ERROR_INIT;
  weir_status s = weir_checkpoint_load(f->env, &in, file->name, out, &inner);
  if (s == WEIR_OK) {
    f->last = file->stem;
    f->has_last = true;
    forget_bad(f);
    weir_checkpoint_warn_of_values(*out, f->sink);
    return WEIR_OK;
  }
  if (!weir_checkpoint_is_damage(&inner)) {
    weir_error_copy(err, &inner);
    return s;
  }
  *out_gone = !still_there(f, folder, file->name);
  if (*out_gone) return WEIR_OK;
  if (newest) WEIR_TRY(keep_extra(f, &in, file->name, err));
  if (!weir_vec_push(f->env->alloc, &f->bad, file->stem))
    return weir_fail_memory(err, sizeof file->stem);
  weir_diag_warn(f->sink, &inner);
  return WEIR_OK;
}

/* Tries what is newer than the last, from the newest. */
static weir_status look(weir_checkpoint_follower *f, void *folder,
                        weir_checkpoint **out, bool *out_gone,
                        weir_error *err) {
  weir_checkpoint_files files = {0};
  bool newest = true;
  *out_gone = false;
  weir_strbuf_clear(&f->lost);
  weir_status s = weir_checkpoint_list(f->env, folder, &files, err);
  if (s == WEIR_OK && f->has_last) forget_what_is_gone(f, &files);
  for (size_t i = 0; s == WEIR_OK && i < files.count; i++) {
    const weir_checkpoint_file *file = &files.items[i];
    if (!is_manifest(file) || is_bad(f, file->stem)) continue;
    if (f->has_last && !is_newer(file->stem, f->last)) break;
    s = read_one(f, folder, file, newest, out, out_gone, err);
    newest = false;
    if (*out != NULL || *out_gone) break;
  }
  weir_vec_free(f->env->alloc, &files);
  return s;
}

weir_status weir_checkpoint_follow(weir_checkpoint_follower *f,
                                   weir_checkpoint **out_checkpoint,
                                   weir_error *err) {
  const weir_fs *fs = f->env->fs;
  bool gone = true;
  *out_checkpoint = NULL;
  for (int n = 0; gone && n < kListings; n++) {
    void *folder = NULL;
    weir_error inner = WEIR_ERROR_INIT;
    weir_status s =
        fs->folders->open(fs->self, f->root, f->dir, false, &folder, &inner);
    if (s != WEIR_OK && strcmp(inner.id, "W4001") == 0) {
      f->has_last = false;
      return WEIR_OK; /* it is not there yet */
    }
    if (s == WEIR_OK) s = look(f, folder, out_checkpoint, &gone, &inner);
    fs->folders->close(fs->self, folder);
    if (s == WEIR_OK) continue;
    weir_error_copy(err, &inner);
    return s;
  }
  return WEIR_OK;
}
