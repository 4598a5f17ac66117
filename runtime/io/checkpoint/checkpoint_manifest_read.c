/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/io/checkpoint/checkpoint_manifest_read.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "runtime/base/bytes/crc32c.h"
#include "runtime/base/json/json.h"
#include "runtime/io/checkpoint/checkpoint_internal.h"
#include "runtime/io/checkpoint/checkpoint_manifest.h"
#include "runtime/io/checkpoint/checkpoint_names.h"

/* Reading manifests. The CRC is checked first, so later faults were written by
 * a program, not made by a disk; still everything that can be checked is. Token
 * by token, without a tree; one pass after the one for the CRC. */

enum { kMostBytes = 1 << 28, kDepth = 32, kHexDigits = 16 };

typedef struct parser {
  weir_json_reader json;
  weir_sv text;
  const char *file;
  weir_manifest *m;
  weir_error *err; /* never NULL */
} parser;

static weir_status bad(const parser *p, const char *what) {
  weir_mark at = weir_json_mark(&p->json);
  at.file = p->file;
  return weir_fail(p->err, WEIR_W4041, &at, "the manifest is damaged: %s",
                   what);
}

static weir_status next(parser *p, weir_json_token want) {
  weir_json_token token;
  WEIR_TRY(weir_json_next(&p->json, &token, p->err));
  return token == want ? WEIR_OK : bad(p, "another kind of value is expected");
}

static weir_status read_uint(parser *p, uint64_t most, uint64_t *out) {
  int64_t value;
  WEIR_TRY(next(p, WEIR_JSON_NUMBER));
  if (!weir_json_get_int(&p->json, &value) || value < 0 ||
      (uint64_t)value > most)
    return bad(p, "a number is out of range");
  *out = (uint64_t)value;
  return WEIR_OK;
}

static weir_status read_text(parser *p, weir_sv *out) {
  WEIR_TRY(next(p, WEIR_JSON_STRING));
  return weir_json_text(&p->json, &p->m->arena, out, p->err);
}

static weir_status read_hex(parser *p, unsigned digits, uint64_t *out) {
  weir_sv text;
  WEIR_TRY(next(p, WEIR_JSON_STRING));
  text = p->json.text;
  uint64_t value = 0;
  bool good = text.size == digits;
  for (size_t i = 0; good && i < digits; i++) {
    char c = text.data[i];
    good = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
    value = value << 4 | (uint64_t)(c <= '9' ? c - '0' : c - 'a' + 10);
  }
  if (!good) return bad(p, "a number in hexadecimal digits is expected");
  *out = value;
  return WEIR_OK;
}

static weir_status read_crc(parser *p, uint32_t *out) {
  uint64_t value = 0;
  WEIR_TRY(read_hex(p, 8, &value));
  *out = (uint32_t)value;
  return WEIR_OK;
}

/* Reads the keys of an object, each of |keys| (NULL ends them) once and no
 * other; |field| reads the value of the i-th into |to|. */
static weir_status read_object(parser *p, const char *const *keys, void *to,
                               weir_status (*field)(parser *p, size_t i,
                                                    void *to)) {
  weir_json_token token;
  unsigned seen = 0, all = 0;
  for (size_t i = 0; keys[i] != NULL; i++) all |= 1u << i;
  for (;;) {
    WEIR_TRY(weir_json_next(&p->json, &token, p->err));
    if (token == WEIR_JSON_OBJECT_END) break;
    size_t i = 0;
    while (keys[i] != NULL && !weir_json_text_is(&p->json, keys[i])) i++;
    if (keys[i] == NULL) return bad(p, "a key is not known");
    if (seen & 1u << i) return bad(p, "a key occurs twice");
    seen |= 1u << i;
    WEIR_TRY(field(p, i, to));
  }
  return seen == all ? WEIR_OK : bad(p, "a key is missing");
}

/* Reads a list of objects. */
static weir_status read_list(parser *p, weir_status (*item)(parser *p)) {
  weir_json_token token;
  WEIR_TRY(next(p, WEIR_JSON_ARRAY_BEGIN));
  for (;;) {
    WEIR_TRY(weir_json_next(&p->json, &token, p->err));
    if (token == WEIR_JSON_ARRAY_END) return WEIR_OK;
    if (token != WEIR_JSON_OBJECT_BEGIN)
      return bad(p, "a list holds something else than objects");
    WEIR_TRY(item(p));
  }
}

/* --- shards --- */

static const char *const kShardKeys[] = {"file", "bytes", "crc32c", NULL};

static weir_status shard_field(parser *p, size_t i, void *to) {
  weir_manifest_shard *s = to;
  if (i == 0) return read_text(p, &s->file);
  if (i == 1) return read_uint(p, INT64_MAX, &s->bytes);
  return read_crc(p, &s->crc);
}

