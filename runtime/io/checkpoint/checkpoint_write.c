/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/io/checkpoint/checkpoint_write.h"

#include <assert.h>
#include <inttypes.h>

#include "runtime/io/checkpoint/checkpoint_clean.h"
#include "runtime/io/checkpoint/checkpoint_internal.h"
#include "runtime/io/checkpoint/checkpoint_manifest.h"
#include "runtime/io/checkpoint/checkpoint_names.h"
#include "runtime/io/checkpoint/checkpoint_owners.h"
#include "runtime/io/checkpoint/checkpoint_shard.h"

/* Writing one generation. See checkpoint_internal.h for the names.
 *
 *   1. each shard under its temporary name, synchronised
 *   2. the manifest under its temporary name, synchronised, and the folder
 *   3. shards get their names, and the folder is synchronised
 *   4. the manifest gets its name, and the folder is synchronised
 *
 * Invariant: a manifest with its name has all its shards on disk. A machine
 * that stops before 2 is done leaves temporary files only; after 2 the
 * temporary manifest lists the shards that may have their names. Memory: the
 * headers and the manifest; tensors are written from where they are.
 *
 * Where tensors have owners (checkpoint_owners.h), step 1 is theirs as far as
 * they see the folder; 2 to 4 are the same. Memory then: a piece of 8 MiB. */

enum { kDefaultShardBytes = 1 << 30, kShardsMost = 99999 };

/* The save under way. */
typedef struct saver {
  const weir_checkpoint_place *place;
  const weir_checkpoint_job *job;
  weir_checkpoint_stem stem;
  weir_manifest manifest;
  size_t *begins;    /* the first entry of each shard, and the end */
  uint64_t *offsets; /* of each entry, in its shard */
  uint32_t *crcs;
  bool *made;       /* per shard: its temporary may be there */
  uint8_t *piece;   /* of an owner's tensor; NULL: none was read yet */
  bool listed;      /* the manifest's temporary was made */
  bool renaming;    /* shards may have their final names */
  weir_strbuf text; /* headers, then the manifest */
} saver;

/* Where the bytes of a shard's tensors come from. */
typedef struct piece_source {
  saver *v;
  size_t begin; /* its first entry */
} piece_source;

static const weir_fs_folders *folders(const saver *v) {
  return v->place->env->fs->folders;
}

static void *fs_self(const saver *v) {
  return v->place->env->fs->self;
}

/* --- before anything is written --- */

/* An attempt that no file of this step has. */
static weir_status choose_stem(saver *v, weir_error *err) {
  weir_checkpoint_files files = {0};
  weir_status s =
      weir_checkpoint_list(v->place->env, v->place->folder, &files, err);
  v->stem.step = v->job->info.step;
  for (size_t i = 0; s == WEIR_OK && i < files.count; i++) {
    const weir_checkpoint_stem *other = &files.items[i].stem;
    if (other->step == v->stem.step && other->attempt >= v->stem.attempt)
      v->stem.attempt = other->attempt + 1;
  }
  weir_vec_free(v->place->env->alloc, &files);
  return s;
}

/* Whether entry |i| has another owner than the one before it. */
static bool other_owner(const weir_checkpoint_job *job, size_t i) {
  const weir_checkpoint_owners *o = job->owners;
  return o != NULL && i > 0 &&
         o->vt->owner(o, job->places[i]) != o->vt->owner(o, job->places[i - 1]);
}

/* Cuts the entries into shards: a new one for each owner, and when the next
 * would make it too large. */
static weir_status cut(saver *v, weir_error *err) {
  const weir_checkpoint_job *job = v->job;
  size_t most = v->place->options.shard_bytes, used = 0;
  if (most == 0) most = kDefaultShardBytes;
  v->begins =
      weir_arena_array(&v->manifest.arena, job->count + 2, sizeof *v->begins);
  v->offsets =
      weir_arena_array(&v->manifest.arena, job->count + 1, sizeof *v->offsets);
  v->crcs =
      weir_arena_array(&v->manifest.arena, job->count + 1, sizeof *v->crcs);
  v->made =
      weir_arena_array(&v->manifest.arena, job->count + 1, sizeof *v->made);
  if (v->begins == NULL || v->offsets == NULL || v->crcs == NULL ||
      v->made == NULL)
    return weir_fail_memory(err, job->count);
  for (size_t i = 0; i < job->count; i++) {
    size_t bytes = job->tensors[i]->bytes;
    bool fits =
        i > 0 && used <= most && bytes <= most - used && !other_owner(job, i);
    if (!fits) {
      weir_manifest_shard shard = {0};
      v->begins[v->manifest.shards.count] = i;
      if (!weir_vec_push(v->manifest.alloc, &v->manifest.shards, shard))
        return weir_fail_memory(err, sizeof shard);
      used = 0;
    }
    used = bytes <= SIZE_MAX - used ? used + bytes : SIZE_MAX;
  }
  v->begins[v->manifest.shards.count] = job->count;
  if (v->manifest.shards.count <= kShardsMost) return WEIR_OK;
  return weir_fail(
      err, WEIR_W0004, NULL,
      "shard_bytes of %zu makes %zu shards, at most %d are written", most,
      v->manifest.shards.count, kShardsMost);
}

