/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/io/array/safetensors_write.h"

#include <assert.h>

#include "runtime/base/json/json.h"
#include "runtime/base/size.h"
#include "runtime/io/array/safetensors.h"
#include "runtime/io/array/safetensors_header.h"
#include "runtime/io/names.h"

/* The header is padded with blanks, which JSON allows at its end, so that data
 * begins at a multiple of 64, and wide elements come first: then every tensor
 * is aligned for its type and a reader can map it without a copy. */

enum { kLengthBytes = 8, kDataAlign = 64 };

/* Calls come for elements of 8, 4 and 1 bytes, so that each tensor starts at a
 * multiple of its element's size. */
static const size_t kWidths[] = {8, 4, 1};
enum { kWidthCount = sizeof kWidths / sizeof kWidths[0] };

static void put_entry(weir_json_writer *w, weir_sv name, const weir_tensor *t,
                      uint64_t *at) {
  weir_json_key_sv(w, name);
  weir_json_object_begin(w, true);
  weir_json_key(w, "dtype");
  weir_json_string(w, weir_sv_from(weir_safetensors_dtype_name(t->dtype)));
  weir_json_key(w, "shape");
  weir_json_array_begin(w, true);
  for (int d = 0; d < t->shape.rank; d++)
    weir_json_int(w, t->shape.dims[d].value);
  weir_json_array_end(w);
  weir_json_key(w, "data_offsets");
  weir_json_array_begin(w, true);
  weir_json_uint(w, *at);
  *at += t->bytes;
  weir_json_uint(w, *at);
  weir_json_array_end(w);
  weir_json_object_end(w);
}

static void put_metadata(weir_json_writer *w,
                         const weir_safetensors_source *source) {
  if (source->metadata_count == 0) return;
  weir_json_key(w, "__metadata__");
  weir_json_object_begin(w, true);
  for (size_t i = 0; i < source->metadata_count; i++) {
    weir_json_key_sv(w, source->metadata[i].key);
    weir_json_string(w, source->metadata[i].value);
  }
  weir_json_object_end(w);
}

static void put_header(const weir_safetensors_source *source, uint32_t *order,
                       weir_strbuf *out) {
  weir_json_writer w;
  uint64_t at = 0;
  size_t next = 0;
  weir_json_writer_init(&w, weir_strbuf_writer(out), 0);
  weir_json_object_begin(&w, true);
  put_metadata(&w, source);
  for (size_t k = 0; k < kWidthCount; k++)
    for (size_t i = 0; i < source->count; i++)
      if (weir_dtype_size(source->tensors[i]->dtype) == kWidths[k]) {
        put_entry(&w, source->names[i], source->tensors[i], &at);
        order[next++] = (uint32_t)i;
      }
  assert(next == source->count); /* kWidths has the size of every dtype */
  weir_json_object_end(&w);
  (void)weir_json_finish(&w); /* |out| keeps a failure */
}

weir_status weir_safetensors_begin(const weir_safetensors_source *source,
                                   uint32_t *out_order, weir_strbuf *out,
                                   weir_error *err) {
  size_t start = out->size, end = 0;
  weir_names names = {.count = source->count,
                      .self = source->names,
                      .name_at = weir_names_at,
                      .is_sound = weir_names_is_sound,
                      .one = "a tensor in a file",
                      .several = "tensors"};
  WEIR_TRY(weir_names_check(out->alloc, &names, err));
  weir_strbuf_repeat(out, '\0', kLengthBytes);
  put_header(source, out_order, out);
  WEIR_TRY(weir_strbuf_status(out, err));
  if (!weir_size_align(out->size - start, kDataAlign, &end))
    return weir_fail_memory(err, out->size);
  weir_strbuf_repeat(out, ' ', end - (out->size - start));
  WEIR_TRY(weir_strbuf_status(out, err));
  for (unsigned i = 0; i < kLengthBytes; i++)
    out->data[start + i] = (char)((uint64_t)(end - kLengthBytes) >> (8 * i));
  return WEIR_OK;
}

weir_status weir_safetensors_write(const weir_sv *names,
                                   weir_tensor *const *tensors, size_t count,
                                   weir_strbuf *out, weir_error *err) {
  weir_safetensors_source source = {names, tensors, count, NULL, 0};
  uint32_t *order = weir_alloc_array(out->alloc, count + 1, sizeof *order);
  if (order == NULL) return weir_fail_memory(err, count);
  weir_status s = weir_safetensors_begin(&source, order, out, err);
  for (size_t i = 0; s == WEIR_OK && i < count; i++)
    weir_strbuf_append(out, tensors[order[i]]->data, tensors[order[i]]->bytes);
  weir_free(out->alloc, order);
  return s == WEIR_OK ? weir_strbuf_status(out, err) : s;
}
