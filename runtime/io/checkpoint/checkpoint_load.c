/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/io/checkpoint/checkpoint_load.h"

#include <inttypes.h>
#include <stdio.h>

#include "runtime/base/bytes/crc32c.h"
#include "runtime/base/map.h"
#include "runtime/io/array/safetensors.h"
#include "runtime/io/checkpoint/checkpoint_bare.h"
#include "runtime/io/checkpoint/checkpoint_common.h"
#include "runtime/io/checkpoint/checkpoint_internal.h"
#include "runtime/io/checkpoint/checkpoint_manifest.h"
#include "runtime/io/checkpoint/checkpoint_manifest_read.h"
#include "runtime/io/checkpoint/checkpoint_names.h"

/* Reading one generation: the manifest, then each shard, everything compared
 * with everything. */

struct weir_checkpoint {
  const weir_env *env;
  weir_manifest manifest;
  char path[WEIR_CHECKPOINT_PATH_BYTES];
  weir_tensor **tensors; /* of the manifest's order; of a bare one NULL each */
  const weir_checkpoint_folder *dir; /* of a bare one */
  char name[WEIR_CHECKPOINT_NAME_BYTES];
  weir_map names;
};

typedef struct loader {
  weir_checkpoint *c;
  const weir_checkpoint_folder *dir;
  uint32_t shard;
  const char *file; /* the shard's path */
  weir_error *err;
} loader;

/* The shard's name in the folder, which no mark loses. */
static const char *name_of(const loader *l) {
  return l->c->manifest.shards.items[l->shard].file.data;
}

static weir_status bad_shard(const loader *l, const char *what) {
  weir_mark at = {.file = l->file};
  return weir_fail(l->err, WEIR_W4045, &at, "shard '%s' is damaged: %s",
                   name_of(l), what);
}

static weir_status bad_tensor(const loader *l, weir_sv name, const char *what) {
  weir_mark at = {.file = l->file};
  size_t shown = name.size < 200 ? name.size : 200;
  return weir_fail(l->err, WEIR_W4045, &at,
                   "tensor '%.*s' of '%s' is damaged: %s", (int)shown,
                   name.data, name_of(l), what);
}

/* --- one shard --- */

/* Compares tensor |t| of the manifest with the one in the shard. */
static weir_status take_tensor(const loader *l, weir_safetensors *file,
                               size_t j, size_t i) {
  const weir_manifest_tensor *t = &l->c->manifest.tensors.items[i];
  weir_tensor *tensor = NULL;
  uint64_t offset = weir_safetensors_offset(file, j);
  WEIR_TRY(weir_safetensors_get(file, j, &tensor, l->err));
  l->c->tensors[i] = tensor;
  if (tensor->dtype != t->dtype || !weir_shape_equal(&tensor->shape, &t->shape))
    return bad_tensor(l, t->name, "dtype or shape is not the manifest's");
  if (offset != t->offset || tensor->bytes != t->bytes)
    return bad_tensor(l, t->name, "it stands elsewhere than the manifest says");
  if (weir_crc32c(0, tensor->data, tensor->bytes) != t->crc)
    return bad_tensor(l, t->name, "its CRC32C is not the manifest's");
  return WEIR_OK;
}

static weir_status take_tensors(const loader *l, weir_safetensors *file) {
  const weir_manifest *m = &l->c->manifest;
  size_t want = 0;
  for (size_t i = 0; i < m->tensors.count; i++)
    want += m->tensors.items[i].shard == l->shard;
  if (want != weir_safetensors_count(file))
    return bad_shard(l, "it holds another number of tensors");
  for (size_t j = 0; j < want; j++) {
    weir_sv name = weir_safetensors_name(file, j);
    uint32_t i = weir_map_get(&l->c->names, name);
    if (i == WEIR_MAP_NONE || m->tensors.items[i].shard != l->shard)
      return bad_tensor(l, name, "the manifest does not know it");
    WEIR_TRY(take_tensor(l, file, j, i));
  }
  return WEIR_OK;
}

static weir_status other_run(const loader *l, weir_sv run) {
  weir_mark at = {.file = l->file};
  return weir_fail(l->err, WEIR_W4046, &at,
                   "the shard is of run '%.*s', the manifest of run '%.*s'",
                   run.size < 100 ? (int)run.size : 100, run.data,
                   l->c->manifest.info.run_id.size < 100
                       ? (int)l->c->manifest.info.run_id.size
                       : 100,
                   l->c->manifest.info.run_id.data);
}

/* Takes |file|. The shard of another run has another CRC too, so the run is
 * compared first, for the better message. */