/* Names of shards, and the tensors' roles, types and shapes. */
static weir_status describe(saver *v, weir_error *err) {
  const weir_checkpoint_job *job = v->job;
  weir_manifest *m = &v->manifest;
  char name[WEIR_CHECKPOINT_NAME_BYTES];
  m->info = job->info;
  if (!weir_vec_reserve(m->alloc, &m->tensors, job->count))
    return weir_fail_memory(err, job->count);
  for (size_t k = 0; k < m->shards.count; k++) {
    weir_checkpoint_shard_name(v->stem, (uint32_t)k, (uint32_t)m->shards.count,
                               name);
    const char *copy = weir_arena_string(&m->arena, name, strlen(name));
    if (copy == NULL) return weir_fail_memory(err, sizeof name);
    m->shards.items[k].file = weir_sv_from(copy);
    for (size_t i = v->begins[k]; i < v->begins[k + 1]; i++)
      m->tensors.items[m->tensors.count++] =
          (weir_manifest_tensor){.name = job->names[i],
                                 .role = job->roles[i],
                                 .dtype = job->tensors[i]->dtype,
                                 .shape = job->tensors[i]->shape,
                                 .shard = (uint32_t)k,
                                 .bytes = job->tensors[i]->bytes};
  }
  assert(m->tensors.count == job->count);
  return WEIR_OK;
}

/* --- shards --- */

/* Shard |k|, under its temporary name |file|. Its tensors are entries that
 * stand together. |v->offsets| and |v->crcs| are by entry. */
static weir_checkpoint_shard shard_of(const saver *v, size_t k,
                                      char file[WEIR_CHECKPOINT_NAME_BYTES]) {
  size_t begin = v->begins[k];
  weir_checkpoint_temporary_name(v->manifest.shards.items[k].file.data, file);
  return (weir_checkpoint_shard){.env = v->place->env,
                                 .folder = v->place->folder,
                                 .dir = v->place->dir,
                                 .name = file,
                                 .run_id = v->job->info.run_id,
                                 .names = v->job->names + begin,
                                 .tensors = v->job->tensors + begin,
                                 .count = v->begins[k + 1] - begin,
                                 .offsets = v->offsets + begin,
                                 .crcs = v->crcs + begin};
}

/* The manifest's row of shard |k|. */
static void note_shard(saver *v, size_t k, const weir_checkpoint_shard *shard) {
  v->manifest.shards.items[k].bytes = shard->bytes;
  v->manifest.shards.items[k].crc = shard->crc;
  for (size_t i = v->begins[k]; i < v->begins[k + 1]; i++) {
    v->manifest.tensors.items[i].offset = v->offsets[i];
    v->manifest.tensors.items[i].crc = v->crcs[i];
  }
}

/* Gets a piece of a tensor that its owner holds. */
static weir_status take_piece(void *self, size_t i, uint64_t offset,
                              weir_bytes *out, weir_error *err) {
  const piece_source *from = self;
  const weir_checkpoint_job *job = from->v->job;
  size_t entry = from->begin + i;
  size_t left = job->tensors[entry]->bytes - (size_t)offset;
  if (left > WEIR_CHECKPOINT_PIECE_BYTES) left = WEIR_CHECKPOINT_PIECE_BYTES;
  *out = (weir_bytes){from->v->piece, left};
  return job->owners->vt->read(job->owners, job->places[entry], offset,
                               from->v->piece, left, err);
}

static weir_status write_shard(saver *v, size_t k, weir_error *err) {
  char name[WEIR_CHECKPOINT_NAME_BYTES];
  weir_checkpoint_shard shard = shard_of(v, k, name);
  piece_source from = {v, v->begins[k]};
  if (v->job->owners != NULL) {
    if (v->piece == NULL)
      v->piece = weir_alloc(v->place->env->alloc, WEIR_CHECKPOINT_PIECE_BYTES);
    if (v->piece == NULL)
      return weir_fail_memory(err, WEIR_CHECKPOINT_PIECE_BYTES);
    shard.piece = take_piece;
    shard.self = &from;
  }
  weir_status s = weir_checkpoint_shard_write(&shard, err);
  v->made[k] = shard.made;
  if (s == WEIR_OK) note_shard(v, k, &shard);
  return s;
}

