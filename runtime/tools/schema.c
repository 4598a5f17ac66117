/* SPDX-License-Identifier: Apache-2.0 */
/* A JSON Schema (draft 2020-12) of the graph file, for editors.
 *
 * It is written from the tables that the loader reads keys by, so it knows the
 * keys that the loader knows. It says what may stand where; the meaning of
 * calls, names and shapes is `weir check`'s. Numbers may be names of params or
 * ${name}, hence the texts beside them.
 */
#include <string.h>

#include "runtime/api/weir_internal.h"
#include "runtime/base/json/json.h"
#include "runtime/base/table.h"
#include "runtime/device/kind.h"
#include "runtime/graph/load/module.h"
#include "runtime/graph/load/sections.h"
#include "runtime/graph/load/sections_data.h"
#include "runtime/graph/mesh/mesh_read.h"
#include "runtime/graph/parse/blocks.h"
#include "runtime/graph/parse/forms.h"
#include "runtime/graph/parse/long_form.h"
#include "runtime/graph/train/train_keys.h"
#include "runtime/tools/tools.h"
#include "runtime/train/data/data_source.h"

typedef weir_json_writer writer;

static void text(writer *w, const char *key, const char *value) {
  weir_json_key_text(w, key, weir_sv_from(value));
}

/* The names of "a|b", in an array. */
static void name_list(writer *w, const char *names) {
  weir_json_array_begin(w, true);
  while (*names != '\0') {
    size_t size = strcspn(names, "|");
    weir_json_string(w, (weir_sv){names, size});
    names += size + (names[size] == '|');
  }
  weir_json_array_end(w);
}

/* "type": one or several, "a|b". */
static void type(writer *w, const char *names) {
  if (strchr(names, '|') == NULL) {
    text(w, "type", names);
    return;
  }
  weir_json_key(w, "type");
  name_list(w, names);
}

/* `key: {"type": names}`. */
static void typed(writer *w, const char *key, const char *names) {
  weir_json_key(w, key);
  weir_json_object_begin(w, true);
  type(w, names);
  weir_json_object_end(w);
}

static void ref(writer *w, const char *key, const char *path) {
  weir_json_key(w, key);
  weir_json_object_begin(w, true);
  text(w, "$ref", path);
  weir_json_object_end(w);
}

/* `key: {"type": "object", "additionalProperties": {"$ref": path}}`. */
static void map_of(writer *w, const char *key, const char *path) {
  weir_json_key(w, key);
  weir_json_object_begin(w, false);
  type(w, "object");
  ref(w, "additionalProperties", path);
  weir_json_object_end(w);
}

/* The end of a map's schema whose keys are all listed. */
static void closed(writer *w, bool extensions) {
  if (extensions) {
    weir_json_key(w, "patternProperties");
    weir_json_object_begin(w, true);
    weir_json_key(w, "^x-");
    weir_json_object_begin(w, true);
    weir_json_object_end(w);
    weir_json_object_end(w);
  }
  weir_json_key(w, "additionalProperties");
  weir_json_bool(w, false);
}

/* A schema of a map that has |keys| and values of any kind. */
static void keys_only(writer *w, const char *const *keys, bool extensions) {
  type(w, "object");
  weir_json_key(w, "properties");
  weir_json_object_begin(w, false);
  for (; *keys != NULL; keys++) {
    weir_json_key(w, *keys);
    weir_json_object_begin(w, true);
    weir_json_object_end(w);
  }
  weir_json_object_end(w);
  closed(w, extensions);
}

static void keys_of(writer *w, const char *key, const char *const *keys,
                    bool extensions) {
  weir_json_key(w, key);
  weir_json_object_begin(w, false);
  keys_only(w, keys, extensions);
  weir_json_object_end(w);
}

/* ---- train */

static void choices(writer *w, const char *names) {
  weir_json_key(w, "anyOf");
  weir_json_array_begin(w, false);
  weir_json_object_begin(w, true);
  weir_json_key(w, "enum");
  name_list(w, names);
  weir_json_object_end(w);
  weir_json_object_begin(w, true); /* the name of a param */
  type(w, "string");
  text(w, "pattern", "^\\$\\{");
  weir_json_object_end(w);
  weir_json_array_end(w);
}

