/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/io/checkpoint/checkpoint_common.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "runtime/base/bytes/crc32c.h"
#include "runtime/base/map.h"
#include "runtime/io/checkpoint/checkpoint_internal.h"
#include "runtime/io/checkpoint/checkpoint_names.h"
#include "runtime/io/checkpoint/checkpoint_shard.h"

/* The path comes from another process. It is compared with the path of the
 * root as text, both without links, and the rest of it is opened beneath the
 * root: a link or ".." in it leads nowhere, and what cannot be opened is not
 * common, whatever the reason. */

enum { kManifestMost = 1 << 28 };

/* --- the folder --- */

void weir_checkpoint_manifest_hash(weir_bytes manifest,
                                   uint8_t out[WEIR_CHECKPOINT_NONCE_BYTES]) {
  uint64_t parts[WEIR_CHECKPOINT_NONCE_BYTES / 8];
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
    parts[i] = weir_hash_bytes(manifest.data, manifest.size, i + 1);
  for (size_t i = 0; i < sizeof parts; i++) /* the same on any machine */
    out[i] = (uint8_t)(parts[i / 8] >> i % 8 * 8);
}

static bool holds_manifest(const weir_env *env, void *folder,
                           const weir_checkpoint_common *place) {
  const weir_fs *fs = env->fs;
  weir_file file = {0};
  uint8_t hash[WEIR_CHECKPOINT_NONCE_BYTES];
  weir_checkpoint_file name = weir_checkpoint_file_of(place->manifest);
  if (name.kind != WEIR_CHECKPOINT_MANIFEST || name.temporary ||
      fs->folders->read(fs->self, folder, place->manifest, kManifestMost, &file,
                        NULL) != WEIR_OK)
    return false;
  weir_checkpoint_manifest_hash(file.bytes, hash);
  fs->close(fs->self, &file);
  return memcmp(hash, place->nonce, sizeof hash) == 0;
}

static bool holds_nonce(const weir_env *env, void *folder,
                        const uint8_t *nonce) {
  const weir_fs *fs = env->fs;
  weir_file file = {0};
  bool same =
      fs->folders->read(fs->self, folder, WEIR_CHECKPOINT_NONCE,
                        WEIR_CHECKPOINT_NONCE_BYTES, &file, NULL) == WEIR_OK &&
      file.bytes.size == WEIR_CHECKPOINT_NONCE_BYTES &&
      memcmp(file.bytes.data, nonce, file.bytes.size) == 0;
  fs->close(fs->self, &file);
  return same;
}

/* The part of |path| behind |root|, "" for the root itself; NULL: it is
 * elsewhere. */
static const char *beneath(const char *path, const char *root) {
  size_t n = strlen(root);
  while (n > 0 && root[n - 1] == '/') n--;
  if (strncmp(path, root, n) != 0 || (path[n] != '/' && path[n] != '\0'))
    return NULL;
  path += n;
  while (*path == '/') path++;
  return path;
}

static weir_status open_root(const weir_env *env, const char *root,
                             void **out_folder,
                             char out_path[WEIR_CHECKPOINT_PATH_BYTES],
                             weir_error *err) {
  const weir_fs *fs = env->fs;
  WEIR_TRY(fs->folders->open(fs->self, NULL, root, false, out_folder, err));
  if (fs->folders->path != NULL &&
      fs->folders->path(fs->self, *out_folder, out_path,
                        WEIR_CHECKPOINT_PATH_BYTES))
    return WEIR_OK;
  return weir_fail(err, WEIR_W4002, NULL, "the path of '%.200s' is not known",
                   root);
}

static weir_status open_any(const weir_env *env, const char *root,
                            const char *path, void **out_folder,
                            weir_error *err) {
  const weir_fs *fs = env->fs;
  char found[WEIR_CHECKPOINT_PATH_BYTES];
  void *folder = NULL;
  weir_status s = open_root(env, root, &folder, found, err);
  const char *rest = s == WEIR_OK ? beneath(path, found) : NULL;
  if (rest != NULL && rest[0] == '\0') {
    *out_folder = folder;
    return WEIR_OK;
  }
  fs->folders->close(fs->self, folder);
  if (s != WEIR_OK || rest == NULL) return s;
  return fs->folders->open(fs->self, found, rest, false, out_folder, err);
}

weir_status weir_checkpoint_common_open(const weir_env *env, const char *root,
                                        const weir_checkpoint_common *place,
                                        void **out_folder, weir_error *err) {
  weir_error why = WEIR_ERROR_INIT;
  *out_folder = NULL;
  if (root == NULL || env->fs->folders == NULL) return WEIR_OK;
  weir_status s = open_any(env, root, place->path, out_folder, &why);
  if (s != WEIR_OK && strcmp(why.id, "W6001") == 0) {
    weir_error_copy(err, &why);
    return s;
  }
  if (*out_folder == NULL ||
      (place->manifest != NULL ? holds_manifest(env, *out_folder, place)
                               : holds_nonce(env, *out_folder, place->nonce)))
    return WEIR_OK;
  env->fs->folders->close(env->fs->self, *out_folder);
  *out_folder = NULL;
  return WEIR_OK;
}