static weir_status check_shard(const loader *l, weir_file *file) {
  const weir_manifest_shard *want = &l->c->manifest.shards.items[l->shard];
  const weir_fs *fs = l->c->env->fs;
  weir_error inner = WEIR_ERROR_INIT;
  weir_safetensors *shard = NULL;
  bool same = file->bytes.size == want->bytes &&
              weir_crc32c(0, file->bytes.data, file->bytes.size) == want->crc;
  weir_status s = weir_safetensors_from(l->c->env->alloc, file->bytes, l->file,
                                        fs, file, &shard, &inner);
  if (s != WEIR_OK) {
    fs->close(fs->self, file);
    if (strcmp(inner.id, "W4005") == 0) return bad_shard(l, inner.message);
    *l->err = inner;
    return s;
  }
  weir_sv run = weir_safetensors_metadata(shard, "weir.run_id");
  if (run.data != NULL && !weir_sv_equal(run, l->c->manifest.info.run_id))
    s = other_run(l, run);
  else if (!same)
    s = bad_shard(l, file->bytes.size != want->bytes
                         ? "it has another number of bytes"
                         : "its CRC32C is not the manifest's");
  else
    s = take_tensors(l, shard);
  weir_safetensors_release(shard);
  return s;
}

/* Reads a shard into memory: a mapped file that is cut short by another program
 * would end the process. A reader's error about the file (W4...) means a
 * damaged generation; others, as lack of memory, are this process's. */
static weir_status read_shard(loader *l) {
  const weir_manifest_shard *want = &l->c->manifest.shards.items[l->shard];
  const weir_fs *fs = l->c->env->fs;
  char path[WEIR_CHECKPOINT_PATH_BYTES];
  weir_error inner = WEIR_ERROR_INIT;
  weir_file file = {0};
  l->file = path;
  if (!weir_checkpoint_path(l->dir->path, want->file.data, path))
    return bad_shard(l, "its path is too long");
  weir_status s = fs->folders->read(fs->self, l->dir->folder, want->file.data,
                                    (size_t)want->bytes, &file, &inner);
  if (s == WEIR_OK) return check_shard(l, &file);
  if (inner.id[1] == '4') return bad_shard(l, inner.message);
  *l->err = inner;
  return s;
}

/* --- the generation --- */

static weir_status index_names(weir_checkpoint *c, weir_error *err) {
  const weir_manifest *m = &c->manifest;
  weir_mark at = {.file = c->path};
  if (!weir_map_reserve(&c->names, m->tensors.count))
    return weir_fail_memory(err, m->tensors.count);
  for (size_t i = 0; i < m->tensors.count; i++) {
    uint32_t other = WEIR_MAP_NONE;
    if (!weir_map_put(&c->names, m->tensors.items[i].name, (uint32_t)i, &other))
      return weir_fail_memory(err, sizeof(weir_map_slot));
    if (other != WEIR_MAP_NONE)
      return weir_fail(err, WEIR_W4041, &at,
                       "the manifest is damaged: two tensors are called '%.*s'",
                       WEIR_SV(m->tensors.items[i].name));
  }
  c->tensors =
      weir_alloc_array(c->env->alloc, m->tensors.count + 1, sizeof *c->tensors);
  return c->tensors != NULL ? WEIR_OK : weir_fail_memory(err, m->tensors.count);
}

/* The step in a manifest's name must be the step inside. */
static weir_status check_step(const weir_checkpoint *c, const char *name,
                              weir_error *err) {
  weir_checkpoint_file f = weir_checkpoint_file_of(name);
  weir_mark at = {.file = c->path};
  if (f.kind != WEIR_CHECKPOINT_MANIFEST ||
      f.stem.step == c->manifest.info.step)
    return WEIR_OK;
  return weir_fail(err, WEIR_W4041, &at,
                   "the manifest is damaged: it says step %" PRIu64,
                   c->manifest.info.step);
}

static weir_status load(weir_checkpoint *c, const weir_checkpoint_folder *dir,
                        const char *name, weir_error *err) {
  loader l = {.c = c, .dir = dir, .err = err};
  WEIR_TRY(weir_manifest_read(c->env, dir, name, &c->manifest, err));
  WEIR_TRY(check_step(c, name, err));
  WEIR_TRY(index_names(c, err));
  if (c->dir != NULL)
    return weir_checkpoint_check_headers(c->env, dir, &c->manifest, &c->names,
                                         err);
  for (; l.shard < c->manifest.shards.count; l.shard++)
    WEIR_TRY(read_shard(&l));
  return WEIR_OK;
}

static weir_status load_any(const weir_env *env,
                            const weir_checkpoint_folder *dir, const char *name,
                            bool bare, weir_checkpoint **out_checkpoint,
                            weir_error *err) {
  weir_error inner = WEIR_ERROR_INIT;
  *out_checkpoint = NULL;
  weir_checkpoint *c = weir_alloc_array(env->alloc, 1, sizeof *c);
  if (c == NULL) return weir_fail_memory(err, sizeof *c);
  c->env = env;
  weir_manifest_init(&c->manifest, env->alloc);
  weir_map_init(&c->names, env->alloc);
  if (!weir_checkpoint_path(dir->path, name, c->path)) c->path[0] = '\0';
  snprintf(c->name, sizeof c->name, "%s", name);
  if (bare) c->dir = dir;
  weir_status s = load(c, dir, name, &inner);
  if (s == WEIR_OK) {
    *out_checkpoint = c;
    return WEIR_OK;
  }
  weir_error_copy(err, &inner);
  weir_checkpoint_release(c);
  return s;
}

