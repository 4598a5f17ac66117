/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/graph/load/module.h"

#include "runtime/base/yaml/yaml_scalar.h"
#include "runtime/graph/load/keys.h"
#include "runtime/graph/load/loader.h"
#include "runtime/graph/load/overrides.h"
#include "runtime/graph/load/params.h"
#include "runtime/graph/load/report.h"
#include "runtime/graph/parse/blocks.h"
#include "runtime/graph/parse/lex.h"
#include "runtime/graph/std/find.h"

/* Modules: the main file and, depth first, its imports. The walk has no stack
 * of its own: a module keeps the number of its next import and its parent. A
 * module is loaded once, however often it is imported; |loading| marks the path
 * from the main file, so an import of a module on it closes a cycle. */

enum { WEIR_IMPORT_DEPTH = 16, WEIR_IMPORTS = 256 };

const char *const weir_graph_keys[] = {
    "weir",    "params",    "dims",  "import",  "cluster", "mesh",
    "layout",  "placement", "data",  "inputs",  "blocks",  "nodes",
    "outputs", "update",    "train", "weights", "labels",  NULL};

/* Keys that people try, and what takes their place. */
static const weir_foreign_key kForeignKeys[] = {
    {"variables",
     "a variable is a node: nodes: {w: \"var([784, 10], "
     "init=glorot_uniform())\"}"},
    {"vars", "a variable is a node: nodes: {w: \"var([784, 10])\"}"},
    {"weight", "a variable is a node: nodes: {w: \"var([784, 10])\"}"},
    {"constants",
     "numbers are params: {n: 3}; tensors are nodes: const([1, 2])"},
    {"layers", "layers are calls in nodes; std/nn has dense, conv and more"},
    {"model", "the model is nodes: {y: \"relu(x)\"}, and outputs: [y]"},
    {"graph", "the graph is nodes: {y: \"relu(x)\"}, and outputs: [y]"},
    {"ops", "operations are calls in nodes: {y: \"relu(x)\"}"},
    {"optimizer", "it stands in train: {minimize: loss, optimizer: adam(...)}"},
    {"loss", "a loss is a node; train: {minimize: loss} names it"},
    {"name", "a file has no name; x-name is free for your own use"},
    {NULL, NULL}};

static weir_module *module_new(weir_loader *l, weir_sv path,
                               weir_module *parent) {
  weir_module *m = weir_arena_array(&l->work, 1, sizeof *m);
  if (m == NULL) return weir_report_memory(l), NULL;
  weir_map_init(&m->const_names, l->alloc);
  weir_map_init(&m->block_names, l->alloc);
  m->path = path;
  m->parent = parent;
  m->depth = parent != NULL ? parent->depth + 1 : 0;
  m->loading = true;
  m->next = l->modules;
  l->modules = m;
  return m;
}

void weir_module_release(weir_loader *l, weir_module *m) {
  weir_vec_free(l->alloc, &m->consts);
  weir_map_release(&m->const_names);
  weir_map_release(&m->block_names);
  for (uint32_t i = 0; i < m->block_count; i++) {
    weir_map_release(&m->blocks[i].body.names);
    weir_vec_free(l->alloc, &m->blocks[i].body.results);
  }
}

static bool check_version(weir_loader *l, const weir_module *m) {
  const weir_yaml_entry *e = weir_yaml_entry_of(m->root, WEIR_SV_LIT("weir"));
  if (e == NULL) {
    weir_report_begin(l, WEIR_W1012, &m->root->mark,
                      "the file does not say its language version");
    weir_hint(&l->diag.error, "begin it with `weir: 1`");
    return weir_report_send(l);
  }
  int64_t version = 0;
  if (weir_yaml_int(e->value, &version) && version == 1) return true;
  return weir_report(l, WEIR_W1012, &e->value->mark,
                     "this build loads language version 1");
}

static bool parse(weir_loader *l, weir_module *m, weir_sv text) {
  char *path = weir_arena_string(l->arena, m->path.data, m->path.size);
  if (path == NULL) return weir_report_memory(l);
  weir_error err = WEIR_ERROR_INIT;
  /* The tree's own reports count as ours: the first is kept below. */
  weir_yaml_request request = {
      .text = text,
      .file = path,
      .limits = &l->options->limits,
      .tree = &l->trees,
      .texts = l->arena,
      .lent = text.data == weir_graph_builder_graph(l->builder)->source.data};
  weir_status s =
      weir_yaml_parse_into(&request, l->options->sink, &m->root, &err);
  if (s != WEIR_OK) {
    if (l->errors++ == 0) {
      l->status = s;
      weir_error_copy(l->err, &err);
    }
    l->fatal = true;
    return false;
  }
  return weir_want_kind(l, m->root, WEIR_YAML_MAP, "a graph file");
}

