/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>

#include "runtime/api/weir_internal.h"
#include "runtime/base/json/json.h"
#include "runtime/base/number.h"
#include "runtime/base/strbuf.h"
#include "runtime/io/array/tensor_file.h"
#include "runtime/io/array/tensor_set.h"
#include "runtime/io/checkpoint/checkpoint_load.h"
#include "runtime/io/checkpoint/checkpoint_manifest.h"
#include "runtime/io/checkpoint/checkpoint_open.h"
#include "runtime/io/checkpoint/checkpoint_store.h"
#include "runtime/io/format/format.h"
#include "runtime/tools/tools.h"

/* Sets of tensors, from checkpoints and files: comparing and converting. */

/* ---- Comparing */

typedef struct differ {
  weir_strbuf text;
  bool json;
  size_t same, different;
} differ;

static void type_text(const weir_tensor *t, char text[256]) {
  int n = snprintf(text, 256, "%s", weir_dtype_name(t->dtype));
  weir_shape_print(&t->shape, NULL, NULL, text + n, 256 - (size_t)n);
}

/* A row: the difference of tensor |name|. */
static void put_row(differ *d, weir_sv name, const char *what,
                    const weir_tools_compare *c) {
  d->different++;
  if (d->json) {
    weir_json_writer w;
    weir_json_writer_init(&w, weir_strbuf_writer(&d->text), 0);
    weir_json_object_begin(&w, true);
    weir_json_key(&w, "name");
    weir_json_string(&w, name);
    weir_json_key(&w, "differs");
    weir_json_string(&w, weir_sv_from(what));
    if (c != NULL) {
      weir_json_key(&w, "elements");
      weir_json_int(&w, c->differing);
      weir_json_key(&w, "first");
      weir_json_int(&w, c->first);
      weir_json_key(&w, "max_abs");
      weir_json_double(&w, c->max_abs);
      weir_json_key(&w, "max_rel");
      weir_json_double(&w, c->max_rel);
    }
    weir_json_object_end(&w);
    (void)weir_json_finish(&w); /* |text| keeps a failure */
    return;
  }
  weir_strbuf_printf(&d->text, "%-32.*s  %s\n", WEIR_SV(name), what);
}

static void compare(differ *d, const weir_tools_diff *o, weir_sv name,
                    const weir_tensor *a, const weir_tensor *b) {
  weir_tools_compare c;
  char what[640], first[256], second[256];
  weir_tools_tensor_compare(a, b, o->rtol, o->atol, &c);
  if (c.same_type && c.differing == 0) {
    d->same++;
    return;
  }
  type_text(a, first);
  type_text(b, second);
  if (!c.same_type) {
    snprintf(what, sizeof what, "%s in the first, %s in the second", first,
             second);
    put_row(d, name, what, NULL);
    return;
  }
  snprintf(what, sizeof what,
           "%s  %" PRId64 " of %" PRId64
           " elements, max abs %.3g, max rel %.3g, first at %" PRId64,
           first, c.differing, weir_shape_elements(&a->shape), c.max_abs,
           c.max_rel, c.first);
  put_row(d, name, what, &c);
}

static void diff_sets(differ *d, const weir_tools_diff *o,
                      const weir_tensor_set *a, const weir_tensor_set *b) {
  for (size_t i = 0; i < a->items.count; i++) {
    const weir_tensor_set_item *x = &a->items.items[i];
    const weir_tensor_set_item *y = weir_tensor_set_find(b, x->name);
    if (y == NULL)
      put_row(d, x->name, "only in the first", NULL);
    else
      compare(d, o, x->name, x->tensor, y->tensor);
  }
  for (size_t i = 0; i < b->items.count; i++)
    if (weir_tensor_set_find(a, b->items.items[i].name) == NULL)
      put_row(d, b->items.items[i].name, "only in the second", NULL);
}

static weir_status give(weir_strbuf *text, weir_write_fn write, void *self,
                        weir_error *err) {
  WEIR_TRY(weir_strbuf_status(text, err));
  weir_sv all = weir_strbuf_view(text);
  if (write(self, all.data, all.size)) return WEIR_OK;
  return weir_fail(err, WEIR_W5009, NULL, "the output cannot be written");
}

weir_status weir_tools_checkpoint_diff(weir_runtime *runtime,
                                       const weir_tools_diff *opts,
                                       weir_write_fn write, void *self,
                                       bool *out_same, weir_error *err) {
  weir_tensor_set a = {0}, b = {0};
  if (runtime == NULL) return weir_fail_null(err, "runtime");
  if (out_same == NULL) return weir_fail_null(err, "out_same");
  if (opts->a == NULL || opts->b == NULL) return weir_fail_null(err, "a or b");
  differ d = {.json = opts->json};
  weir_strbuf_init(&d.text, runtime->env.alloc);
  weir_status s = weir_tensor_set_read(&runtime->env, opts->a, NULL, &a, err);
  if (s == WEIR_OK)
    s = weir_tensor_set_read(&runtime->env, opts->b, NULL, &b, err);
  if (s == WEIR_OK) diff_sets(&d, opts, &a, &b);
  if (s == WEIR_OK && !opts->json)
    weir_strbuf_printf(&d.text, "%zu equal, %zu different\n", d.same,
                       d.different);
  *out_same = d.different == 0;
  if (s == WEIR_OK) s = give(&d.text, write, self, err);
  weir_strbuf_release(&d.text);
  weir_tensor_set_release(&a);
  weir_tensor_set_release(&b);
  return s;
}