weir_status weir_checkpoint_load(const weir_env *env,
                                 const weir_checkpoint_folder *dir,
                                 const char *name,
                                 weir_checkpoint **out_checkpoint,
                                 weir_error *err) {
  return load_any(env, dir, name, false, out_checkpoint, err);
}

weir_status weir_checkpoint_load_bare(const weir_env *env,
                                      const weir_checkpoint_folder *dir,
                                      const char *name,
                                      weir_checkpoint **out_checkpoint,
                                      weir_error *err) {
  return load_any(env, dir, name, true, out_checkpoint, err);
}

void weir_checkpoint_release(weir_checkpoint *checkpoint) {
  weir_checkpoint *c = checkpoint;
  if (c == NULL) return;
  for (size_t i = 0; c->tensors != NULL && i < c->manifest.tensors.count; i++)
    weir_tensor_unref(c->tensors[i]);
  weir_free(c->env->alloc, c->tensors);
  weir_map_release(&c->names);
  weir_manifest_release(&c->manifest);
  weir_free(c->env->alloc, c);
}

/* --- its contents --- */

const weir_checkpoint_info *weir_checkpoint_about(const weir_checkpoint *c) {
  return &c->manifest.info;
}

const weir_manifest *weir_checkpoint_manifest(const weir_checkpoint *c) {
  return &c->manifest;
}

const char *weir_checkpoint_path_of(const weir_checkpoint *c) {
  return c->path;
}

size_t weir_checkpoint_count(const weir_checkpoint *c) {
  return c->manifest.tensors.count;
}

weir_sv weir_checkpoint_name(const weir_checkpoint *c, size_t i) {
  return c->manifest.tensors.items[i].name;
}

weir_checkpoint_role weir_checkpoint_role_of(const weir_checkpoint *c,
                                             size_t i) {
  return c->manifest.tensors.items[i].role;
}

size_t weir_checkpoint_find(const weir_checkpoint *c, weir_sv name) {
  uint32_t i = weir_map_get(&c->names, name);
  return i != WEIR_MAP_NONE ? i : SIZE_MAX;
}

weir_tensor *weir_checkpoint_tensor(const weir_checkpoint *c, size_t i) {
  return weir_tensor_ref(c->tensors[i]);
}

weir_dtype weir_checkpoint_dtype(const weir_checkpoint *c, size_t i) {
  return c->manifest.tensors.items[i].dtype;
}

const weir_shape *weir_checkpoint_shape(const weir_checkpoint *c, size_t i) {
  return &c->manifest.tensors.items[i].shape;
}

void weir_checkpoint_span_of(const weir_checkpoint *c, size_t i,
                             weir_checkpoint_span *out) {
  const weir_manifest_tensor *t = &c->manifest.tensors.items[i];
  *out = (weir_checkpoint_span){
      .file = c->manifest.shards.items[t->shard].file.data,
      .offset = t->offset,
      .crc = t->crc};
}

/* --- of a bare one --- */

weir_status weir_checkpoint_read(const weir_checkpoint *c, size_t i,
                                 weir_tensor **out_tensor, weir_error *err) {
  const weir_manifest_tensor *t = &c->manifest.tensors.items[i];
  weir_checkpoint_span span;
  weir_checkpoint_span_of(c, i, &span);
  WEIR_TRY(weir_tensor_create_shaped(c->env->alloc, t->dtype, &t->shape,
                                     out_tensor, err));
  weir_status s = weir_checkpoint_span_read(c->env, c->dir, &span, t->name,
                                            *out_tensor, err);
  if (s == WEIR_OK) return WEIR_OK;
  weir_tensor_unref(*out_tensor);
  *out_tensor = NULL;
  return s;
}

bool weir_checkpoint_place_of(const weir_checkpoint *c, char *path,
                              size_t bytes, weir_checkpoint_common *out) {
  const weir_fs *fs = c->env->fs;
  weir_file file = {0};
  *out = (weir_checkpoint_common){.path = path, .manifest = c->name};
  if (c->dir == NULL || fs->folders->path == NULL ||
      !fs->folders->path(fs->self, c->dir->folder, path, bytes) ||
      fs->folders->read(fs->self, c->dir->folder, c->name, SIZE_MAX, &file,
                        NULL) != WEIR_OK)
    return false;
  weir_checkpoint_manifest_hash(file.bytes, out->nonce);
  fs->close(fs->self, &file);
  return true;
}
