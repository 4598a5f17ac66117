/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/io/checkpoint/checkpoint_bare.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/bytes/crc32c.h"
#include "runtime/base/bytes/reader.h"
#include "runtime/io/array/safetensors.h"
#include "runtime/io/checkpoint/checkpoint_names.h"

/* A shard is its header and then its tensors, without holes. So the CRC of the
 * header that is read here and those of the tensors, which the manifest tells,
 * joined in the order of the file must be the CRC of the shard. Whoever reads a
 * tensor compares its CRC; then every byte of the shard has been compared.
 * O(n log n) for n tensors; memory: one header. */

/* A tensor of the manifest, to be sorted. */
typedef struct row {
  uint32_t shard, index;
  uint64_t offset;
} row;

typedef struct checker {
  const weir_env *env;
  const weir_checkpoint_folder *dir;
  const weir_manifest *m;
  const weir_map *names;
  row *rows;
  uint32_t shard;
  size_t begin, end; /* rows of the shard */
  char path[WEIR_CHECKPOINT_PATH_BYTES];
  weir_error *err;
} checker;

static int compare(const void *a, const void *b) {
  const row *x = a, *y = b;
  if (x->shard != y->shard) return x->shard < y->shard ? -1 : 1;
  if (x->offset != y->offset) return x->offset < y->offset ? -1 : 1;
  return x->index < y->index ? -1 : x->index > y->index;
}

static const weir_manifest_shard *shard_of(const checker *k) {
  return &k->m->shards.items[k->shard];
}

static weir_status bad(const checker *k, const char *what) {
  weir_mark at = {.file = k->path};
  return weir_fail(k->err, WEIR_W4045, &at, "shard '%s' is damaged: %s",
                   shard_of(k)->file.data, what);
}

static weir_status check_sums(const checker *k, weir_bytes header) {
  uint32_t crc = weir_crc32c(0, header.data, header.size);
  uint64_t at = header.size;
  for (size_t i = k->begin; i < k->end; i++) {
    const weir_manifest_tensor *t = &k->m->tensors.items[k->rows[i].index];
    if (t->offset != at)
      return bad(k, "its tensors stand elsewhere than the manifest says");
    crc = weir_crc32c_join(crc, t->crc, t->bytes);
    at += t->bytes;
  }
  if (at != shard_of(k)->bytes)
    return bad(k, "its tensors stand elsewhere than the manifest says");
  return crc == shard_of(k)->crc ? WEIR_OK
                                 : bad(k, "its CRC32C is not the manifest's");
}

/* Names and offsets are the manifest's. */
static weir_status check_names(const checker *k, const weir_safetensors *file) {
  size_t count = weir_safetensors_count(file);
  if (count != k->end - k->begin)
    return bad(k, "it holds another number of tensors");
  for (size_t j = 0; j < count; j++) {
    uint32_t i = weir_map_get(k->names, weir_safetensors_name(file, j));
    if (i == WEIR_MAP_NONE || k->m->tensors.items[i].shard != k->shard ||
        k->m->tensors.items[i].offset != weir_safetensors_offset(file, j))
      return bad(k, "its tensors are not those of the manifest");
  }
  return WEIR_OK;
}

/* Of another run there are other sums too, and the run is the better word. A
 * header whose length is not that of the manifest's is not looked at. */
