/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/io/array/safetensors.h"

#include "runtime/io/array/safetensors_write.h"
#include "runtime/io/format/format.h"

static weir_status open(const weir_format_input *in, void **out_self,
                        weir_error *err) {
  weir_safetensors *file = NULL;
  weir_status s = weir_safetensors_from(in->alloc, in->bytes, in->name, in->fs,
                                        in->file, &file, err);
  if (s == WEIR_OK && in->file != NULL) *in->file = (weir_file){0}; /* taken */
  *out_self = file;
  return s;
}

static void release(void *self) {
  weir_safetensors_release(self);
}

static size_t count(const void *self) {
  return weir_safetensors_count(self);
}

static weir_status get(void *self, size_t i, weir_tensor **out_tensor,
                       weir_error *err) {
  return weir_safetensors_get(self, i, out_tensor, err);
}

const weir_format weir_format_safetensors = {
    .name = "safetensors",
    .summary = "named tensors in one file, read without a copy",
    .endings = {".safetensors"},
    .number = 3,
    .maps = true,
    .sniff = weir_safetensors_is,
    .open = open,
    .release = release,
    .count = count,
    .name_at = weir_safetensors_name,
    .get = get,
    .write = weir_safetensors_write,
};
