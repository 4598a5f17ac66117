/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/io/array/npz.h"

#include "runtime/io/array/npz_write.h"
#include "runtime/io/format/format.h"

static weir_status open(const weir_format_input *in, void **out_self,
                        weir_error *err) {
  weir_npz *npz = NULL;
  weir_status s = weir_npz_open(in->alloc, in->bytes, in->name, &npz, err);
  *out_self = npz;
  return s;
}

static void release(void *self) {
  weir_npz_release(self);
}

static size_t count(const void *self) {
  return weir_npz_count(self);
}

static weir_status get(void *self, size_t i, weir_tensor **out_tensor,
                       weir_error *err) {
  return weir_npz_read(self, i, out_tensor, err);
}

const weir_format weir_format_npz = {
    .name = "npz",
    .summary = "NumPy's archive of named arrays",
    .endings = {".npz"},
    .number = 2,
    .sniff = weir_npz_is,
    .open = open,
    .release = release,
    .count = count,
    .name_at = weir_npz_name,
    .get = get,
    .write = weir_npz_write,
};
