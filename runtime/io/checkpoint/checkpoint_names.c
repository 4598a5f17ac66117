/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/io/checkpoint/checkpoint_names.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/io/checkpoint/checkpoint_internal.h"

/* Names are parsed, then written again and compared: so a name is ours only in
 * the one spelling that we write, and there is one file for each meaning. */

enum { kDigits = 19 /* of a step, at most: it fits 63 bits */ };

/* Reads |digits| decimal digits (0: at least one) at |*at|. */
static bool read_number(const char **at, int digits, uint64_t most,
                        uint64_t *out) {
  uint64_t value = 0;
  int count = 0;
  for (; **at >= '0' && **at <= '9' && count < kDigits; ++*at, count++)
    value = value * 10 + (uint64_t)(**at - '0');
  *out = value;
  return count > 0 && (digits == 0 || count == digits) && value <= most;
}

static bool read_text(const char **at, const char *text) {
  size_t n = strlen(text);
  if (strncmp(*at, text, n) != 0) return false;
  *at += n;
  return true;
}

static bool read_shard(const char **at, weir_checkpoint_file *f) {
  enum { kShardDigits = 5, kShardsMost = 99999 };
  uint64_t shard, shards;
  if (!read_text(at, "-") ||
      !read_number(at, kShardDigits, kShardsMost, &shard) ||
      !read_text(at, "-of-") ||
      !read_number(at, kShardDigits, kShardsMost, &shards) ||
      !read_text(at, ".safetensors") || shard >= shards)
    return false;
  f->shard = (uint32_t)shard;
  f->shards = (uint32_t)shards;
  return true;
}

/* Only names as we write them are ours: step-5.json is not. */
static bool is_canonical(const weir_checkpoint_file *f) {
  char want[WEIR_CHECKPOINT_NAME_BYTES];
  if (f->kind == WEIR_CHECKPOINT_SHARD)
    weir_checkpoint_shard_name(f->stem, f->shard, f->shards, want);
  else
    weir_checkpoint_manifest_name(f->stem, want);
  size_t n = strlen(want);
  return strncmp(f->name, want, n) == 0 &&
         strcmp(f->name + n, f->temporary ? ".tmp" : "") == 0;
}

weir_checkpoint_file weir_checkpoint_file_of(const char *name) {
  weir_checkpoint_file f = {.kind = WEIR_CHECKPOINT_OTHER}, other = f;
  uint64_t attempt = 0;
  size_t size = strlen(name);
  if (size >= sizeof f.name) return other;
  memcpy(f.name, name, size + 1);
  const char *at = name;
  if (!read_text(&at, "step-") || !read_number(&at, 0, INT64_MAX, &f.stem.step))
    return other;
  if (at[0] == '.' && at[1] >= '0' && at[1] <= '9') {
    at++;
    if (!read_number(&at, 0, UINT32_MAX, &attempt)) return other;
  }
  f.stem.attempt = (uint32_t)attempt;
  f.kind = WEIR_CHECKPOINT_MANIFEST;
  if (*at == '-') {
    f.kind = WEIR_CHECKPOINT_SHARD;
    if (!read_shard(&at, &f)) return other;
  } else if (!read_text(&at, ".json")) {
    return other;
  }
  f.temporary = read_text(&at, ".tmp");
  return *at == '\0' && is_canonical(&f) ? f : other;
}

static int put_stem(weir_checkpoint_stem stem,
                    char out[WEIR_CHECKPOINT_NAME_BYTES]) {
  if (stem.attempt == 0)
    return snprintf(out, WEIR_CHECKPOINT_NAME_BYTES, "step-%08" PRIu64,
                    stem.step);
  return snprintf(out, WEIR_CHECKPOINT_NAME_BYTES,
                  "step-%08" PRIu64 ".%" PRIu32, stem.step, stem.attempt);
}

void weir_checkpoint_manifest_name(weir_checkpoint_stem stem,
                                   char out[WEIR_CHECKPOINT_NAME_BYTES]) {
  int n = put_stem(stem, out);
  snprintf(out + n, WEIR_CHECKPOINT_NAME_BYTES - (size_t)n, ".json");
}

void weir_checkpoint_shard_name(weir_checkpoint_stem stem, uint32_t shard,
                                uint32_t shards,
                                char out[WEIR_CHECKPOINT_NAME_BYTES]) {
  int n = put_stem(stem, out);
  snprintf(out + n, WEIR_CHECKPOINT_NAME_BYTES - (size_t)n,
           "-%05" PRIu32 "-of-%05" PRIu32 ".safetensors", shard, shards);
}

void weir_checkpoint_temporary_name(const char *name,
                                    char out[WEIR_CHECKPOINT_NAME_BYTES]) {
  snprintf(out, WEIR_CHECKPOINT_NAME_BYTES, "%.*s.tmp",
           WEIR_CHECKPOINT_NAME_BYTES - 5, name);
}

bool weir_checkpoint_path(const char *dir, const char *name,
                          char out[WEIR_CHECKPOINT_PATH_BYTES]) {
  int n = snprintf(out, WEIR_CHECKPOINT_PATH_BYTES, "%s/%s", dir, name);
  return n >= 0 && n < WEIR_CHECKPOINT_PATH_BYTES;
}

/* --- listing --- */

typedef struct lister {
  const weir_allocator *alloc;
  weir_checkpoint_files *files;
  bool failed;
} lister;

static bool add_name(void *to, const char *name) {
  lister *l = to;
  weir_checkpoint_file f = weir_checkpoint_file_of(name);
  if (f.kind != WEIR_CHECKPOINT_OTHER && !weir_vec_push(l->alloc, l->files, f))
    l->failed = true;
  return !l->failed;
}

/* The newest generation first, its files together. */
static int compare(const void *a, const void *b) {
  const weir_checkpoint_file *x = a, *y = b;
  if (x->stem.step != y->stem.step) return x->stem.step < y->stem.step ? 1 : -1;
  if (x->stem.attempt != y->stem.attempt)
    return x->stem.attempt < y->stem.attempt ? 1 : -1;
  return strcmp(x->name, y->name);
}

weir_status weir_checkpoint_list(const weir_env *env, void *folder,
                                 weir_checkpoint_files *out_files,
                                 weir_error *err) {
  lister l = {env->alloc, out_files, false};
  out_files->count = 0;
  WEIR_TRY(env->fs->folders->list(env->fs->self, folder, &l, add_name, err));
  if (l.failed) return weir_fail_memory(err, sizeof(weir_checkpoint_file));
  if (out_files->count > 1)
    qsort(out_files->items, out_files->count, sizeof *out_files->items,
          compare);
  return WEIR_OK;
}
