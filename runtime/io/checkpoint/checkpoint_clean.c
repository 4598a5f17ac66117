/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/io/checkpoint/checkpoint_clean.h"

#include "runtime/io/checkpoint/checkpoint_internal.h"
#include "runtime/io/checkpoint/checkpoint_manifest.h"
#include "runtime/io/checkpoint/checkpoint_manifest_read.h"
#include "runtime/io/checkpoint/checkpoint_names.h"

/* Removing: generations that are no longer kept, and files left by runs that
 * are gone. A generation leaves in the reverse order of its coming: the
 * manifest goes back to its temporary name, then the shards go, then it.
 *
 * Invariant: at any moment each of our files is part of a generation with a
 * manifest, or temporary, or named by a temporary manifest. So a removal that
 * was interrupted is finished by the next weir_checkpoint_tidy, and no file is
 * ever orphaned. The folder is synchronised between the steps, since a file
 * system may bring names to disk in another order. */

static const weir_fs_folders *folders(const weir_checkpoint_place *p) {
  return p->env->fs->folders;
}

static weir_status sync_folder(const weir_checkpoint_place *p,
                               weir_error *err) {
  return folders(p)->sync_folder(p->env->fs->self, p->folder, err);
}

static weir_status unlink_file(const weir_checkpoint_place *p, const char *name,
                               weir_error *err) {
  return folders(p)->unlink(p->env->fs->self, p->folder, name, err);
}

static bool same_stem(weir_checkpoint_stem a, weir_checkpoint_stem b) {
  return a.step == b.step && a.attempt == b.attempt;
}

static bool is_there(const weir_checkpoint_files *files, const char *name) {
  for (size_t i = 0; i < files->count; i++)
    if (strcmp(files->items[i].name, name) == 0) return true;
  return false;
}

/* Removes those shards that the manifest |list|, a temporary one, names. */
static weir_status remove_listed(const weir_checkpoint_place *p,
                                 const weir_checkpoint_files *files,
                                 const weir_checkpoint_file *list,
                                 const weir_manifest *m, weir_error *err) {
  for (size_t i = 0; i < m->shards.count; i++) {
    const char *name = m->shards.items[i].file.data;
    weir_checkpoint_file f = weir_checkpoint_file_of(name);
    if (same_stem(f.stem, list->stem) && is_there(files, name))
      WEIR_TRY(unlink_file(p, name, err));
  }
  return WEIR_OK;
}

/* --- generations that are no longer kept --- */

static weir_status remove_generation(const weir_checkpoint_place *p,
                                     const weir_checkpoint_files *files,
                                     const weir_checkpoint_file *f,
                                     weir_error *err) {
  char list[WEIR_CHECKPOINT_NAME_BYTES];
  weir_manifest m;
  weir_manifest_init(&m, p->env->alloc);
  /* If it is not readable, its files are not known, and it stays. */
  weir_checkpoint_folder dir = {p->folder, p->dir};
  weir_status s = weir_manifest_read(p->env, &dir, f->name, &m, err);
  weir_checkpoint_temporary_name(f->name, list);
  if (s == WEIR_OK)
    s = folders(p)->rename(p->env->fs->self, p->folder, f->name, list, err);
  if (s == WEIR_OK) s = sync_folder(p, err);
  if (s == WEIR_OK) s = remove_listed(p, files, f, &m, err);
  if (s == WEIR_OK) s = sync_folder(p, err);
  if (s == WEIR_OK) s = unlink_file(p, list, err);
  weir_manifest_release(&m);
  return s;
}

/* |rank| counts steps from the newest, from 1. */
static bool is_kept(const weir_checkpoint_place *p,
                    const weir_checkpoint_file *f, weir_checkpoint_stem saved,
                    size_t rank) {
  uint64_t every = p->options.keep_every_steps;
  if (f->stem.step == saved.step) return f->stem.attempt >= saved.attempt;
  return p->options.keep == 0 || rank <= p->options.keep ||
         (every != 0 && f->stem.step % every == 0);
}