/* Folder of |path| without the last slash; empty for none. */
static weir_sv folder_of(weir_sv path) {
  while (path.size > 0 && path.data[path.size - 1] != '/') path.size--;
  if (path.size > 1) path.size--;
  return path;
}

/* Puts |name|'s parts behind |from|'s folder, resolving "." and "..". False
 * when that leaves the root: by the text alone, before a file is opened. A file
 * so has one path, by which it is loaded once. |out| has room for both. */
static bool join(weir_sv from, weir_sv name, char *out, size_t *out_size) {
  size_t n = 0;
  weir_sv folder = folder_of(from);
  if (folder.size > 0) {
    memcpy(out, folder.data, folder.size);
    n = folder.size;
  }
  while (name.size > 0) {
    size_t part = 0;
    while (part < name.size && name.data[part] != '/') part++;
    if (part == 2 && name.data[0] == '.' && name.data[1] == '.') {
      if (n == 0) return false;
      while (n > 0 && out[n - 1] != '/') n--;
      if (n > 0) n--;
    } else if (part > 0 && !(part == 1 && name.data[0] == '.')) {
      if (n > 0) out[n++] = '/';
      memcpy(out + n, name.data, part);
      n += part;
    }
    size_t skip = part < name.size ? part + 1 : part;
    name.data += skip;
    name.size -= skip;
  }
  *out_size = n;
  out[n] = '\0';
  return n > 0;
}

static weir_module *find_module(const weir_loader *l, weir_sv path) {
  for (weir_module *m = l->modules; m != NULL; m = m->next)
    if (weir_sv_equal(m->path, path)) return m;
  return NULL;
}

/* "a imports b imports a". */
static bool refuse_cycle(weir_loader *l, const weir_module *from,
                         const weir_module *to, const weir_mark *at) {
  weir_report_begin(l, WEIR_W1117, at, "'%.*s' imports itself",
                    WEIR_SV(to->path));
  for (const weir_module *m = from; m != NULL; m = m->parent) {
    weir_diag_add_note(&l->diag, "'%.*s' imports '%.*s'", WEIR_SV(m->path),
                       WEIR_SV(to->path));
    if (m == to) break;
    to = m;
  }
  return weir_report_send(l);
}

static bool read_file(weir_loader *l, weir_module *m, const weir_mark *at) {
  weir_file file = {0};
  weir_error err = WEIR_ERROR_INIT;
  char root[4096], path[4096];
  if (l->root.size >= sizeof root || m->path.size >= sizeof path)
    return weir_report(l, WEIR_W1116, at, "the path is too long");
  memcpy(root, l->root.data, l->root.size);
  root[l->root.size] = '\0';
  memcpy(path, m->path.data, m->path.size);
  path[m->path.size] = '\0';
  size_t limit = l->options->limits.bytes;
  const weir_fs *fs = l->env->fs;
  weir_status s =
      fs->read(fs->self, l->root.size > 0 ? root : ".", path,
               limit > 0 ? limit : (size_t)64 << 20, false, &file, &err);
  if (s == WEIR_RESOURCE_EXHAUSTED) return weir_report_error(l, &err);
  if (s != WEIR_OK)
    return weir_report(l, WEIR_W1116, at, "cannot import '%s': %s", path,
                       err.message);
  bool ok =
      parse(l, m, (weir_sv){(const char *)file.bytes.data, file.bytes.size});
  fs->close(fs->self, &file);
  return ok;
}