/* --- shards --- */

bool weir_checkpoint_is_new_shard(const char *name) {
  weir_checkpoint_file f = weir_checkpoint_file_of(name);
  return f.kind == WEIR_CHECKPOINT_SHARD && f.temporary;
}

bool weir_checkpoint_is_shard(const char *name) {
  weir_checkpoint_file f = weir_checkpoint_file_of(name);
  return f.kind == WEIR_CHECKPOINT_SHARD && !f.temporary;
}

static weir_status bad(const char *path, weir_sv name, const char *why,
                       weir_error *err) {
  weir_mark at = {.file = path};
  const char *slash = strrchr(path, '/');
  return weir_fail(err, WEIR_W4045, &at, "tensor '%.*s' of '%s' is damaged: %s",
                   name.size < 200 ? (int)name.size : 200, name.data,
                   slash != NULL ? slash + 1 : path, why);
}

/* A file may hold other bytes than 0 and 1. */
static void clean_bools(weir_tensor *tensor) {
  uint8_t *b = tensor->data;
  for (size_t i = 0; tensor->dtype == WEIR_BOOL && i < tensor->bytes; i++)
    b[i] = b[i] != 0;
}

static weir_status read_span(const weir_env *env, const weir_piece_file *file,
                             const char *path, const weir_checkpoint_span *span,
                             weir_tensor *tensor, uint32_t *out_crc,
                             weir_error *err) {
  const weir_fs *fs = env->fs;
  *out_crc = 0;
  for (size_t at = 0; at < tensor->bytes;) {
    size_t n = tensor->bytes - at;
    uint8_t *dst = (uint8_t *)tensor->data + at;
    if (n > WEIR_CHECKPOINT_PIECE_BYTES) n = WEIR_CHECKPOINT_PIECE_BYTES;
    if (span->stop != NULL) WEIR_TRY(span->stop(span->stop_self, err));
    WEIR_TRY(
        fs->pieces->read(fs->self, file, path, dst, n, span->offset + at, err));
    *out_crc = weir_crc32c(*out_crc, dst, n);
    at += n;
  }
  return WEIR_OK;
}

weir_status weir_checkpoint_span_read(const weir_env *env,
                                      const weir_checkpoint_folder *dir,
                                      const weir_checkpoint_span *span,
                                      weir_sv name, weir_tensor *tensor,
                                      weir_error *err) {
  const weir_fs *fs = env->fs;
  char path[WEIR_CHECKPOINT_PATH_BYTES];
  weir_piece_file file = {0};
  weir_error inner = WEIR_ERROR_INIT;
  uint32_t crc = 0;
  if (!weir_checkpoint_path(dir->path, span->file, path))
    return bad(span->file, name, "its path is too long", err);
  weir_status s =
      fs->folders->pieces(fs->self, dir->folder, span->file, &file, &inner);
  if (s == WEIR_OK &&
      (span->offset > file.bytes || tensor->bytes > file.bytes - span->offset))
    s = bad(path, name, "the shard ends before it", &inner);
  if (s == WEIR_OK) s = read_span(env, &file, path, span, tensor, &crc, &inner);
  if (s == WEIR_OK && crc != span->crc)
    s = bad(path, name, "its CRC32C is not the manifest's", &inner);
  fs->pieces->close(fs->self, &file);
  if (s == WEIR_OK) clean_bools(tensor);
  if (s == WEIR_OK) return WEIR_OK;
  /* An error about the file is damage; others are this process's. */
  if (inner.id[1] == '4' && strcmp(inner.id, "W4045") != 0)
    return bad(path, name, inner.message, err);
  weir_error_copy(err, &inner);
  return s;
}

/* --- values --- */

/* How many elements of |t| are no finite numbers; |*first| is one of them. */
static int64_t count_odd(const weir_tensor *t, int64_t *first) {
  int64_t n = weir_shape_elements(&t->shape), odd = 0;
  if (!weir_dtype_is_float(t->dtype)) return 0;
  for (int64_t i = 0; i < n; i++) {
    bool fine = t->dtype == WEIR_F32
                    ? isfinite(((const float *)t->data)[i]) != 0
                    : isfinite(((const double *)t->data)[i]) != 0;
    if (!fine && odd++ == 0) *first = i;
  }
  return odd;
}

bool weir_checkpoint_odd_values(const weir_tensor *tensor, weir_sv name,
                                const char *file, weir_error *out) {
  weir_mark at = {.file = file};
  int64_t first = 0, odd = count_odd(tensor, &first);
  if (odd == 0) return false;
  (void)weir_fail(out, WEIR_W4047, &at,
                  "'%.*s' holds %" PRId64
                  " elements that are NaN or infinite, the first is element "
                  "%" PRId64,
                  WEIR_SV(name), odd, first);
  return true;
}