static weir_status read_shard(parser *p) {
  weir_manifest_shard s = {0};
  WEIR_TRY(read_object(p, kShardKeys, &s, shard_field));
  /* The texts of weir_json_text end in a NUL. */
  weir_checkpoint_file f = weir_checkpoint_file_of(s.file.data);
  if (strlen(s.file.data) != s.file.size || f.kind != WEIR_CHECKPOINT_SHARD ||
      f.temporary || f.shard != p->m->shards.count)
    return bad(p, "a shard has a name that is not one");
  if (!weir_vec_push(p->m->alloc, &p->m->shards, s))
    return weir_fail_memory(p->err, sizeof s);
  return WEIR_OK;
}

/* --- tensors --- */

static const char *const kTensorKeys[] = {"name",  "role",   "dtype",
                                          "shape", "shard",  "offset",
                                          "bytes", "crc32c", NULL};

static weir_status read_role(parser *p, weir_checkpoint_role *out) {
  WEIR_TRY(next(p, WEIR_JSON_STRING));
  for (int r = WEIR_CHECKPOINT_VARIABLE; r <= WEIR_CHECKPOINT_STATE; r++)
    if (weir_json_text_is(&p->json, weir_checkpoint_role_name(r))) {
      *out = (weir_checkpoint_role)r;
      return WEIR_OK;
    }
  return bad(p, "a role is not known");
}

static weir_status read_dtype(parser *p, weir_dtype *out) {
  WEIR_TRY(next(p, WEIR_JSON_STRING));
  *out = weir_dtype_from_name(p->json.text.data, p->json.text.size);
  return *out != WEIR_DTYPE_NONE ? WEIR_OK : bad(p, "a dtype is not known");
}

static weir_status read_shape(parser *p, weir_shape *out) {
  weir_json_token token;
  int64_t dims[WEIR_MAX_RANK] = {0};
  int rank = 0;
  WEIR_TRY(next(p, WEIR_JSON_ARRAY_BEGIN));
  for (;; rank++) {
    WEIR_TRY(weir_json_next(&p->json, &token, p->err));
    if (token == WEIR_JSON_ARRAY_END) break;
    if (rank == WEIR_MAX_RANK || token != WEIR_JSON_NUMBER ||
        !weir_json_get_int(&p->json, &dims[rank]) || dims[rank] < 0)
      return bad(p, "a shape is not one");
  }
  *out = weir_shape_of(rank, dims);
  return WEIR_OK;
}

static weir_status tensor_field(parser *p, size_t i, void *to) {
  weir_manifest_tensor *t = to;
  uint64_t shard = 0;
  switch (i) {
    case 0:
      return read_text(p, &t->name);
    case 1:
      return read_role(p, &t->role);
    case 2:
      return read_dtype(p, &t->dtype);
    case 3:
      return read_shape(p, &t->shape);
    case 4:
      WEIR_TRY(read_uint(p, UINT32_MAX, &shard));
      t->shard = (uint32_t)shard;
      return WEIR_OK;
    case 5:
      return read_uint(p, INT64_MAX, &t->offset);
    case 6:
      return read_uint(p, INT64_MAX, &t->bytes);
    default:
      return read_crc(p, &t->crc);
  }
}

static weir_status read_tensor(parser *p) {
  weir_manifest_tensor t = {0};
  weir_error ignored = WEIR_ERROR_INIT;
  WEIR_TRY(read_object(p, kTensorKeys, &t, tensor_field));
  if (weir_shape_check(&t.shape, t.dtype, &ignored) != WEIR_OK ||
      weir_shape_bytes(&t.shape, t.dtype) != t.bytes)
    return bad(p, "a tensor's bytes are not those of its shape");
  if (!weir_vec_push(p->m->alloc, &p->m->tensors, t))
    return weir_fail_memory(p->err, sizeof t);
  return WEIR_OK;
}

/* --- the whole --- */

/* An object that is not ours, as text. */
static weir_status read_given(parser *p, weir_sv *out) {
  WEIR_TRY(next(p, WEIR_JSON_OBJECT_BEGIN));
  size_t begin = p->json.token_at;
  WEIR_TRY(weir_json_skip(&p->json, p->err));
  size_t size = p->json.token_at + 1 - begin;
  if (size == 2) return WEIR_OK; /* {}: nothing */
  const char *copy =
      weir_arena_string(&p->m->arena, p->text.data + begin, size);
  if (copy == NULL) return weir_fail_memory(p->err, size);
  *out = (weir_sv){copy, size};
  return WEIR_OK;
}

static weir_status read_epoch(parser *p, double *out) {
  WEIR_TRY(next(p, WEIR_JSON_NUMBER));
  if (!weir_json_get_double(&p->json, out) || !isfinite(*out) || *out < 0)
    return bad(p, "the epoch is out of range");
  return WEIR_OK;
}

static weir_status read_format(parser *p) {
  uint64_t format = 0;
  weir_mark at = {.file = p->file};
  WEIR_TRY(read_uint(p, INT64_MAX, &format));
  if (format > WEIR_CHECKPOINT_FORMAT)
    return weir_fail(p->err, WEIR_W4044, &at,
                     "written by weir with checkpoint format %" PRIu64
                     "; this one reads format %d",
                     format, WEIR_CHECKPOINT_FORMAT);
  return format > 0 ? WEIR_OK : bad(p, "the format is out of range");
}

