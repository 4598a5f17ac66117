/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_TRAIN_DATA_CHECK_H_
#define TESTS_TRAIN_DATA_CHECK_H_

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kernels/kernel.h"
#include "runtime/base/env_system.h"
#include "runtime/base/fs/fs_system.h"
#include "runtime/base/strbuf.h"
#include "runtime/graph/load/load.h"
#include "runtime/train/batch/data_iter.h"
#include "runtime/train/data/data.h"
#include "runtime/train/data/data_open.h"
#include "runtime/train/data/data_source.h"
#include "tests/check.h"

/* Shared by the tests of data sets: graphs written as text, files in a fresh
 * folder, and batches as text, so that streams are compared as strings. */

static char data_folder[64];

static inline int data_setup(void **state) {
  (void)state;
  strcpy(data_folder, "/tmp/weir-data-XXXXXX");
  return mkdtemp(data_folder) == NULL;
}

static inline int data_teardown(void **state) {
  char command[128];
  (void)state;
  snprintf(command, sizeof command, "rm -rf '%s'", data_folder);
  return system(command) != 0;
}

#define DATA_TEST(f) \
  cmocka_unit_test_setup_teardown(f, data_setup, data_teardown)

static inline void data_put(const char *name, const void *bytes, size_t size) {
  char path[256];
  snprintf(path, sizeof path, "%s/%s", data_folder, name);
  FILE *f = fopen(path, "wb");
  assert_non_null(f);
  assert_int_equal(fwrite(bytes, 1, size, f), size);
  fclose(f);
}

static inline void data_put_text(const char *name, const char *text) {
  data_put(name, text, strlen(text));
}

/* An environment on one allocator, real files, a clock that stands still. */
typedef struct data_env {
  weir_counted_allocator counted;
  weir_fs fs;
  weir_env env;
} data_env;

static inline void data_env_init(data_env *e) {
  weir_counted_allocator_init(&e->counted, NULL);
  e->fs = weir_system_fs;
  e->fs.self = &e->counted.base;
  e->env = *weir_env_system();
  e->env.alloc = &e->counted.base;
  e->env.fs = &e->fs;
}

/* The graph of |text|, which follows "weir: 1\n"; its data sets are of the
 * sources |form| (NULL: any). */
static inline weir_status data_load_any(const weir_env *env, const char *text,
                                        weir_data_form_fn form,
                                        weir_graph **out, weir_error *err) {
  char all[8192];
  snprintf(all, sizeof all, "weir: 1\n%s", text);
  weir_load_options options = {.registry = weir_builtin_registry(),
                               .data_form = form};
  return weir_graph_load_text(env, weir_sv_from(all), "g.weir.yaml", &options,
                              out, err);
}

static inline weir_status data_load(const weir_env *env, const char *text,
                                    weir_graph **out, weir_error *err) {
  return data_load_any(env, text, weir_source_form, out, err);
}

static inline weir_status data_open_with(const weir_env *env, const char *text,
                                         const weir_dataset_options *options,
                                         weir_dataset **out, weir_error *err) {
  weir_graph *g = NULL;
  weir_dataset_options o =
      options != NULL ? *options : (weir_dataset_options){0};
  o.root = data_folder;
  *out = NULL;
  weir_status s = data_load(env, text, &g, err);
  if (s == WEIR_OK)
    s = weir_dataset_open(env, g, WEIR_SV_LIT("t"), &o, out, err);
  weir_graph_unref(g);
  return s;
}

static inline weir_dataset *data_open(const char *text) {
  weir_dataset *set = NULL;
  weir_error err = WEIR_ERROR_INIT;
  assert_ok(data_open_with(weir_env_system(), text, NULL, &set, &err), &err);
  return set;
}

static inline void data_refuses(const char *text, const char *id,
                                const char *says) {
  weir_dataset *set = NULL;
  weir_error err = WEIR_ERROR_INIT;
  weir_status s = data_open_with(weir_env_system(), text, NULL, &set, &err);
  if (s == WEIR_OK) fail_msg("opened, but: %s", says);
  if (strcmp(err.id, id) != 0 || strstr(err.message, says) == NULL)
    fail_msg("%s %s, want %s %s", err.id, err.message, id, says);
  assert_null(set);
}

/* A batch as "x=1,2;y=3 | ", the end of an epoch as "END ". */
static inline void data_print(const weir_dataset *set, const weir_batch *b,
                              weir_strbuf *out) {
  if (b->end_of_epoch) {
    weir_strbuf_text(out, "END ");
    return;
  }
  for (uint32_t c = 0; c < weir_dataset_column_count(set); c++) {
    weir_sv name = weir_dataset_column(set, c)->name;
    const weir_tensor *t = b->columns[c];
    weir_strbuf_printf(out, "%s%.*s=", c > 0 ? ";" : "", WEIR_SV(name));
    for (int64_t i = 0; i < weir_shape_elements(&t->shape); i++)
      weir_strbuf_printf(out, "%s%g", i > 0 ? "," : "",
                         weir_tensor_get_f64(t, i));
  }
  weir_strbuf_text(out, " | ");
}