/* --- shards of owners --- */

/* Writes the file by which an owner knows the folder. One that cannot be
 * written, or a folder without a path, is common for nobody. */
static bool put_nonce(const saver *v, const uint8_t *nonce) {
  const weir_fs_folders *f = folders(v);
  weir_bytes bytes = {nonce, WEIR_CHECKPOINT_NONCE_BYTES};
  void *file = NULL, *folder = v->place->folder;
  /* One may be left of a run that is gone. */
  (void)f->unlink(fs_self(v), folder, WEIR_CHECKPOINT_NONCE, NULL);
  if (f->create(fs_self(v), folder, WEIR_CHECKPOINT_NONCE, &file, NULL) !=
          WEIR_OK ||
      file == NULL)
    return false;
  bool put = f->append(fs_self(v), file, bytes, NULL) == WEIR_OK;
  return f->end(fs_self(v), file, NULL) == WEIR_OK && put;
}

/* Fills |orders|, one for each shard, whose names stand in |names|. */
static void make_orders(saver *v, weir_checkpoint_order *orders,
                        char (*names)[WEIR_CHECKPOINT_NAME_BYTES]) {
  const weir_checkpoint_job *job = v->job;
  for (size_t k = 0; k < v->manifest.shards.count; k++) {
    size_t begin = v->begins[k];
    weir_checkpoint_shard shard = shard_of(v, k, names[k]);
    orders[k] = (weir_checkpoint_order){
        .owner = job->owners->vt->owner(job->owners, job->places[begin]),
        .file = names[k],
        .run_id = shard.run_id,
        .entries = job->places + begin,
        .count = shard.count,
        .crcs = shard.crcs};
  }
}

/* Takes over a shard that its owner has written: it is what its tensors make,
 * and not what the owner calls it. */
static weir_status take_order(saver *v, size_t k,
                              const weir_checkpoint_order *order,
                              weir_error *err) {
  char name[WEIR_CHECKPOINT_NAME_BYTES];
  weir_checkpoint_shard shard = shard_of(v, k, name);
  WEIR_TRY(weir_checkpoint_shard_expect(&shard, err));
  if (shard.bytes != order->bytes || shard.crc != order->crc)
    return weir_fail(err, WEIR_W9001, NULL,
                     "'%s' was written with another header than it should",
                     name);
  note_shard(v, k, &shard);
  return WEIR_OK;
}

static weir_status ask_owners(saver *v, weir_checkpoint_order *orders,
                              weir_error *err) {
  const weir_env *env = v->place->env;
  const weir_checkpoint_job *job = v->job;
  char path[WEIR_CHECKPOINT_PATH_BYTES];
  weir_checkpoint_common common = {.path = path};
  bool told =
      folders(v)->path != NULL && env->random != NULL &&
      folders(v)->path(fs_self(v), v->place->folder, path, sizeof path) &&
      env->random->fill(env->random->self, common.nonce, sizeof common.nonce) &&
      put_nonce(v, common.nonce);
  weir_status s = WEIR_OK;
  if (told) {
    for (size_t k = 0; k < v->manifest.shards.count; k++) v->made[k] = true;
    s = job->owners->vt->write(job->owners, &common, orders,
                               v->manifest.shards.count, err);
  }
  (void)folders(v)->unlink(fs_self(v), v->place->folder, WEIR_CHECKPOINT_NONCE,
                           NULL);
  return s;
}

static weir_status write_owned(saver *v, weir_error *err) {
  weir_arena *arena = &v->manifest.arena;
  size_t count = v->manifest.shards.count;
  weir_checkpoint_order *orders =
      weir_arena_array(arena, count + 1, sizeof *orders);
  char(*names)[WEIR_CHECKPOINT_NAME_BYTES] =
      weir_arena_array(arena, count + 1, sizeof *names);
  if (orders == NULL || names == NULL) return weir_fail_memory(err, count);
  make_orders(v, orders, names);
  WEIR_TRY(ask_owners(v, orders, err));
  for (size_t k = 0; k < count; k++)
    WEIR_TRY(orders[k].written ? take_order(v, k, &orders[k], err)
                               : write_shard(v, k, err));
  return WEIR_OK;
}

static weir_status write_shards(saver *v, weir_error *err) {
  if (v->job->owners != NULL) return write_owned(v, err);
  for (size_t k = 0; k < v->manifest.shards.count; k++)
    WEIR_TRY(write_shard(v, k, err));
  return WEIR_OK;
}