static const char *const kKeys[] = {
    "weir_checkpoint", "run_id",  "step",   "epoch",   "seed",
    "graph_hash",      "time_ns", "shards", "tensors", "data",
    "extra",           "crc32c",  NULL};

static weir_status time_field(parser *p, int64_t *out) {
  WEIR_TRY(next(p, WEIR_JSON_NUMBER));
  return weir_json_get_int(&p->json, out) ? WEIR_OK
                                          : bad(p, "the time is out of range");
}

static weir_status field(parser *p, size_t i, void *to) {
  weir_checkpoint_info *info = to;
  uint32_t crc;
  switch (i) {
    case 0:
      return read_format(p);
    case 1:
      return read_text(p, &info->run_id);
    case 2:
      return read_uint(p, INT64_MAX, &info->step);
    case 3:
      return read_epoch(p, &info->epoch);
    case 4:
      return read_hex(p, kHexDigits, &info->seed);
    case 5:
      return read_hex(p, kHexDigits, &info->graph_hash);
    case 6:
      return time_field(p, &info->time_ns);
    case 7:
      return read_list(p, read_shard);
    case 8:
      return read_list(p, read_tensor);
    case 9:
      return read_given(p, &info->data);
    case 10:
      return read_given(p, &info->extra);
    default:
      return read_crc(p, &crc);
  }
}

static weir_status check_indices(parser *p) {
  const weir_manifest *m = p->m;
  for (size_t i = 0; i < m->tensors.count; i++) {
    const weir_manifest_tensor *t = &m->tensors.items[i];
    if (t->shard >= m->shards.count)
      return bad(p, "a tensor is in a shard that is not there");
  }
  for (size_t i = 0; i < m->shards.count; i++)
    if (weir_checkpoint_file_of(m->shards.items[i].file.data).shards !=
        m->shards.count)
      return bad(p, "a shard is missing");
  return WEIR_OK;
}

/* The last line has to be the one that we would write. */
static weir_status check_tail(weir_sv text, const char *file, weir_error *err) {
  char want[WEIR_CHECKPOINT_TAIL_BYTES];
  weir_mark at = {.file = file};
  size_t tail = WEIR_CHECKPOINT_TAIL_BYTES - 1;
  if (text.size > tail) {
    size_t body = text.size - tail;
    snprintf(want, sizeof want, " \"crc32c\": \"%08" PRIx32 "\"}\n",
             weir_crc32c(0, text.data, body));
    if (memcmp(text.data + body, want, tail) == 0) return WEIR_OK;
  }
  const char *slash = strrchr(file, '/');
  return weir_fail(err, WEIR_W4041, &at,
                   "manifest '%.100s' is damaged: its CRC32C is not that of "
                   "its %zu bytes",
                   slash != NULL ? slash + 1 : file, text.size);
}

/* A newer format may have other keys, so its number, which comes first, is
 * read before all else. */
static weir_status parse(parser *p) {
  weir_json_options options = {.depth = kDepth};
  weir_json_reader_init(&p->json, p->text, p->file, &options);
  WEIR_TRY(next(p, WEIR_JSON_OBJECT_BEGIN));
  WEIR_TRY(next(p, WEIR_JSON_KEY));
  if (!weir_json_text_is(&p->json, kKeys[0]))
    return bad(p, "it does not begin with its format");
  WEIR_TRY(read_format(p));
  weir_json_reader_init(&p->json, p->text, p->file, &options);
  WEIR_TRY(next(p, WEIR_JSON_OBJECT_BEGIN));
  WEIR_TRY(read_object(p, kKeys, &p->m->info, field));
  WEIR_TRY(next(p, WEIR_JSON_END));
  return check_indices(p);
}

weir_status weir_manifest_parse(weir_sv text, const char *file,
                                weir_manifest *m, weir_error *err) {
  weir_error inner = WEIR_ERROR_INIT;
  weir_mark at = {.file = file};
  parser p = {.text = text, .file = file, .m = m, .err = &inner};
  WEIR_TRY(check_tail(text, file, err));
  weir_status s = parse(&p);
  /* A fault of the JSON is a fault of the manifest. */
  if (weir_sv_is(weir_sv_from(inner.id), "W4013"))
    return weir_fail(err, WEIR_W4041, &at, "the manifest is damaged: %s",
                     inner.message);
  if (s != WEIR_OK) weir_error_copy(err, &inner);
  return s;
}

weir_status weir_manifest_read(const weir_env *env,
                               const weir_checkpoint_folder *dir,
                               const char *name, weir_manifest *m,
                               weir_error *err) {
  const weir_fs *fs = env->fs;
  char path[WEIR_CHECKPOINT_PATH_BYTES];
  weir_file file = {0};
  if (!weir_checkpoint_path(dir->path, name, path))
    return weir_fail(err, WEIR_W4002, NULL, "'%.200s' is too long for a path",
                     dir->path);
  WEIR_TRY(
      fs->folders->read(fs->self, dir->folder, name, kMostBytes, &file, err));
  weir_sv text = {(const char *)file.bytes.data, file.bytes.size};
  weir_status s = weir_manifest_parse(text, path, m, err);
  fs->close(fs->self, &file);
  return s;
}