/* |count| batches (ends of epochs among them) as text; to be freed. */
static inline char *data_take(const weir_dataset *set, weir_data_iter *it,
                              int count) {
  weir_error err = WEIR_ERROR_INIT;
  weir_strbuf text;
  weir_strbuf_init(&text, weir_allocator_system());
  for (int i = 0; i < count; i++) {
    weir_batch b;
    assert_ok(weir_data_iter_next(it, &b, &err), &err);
    data_print(set, &b, &text);
  }
  char *copy = strdup(text.size > 0 ? text.data : "");
  weir_strbuf_release(&text);
  return copy;
}

static inline weir_data_iter *data_iter(weir_dataset *set) {
  weir_error err = WEIR_ERROR_INIT;
  weir_data_iter *it = NULL;
  assert_ok(weir_data_iter_create(set, &it, &err), &err);
  return it;
}

/* The first |count| batches of the data set that |text| describes. */
static inline char *data_stream(const char *text, int count) {
  weir_dataset *set = data_open(text);
  weir_data_iter *it = data_iter(set);
  char *out = data_take(set, it, count);
  weir_data_iter_release(it);
  weir_dataset_release(set);
  return out;
}

static inline void data_gives(const char *text, int count, const char *want) {
  char *have = data_stream(text, count);
  if (strcmp(have, want) != 0) fail_msg("gives %s\nwant  %s", have, want);
  free(have);
}

static inline void data_same(const char *a, const char *b, int count) {
  char *want = data_stream(a, count);
  data_gives(b, count, want);
  free(want);
}

static inline char *data_state(const weir_data_iter *it) {
  weir_error err = WEIR_ERROR_INIT;
  weir_strbuf json;
  weir_strbuf_init(&json, weir_allocator_system());
  assert_ok(weir_data_iter_state(it, &json, &err), &err);
  char *copy = strdup(json.data);
  weir_strbuf_release(&json);
  return copy;
}

/* Saves after each of |count| batches, restores in another iterator, and
 * compares all that follows. */
static inline void data_resumes(const char *text, int count) {
  weir_error err = WEIR_ERROR_INIT;
  weir_dataset *set = data_open(text);
  for (int at = 0; at <= count; at++) {
    weir_data_iter *one = data_iter(set), *two = data_iter(set);
    free(data_take(set, one, at));
    free(data_take(set, two, at % 3)); /* it may have been elsewhere */
    char *state = data_state(one);
    assert_ok(weir_data_iter_restore(two, weir_sv_from(state), &err), &err);
    char *again = data_state(two);
    assert_string_equal(again, state);
    char *want = data_take(set, one, count), *have = data_take(set, two, count);
    assert_string_equal(have, want);
    free(want);
    free(have);
    free(state);
    free(again);
    weir_data_iter_release(one);
    weir_data_iter_release(two);
  }
  weir_dataset_release(set);
}

/* Opens, iterates and saves with the k-th allocation failing, for every k, once
 * and from then on; nothing may be left. */
static inline void data_sweep(const char *text, int count) {
  for (int forever = 0; forever < 2; forever++) {
    weir_status s = WEIR_UNKNOWN;
    for (uint64_t k = 1; s != WEIR_OK; k++) {
      data_env e;
      weir_error err = WEIR_ERROR_INIT;
      weir_dataset *set = NULL;
      weir_data_iter *it = NULL;
      weir_batch b;
      data_env_init(&e);
      weir_graph *g = NULL;
      assert_ok(data_load(&e.env, text, &g, &err), &err);
      e.counted.fail_at = atomic_load(&e.counted.calls) + k;
      e.counted.fail_forever = forever;
      weir_dataset_options o = {.root = data_folder};
      s = weir_dataset_open(&e.env, g, WEIR_SV_LIT("t"), &o, &set, &err);
      if (s == WEIR_OK) s = weir_data_iter_create(set, &it, &err);
      for (int i = 0; s == WEIR_OK && i < count; i++)
        s = weir_data_iter_next(it, &b, &err);
      if (s != WEIR_OK) assert_string_equal(err.id, "W6001");
      weir_data_iter_release(it);
      weir_dataset_release(set);
      weir_graph_unref(g);
      assert_int_equal(atomic_load(&e.counted.live_blocks), 0);
    }
  }
}

#endif
