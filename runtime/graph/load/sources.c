/* SPDX-License-Identifier: Apache-2.0 */
/* Sources: a file system in front of another one notes down each file that is
 * read, and a file system of noted files stands in for the disk. Files that are
 * mapped (weights) are noted by reference, and stay mapped until the graph is
 * gone; others are copied. */
#include "runtime/graph/load/sources.h"

#include <string.h>

#include "runtime/base/vec.h"
#include "runtime/graph/load/load.h"

struct weir_source_keeper {
  const weir_allocator *alloc;
  const weir_fs *inner;
  weir_env env; /* with |fs| */
  weir_fs fs;
  weir_load_options options; /* with getenv of its own */
  const weir_load_options *asked;
  weir_arena arena;
  WEIR_VEC(weir_source_file) files;
  WEIR_VEC(weir_file) mapped; /* closed at the end */
  WEIR_VEC(weir_source_env) vars;
  weir_sources sources;
  bool no_memory;
};

static weir_sv copy(weir_source_keeper *k, const char *data, size_t size) {
  char *to = weir_arena_string(&k->arena, data, size);
  if (to == NULL) k->no_memory = true;
  return (weir_sv){to, to != NULL ? size : 0};
}

/* ---- Noting */

static void note_file(weir_source_keeper *k, const char *root, const char *path,
                      bool map, const weir_file *read) {
  weir_bytes bytes = read->bytes;
  weir_source_file file = {
      .beneath = root != NULL, .bytes = bytes, .mapped = map};
  file.root = root != NULL ? copy(k, root, strlen(root)) : (weir_sv){"", 0};
  file.path = copy(k, path, strlen(path));
  if (!map) {
    weir_sv own = copy(k, (const char *)bytes.data, bytes.size);
    file.bytes.data = (const uint8_t *)own.data;
  }
  if (k->no_memory || !weir_vec_push(k->alloc, &k->files, file) ||
      (map && !weir_vec_push(k->alloc, &k->mapped, *read)))
    k->no_memory = true;
}

static weir_status keeper_read(void *self, const char *root, const char *path,
                               size_t limit, bool map, weir_file *out_file,
                               weir_error *err) {
  weir_source_keeper *k = self;
  const weir_fs *fs = k->inner;
  WEIR_TRY(fs->read(fs->self, root, path, limit, map, out_file, err));
  note_file(k, root, path, map, out_file);
  return WEIR_OK;
}

static void keeper_close(void *self, weir_file *file) {
  const weir_source_keeper *k = self;
  for (size_t i = 0; file != NULL && i < k->mapped.count; i++)
    if (k->mapped.items[i].self == file->self &&
        k->mapped.items[i].bytes.data == file->bytes.data) {
      *file = (weir_file){0};
      return;
    }
  k->inner->close(k->inner->self, file);
}

static const char *keeper_getenv(void *self, const char *name) {
  weir_source_keeper *k = self;
  const char *value = k->asked->getenv(k->asked->getenv_self, name);
  weir_source_env var = {copy(k, name, strlen(name)), {NULL, 0}};
  if (value != NULL) var.value = copy(k, value, strlen(value));
  if (!weir_vec_push(k->alloc, &k->vars, var)) k->no_memory = true;
  return value;
}

weir_source_keeper *weir_source_keeper_create(
    const weir_env *env, const weir_load_options *options) {
  weir_source_keeper *k = weir_alloc_array(env->alloc, 1, sizeof *k);
  if (k == NULL) return NULL;
  k->alloc = env->alloc;
  k->inner = env->fs;
  k->env = *env;
  k->fs = *env->fs;
  k->fs.self = k;
  k->fs.read = keeper_read;
  k->fs.close = keeper_close;
  k->fs.folders = NULL;
  k->fs.pieces = NULL;
  k->env.fs = &k->fs;
  k->asked = options;
  k->options = *options;
  if (options->getenv != NULL) {
    k->options.getenv = keeper_getenv;
    k->options.getenv_self = k;
  }
  weir_arena_init(&k->arena, env->alloc);
  return k;
}

void weir_source_keeper_release(weir_source_keeper *k) {
  if (k == NULL) return;
  const weir_allocator *a = k->alloc;
  for (size_t i = 0; i < k->mapped.count; i++)
    k->inner->close(k->inner->self, &k->mapped.items[i]);
  weir_vec_free(a, &k->mapped);
  weir_vec_free(a, &k->files);
  weir_vec_free(a, &k->vars);
  weir_arena_release(&k->arena);
  weir_free(a, k);
}