/* Makes temporary file |name|, which must be new. */
static weir_status make_file(const saver *v, const char *name, void **out_file,
                             weir_error *err) {
  WEIR_TRY(
      folders(v)->create(fs_self(v), v->place->folder, name, out_file, err));
  if (*out_file != NULL) return WEIR_OK;
  return weir_fail(err, WEIR_W5009, NULL,
                   "'%s' is there already: another program writes to '%.200s'",
                   name, v->place->dir);
}

/* --- the manifest, and the names --- */

static weir_status write_manifest(saver *v, const char *name, weir_error *err) {
  void *file = NULL;
  weir_strbuf_clear(&v->text);
  WEIR_TRY(weir_manifest_write(&v->manifest, &v->text, err));
  WEIR_TRY(make_file(v, name, &file, err));
  v->listed = true;
  weir_bytes text = {(const uint8_t *)v->text.data, v->text.size};
  weir_status s = folders(v)->append(fs_self(v), file, text, err);
  if (s == WEIR_OK) s = folders(v)->sync(fs_self(v), file, err);
  weir_status ended =
      folders(v)->end(fs_self(v), file, s == WEIR_OK ? err : NULL);
  return s != WEIR_OK ? s : ended;
}

static weir_status sync_folder(const saver *v, weir_error *err) {
  return folders(v)->sync_folder(fs_self(v), v->place->folder, err);
}

static weir_status rename_shards(saver *v, weir_error *err) {
  char name[WEIR_CHECKPOINT_NAME_BYTES];
  assert(v->listed);
  v->renaming = true;
  for (size_t k = 0; k < v->manifest.shards.count; k++) {
    const char *last = v->manifest.shards.items[k].file.data;
    assert(v->made[k]);
    weir_checkpoint_temporary_name(last, name);
    WEIR_TRY(folders(v)->rename(fs_self(v), v->place->folder, name, last, err));
  }
  return WEIR_OK;
}

/* After a failure: removes the files made so far, the list last, so that a
 * later run can remove those that stay. */
static void give_up(const saver *v, const char *list) {
  char name[WEIR_CHECKPOINT_NAME_BYTES];
  for (size_t k = 0; k < v->manifest.shards.count; k++) {
    if (v->made == NULL || !v->made[k]) continue;
    const char *last = v->manifest.shards.items[k].file.data;
    weir_checkpoint_temporary_name(last, name);
    (void)folders(v)->unlink(fs_self(v), v->place->folder, name, NULL);
    if (v->renaming)
      (void)folders(v)->unlink(fs_self(v), v->place->folder, last, NULL);
  }
  (void)sync_folder(v, NULL);
  if (v->listed)
    (void)folders(v)->unlink(fs_self(v), v->place->folder, list, NULL);
}

static weir_status write_all(saver *v, const char *list, const char *last,
                             weir_error *err) {
  WEIR_TRY(write_shards(v, err));
  WEIR_TRY(write_manifest(v, list, err));
  WEIR_TRY(sync_folder(v, err)); /* the list, before it is needed */
  WEIR_TRY(rename_shards(v, err));
  WEIR_TRY(sync_folder(v, err));
  return folders(v)->rename(fs_self(v), v->place->folder, list, last, err);
}

weir_status weir_checkpoint_write(const weir_checkpoint_place *place,
                                  const weir_checkpoint_job *job,
                                  weir_error *err) {
  saver v = {.place = place, .job = job};
  char last[WEIR_CHECKPOINT_NAME_BYTES], list[WEIR_CHECKPOINT_NAME_BYTES];
  weir_manifest_init(&v.manifest, place->env->alloc);
  weir_strbuf_init(&v.text, place->env->alloc);
  weir_status s = choose_stem(&v, err);
  if (s == WEIR_OK) s = cut(&v, err);
  if (s == WEIR_OK) s = describe(&v, err);
  weir_checkpoint_manifest_name(v.stem, last);
  weir_checkpoint_temporary_name(last, list);
  if (s == WEIR_OK) s = write_all(&v, list, last, err);
  /* When the last sync fails, it is not known which generation is on disk: all
   * files stay. */
  if (s != WEIR_OK)
    give_up(&v, list);
  else
    s = sync_folder(&v, err);
  /* A removal that fails now is tried again after the next save. */
  if (s == WEIR_OK) (void)weir_checkpoint_expire(place, v.stem, NULL);
  weir_free(place->env->alloc, v.piece);
  weir_strbuf_release(&v.text);
  weir_manifest_release(&v.manifest);
  return s;
}