weir_status weir_checkpoint_expire(const weir_checkpoint_place *place,
                                   weir_checkpoint_stem saved,
                                   weir_error *err) {
  weir_checkpoint_files files = {0};
  size_t rank = 0;
  uint64_t step = 0;
  weir_status first =
      weir_checkpoint_list(place->env, place->folder, &files, err);
  for (size_t i = 0; i < files.count; i++) {
    const weir_checkpoint_file *f = &files.items[i];
    if (f->kind != WEIR_CHECKPOINT_MANIFEST || f->temporary) continue;
    if (rank == 0 || f->stem.step != step) rank++;
    step = f->stem.step;
    if (is_kept(place, f, saved, rank)) continue;
    weir_status s =
        remove_generation(place, &files, f, first == WEIR_OK ? err : NULL);
    if (first == WEIR_OK) first = s;
  }
  weir_vec_free(place->env->alloc, &files);
  return first;
}

weir_status weir_checkpoint_remove(const weir_checkpoint_place *place,
                                   const weir_checkpoint_wish *wish,
                                   weir_error *err) {
  weir_checkpoint_files files = {0};
  weir_status first =
      weir_checkpoint_list(place->env, place->folder, &files, err);
  for (size_t i = 0; i < files.count; i++) {
    const weir_checkpoint_file *f = &files.items[i];
    if (f->kind != WEIR_CHECKPOINT_MANIFEST || f->temporary ||
        wish->keeps(wish->self, f->stem.step))
      continue;
    weir_status s =
        remove_generation(place, &files, f, first == WEIR_OK ? err : NULL);
    if (first == WEIR_OK) first = s;
  }
  weir_vec_free(place->env->alloc, &files);
  return first;
}

/* --- files left by runs that are gone --- */

/* Removes the shards that temporary manifest |f| names. |*out_remove|: it may
 * go too. */
static weir_status tidy_list(const weir_checkpoint_place *p,
                             const weir_checkpoint_files *files,
                             const weir_checkpoint_file *f, bool *out_remove,
                             weir_error *err) {
  char last[WEIR_CHECKPOINT_NAME_BYTES];
  weir_error inner = WEIR_ERROR_INIT;
  weir_manifest m;
  weir_manifest_init(&m, p->env->alloc);
  weir_checkpoint_manifest_name(f->stem, last);
  weir_checkpoint_folder dir = {p->folder, p->dir};
  weir_status s = weir_manifest_read(p->env, &dir, f->name, &m, &inner);
  bool torn = weir_sv_is(weir_sv_from(inner.id), "W4041");
  bool memory = weir_sv_is(weir_sv_from(inner.id), "W6001");
  if (s == WEIR_OK && !is_there(files, last))
    s = remove_listed(p, files, f, &m, &inner);
  weir_manifest_release(&m);
  /* One that was torn was not on disk yet, so no shard had its final name. */
  *out_remove = s == WEIR_OK || torn;
  if (s == WEIR_OK || !memory) return WEIR_OK; /* an unreadable list stays */
  weir_error_copy(err, &inner);
  return s;
}

weir_status weir_checkpoint_tidy(const weir_checkpoint_place *place,
                                 weir_error *err) {
  weir_checkpoint_files files = {0};
  bool any = false;
  weir_status s = weir_checkpoint_list(place->env, place->folder, &files, err);
  for (size_t i = 0; s == WEIR_OK && i < files.count; i++) {
    weir_checkpoint_file *f = &files.items[i];
    if (!f->temporary) continue;
    any = true;
    if (f->kind == WEIR_CHECKPOINT_SHARD)
      s = unlink_file(place, f->name, err);
    else
      s = tidy_list(place, &files, f, &f->temporary, err);
  }
  if (s == WEIR_OK && any) s = sync_folder(place, err);
  for (size_t i = 0; s == WEIR_OK && i < files.count; i++)
    if (files.items[i].kind == WEIR_CHECKPOINT_MANIFEST &&
        files.items[i].temporary)
      s = unlink_file(place, files.items[i].name, err);
  weir_vec_free(place->env->alloc, &files);
  return s;
}