static const char *train_type(weir_train_kind kind) {
  static const char *const types[] = {[WEIR_TRAIN_TEXT] = "string|number",
                                      [WEIR_TRAIN_FOLDER] = "string",
                                      [WEIR_TRAIN_FILE] = "string",
                                      [WEIR_TRAIN_COUNT] = "integer|string",
                                      [WEIR_TRAIN_COUNT4] = "integer|string",
                                      [WEIR_TRAIN_NUMBER] = "number|string",
                                      [WEIR_TRAIN_BOOL] = "boolean|string",
                                      [WEIR_TRAIN_EVERY] = "integer|string",
                                      [WEIR_TRAIN_TIME] = "integer|string",
                                      [WEIR_TRAIN_BYTES] = "integer|string",
                                      [WEIR_TRAIN_MAP] = "object",
                                      [WEIR_TRAIN_CHOICE] = NULL,
                                      [WEIR_TRAIN_CUSTOM] = NULL};
  WEIR_TABLE_OF(types, WEIR_TRAIN_KIND_COUNT);
  return types[kind];
}

static void train_key(writer *w, const weir_train_key *k) {
  const char *types = train_type(k->kind);
  weir_json_key(w, k->name);
  weir_json_object_begin(w, k->kind != WEIR_TRAIN_MAP);
  if (k->kind == WEIR_TRAIN_CHOICE)
    choices(w, k->choices);
  else if (k->kind != WEIR_TRAIN_MAP && types != NULL)
    type(w, types);
  weir_json_object_end(w);
}

/* A table's maps hold no maps of their own by table. */
static void train_leaves(writer *w, const weir_train_key *keys) {
  type(w, "object");
  weir_json_key(w, "properties");
  weir_json_object_begin(w, false);
  for (; keys->name != NULL; keys++) train_key(w, keys);
  weir_json_object_end(w);
  closed(w, true);
}

static void train_map(writer *w, const weir_train_key *keys) {
  type(w, "object");
  weir_json_key(w, "properties");
  weir_json_object_begin(w, false);
  for (; keys->name != NULL; keys++) {
    if (keys->sub == NULL) {
      train_key(w, keys);
      continue;
    }
    weir_json_key(w, keys->name);
    weir_json_object_begin(w, false);
    train_leaves(w, keys->sub);
    weir_json_object_end(w);
  }
  weir_json_object_end(w);
  closed(w, true);
}

/* ---- data */

/* A key's value: any, or a map with known keys; or by column. */
static void data_key(writer *w, const weir_data_key *k) {
  weir_json_key(w, k->name);
  weir_json_object_begin(w, false);
  if (k->must_be_map) type(w, "object");
  if (k->keys != NULL && k->by_column) {
    weir_json_key(w, "additionalProperties");
    weir_json_object_begin(w, false);
  }
  if (k->keys != NULL) {
    weir_json_key(w, "properties");
    weir_json_object_begin(w, true);
    for (const char *const *name = k->keys; *name != NULL; name++) {
      weir_json_key(w, *name);
      weir_json_object_begin(w, true);
      weir_json_object_end(w);
    }
    weir_json_object_end(w);
    closed(w, false);
  }
  if (k->keys != NULL && k->by_column) weir_json_object_end(w);
  weir_json_object_end(w);
}

static void data_set(writer *w) {
  const weir_data_form *form;
  const weir_data_key *key;
  type(w, "object");
  weir_json_key(w, "properties");
  weir_json_object_begin(w, false);
  for (size_t i = 0; (key = weir_data_common_key(i)) != NULL; i++)
    if (strcmp(key->name, "source") != 0) data_key(w, key);
  weir_json_key(w, "source");
  weir_json_object_begin(w, true);
  weir_json_key(w, "enum");
  weir_json_array_begin(w, true);
  for (size_t i = 0; (form = weir_source_form(i)) != NULL; i++)
    weir_json_string(w, weir_sv_from(form->name));
  weir_json_array_end(w);
  weir_json_object_end(w);
  /* Keys of one source or several, each once. */
  for (size_t i = 0; (form = weir_source_form(i)) != NULL; i++)
    for (const weir_data_key *k = form->keys; k->name != NULL; k++) {
      bool seen = false;
      const weir_data_form *other;
      for (size_t n = 0; n < i && (other = weir_source_form(n)) != NULL; n++)
        for (const weir_data_key *o = other->keys; o->name != NULL; o++)
          seen = seen || strcmp(o->name, k->name) == 0;
      if (!seen) data_key(w, k);
    }
  weir_json_key(w, "<<");
  weir_json_object_begin(w, true);
  weir_json_object_end(w);
  weir_json_object_end(w);
  closed(w, true);
}

