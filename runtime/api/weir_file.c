/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/api/weir_internal.h"
#include "runtime/base/strbuf.h"
#include "runtime/io/array/tensor_file.h"
#include "runtime/io/format/format.h"

weir_status weir_tensor_read_file(weir_runtime *runtime, const char *root,
                                  const char *path, const char *member,
                                  weir_tensor **out_tensor, weir_error *err) {
  if (out_tensor == NULL) return weir_fail_null(err, "out_tensor");
  *out_tensor = NULL;
  if (runtime == NULL) return weir_fail_null(err, "runtime");
  if (path == NULL) return weir_fail_null(err, "path");
  weir_status s =
      weir_tensor_file_read(&runtime->env, root, path, member, out_tensor, err);
  return weir_settle(runtime->env.alloc, "reading a tensor", s, err);
}

weir_status weir_tensor_read_buffer(weir_runtime *runtime, const void *data,
                                    size_t size, const char *name,
                                    const char *member,
                                    weir_tensor **out_tensor, weir_error *err) {
  if (out_tensor == NULL) return weir_fail_null(err, "out_tensor");
  *out_tensor = NULL;
  if (runtime == NULL) return weir_fail_null(err, "runtime");
  if (data == NULL && size != 0) return weir_fail_null(err, "data");
  const weir_allocator *alloc = runtime->env.alloc;
  weir_status s = weir_tensor_bytes_read(alloc, (weir_bytes){data, size},
                                         name != NULL ? name : "<buffer>",
                                         member, out_tensor, err);
  return weir_settle(alloc, "reading a tensor", s, err);
}

/* A caller's list in io's form. */
typedef struct file_list {
  weir_tensor_list given;
  weir_sv *names; /* an array of ours */
} file_list;

static weir_status read_list(const weir_allocator *alloc, file_list *list,
                             const weir_tensor_list *from, weir_error *err) {
  if (from == NULL) return weir_fail_null(err, "list");
  WEIR_TRY(WEIR_OPTS_READ(weir_tensor_list, &list->given, from, err));
  size_t count = list->given.count;
  if (count == 0)
    return weir_fail(err, WEIR_W0004, NULL, "there is no tensor to write");
  if (list->given.names == NULL || list->given.tensors == NULL)
    return weir_fail_null(err, "weir_tensor_list: names or tensors");
  list->names = weir_alloc_array(alloc, count, sizeof *list->names);
  if (list->names == NULL)
    return weir_fail_memory(err, count * sizeof *list->names);
  for (size_t i = 0; i < count; i++) {
    if (list->given.names[i] == NULL || list->given.tensors[i] == NULL)
      return weir_fail_null(err, "a name or tensor");
    WEIR_TRY(
        weir_check_on_host(list->given.tensors[i], list->given.names[i], err));
    list->names[i] = weir_sv_from(list->given.names[i]);
  }
  return WEIR_OK;
}

/* Writing does not change a tensor, but io's functions may retain one. */
static weir_tensor *const *items(const file_list *list) {
  return (weir_tensor *const *)list->given.tensors;
}

weir_status weir_tensor_write_file(weir_runtime *runtime, const char *path,
                                   const weir_tensor_list *list,
                                   weir_error *err) {
  file_list l = {.names = NULL};
  if (runtime == NULL) return weir_fail_null(err, "runtime");
  if (path == NULL) return weir_fail_null(err, "path");
  const weir_allocator *alloc = runtime->env.alloc;
  weir_status s = read_list(alloc, &l, list, err);
  if (s == WEIR_OK)
    s = weir_tensor_file_write(&runtime->env, path, l.names, items(&l),
                               l.given.count, err);
  weir_free(alloc, l.names);
  return weir_settle(alloc, "writing tensors", s, err);
}

static weir_status format_list(weir_file_format format, const file_list *l,
                               weir_strbuf *out, weir_error *err) {
  size_t count = l->given.count;
  const weir_format *f = weir_format_of_number((int)format);
  if (f == NULL || f->write == NULL)
    return weir_fail(err, WEIR_W0004, NULL, "file format %d is unknown",
                     (int)format);
  if (f->open == NULL && count != 1)
    return weir_fail(err, WEIR_W0004, NULL,
                     "a file of %s holds one tensor, %zu were given", f->name,
                     count);
  return f->write(l->names, items(l), count, out, err);
}

weir_status weir_tensor_write_stream(weir_runtime *runtime,
                                     weir_file_format format,
                                     const weir_tensor_list *list,
                                     weir_write_fn write, void *write_self,
                                     weir_error *err) {
  file_list l = {.names = NULL};
  weir_strbuf out;
  if (runtime == NULL) return weir_fail_null(err, "runtime");
  if (write == NULL) return weir_fail_null(err, "write");
  const weir_allocator *alloc = runtime->env.alloc;
  weir_strbuf_init(&out, alloc);
  weir_status s = read_list(alloc, &l, list, err);
  if (s == WEIR_OK) s = format_list(format, &l, &out, err);
  if (s == WEIR_OK && !write(write_self, out.data, out.size))
    s = weir_fail(err, WEIR_W5009, NULL, "the tensor could not be written");
  weir_strbuf_release(&out);
  weir_free(alloc, l.names);
  return weir_settle(alloc, "writing tensors", s, err);
}