/* ---- Converting */

/* Leaves the items of one role only. */
static weir_status keep_role(weir_tensor_set *set, const char *role,
                             weir_error *err) {
  size_t kept = 0, want = 0;
  if (role == NULL || strcmp(role, "all") == 0) return WEIR_OK;
  while (want < WEIR_CHECKPOINT_ROLE_COUNT &&
         strcmp(role, weir_checkpoint_role_name((weir_checkpoint_role)want)) !=
             0)
    want++;
  if (want == WEIR_CHECKPOINT_ROLE_COUNT)
    return weir_fail(err, WEIR_W0002, NULL,
                     "'%.100s' is no role: variable, slot, state or all", role);
  for (size_t i = 0; i < set->items.count; i++) {
    weir_tensor_set_item item = set->items.items[i];
    if ((size_t)item.role == want)
      set->items.items[kept++] = item;
    else
      weir_tensor_unref(item.tensor);
  }
  set->items.count = kept;
  return WEIR_OK;
}

static weir_status write_file(weir_runtime *runtime, const char *path,
                              const weir_tensor_set *set, weir_error *err) {
  const weir_allocator *alloc = runtime->env.alloc;
  size_t n = set->items.count;
  weir_sv *names = weir_alloc_array(alloc, n + 1, sizeof *names);
  weir_tensor **tensors = weir_alloc_array(alloc, n + 1, sizeof *tensors);
  weir_status s =
      names != NULL && tensors != NULL ? WEIR_OK : weir_fail_memory(err, n);
  for (size_t i = 0; s == WEIR_OK && i < n; i++) {
    names[i] = set->items.items[i].name;
    tensors[i] = set->items.items[i].tensor;
  }
  if (s == WEIR_OK)
    s = weir_tensor_file_write(&runtime->env, path, names, tensors, n, err);
  weir_free(alloc, names);
  weir_free(alloc, tensors);
  return s;
}

static bool found_one(void *self, const weir_checkpoint_found *found) {
  (void)found;
  *(bool *)self = true;
  return false;
}

static weir_status write_checkpoint(weir_runtime *runtime, const char *path,
                                    const weir_tensor_set *set,
                                    weir_error *err) {
  const weir_allocator *alloc = runtime->env.alloc;
  weir_checkpoint_info info = {.run_id = WEIR_SV_LIT("converted")};
  weir_checkpoint_store *store = NULL;
  size_t n = set->items.count;
  bool taken = false;
  if (set->checkpoint != NULL) info = *weir_checkpoint_about(set->checkpoint);
  weir_checkpoint_entry *entries =
      weir_alloc_array(alloc, n + 1, sizeof *entries);
  if (entries == NULL) return weir_fail_memory(err, n);
  for (size_t i = 0; i < n; i++)
    entries[i] = (weir_checkpoint_entry){set->items.items[i].name,
                                         set->items.items[i].role,
                                         set->items.items[i].tensor};
  weir_status s =
      weir_checkpoint_store_open(&runtime->env, path, NULL, &store, err);
  if (s == WEIR_OK)
    s = weir_checkpoint_each(&runtime->env, path, &taken, found_one, err);
  if (s == WEIR_OK && taken)
    s = weir_fail(err, WEIR_W5009, NULL,
                  "'%.200s' holds checkpoints already; name another folder",
                  path);
  if (s == WEIR_OK) s = weir_checkpoint_save(store, &info, entries, n, err);
  weir_checkpoint_store_close(store);
  weir_free(alloc, entries);
  return s;
}

weir_status weir_tools_checkpoint_convert(weir_runtime *runtime,
                                          const weir_tools_convert *opts,
                                          weir_error *err) {
  weir_tensor_set set = {0};
  if (runtime == NULL) return weir_fail_null(err, "runtime");
  if (opts->src == NULL || opts->dst == NULL)
    return weir_fail_null(err, "src or dst");
  weir_status s =
      weir_tensor_set_read(&runtime->env, opts->src, NULL, &set, err);
  if (s == WEIR_OK)
    s = weir_tensor_set_rename(&set, opts->maps, opts->map_count, err);
  if (s == WEIR_OK) s = keep_role(&set, opts->role, err);
  bool is_file = weir_format_of_name(opts->dst) != NULL;
  if (s == WEIR_OK)
    s = is_file ? write_file(runtime, opts->dst, &set, err)
                : write_checkpoint(runtime, opts->dst, &set, err);
  weir_tensor_set_release(&set);
  return s;
}
