/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/api/weir_internal.h"
#include "runtime/base/strbuf.h"
#include "runtime/io/array/npy.h"
#include "runtime/io/array/npz.h"
#include "runtime/io/array/safetensors.h"
#include "runtime/io/array/tensor_file.h"

weir_status weir_tensor_read_file(weir_runtime *runtime, const char *root,
                                  const char *path, const char *member,
                                  weir_tensor **out_tensor, weir_error *err) {
  if (out_tensor == NULL) return weir_fail_null(err, "out_tensor");
  *out_tensor = NULL;
  if (runtime == NULL) return weir_fail_null(err, "runtime");
  if (path == NULL) return weir_fail_null(err, "path");
  return weir_tensor_file_read(&runtime->env, root, path, member, out_tensor,
                               err);
}

weir_status weir_tensor_read_buffer(weir_runtime *runtime, const void *data,
                                    size_t size, const char *name,
                                    const char *member,
                                    weir_tensor **out_tensor, weir_error *err) {
  if (out_tensor == NULL) return weir_fail_null(err, "out_tensor");
  *out_tensor = NULL;
  if (runtime == NULL) return weir_fail_null(err, "runtime");
  if (data == NULL && size != 0) return weir_fail_null(err, "data");
  return weir_tensor_bytes_read(runtime->env.alloc, (weir_bytes){data, size},
                                name != NULL ? name : "<buffer>", member,
                                out_tensor, err);
}

/* Names and tensors in io's form; both are one block, for the caller to free.
 */
static weir_status read_list(const weir_allocator *alloc, size_t count,
                             const char *const *names,
                             const weir_tensor *const *tensors,
                             weir_sv **out_names, weir_error *err) {
  *out_names = NULL;
  if (count == 0)
    return weir_fail(err, WEIR_W0004, NULL, "there is no tensor to write");
  if (names == NULL || tensors == NULL)
    return weir_fail_null(err, "names or tensors");
  *out_names = weir_alloc_array(alloc, count, sizeof **out_names);
  if (*out_names == NULL)
    return weir_fail_memory(err, count * sizeof **out_names);
  for (size_t i = 0; i < count; i++) {
    if (names[i] == NULL || tensors[i] == NULL)
      return weir_fail_null(err, "a name or tensor");
    (*out_names)[i] = weir_sv_from(names[i]);
  }
  return WEIR_OK;
}

weir_status weir_tensor_write_file(weir_runtime *runtime, const char *path,
                                   size_t count, const char *const *names,
                                   const weir_tensor *const *tensors,
                                   weir_error *err) {
  weir_sv *list = NULL;
  if (runtime == NULL) return weir_fail_null(err, "runtime");
  if (path == NULL) return weir_fail_null(err, "path");
  const weir_allocator *alloc = runtime->env.alloc;
  weir_status s = read_list(alloc, count, names, tensors, &list, err);
  /* Writing does not change a tensor. */
  if (s == WEIR_OK)
    s = weir_tensor_file_write(&runtime->env, path, list,
                               (weir_tensor *const *)tensors, count, err);
  weir_free(alloc, list);
  return s;
}

static weir_status format_list(weir_file_format format, size_t count,
                               const weir_sv *names,
                               const weir_tensor *const *tensors,
                               weir_strbuf *out, weir_error *err) {
  weir_tensor *const *items = (weir_tensor *const *)tensors;
  switch (format) {
    case WEIR_FILE_NPY:
      if (count == 1) return weir_npy_write(tensors[0], out, err);
      return weir_fail(err, WEIR_W0004, NULL,
                       ".npy holds one tensor, %zu were given", count);
    case WEIR_FILE_NPZ:
      return weir_npz_write(names, items, count, out, err);
    case WEIR_FILE_SAFETENSORS:
      return weir_safetensors_write(names, items, count, out, err);
  }
  return weir_fail(err, WEIR_W0004, NULL, "file format %d is unknown",
                   (int)format);
}

weir_status weir_tensor_write_stream(weir_runtime *runtime,
                                     weir_file_format format, size_t count,
                                     const char *const *names,
                                     const weir_tensor *const *tensors,
                                     weir_write_fn write, void *write_self,
                                     weir_error *err) {
  weir_sv *list = NULL;
  weir_strbuf out;
  if (runtime == NULL) return weir_fail_null(err, "runtime");
  if (write == NULL) return weir_fail_null(err, "write");
  const weir_allocator *alloc = runtime->env.alloc;
  weir_strbuf_init(&out, alloc);
  weir_status s = read_list(alloc, count, names, tensors, &list, err);
  if (s == WEIR_OK) s = format_list(format, count, list, tensors, &out, err);
  if (s == WEIR_OK && !write(write_self, out.data, out.size))
    s = weir_fail(err, WEIR_W5009, NULL, "the tensor could not be written");
  weir_strbuf_release(&out);
  weir_free(alloc, list);
  return s;
}