static void data(writer *w) {
  type(w, "object");
  weir_json_key(w, "properties");
  weir_json_object_begin(w, true);
  typed(w, "root", "string");
  weir_json_object_end(w);
  weir_json_key(w, "patternProperties");
  weir_json_object_begin(w, true);
  weir_json_key(w, "^x-");
  weir_json_object_begin(w, true);
  weir_json_object_end(w);
  weir_json_object_end(w);
  ref(w, "additionalProperties", "#/$defs/data_set");
}

/* ---- nodes */

static void op_names(writer *w) {
  size_t count = weir_tools_op_count();
  text(w, "description", "an op (weir show ops) or a block");
  weir_json_key(w, "anyOf");
  weir_json_array_begin(w, false);
  weir_json_object_begin(w, true);
  weir_json_key(w, "enum");
  weir_json_array_begin(w, true);
  for (size_t i = 0; i < count; i++)
    weir_json_string(w, weir_sv_from(weir_tools_op_name(i)));
  weir_json_array_end(w);
  weir_json_object_end(w);
  weir_json_object_begin(w, true);
  type(w, "string");
  text(w, "pattern", "^[A-Za-z_][A-Za-z0-9_.]*$");
  weir_json_object_end(w);
  weir_json_array_end(w);
}

/* A map that has |first| and perhaps `device` and `after`. */
static void form_item(writer *w, const char *first, const char *const *keys) {
  weir_json_object_begin(w, false);
  type(w, "object");
  weir_json_key(w, "properties");
  weir_json_object_begin(w, false);
  keys_of(w, first, keys, false);
  typed(w, "device", "string");
  typed(w, "after", "string|array");
  weir_json_object_end(w);
  weir_json_key(w, "required");
  weir_json_array_begin(w, true);
  weir_json_string(w, weir_sv_from(first));
  weir_json_array_end(w);
  closed(w, false);
  weir_json_object_end(w);
}

static void long_form(writer *w) {
  weir_json_object_begin(w, false);
  type(w, "object");
  weir_json_key(w, "properties");
  weir_json_object_begin(w, false);
  for (const char *const *k = weir_long_keys; *k != NULL; k++) {
    if (strcmp(*k, "op") == 0)
      ref(w, *k, "#/$defs/op");
    else if (strcmp(*k, "attrs") == 0)
      typed(w, *k, "object");
    else
      typed(w, *k, "string|number|boolean|array");
  }
  weir_json_object_end(w);
  weir_json_key(w, "required");
  weir_json_array_begin(w, true);
  weir_json_string(w, weir_sv_from("op"));
  weir_json_array_end(w);
  closed(w, false);
  weir_json_object_end(w);
}

static void node(writer *w) {
  text(w, "description",
       "a call, name(arg, key=value), or its long form, or a repeat, scan, "
       "while or if");
  weir_json_key(w, "anyOf");
  weir_json_array_begin(w, false);
  weir_json_object_begin(w, true);
  type(w, "string|number|boolean");
  weir_json_object_end(w);
  long_form(w);
  weir_json_object_begin(w, false);
  keys_only(w, weir_repeat_keys, false);
  weir_json_key(w, "required");
  weir_json_array_begin(w, true);
  weir_json_string(w, weir_sv_from("repeat"));
  weir_json_array_end(w);
  weir_json_object_end(w);
  form_item(w, "scan", weir_scan_keys);
  form_item(w, "while", weir_while_keys);
  form_item(w, "if", weir_if_keys);
  weir_json_array_end(w);
}

/* ---- cluster */

