/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "kernels/kernel.h"
#include "runtime/base/env_system.h"
#include "runtime/graph/load/load.h"
#include "runtime/train/batch/data_iter.h"
#include "runtime/train/data/data.h"
#include "runtime/train/data/data_open.h"
#include "runtime/train/data/data_source.h"
#include "tests/fuzz/fuzz.h"

/* Loads the input as a graph file, opens all its data sets, and reads some
 * batches. A path that ends in .csv or .txt is a file of that kind; others do
 * not exist. A block of memory has at most 16 MiB. A position that was saved
 * can be gone back to. */

enum { kBlock = 16 << 20, kBatches = 4 };

static const char kCsv[] = "x,y,name\n1,2,red\n3,4,\"a, b\"\n5,6,red\n";
static const char kText[] = "the cat and the dog\nand the bird\n";

static void *limited_alloc(void *self, size_t bytes, size_t align) {
  (void)self;
  const weir_allocator *a = weir_allocator_system();
  return bytes <= kBlock ? a->alloc(a->self, bytes, align) : NULL;
}

static void limited_free(void *self, void *ptr) {
  (void)self;
  weir_free(weir_allocator_system(), ptr);
}

static const char *content_of(const char *path) {
  size_t n = strlen(path);
  if (n > 4 && strcmp(path + n - 4, ".csv") == 0) return kCsv;
  if (n > 4 && strcmp(path + n - 4, ".txt") == 0) return kText;
  return NULL;
}

static weir_status no_file(const char *path, weir_error *err) {
  return weir_fail(err, WEIR_W4001, NULL, "there is no '%.100s'", path);
}

static weir_status fs_read(void *self, const char *root, const char *path,
                           size_t limit, bool map, weir_file *out,
                           weir_error *err) {
  (void)self;
  (void)root;
  (void)limit;
  (void)map;
  *out = (weir_file){0};
  const char *text = content_of(path);
  if (text == NULL) return no_file(path, err);
  out->bytes = (weir_bytes){(const uint8_t *)text, strlen(text)};
  return WEIR_OK;
}

static void fs_close(void *self, weir_file *file) {
  (void)self;
  *file = (weir_file){0};
}

static weir_status fs_write(void *self, const char *path, weir_bytes content,
                            weir_error *err) {
  (void)self;
  (void)path;
  (void)content;
  (void)err;
  return WEIR_OK;
}

static weir_status piece_open(void *self, const char *root, const char *path,
                              weir_piece_file *out, weir_error *err) {
  (void)self;
  (void)root;
  const char *text = content_of(path);
  *out = (weir_piece_file){0};
  if (text == NULL) return no_file(path, err);
  *out = (weir_piece_file){strlen(text), (void *)(uintptr_t)text};
  return WEIR_OK;
}

static void piece_close(void *self, weir_piece_file *file) {
  (void)self;
  *file = (weir_piece_file){0};
}

static weir_status piece_read(void *self, const weir_piece_file *file,
                              const char *path, void *dst, size_t bytes,
                              uint64_t offset, weir_error *err) {
  (void)self;
  (void)path;
  (void)err;
  FUZZ_CHECK(offset <= file->bytes && bytes <= file->bytes - offset);
  if (bytes > 0) memcpy(dst, (const char *)file->self + offset, bytes);
  return WEIR_OK;
}

static weir_status piece_list(void *self, const char *root, const char *folder,
                              void *to, bool (*name)(void *, const char *),
                              weir_error *err) {
  (void)self;
  (void)root;
  (void)folder;
  (void)err;
  (void)(name(to, "a.csv") && name(to, "b.csv") && name(to, "a.txt"));
  return WEIR_OK;
}

static void check_batch(const weir_dataset *set, const weir_batch *b) {
  for (uint32_t c = 0; c < weir_dataset_column_count(set); c++) {
    const weir_data_column *column = weir_dataset_column(set, c);
    const weir_tensor *t = b->columns[c];
    FUZZ_CHECK(t->dtype == column->dtype && t->shape.rank == column->rank);
    FUZZ_CHECK(b->rows >= 1 && b->rows <= t->shape.dims[0].value);
    for (int32_t d = 1; d < column->rank; d++)
      FUZZ_CHECK(t->shape.dims[d].value == column->dims[d]);
  }
}

static void walk(weir_dataset *set) {
  weir_error err = WEIR_ERROR_INIT;
  weir_data_iter *it = NULL;
  weir_batch b;
  weir_strbuf json;
  if (weir_data_iter_create(set, &it, &err) != WEIR_OK) return;
  for (int i = 0; i < kBatches; i++) {
    if (weir_data_iter_next(it, &b, &err) != WEIR_OK) break;
    if (!b.end_of_epoch) check_batch(set, &b);
  }
  weir_strbuf_init(&json, weir_allocator_system());
  FUZZ_CHECK(weir_data_iter_state(it, &json, &err) == WEIR_OK);
  FUZZ_CHECK(weir_data_iter_restore(it, weir_strbuf_view(&json), &err) ==
             WEIR_OK);
  weir_strbuf_release(&json);
  weir_data_iter_release(it);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const weir_fs_pieces kPieces = {piece_open, piece_close, piece_read,
                                         piece_list};
  weir_allocator alloc = {NULL, limited_alloc, limited_free};
  weir_fs fs = {.read = fs_read,
                .close = fs_close,
                .write = fs_write,
                .pieces = &kPieces};
  weir_env env = *weir_env_system();
  env.alloc = &alloc;
  env.fs = &fs;
  weir_load_options options = {.registry = weir_builtin_registry(),
                               .data_form = weir_source_form,
                               .max_nodes = 500};
  weir_graph *g = NULL;
  weir_error err = WEIR_ERROR_INIT;
  if (weir_graph_load_text(&env, (weir_sv){(const char *)data, size},
                           "fuzz.weir.yaml", &options, &g, &err) != WEIR_OK)
    return 0;
  for (uint32_t i = 0; g->data != NULL && i < g->data->count && i < 4; i++) {
    weir_dataset *set = NULL;
    weir_dataset_options o = {.seed = 1};
    weir_status s =
        weir_dataset_open(&env, g, g->data->entries[i].key, &o, &set, &err);
    FUZZ_CHECK((s == WEIR_OK) == (set != NULL));
    if (set != NULL) walk(set);
    weir_dataset_release(set);
  }
  weir_graph_unref(g);
  return 0;
}