/* The module that |text| names, seen from |from|; made when new. */
static weir_module *import_one(weir_loader *l, weir_module *from, weir_sv text,
                               const weir_mark *at) {
  bool std = weir_sv_starts_with(text, "std/");
  if (text.size == 0 || text.data[0] == '/' || text.size > 2000)
    return weir_report(l, WEIR_W1117, at,
                       "import paths are relative to the importing file"),
           NULL;
  if (memchr(text.data, '\0', text.size) != NULL)
    return weir_report(l, WEIR_W1117, at, "a path has no NUL bytes"), NULL;
  char *path = weir_arena_alloc(&l->work, from->path.size + text.size + 2);
  if (path == NULL) return weir_report_memory(l), NULL;
  size_t size = text.size;
  if (std)
    memcpy(path, text.data, size);
  else if (!join(from->path, text, path, &size))
    return weir_report(l, WEIR_W1117, at, "'%.*s' leaves the root folder",
                       WEIR_SV(text)),
           NULL;
  weir_sv full = {path, size};
  weir_module *m = find_module(l, full);
  if (m != NULL && m->loading) return refuse_cycle(l, from, m, at), NULL;
  if (m != NULL) return m;
  if (from->depth + 1 > WEIR_IMPORT_DEPTH)
    return weir_report(l, WEIR_W1117, at, "imports nest deeper than %d",
                       WEIR_IMPORT_DEPTH),
           NULL;
  weir_sv built_in = weir_std_find(full);
  if (std && built_in.data == NULL)
    return weir_report(l, WEIR_W1116, at, "unknown library '%.*s'",
                       WEIR_SV(text)),
           NULL;
  m = module_new(l, full, from);
  if (m == NULL) return NULL;
  bool ok = std ? parse(l, m, built_in) : read_file(l, m, at);
  return ok && check_version(l, m) ? m : NULL;
}

static bool begin_imports(weir_loader *l, weir_module *m) {
  const weir_yaml *y = weir_yaml_get(m->root, "import");
  if (y == NULL) return true;
  if (!weir_want_kind(l, y, WEIR_YAML_MAP, "import")) return false;
  if (y->count > WEIR_IMPORTS)
    return weir_report(l, WEIR_W1117, &y->mark, "a file has at most %d imports",
                       WEIR_IMPORTS);
  m->imports = weir_arena_array(&l->work, y->count, sizeof *m->imports);
  if (m->imports == NULL) return weir_report_memory(l);
  m->import_count = y->count;
  return true;
}

/* The next import of |m|: the module to go on with, |m| itself when that is
 * loaded, NULL when |m| has no more. */
static weir_module *next_import(weir_loader *l, weir_module *m) {
  if (m->next_import >= m->import_count) return NULL;
  size_t i = m->next_import++;
  const weir_yaml_entry *e = &weir_yaml_get(m->root, "import")->entries[i];
  weir_import *import = &m->imports[i];
  *import = (weir_import){.alias = e->key, .mark = e->key_mark};
  if (!weir_is_name(e->key))
    return weir_report(l, WEIR_W1106, &e->key_mark,
                       "'%.*s' cannot name an import", WEIR_SV(e->key)),
           m;
  if (!weir_want_kind(l, e->value, WEIR_YAML_SCALAR, "an import")) return m;
  import->module = import_one(l, m, e->value->text, &e->value->mark);
  if (import->module == NULL || !import->module->loading) return m;
  return import->module;
}

/* Params, dims and the signatures of blocks: all that others may ask for. */
static void finish_module(weir_loader *l, weir_module *m) {
  weir_check_keys_with(l, m->root, "a graph file", weir_graph_keys,
                       kForeignKeys);
  weir_module_params(l, m);
  weir_blocks_declare(l, m);
  m->loading = false;
}

bool weir_modules_load(weir_loader *l, weir_sv text, const char *path) {
  weir_sv full = weir_sv_from(path), folder = folder_of(full);
  l->root = folder;
  weir_module *m = module_new(l, full, NULL);
  if (m == NULL) return false;
  l->main = m;
  if (!parse(l, m, text) || !weir_overrides_apply(l, m)) return false;
  if (folder.size > 0 && folder.size < full.size) { /* relative to the root */
    m->path.data += folder.size + (full.data[folder.size] == '/');
    m->path.size -= folder.size + (full.data[folder.size] == '/');
  }
  check_version(l, m);
  begin_imports(l, m);
  while (m != NULL && !l->fatal) {
    weir_module *to = next_import(l, m);
    if (to == NULL) { /* done: back to the first importer */
      finish_module(l, m);
      m = m->parent;
    } else if (to != m) {
      begin_imports(l, to);
      m = to;
    }
  }
  return !l->fatal;
}

weir_module *weir_module_import(const weir_module *m, weir_sv alias) {
  for (uint32_t i = 0; i < m->import_count; i++)
    if (weir_sv_equal(m->imports[i].alias, alias)) return m->imports[i].module;
  return NULL;
}
