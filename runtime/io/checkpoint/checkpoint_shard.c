/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/io/checkpoint/checkpoint_shard.h"

#include "runtime/base/bytes/crc32c.h"
#include "runtime/io/array/safetensors_write.h"

/* Each byte is summed once, while it is in the cache: for its tensor's CRC,
 * and by joining for the file's. The header follows from names, dtypes and
 * shapes alone, so another process that has those knows each offset, and with
 * the CRCs of the tensors that of the file. */

enum { kPieceBytes = 256 << 10 /* summed and written at once */ };

static const weir_fs_folders *folders(const weir_checkpoint_shard *s) {
  return s->env->fs->folders;
}

static void join(weir_checkpoint_shard *s, uint32_t crc, uint64_t bytes) {
  s->crc = weir_crc32c_join(s->crc, crc, bytes);
  s->bytes += bytes;
}

static weir_status header(const weir_checkpoint_shard *s, weir_strbuf *out,
                          uint32_t *order, weir_error *err) {
  weir_safetensors_pair about[] = {{WEIR_SV_LIT("weir.run_id"), s->run_id}};
  weir_safetensors_source source = {s->names, s->tensors, s->count, about, 1};
  return weir_safetensors_begin(&source, order, out, err);
}

/* Appends |bytes| and sums them into |*crc|. */
static weir_status put(const weir_checkpoint_shard *s, void *file,
                       weir_bytes bytes, uint32_t *crc, weir_error *err) {
  for (size_t at = 0; at < bytes.size;) {
    size_t n = bytes.size - at < kPieceBytes ? bytes.size - at : kPieceBytes;
    weir_bytes piece = {bytes.data + at, n};
    *crc = weir_crc32c(*crc, piece.data, n);
    WEIR_TRY(folders(s)->append(s->env->fs->self, file, piece, err));
    at += n;
  }
  return WEIR_OK;
}

static weir_status put_tensor(weir_checkpoint_shard *s, size_t i, void *file,
                              weir_error *err) {
  const weir_tensor *t = s->tensors[i];
  s->offsets[i] = s->bytes;
  s->crcs[i] = 0;
  for (uint64_t at = 0; at < t->bytes;) {
    weir_bytes piece = {(const uint8_t *)t->data + at, t->bytes - at};
    if (s->piece != NULL) WEIR_TRY(s->piece(s->self, i, at, &piece, err));
    WEIR_TRY(put(s, file, piece, &s->crcs[i], err));
    at += piece.size;
  }
  join(s, s->crcs[i], t->bytes);
  return WEIR_OK;
}

static weir_status put_all(weir_checkpoint_shard *s, const weir_strbuf *text,
                           const uint32_t *order, void *file, weir_error *err) {
  uint32_t crc = 0;
  weir_bytes bytes = {(const uint8_t *)text->data, text->size};
  WEIR_TRY(put(s, file, bytes, &crc, err));
  join(s, crc, bytes.size);
  for (size_t k = 0; k < s->count; k++)
    WEIR_TRY(put_tensor(s, order[k], file, err));
  return folders(s)->sync(s->env->fs->self, file, err);
}

static weir_status make_file(weir_checkpoint_shard *s, void **out_file,
                             weir_error *err) {
  WEIR_TRY(
      folders(s)->create(s->env->fs->self, s->folder, s->name, out_file, err));
  s->made = *out_file != NULL;
  if (s->made) return WEIR_OK;
  return weir_fail(err, WEIR_W5009, NULL,
                   "'%s' is there already: another program writes to '%.200s'",
                   s->name, s->dir);
}

static weir_status write_file(weir_checkpoint_shard *s, const weir_strbuf *text,
                              const uint32_t *order, weir_error *err) {
  void *file = NULL;
  WEIR_TRY(make_file(s, &file, err));
  weir_status status = put_all(s, text, order, file, err);
  weir_status ended =
      folders(s)->end(s->env->fs->self, file, status == WEIR_OK ? err : NULL);
  return status != WEIR_OK ? status : ended;
}

static weir_status with_header(weir_checkpoint_shard *s, bool write,
                               weir_error *err) {
  weir_strbuf text;
  weir_strbuf_init(&text, s->env->alloc);
  s->made = false;
  s->bytes = 0;
  s->crc = 0;
  uint32_t *order =
      weir_alloc_array(s->env->alloc, s->count + 1, sizeof *order);
  weir_status status = order != NULL
                           ? header(s, &text, order, err)
                           : weir_fail_memory(err, s->count * sizeof *order);
  if (status == WEIR_OK && write) status = write_file(s, &text, order, err);
  if (status == WEIR_OK && !write) {
    join(s, weir_crc32c(0, text.data, text.size), text.size);
    for (size_t k = 0; k < s->count; k++) {
      s->offsets[order[k]] = s->bytes;
      join(s, s->crcs[order[k]], s->tensors[order[k]]->bytes);
    }
  }
  weir_free(s->env->alloc, order);
  weir_strbuf_release(&text);
  return status;
}

weir_status weir_checkpoint_shard_write(weir_checkpoint_shard *shard,
                                        weir_error *err) {
  return with_header(shard, true, err);
}

weir_status weir_checkpoint_shard_expect(weir_checkpoint_shard *shard,
                                         weir_error *err) {
  return with_header(shard, false, err);
}