static weir_status check_header(const checker *k, weir_bytes header) {
  weir_safetensors *file = NULL;
  weir_error inner = WEIR_ERROR_INIT;
  weir_reader r = weir_reader_of(header.data, header.size);
  uint64_t length = weir_reader_u64le(&r);
  weir_status s = check_sums(k, header);
  if (r.failed || length != header.size - 8)
    return s != WEIR_OK ? s : bad(k, "its header has another length");
  weir_bytes all = {header.data, (size_t)shard_of(k)->bytes};
  weir_status parsed = weir_safetensors_from(k->env->alloc, all, k->path, NULL,
                                             NULL, &file, &inner);
  if (parsed != WEIR_OK && strcmp(inner.id, "W4005") != 0) {
    *k->err = inner;
    return parsed;
  }
  if (parsed != WEIR_OK) return s != WEIR_OK ? s : bad(k, inner.message);
  weir_sv run = weir_safetensors_metadata(file, "weir.run_id");
  weir_sv want = k->m->info.run_id;
  if (run.data != NULL && !weir_sv_equal(run, want)) {
    weir_mark at = {.file = k->path};
    s = weir_fail(k->err, WEIR_W4046, &at,
                  "the shard is of run '%.*s', the manifest of run '%.*s'",
                  run.size < 100 ? (int)run.size : 100, run.data,
                  want.size < 100 ? (int)want.size : 100, want.data);
  } else if (s == WEIR_OK) {
    s = check_names(k, file);
  }
  weir_safetensors_release(file);
  return s;
}

static weir_status read_header(const checker *k, const weir_piece_file *file) {
  const weir_fs *fs = k->env->fs;
  weir_error inner = WEIR_ERROR_INIT;
  uint64_t size =
      k->begin < k->end ? k->rows[k->begin].offset : shard_of(k)->bytes;
  if (file->bytes != shard_of(k)->bytes)
    return bad(k, "it has another number of bytes");
  if (size < 8 || size > file->bytes || size > WEIR_SAFETENSORS_HEADER_BYTES)
    return bad(k, "its header has another length");
  uint8_t *bytes = weir_alloc(k->env->alloc, (size_t)size);
  if (bytes == NULL) return weir_fail_memory(k->err, (size_t)size);
  weir_status s =
      fs->pieces->read(fs->self, file, k->path, bytes, (size_t)size, 0, &inner);
  s = s == WEIR_OK ? check_header(k, (weir_bytes){bytes, (size_t)size})
                   : bad(k, inner.message);
  weir_free(k->env->alloc, bytes);
  return s;
}

/* A fault of the file (W4...) is damage; others are this process's. */
static weir_status check_shard(checker *k) {
  const weir_fs *fs = k->env->fs;
  const char *name = shard_of(k)->file.data;
  weir_piece_file file = {0};
  weir_error inner = WEIR_ERROR_INIT;
  if (!weir_checkpoint_path(k->dir->path, name, k->path))
    return bad(k, "its path is too long");
  weir_status s =
      fs->folders->pieces(fs->self, k->dir->folder, name, &file, &inner);
  if (s != WEIR_OK && inner.id[1] == '4') return bad(k, inner.message);
  if (s != WEIR_OK) {
    *k->err = inner;
    return s;
  }
  s = read_header(k, &file);
  fs->pieces->close(fs->self, &file);
  return s;
}

weir_status weir_checkpoint_check_headers(const weir_env *env,
                                          const weir_checkpoint_folder *dir,
                                          const weir_manifest *m,
                                          const weir_map *names,
                                          weir_error *err) {
  checker k = {.env = env, .dir = dir, .m = m, .names = names, .err = err};
  size_t count = m->tensors.count;
  weir_status s = WEIR_OK;
  if (env->fs->folders->pieces == NULL || env->fs->pieces == NULL)
    return weir_fail(err, WEIR_W0004, NULL, "files are read whole here");
  k.rows = weir_alloc_array(env->alloc, count + 1, sizeof *k.rows);
  if (k.rows == NULL) return weir_fail_memory(err, count * sizeof *k.rows);
  for (size_t i = 0; i < count; i++)
    k.rows[i] = (row){m->tensors.items[i].shard, (uint32_t)i,
                      m->tensors.items[i].offset};
  if (count > 1) qsort(k.rows, count, sizeof *k.rows, compare);
  for (; s == WEIR_OK && k.shard < m->shards.count; k.shard++) {
    k.begin = k.end;
    while (k.end < count && k.rows[k.end].shard == k.shard) k.end++;
    s = check_shard(&k);
  }
  weir_free(env->alloc, k.rows);
  return s;
}
