/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/io/run_folder.h"

#include <string.h>

/* See run_folder.h for the rule.
 *
 * A file is written under a hidden temporary name, which no graph can name, is
 * synchronised, and gets its name by a renaming that replaces nothing. So it is
 * there whole or not at all, and two runs that save at once cannot mix. */

enum { kPartBytes = 255, kPathBytes = 1024 };

#define TEMPORARY ".weir-save.tmp"

/* ---- Names */

static weir_status refuse(const weir_run_name *n, const char *why,
                          weir_error *err) {
  size_t shown = n->text.size < 200 ? n->text.size : 200;
  weir_status s =
      weir_fail(err, WEIR_W1150, n->mark, "%s is '%.*s': %s", n->key,
                (int)shown, n->text.size > 0 ? n->text.data : "", why);
  weir_hint(err,
            "write a name beneath the run folder, as in `%s: logs/a.txt`; only "
            "the command line names other places",
            n->key);
  return s;
}

static bool is_word(const weir_run_name *n) {
  static const char *const kWords[] = {"true",  "True",  "TRUE", "false",
                                       "False", "FALSE", "null", "Null",
                                       "NULL",  "~"};
  for (size_t i = 0; n->plain && i < sizeof kWords / sizeof kWords[0]; i++)
    if (weir_sv_is(n->text, kWords[i])) return true;
  return false;
}

/* Why part[0, size) of a path is refused, or NULL. */
static const char *odd_part(const char *part, size_t size, bool is_last) {
  if (size == 1 && part[0] == '.' && !is_last) return NULL; /* "./ckpt" */
  if (size == 0) return "a part of the path is empty";
  if (size == 2 && memcmp(part, "..", 2) == 0)
    return "it leaves the run folder";
  if (part[0] == '.') return "a part of it begins with a dot";
  return size > kPartBytes ? "it is too long" : NULL;
}

weir_status weir_run_name_check(const weir_run_name *name, weir_error *err) {
  weir_sv t = name->text;
  if (t.size == 0) return refuse(name, "it must be a file's name", err);
  if (is_word(name)) return refuse(name, "it must be a file's name", err);
  if (t.size > kPathBytes) return refuse(name, "it is too long", err);
  if (memchr(t.data, '\0', t.size) != NULL)
    return refuse(name, "a path has no NUL bytes", err);
  if (t.data[0] == '/') return refuse(name, "it is an absolute path", err);
  for (size_t i = 0; i < t.size; i++)
    if ((unsigned char)t.data[i] < 0x20 || t.data[i] == 0x7f)
      return refuse(name, "it has control characters", err);
  if (name->is_single && memchr(t.data, '/', t.size) != NULL)
    return refuse(name, "it is a path, not the name of a file", err);
  for (size_t at = 0; at <= t.size;) {
    const char *slash = memchr(t.data + at, '/', t.size - at);
    size_t end = slash != NULL ? (size_t)(slash - t.data) : t.size;
    bool is_last = slash == NULL;
    if (is_last && end == at) break; /* "a/" is folder a */
    const char *why = odd_part(t.data + at, end - at, is_last);
    if (why != NULL) return refuse(name, why, err);
    at = end + 1;
  }
  return WEIR_OK;
}

/* ---- Places */

static weir_status join(const char *above, weir_sv name, weir_arena *arena,
                        const char **out, weir_error *err) {
  size_t n = strlen(above);
  char *text = weir_arena_alloc(arena, n + name.size + 2);
  if (text == NULL) return weir_fail_memory(err, n + name.size + 2);
  memcpy(text, above, n);
  if (n > 0) text[n++] = '/';
  if (name.size > 0) memcpy(text + n, name.data, name.size);
  text[n + name.size] = '\0';
  *out = text;
  return WEIR_OK;
}

static weir_status no_folder(const char *key, const weir_mark *mark,
                             weir_error *err) {
  weir_status s = weir_fail(err, WEIR_W1151, mark,
                            "the graph names a file by `%s`, and there is no "
                            "run folder to write it to",
                            key);
  weir_hint(err,
            "give `--out DIR` or `--checkpoint DIR`, or let the graph name "
            "`checkpoint: {dir: ...}`");
  return s;
}

weir_status weir_run_place_of(const weir_run_folder *run, weir_sv name,
                              const char *key, weir_arena *arena,
                              weir_run_place *out_place, weir_error *err) {
  *out_place = (weir_run_place){NULL, run->root};
  if (run->root == NULL) return no_folder(key, NULL, err);
  if (run->inner == NULL && name.size == 0) return WEIR_OK;
  out_place->root = run->root;
  if (name.size == 0) {
    out_place->path = run->inner;
    return WEIR_OK;
  }
  return join(run->inner != NULL ? run->inner : "", name, arena,
              &out_place->path, err);
}

