/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/io/checkpoint/checkpoint_manifest.h"

#include <inttypes.h>
#include <stdio.h>

#include "runtime/base/bytes/crc32c.h"
#include "runtime/base/json/json.h"
#include "runtime/base/table.h"
#include "runtime/io/checkpoint/checkpoint_internal.h"

/* Writing manifests; checkpoint_manifest_read.c reads them. The CRC of all
 * bytes before it stands in the last line, of fixed length, so a reader finds
 * it without parsing. Seeds and hashes use all 64 bits, which other programs'
 * JSON numbers may round, so they are hexadecimal texts. */

static const char *const kRoles[] = {[WEIR_CHECKPOINT_VARIABLE] = "variable",
                                     [WEIR_CHECKPOINT_SLOT] = "slot",
                                     [WEIR_CHECKPOINT_STATE] = "state"};
WEIR_TABLE_OF(kRoles, WEIR_CHECKPOINT_ROLE_COUNT);

const char *weir_checkpoint_role_name(weir_checkpoint_role role) {
  return (size_t)role < sizeof kRoles / sizeof kRoles[0] ? kRoles[role] : "?";
}

void weir_manifest_init(weir_manifest *m, const weir_allocator *alloc) {
  *m = (weir_manifest){.alloc = alloc};
  weir_arena_init(&m->arena, alloc);
}

void weir_manifest_release(weir_manifest *m) {
  weir_vec_free(m->alloc, &m->shards);
  weir_vec_free(m->alloc, &m->tensors);
  weir_arena_release(&m->arena);
}

static void put_crc(weir_json_writer *w, uint32_t crc) {
  char text[16];
  int n = snprintf(text, sizeof text, "%08" PRIx32, crc);
  weir_json_key(w, "crc32c");
  weir_json_string(w, (weir_sv){text, (size_t)n});
}

static void put_hex(weir_json_writer *w, const char *key, uint64_t value) {
  char text[24];
  int n = snprintf(text, sizeof text, "%016" PRIx64, value);
  weir_json_key(w, key);
  weir_json_string(w, (weir_sv){text, (size_t)n});
}

static void put_shard(weir_json_writer *w, const weir_manifest_shard *s) {
  weir_json_object_begin(w, true);
  weir_json_key(w, "file");
  weir_json_string(w, s->file);
  weir_json_key(w, "bytes");
  weir_json_uint(w, s->bytes);
  put_crc(w, s->crc);
  weir_json_object_end(w);
}

static void put_tensor(weir_json_writer *w, const weir_manifest_tensor *t) {
  weir_json_object_begin(w, true);
  weir_json_key(w, "name");
  weir_json_string(w, t->name);
  weir_json_key(w, "role");
  weir_json_string(w, weir_sv_from(weir_checkpoint_role_name(t->role)));
  weir_json_key(w, "dtype");
  weir_json_string(w, weir_sv_from(weir_dtype_name(t->dtype)));
  weir_json_key(w, "shape");
  weir_json_array_begin(w, true);
  for (int d = 0; d < t->shape.rank; d++)
    weir_json_int(w, t->shape.dims[d].value);
  weir_json_array_end(w);
  weir_json_key(w, "shard");
  weir_json_uint(w, t->shard);
  weir_json_key(w, "offset");
  weir_json_uint(w, t->offset);
  weir_json_key(w, "bytes");
  weir_json_uint(w, t->bytes);
  put_crc(w, t->crc);
  weir_json_object_end(w);
}

static void put_about(weir_json_writer *w, const weir_checkpoint_info *info) {
  weir_json_key(w, "weir_checkpoint");
  weir_json_int(w, WEIR_CHECKPOINT_FORMAT);
  weir_json_key(w, "run_id");
  weir_json_string(w, info->run_id);
  weir_json_key(w, "step");
  weir_json_uint(w, info->step);
  weir_json_key(w, "epoch");
  weir_json_double(w, info->epoch);
  put_hex(w, "seed", info->seed);
  put_hex(w, "graph_hash", info->graph_hash);
  weir_json_key(w, "time_ns");
  weir_json_int(w, info->time_ns);
}

/* Objects that the caller wrote stand at the end, as they are. */
static void put_given(weir_strbuf *out, const char *key, weir_sv object) {
  weir_strbuf_printf(out, " \"%s\": ", key);
  weir_strbuf_sv(out, object.size > 0 ? object : WEIR_SV_LIT("{}"));
  weir_strbuf_text(out, ",\n");
}

weir_status weir_manifest_write(const weir_manifest *m, weir_strbuf *out,
                                weir_error *err) {
  size_t start = out->size;
  weir_json_writer w;
  weir_json_writer_init(&w, weir_strbuf_writer(out), 1);
  weir_json_object_begin(&w, false);
  put_about(&w, &m->info);
  weir_json_key(&w, "shards");
  weir_json_array_begin(&w, false);
  for (size_t i = 0; i < m->shards.count; i++)
    put_shard(&w, &m->shards.items[i]);
  weir_json_array_end(&w);
  weir_json_key(&w, "tensors");
  weir_json_array_begin(&w, false);
  for (size_t i = 0; i < m->tensors.count; i++)
    put_tensor(&w, &m->tensors.items[i]);
  weir_json_array_end(&w);
  weir_json_object_end(&w);
  (void)weir_json_finish(&w); /* |out| keeps a failure */
  WEIR_TRY(weir_strbuf_status(out, err));
  out->size -= sizeof "\n}\n" - 1; /* it goes on */
  weir_strbuf_text(out, ",\n");
  put_given(out, "data", m->info.data);
  put_given(out, "extra", m->info.extra);
  WEIR_TRY(weir_strbuf_status(out, err));
  uint32_t crc = weir_crc32c(0, out->data + start, out->size - start);
  weir_strbuf_printf(out, " \"crc32c\": \"%08" PRIx32 "\"}\n", crc);
  return weir_strbuf_status(out, err);
}