/* What holds for a task: numbers of devices, threads. */
static void device_counts(writer *w) {
  static const char *const names[] = {"cpu", "gpu"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
    if (weir_device_kind_find(weir_sv_from(names[i])) != WEIR_DEVICE_ANY)
      typed(w, names[i], "integer|string|object|array");
}

static void job(writer *w) {
  text(w, "description", "tasks: their addresses, their number, or a map");
  type(w, "integer|string|array|object");
  weir_json_key(w, "properties");
  weir_json_object_begin(w, true);
  typed(w, "tasks", "integer|string");
  typed(w, "addresses", "array");
  device_counts(w);
  weir_json_object_end(w);
  closed(w, true);
}

static void cluster(writer *w) {
  type(w, "object");
  weir_json_key(w, "properties");
  weir_json_object_begin(w, true);
  device_counts(w);
  typed(w, "threads", "integer|string");
  typed(w, "devices", "object");
  typed(w, "network", "object");
  typed(w, "local", "object");
  typed(w, "insecure", "boolean");
  typed(w, "tls", "string|object");
  weir_json_object_end(w);
  weir_json_key(w, "patternProperties");
  weir_json_object_begin(w, true);
  weir_json_key(w, "^x-");
  weir_json_object_begin(w, true);
  weir_json_object_end(w);
  weir_json_object_end(w);
  ref(w, "additionalProperties", "#/$defs/job");
}

/* ---- The file */

static void section(writer *w, const char *key) {
  static const struct {
    const char *key, *path; /* NULL: any value */
    bool map;               /* of such values */
  } refs[] = {
      {"cluster", "#/$defs/cluster", false}, {"data", "#/$defs/data", false},
      {"mesh", "#/$defs/mesh", false},       {"train", "#/$defs/train", false},
      {"nodes", "#/$defs/node", true},       {"blocks", "#/$defs/block", true}};
  static const struct {
    const char *key, *types;
  } kinds[] = {{"params", "object"},        {"dims", "object|array"},
               {"import", "object"},        {"inputs", "object"},
               {"outputs", "object|array"}, {"update", "object"},
               {"layout", "object"},        {"weights", "string"},
               {"labels", "array|string"}};
  for (size_t i = 0; i < sizeof refs / sizeof refs[0]; i++)
    if (strcmp(refs[i].key, key) == 0) {
      if (refs[i].map)
        map_of(w, key, refs[i].path);
      else
        ref(w, key, refs[i].path);
      return;
    }
  for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
    if (strcmp(kinds[i].key, key) == 0) {
      typed(w, key, kinds[i].types);
      return;
    }
  weir_json_key(w, key);
  weir_json_object_begin(w, true);
  if (strcmp(key, "weir") == 0) {
    weir_json_key(w, "const");
    weir_json_int(w, 1);
  } else if (strcmp(key, "placement") == 0) {
    type(w, "array");
    ref(w, "items", "#/$defs/rule");
  }
  weir_json_object_end(w);
}

/* `key: {...}` of the definitions, filled by |fill|. */
static void define(writer *w, const char *key, void (*fill)(writer *w)) {
  weir_json_key(w, key);
  weir_json_object_begin(w, false);
  fill(w);
  weir_json_object_end(w);
}

static void train(writer *w) {
  train_map(w, weir_train_keys);
}

bool weir_tools_schema(weir_write_fn write, void *self) {
  writer w;
  weir_json_writer_init(&w, (weir_writer){self, write}, 2);
  weir_json_object_begin(&w, false);
  text(&w, "$schema", "https://json-schema.org/draft/2020-12/schema");
  text(&w, "title", "weir graph, language version 1");
  type(&w, "object");
  weir_json_key(&w, "required");
  weir_json_array_begin(&w, true);
  weir_json_string(&w, weir_sv_from("weir"));
  weir_json_array_end(&w);
  weir_json_key(&w, "properties");
  weir_json_object_begin(&w, false);
  for (const char *const *k = weir_graph_keys; *k != NULL; k++) section(&w, *k);
  weir_json_object_end(&w);
  closed(&w, true);
  weir_json_key(&w, "$defs");
  weir_json_object_begin(&w, false);
  define(&w, "op", op_names);
  define(&w, "node", node);
  keys_of(&w, "block", weir_block_keys, false);
  define(&w, "job", job);
  define(&w, "cluster", cluster);
  keys_of(&w, "rule", weir_rule_keys, true);
  keys_of(&w, "mesh", weir_mesh_keys, true);
  define(&w, "data", data);
  define(&w, "data_set", data_set);
  define(&w, "train", train);
  weir_json_object_end(&w);
  weir_json_object_end(&w);
  return weir_json_finish(&w) && write(self, "\n", 1);
}
