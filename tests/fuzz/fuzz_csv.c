/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/io/record/csv.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/fuzz_blob.h"

/* Reads the input as CSV through a small and a large window. Both must find the
 * same; fields lie within their record, lines never go back. */

static uint64_t digest(const uint8_t *data, size_t size, size_t window,
                       char quote) {
  fuzz_blob b;
  weir_csv_reader r = {.alloc = weir_allocator_system(),
                       .format = {',', quote}};
  weir_stream *stream = fuzz_blob_open(&b, data, size, window);
  uint64_t line = 1, sum = 0;
  for (;;) {
    weir_error err = WEIR_ERROR_INIT;
    uint64_t before = line, at = weir_stream_at(stream);
    weir_status s = weir_csv_next(&r, stream, "f", &line, &err);
    FUZZ_CHECK((s == WEIR_OK) == (err.id[0] == '\0'));
    sum = sum * 31 + (uint64_t)s + err.line;
    if (s != WEIR_OK || r.count == 0) break;
    FUZZ_CHECK(line >= before && line <= before + size + 1);
    size_t total = 0;
    for (uint32_t i = 0; i < r.count; i++) {
      total += r.fields[i].size + 1;
      for (size_t k = 0; k < r.fields[i].size; k++)
        sum = sum * 31 + (unsigned char)r.fields[i].data[k];
      sum = sum * 31 + 256;
    }
    FUZZ_CHECK(total <= weir_stream_at(stream) - at + 1);
  }
  weir_csv_reader_release(&r);
  fuzz_blob_close(&b, stream);
  return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  FUZZ_CHECK(digest(data, size, 1, '"') == digest(data, size, 4096, '"'));
  (void)digest(data, size, 7, '\0');
  return 0;
}