const weir_env *weir_source_keeper_env(weir_source_keeper *k) {
  return &k->env;
}

const weir_load_options *weir_source_keeper_options(weir_source_keeper *k) {
  return &k->options;
}

static const weir_param_value *copy_pairs(weir_source_keeper *k,
                                          const weir_param_value *from,
                                          size_t count) {
  weir_param_value *to = weir_arena_array(&k->arena, count + 1, sizeof *to);
  if (to == NULL) k->no_memory = true;
  for (size_t i = 0; i < count && !k->no_memory; i++)
    to[i] = (weir_param_value){copy(k, from[i].name.data, from[i].name.size),
                               copy(k, from[i].text.data, from[i].text.size)};
  return to;
}

weir_status weir_source_keeper_end(weir_source_keeper *k, const char *name,
                                   weir_sv text, const weir_sources **out,
                                   weir_error *err) {
  const weir_load_options *o = k->asked;
  k->sources = (weir_sources){
      .is_text = text.data != NULL,
      .main = copy(k, name, strlen(name)),
      .files = k->files.items,
      .env = k->vars.items,
      .params = copy_pairs(k, o->params, o->param_count),
      .overrides = copy_pairs(k, o->overrides, o->override_count),
      .file_count = k->files.count,
      .env_count = k->vars.count,
      .param_count = o->param_count,
      .override_count = o->override_count,
      .limits = o->limits,
      .max_nodes = o->max_nodes,
      .seed = o->seed};
  if (text.data != NULL) k->sources.text = copy(k, text.data, text.size);
  if (o->labels != NULL)
    k->sources.labels = copy(k, o->labels, strlen(o->labels));
  *out = &k->sources;
  return k->no_memory ? weir_fail_memory(err, 0) : WEIR_OK;
}

/* ---- Loading */

static bool is_file(const weir_source_file *f, const char *root,
                    const char *path) {
  return f->beneath == (root != NULL) && weir_sv_is(f->path, path) &&
         (root == NULL || weir_sv_is(f->root, root));
}

static weir_status reload_read(void *self, const char *root, const char *path,
                               size_t limit, bool map, weir_file *out_file,
                               weir_error *err) {
  (void)map;
  const weir_sources *s = self;
  *out_file = (weir_file){0};
  for (size_t i = 0; i < s->file_count; i++) {
    if (!is_file(&s->files[i], root, path)) continue;
    if (s->files[i].bytes.size > limit)
      return weir_fail(err, WEIR_W4015, NULL, "%.200s: %zu bytes, at most %zu",
                       path, s->files[i].bytes.size, limit);
    *out_file =
        (weir_file){s->files[i].bytes, s->files[i].need_self, s->files[i].need};
    return WEIR_OK;
  }
  return weir_fail(err, WEIR_W4001, NULL,
                   "%.200s is not among the files that came with the graph",
                   path);
}

static void reload_close(void *self, weir_file *file) {
  (void)self;
  if (file != NULL) *file = (weir_file){0};
}

static const char *reload_getenv(void *self, const char *name) {
  const weir_sources *s = self;
  for (size_t i = 0; i < s->env_count; i++)
    if (weir_sv_is(s->env[i].name, name)) return s->env[i].value.data;
  return NULL;
}

/* Mapped weights are closed by |s->fs|, after the load. */
weir_status weir_graph_load_sources(const weir_env *env, weir_sources *s,
                                    const weir_load_options *options,
                                    weir_graph **out_graph, weir_error *err) {
  weir_env own = *env;
  s->fs = (weir_fs){.self = s, .read = reload_read, .close = reload_close};
  own.fs = &s->fs;
  weir_load_options o = *options;
  o.params = s->params;
  o.param_count = s->param_count;
  o.overrides = s->overrides;
  o.override_count = s->override_count;
  o.limits = s->limits;
  o.max_nodes = s->max_nodes;
  o.seed = s->seed;
  o.labels = s->labels.data;
  o.getenv = reload_getenv;
  o.getenv_self = s;
  return s->is_text ? weir_graph_load_text(&own, s->text, s->main.data, &o,
                                           out_graph, err)
                    : weir_graph_load(&own, s->main.data, &o, out_graph, err);
}
