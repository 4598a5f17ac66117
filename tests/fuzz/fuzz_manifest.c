/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/bytes/crc32c.h"
#include "runtime/io/checkpoint/checkpoint_internal.h"
#include "runtime/io/checkpoint/checkpoint_manifest.h"
#include "runtime/io/checkpoint/checkpoint_manifest_read.h"
#include "tests/fuzz/fuzz.h"

/* Reads the input as a checkpoint's manifest, as it is and with a last line
 * that makes its CRC right; a manifest is written again and must read the same.
 */

static bool parse(weir_sv text, weir_manifest *m) {
  weir_error err = WEIR_ERROR_INIT;
  weir_manifest_init(m, weir_allocator_system());
  weir_status s = weir_manifest_parse(text, "f", m, &err);
  FUZZ_CHECK((s == WEIR_OK) == (err.id[0] == '\0'));
  return s == WEIR_OK;
}

static void same_tensor(const weir_manifest_tensor *a,
                        const weir_manifest_tensor *b) {
  FUZZ_CHECK(weir_sv_equal(a->name, b->name));
  FUZZ_CHECK(a->role == b->role && a->dtype == b->dtype);
  FUZZ_CHECK(weir_shape_equal(&a->shape, &b->shape));
  FUZZ_CHECK(a->shard == b->shard && a->offset == b->offset);
  FUZZ_CHECK(a->bytes == b->bytes && a->crc == b->crc);
}

static void check_round_trip(const weir_manifest *m) {
  weir_manifest again;
  weir_strbuf out;
  weir_strbuf_init(&out, weir_allocator_system());
  FUZZ_CHECK(weir_manifest_write(m, &out, NULL) == WEIR_OK);
  FUZZ_CHECK(parse(weir_strbuf_view(&out), &again));
  FUZZ_CHECK(m->info.step == again.info.step);
  FUZZ_CHECK(m->info.epoch == again.info.epoch);
  FUZZ_CHECK(m->info.seed == again.info.seed);
  FUZZ_CHECK(weir_sv_equal(m->info.run_id, again.info.run_id));
  FUZZ_CHECK(weir_sv_equal(m->info.data, again.info.data));
  FUZZ_CHECK(weir_sv_equal(m->info.extra, again.info.extra));
  FUZZ_CHECK(m->shards.count == again.shards.count);
  FUZZ_CHECK(m->tensors.count == again.tensors.count);
  for (size_t i = 0; i < m->tensors.count; i++)
    same_tensor(&m->tensors.items[i], &again.tensors.items[i]);
  weir_manifest_release(&again);
  weir_strbuf_release(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  weir_manifest m;
  weir_strbuf text;
  if (parse((weir_sv){(const char *)data, size}, &m)) check_round_trip(&m);
  weir_manifest_release(&m);
  weir_strbuf_init(&text, weir_allocator_system());
  weir_strbuf_append(&text, (const char *)data, size);
  weir_strbuf_printf(&text, " \"crc32c\": \"%08" PRIx32 "\"}\n",
                     weir_crc32c(0, data, size));
  if (parse(weir_strbuf_view(&text), &m)) check_round_trip(&m);
  weir_manifest_release(&m);
  weir_strbuf_release(&text);
  return 0;
}
