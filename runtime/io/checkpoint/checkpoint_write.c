/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/io/checkpoint/checkpoint_write.h"

#include <assert.h>
#include <inttypes.h>

#include "runtime/base/bytes/crc32c.h"
#include "runtime/io/array/safetensors.h"
#include "runtime/io/array/safetensors_write.h"
#include "runtime/io/checkpoint/checkpoint_clean.h"
#include "runtime/io/checkpoint/checkpoint_internal.h"
#include "runtime/io/checkpoint/checkpoint_manifest.h"
#include "runtime/io/checkpoint/checkpoint_names.h"

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
 * headers and the manifest; tensors are written from where they are, and each
 * byte is summed once, for its tensor's CRC and by joining for its shard's. */

enum {
  kPieceBytes = 256 << 10, /* summed and written while in the cache */
  kDefaultShardBytes = 1 << 30,
  kShardsMost = 99999
};

/* The save under way. */
typedef struct saver {
  const weir_checkpoint_place *place;
  const weir_checkpoint_job *job;
  weir_checkpoint_stem stem;
  weir_manifest manifest;
  size_t *begins;   /* the first entry of each shard, and the end */
  uint32_t *order;  /* within one shard */
  uint32_t made;    /* shards whose temporary was made */
  bool listed;      /* the manifest's temporary was made */
  bool renaming;    /* shards may have their final names */
  weir_strbuf text; /* headers, then the manifest */
} saver;

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

/* Cuts the entries into shards: a new one when the next would make it too
 * large. */
static weir_status cut(saver *v, weir_error *err) {
  const weir_checkpoint_job *job = v->job;
  size_t most = v->place->options.shard_bytes, used = 0;
  if (most == 0) most = kDefaultShardBytes;
  v->begins =
      weir_arena_array(&v->manifest.arena, job->count + 2, sizeof *v->begins);
  v->order =
      weir_arena_array(&v->manifest.arena, job->count + 1, sizeof *v->order);
  if (v->begins == NULL || v->order == NULL)
    return weir_fail_memory(err, job->count);
  for (size_t i = 0; i < job->count; i++) {
    size_t bytes = job->tensors[i]->bytes;
    bool fits = i > 0 && used <= most && bytes <= most - used;
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

/* Appends |bytes|, sums them into |*out_crc| and joins that to the file's. */
static weir_status put(const saver *v, void *file, weir_bytes bytes,
                       weir_manifest_shard *shard, uint32_t *out_crc,
                       weir_error *err) {
  uint32_t crc = 0;
  for (size_t at = 0; at < bytes.size;) {
    size_t n = bytes.size - at < kPieceBytes ? bytes.size - at : kPieceBytes;
    weir_bytes piece = {bytes.data + at, n};
    crc = weir_crc32c(crc, piece.data, n);
    WEIR_TRY(folders(v)->append(fs_self(v), file, piece, err));
    at += n;
  }
  shard->crc = weir_crc32c_join(shard->crc, crc, bytes.size);
  shard->bytes += bytes.size;
  *out_crc = crc;
  return WEIR_OK;
}

static weir_status put_header(saver *v, size_t k, void *file, weir_error *err) {
  size_t begin = v->begins[k];
  weir_safetensors_pair about[] = {
      {WEIR_SV_LIT("weir.run_id"), v->job->info.run_id}};
  weir_safetensors_source source = {v->job->names + begin,
                                    v->job->tensors + begin,
                                    v->begins[k + 1] - begin, about, 1};
  weir_strbuf_clear(&v->text);
  WEIR_TRY(weir_safetensors_begin(&source, v->order, &v->text, err));
  weir_bytes header = {(const uint8_t *)v->text.data, v->text.size};
  uint32_t crc;
  return put(v, file, header, &v->manifest.shards.items[k], &crc, err);
}

static weir_status put_shard(saver *v, size_t k, void *file, weir_error *err) {
  weir_manifest_shard *shard = &v->manifest.shards.items[k];
  WEIR_TRY(put_header(v, k, file, err));
  for (size_t j = 0; j < v->begins[k + 1] - v->begins[k]; j++) {
    size_t i = v->begins[k] + v->order[j];
    weir_manifest_tensor *t = &v->manifest.tensors.items[i];
    weir_bytes data = {v->job->tensors[i]->data, v->job->tensors[i]->bytes};
    t->offset = shard->bytes;
    WEIR_TRY(put(v, file, data, shard, &t->crc, err));
  }
  return folders(v)->sync(fs_self(v), file, err);
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

static weir_status write_shard(saver *v, size_t k, weir_error *err) {
  char name[WEIR_CHECKPOINT_NAME_BYTES];
  void *file = NULL;
  weir_checkpoint_temporary_name(v->manifest.shards.items[k].file.data, name);
  WEIR_TRY(make_file(v, name, &file, err));
  v->made++;
  weir_status s = put_shard(v, k, file, err);
  weir_status ended =
      folders(v)->end(fs_self(v), file, s == WEIR_OK ? err : NULL);
  return s != WEIR_OK ? s : ended;
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
  assert(v->listed && v->made == v->manifest.shards.count);
  v->renaming = true;
  for (size_t k = 0; k < v->manifest.shards.count; k++) {
    const char *last = v->manifest.shards.items[k].file.data;
    weir_checkpoint_temporary_name(last, name);
    WEIR_TRY(folders(v)->rename(fs_self(v), v->place->folder, name, last, err));
  }
  return WEIR_OK;
}

/* After a failure: removes the files made so far, the list last, so that a
 * later run can remove those that stay. */
static void give_up(const saver *v, const char *list) {
  char name[WEIR_CHECKPOINT_NAME_BYTES];
  for (uint32_t k = 0; k < v->made; k++) {
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
  for (size_t k = 0; k < v->manifest.shards.count; k++)
    WEIR_TRY(write_shard(v, k, err));
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
  weir_strbuf_release(&v.text);
  weir_manifest_release(&v.manifest);
  return s;
}