/* ---- Files */

/* A file on its way. */
typedef struct saving {
  const weir_fs *fs;
  void *folder;
  const char *name; /* the last part of the path */
  weir_bytes content;
  const weir_run_name *said;
} saving;

static weir_status taken(const saving *v, weir_error *err) {
  weir_status s = weir_fail(err, WEIR_W5009, v->said->mark,
                            "'%.*s' is there already and holds something else; "
                            "a graph replaces no file",
                            WEIR_SV(v->said->text));
  weir_hint(err, "remove it, or name another run folder by `--out DIR`");
  return s;
}

/* |*out_same|: the file is there and holds the content already. */
static weir_status look(const saving *v, bool *out_same, weir_error *err) {
  weir_file old = {0};
  weir_error inner = WEIR_ERROR_INIT;
  *out_same = false;
  weir_status s = v->fs->folders->read(v->fs->self, v->folder, v->name,
                                       v->content.size, &old, &inner);
  if (s == WEIR_OK)
    *out_same = old.bytes.size == v->content.size &&
                (v->content.size == 0 ||
                 memcmp(old.bytes.data, v->content.data, v->content.size) == 0);
  v->fs->close(v->fs->self, &old);
  if (s == WEIR_OK) return *out_same ? WEIR_OK : taken(v, err);
  if (strcmp(inner.id, "W4001") == 0) return WEIR_OK; /* not there */
  if (strcmp(inner.id, "W4015") == 0) return taken(v, err);
  weir_error_copy(err, &inner);
  return s;
}

static weir_status put(const saving *v, void *file, weir_error *err) {
  const weir_fs_folders *f = v->fs->folders;
  weir_status s = f->append(v->fs->self, file, v->content, err);
  if (s == WEIR_OK) s = f->sync(v->fs->self, file, err);
  weir_status ended = f->end(v->fs->self, file, s == WEIR_OK ? err : NULL);
  return s != WEIR_OK ? s : ended;
}

/* A temporary that is there was left by a run that is gone, or another run
 * saves at this moment; then one of both fails to rename. */
static weir_status make(const saving *v, weir_error *err) {
  const weir_fs_folders *f = v->fs->folders;
  void *self = v->fs->self, *file = NULL;
  WEIR_TRY(f->create(self, v->folder, TEMPORARY, &file, err));
  if (file == NULL) {
    WEIR_TRY(f->unlink(self, v->folder, TEMPORARY, err));
    WEIR_TRY(f->create(self, v->folder, TEMPORARY, &file, err));
  }
  if (file == NULL)
    return weir_fail(err, WEIR_W5009, v->said->mark,
                     "another run writes '%.*s' too", WEIR_SV(v->said->text));
  weir_status s = put(v, file, err);
  if (s == WEIR_OK) s = f->rename(self, v->folder, TEMPORARY, v->name, err);
  if (s != WEIR_OK)
    (void)f->unlink(self, v->folder, TEMPORARY, NULL);
  else
    s = f->sync_folder(self, v->folder, err);
  return s;
}

static weir_status save_in(saving *v, const weir_run_place *place,
                           weir_error *err) {
  const weir_fs *fs = v->fs;
  bool same = false;
  WEIR_TRY(fs->folders->open(fs->self, place->root, place->path, true,
                             &v->folder, err));
  weir_status s = look(v, &same, err);
  if (s == WEIR_OK && !same) s = make(v, err);
  fs->folders->close(fs->self, v->folder);
  return s;
}

weir_status weir_run_save(const weir_env *env, const weir_run_folder *run,
                          const weir_run_name *name, weir_bytes content,
                          weir_error *err) {
  weir_arena arena;
  weir_run_place place;
  weir_sv path = name->text;
  WEIR_TRY(weir_run_name_check(name, err));
  if (run->root == NULL) return no_folder(name->key, name->mark, err);
  if (env->fs->folders == NULL)
    return weir_fail(err, WEIR_W0004, NULL,
                     "this file system cannot be written to");
  while (path.size > 0 && path.data[path.size - 1] != '/') path.size--;
  weir_sv last = {name->text.data + path.size, name->text.size - path.size};
  if (last.size == 0) return refuse(name, "it is a folder", err);
  if (path.size > 0) path.size--; /* the slash */
  weir_arena_init(&arena, env->alloc);
  saving v = {.fs = env->fs, .content = content, .said = name};
  v.name = weir_arena_string(&arena, last.data, last.size);
  weir_status s = v.name != NULL ? weir_run_place_of(run, path, name->key,
                                                     &arena, &place, err)
                                 : weir_fail_memory(err, last.size);
  if (s == WEIR_OK) s = save_in(&v, &place, err);
  weir_arena_release(&arena);
  return s;
}
