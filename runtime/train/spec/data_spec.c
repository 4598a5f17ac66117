/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/train/spec/data_spec.h"

#include <inttypes.h>
#include <string.h>

#include "runtime/base/diag/nearest.h"
#include "runtime/base/quantity.h"
#include "runtime/base/table.h"
#include "runtime/base/yaml/yaml_scalar.h"
#include "runtime/train/data/data_source.h"
#include "runtime/train/spec/data_spec_columns.h"

/* A function for each key: it leaves the default where the key is missing, and
 * reports a value of another form at its place. Keys that exclude each other
 * are compared by the function of the later one. */

enum { kMaxBatch = 1 << 30, kMaxPrefetch = 1024, kDefaultPrefetch = 2 };
static const uint64_t kDefaultMemory = 256u << 20;

/* ---- Values */

weir_status weir_spec_int(const weir_yaml *y, const char *what, int64_t least,
                          int64_t most, int64_t *out, weir_error *err) {
  int64_t v = 0;
  if (y == NULL) return WEIR_OK;
  if (!weir_yaml_int(y, &v) || v < least || v > most)
    return weir_fail(err, WEIR_W4024, &y->mark,
                     "%s must be an integer from %" PRId64 " to %" PRId64, what,
                     least, most);
  *out = v;
  return WEIR_OK;
}

weir_status weir_spec_bool(const weir_yaml *y, const char *what, bool *out,
                           weir_error *err) {
  if (y == NULL || weir_yaml_bool(y, out)) return WEIR_OK;
  return weir_fail(err, WEIR_W4024, &y->mark, "%s must be true or false", what);
}

weir_status weir_spec_text(const weir_yaml *y, const char *what, weir_sv *out,
                           weir_error *err) {
  if (y == NULL) return WEIR_OK;
  if (y->kind != WEIR_YAML_SCALAR || y->text.size == 0)
    return weir_fail(err, WEIR_W4024, &y->mark, "%s must be a text", what);
  *out = y->text;
  return WEIR_OK;
}

weir_status weir_spec_path(const weir_yaml *y, const char *what, weir_sv *out,
                           weir_error *err) {
  WEIR_TRY(weir_spec_text(y, what, out, err));
  if (y == NULL || memchr(y->text.data, '\0', y->text.size) == NULL)
    return WEIR_OK;
  return weir_fail(err, WEIR_W4024, &y->mark, "a path has no NUL bytes");
}

weir_status weir_spec_numbers(const weir_yaml *y, const char *what,
                              weir_arena *arena, const double **out_numbers,
                              uint32_t *out_count, weir_error *err) {
  if (y == NULL) return WEIR_OK;
  uint32_t count = y->kind == WEIR_YAML_LIST ? y->count : 1;
  double *numbers = weir_arena_array(arena, count, sizeof *numbers);
  if (numbers == NULL) return weir_fail_memory(err, count * sizeof *numbers);
  for (uint32_t i = 0; i < count; i++) {
    const weir_yaml *v = y->kind == WEIR_YAML_LIST ? y->items[i] : y;
    if (!weir_yaml_float(v, &numbers[i]))
      return weir_fail(err, WEIR_W4024, &v->mark, "%s must be a number", what);
  }
  if (count == 0)
    return weir_fail(err, WEIR_W4024, &y->mark, "%s is empty", what);
  *out_numbers = numbers;
  *out_count = count;
  return WEIR_OK;
}

static const weir_yaml *get(const weir_data_spec *spec, const char *key) {
  return weir_yaml_get(spec->section, key);
}

static bool is_scalar(const weir_yaml *y, const char *text) {
  return y != NULL && y->kind == WEIR_YAML_SCALAR && weir_sv_is(y->text, text);
}

/* ---- The section and its kind */

static weir_sv section_at(const void *self, size_t i) {
  return ((const weir_yaml *)self)->entries[i].key;
}

static weir_status find_section(const weir_graph *graph, weir_sv name,
                                weir_data_spec *spec, weir_error *err) {
  const weir_yaml *data = graph->data;
  const weir_yaml_entry *e = NULL;
  bool is_map = data != NULL && data->kind == WEIR_YAML_MAP;
  if (is_map && !weir_sv_is(name, "root")) e = weir_yaml_entry_of(data, name);
  if (e != NULL && e->value->kind == WEIR_YAML_MAP) {
    spec->name = e->key;
    spec->section = e->value;
    spec->mark = e->key_mark;
    return WEIR_OK;
  }
  weir_mark at = {.file = "graph"};
  weir_status s = weir_fail(err, WEIR_W4023, is_map ? &data->mark : &at,
                            "`data` has no section '%.*s'", WEIR_SV(name));
  weir_sv near = {NULL, 0};
  if (is_map) near = weir_nearest_name(name, data->count, section_at, data);
  if (near.size > 0) weir_hint(err, "did you mean '%.*s'?", WEIR_SV(near));
  return s;
}

static weir_status read_source(weir_data_spec *spec, weir_error *err) {
  const weir_yaml *y = get(spec, "source");
  if (y == NULL)
    return weir_fail(err, WEIR_W4024, &spec->mark,
                     "data set '%.*s' has no `source`", WEIR_SV(spec->name));
  for (size_t i = 0; (spec->source = weir_source_at(i)) != NULL; i++)
    if (is_scalar(y, spec->source->form.name)) return WEIR_OK;
  return weir_fail(err, WEIR_W4024, &y->mark,
                   "data set '%.*s' has an unknown `source`",
                   WEIR_SV(spec->name));
}

/* ---- files */

static weir_status check_paths(const weir_yaml *y, weir_error *err) {
  uint32_t count = y->kind == WEIR_YAML_LIST ? y->count : 1;
  bool ok = y->kind != WEIR_YAML_MAP && count > 0;
  for (uint32_t i = 0; ok && i < count; i++) {
    const weir_yaml *v = y->kind == WEIR_YAML_LIST ? y->items[i] : y;
    ok = v->kind == WEIR_YAML_SCALAR && v->text.size > 0;
  }
  if (ok) return WEIR_OK;
  return weir_fail(err, WEIR_W4024, &y->mark,
                   "files are a path, a pattern, or a list of such");
}

static weir_status read_files(weir_data_spec *spec, weir_arena *arena,
                              weir_error *err) {
  const weir_yaml *y = get(spec, "files");
  bool by_column = y != NULL && y->kind == WEIR_YAML_MAP;
  bool wants_map = spec->source->files == WEIR_FILES_BY_COLUMN;
  if (spec->source->files == WEIR_FILES_NONE) return WEIR_OK;
  if (y == NULL)
    return weir_fail(err, WEIR_W4024, &spec->mark,
                     "data set '%.*s' has no `files`", WEIR_SV(spec->name));
  if (by_column != wants_map)
    return weir_fail(err, WEIR_W4024, &y->mark,
                     by_column ? "files of %s are a path, a pattern or a list"
                               : "files of %s are a map, {column: path}",
                     spec->source->form.name);
  uint32_t count = by_column ? y->count : 1;
  if (count == 0) return weir_fail(err, WEIR_W4024, &y->mark, "files is empty");
  weir_files_spec *files = weir_arena_array(arena, count, sizeof *files);
  if (files == NULL) return weir_fail_memory(err, count * sizeof *files);
  for (uint32_t i = 0; i < count; i++) {
    files[i].paths = by_column ? y->entries[i].value : y;
    files[i].mark = by_column ? y->entries[i].key_mark : y->mark;
    if (by_column) files[i].column = y->entries[i].key;
    WEIR_TRY(check_paths(files[i].paths, err));
  }
  spec->files = files;
  spec->file_count = count;
  return WEIR_OK;
}

/* ---- window, map */

static weir_status read_window(weir_data_spec *spec, weir_error *err) {
  const weir_yaml *y = get(spec, "window"), *target;
  if (y == NULL) return WEIR_OK;
  const weir_yaml *length = weir_yaml_get(y, "length");
  if (length == NULL)
    return weir_fail(err, WEIR_W4024, &y->mark, "a window needs `length`");
  WEIR_TRY(weir_spec_int(length, "length", 1, INT32_MAX, &spec->length, err));
  spec->shift = spec->length;
  const weir_yaml *shift = weir_yaml_get(y, "shift");
  if (shift == NULL) shift = weir_yaml_get(y, "stride");
  WEIR_TRY(weir_spec_int(shift, "shift", 1, INT32_MAX, &spec->shift, err));
  WEIR_TRY(
      weir_spec_bool(weir_yaml_get(y, "stream"), "stream", &spec->stream, err));
  target = weir_yaml_get(y, "target");
  spec->target_next = is_scalar(target, "next");
  if (target != NULL && !spec->target_next)
    return weir_fail(err, WEIR_W4024, &target->mark, "target must be `next`");
  if (spec->stream && shift != NULL && spec->shift != spec->length)
    return weir_fail(err, WEIR_W4024, &shift->mark,
                     "windows of streams follow each other: leave out shift");
  return WEIR_OK;
}

static weir_status read_map(weir_data_spec *spec, weir_error *err) {
  const weir_yaml *y = get(spec, "map");
  if (y == NULL) return WEIR_OK;
  spec->map_mark = y->mark;
  if (y->kind == WEIR_YAML_SCALAR)
    return weir_spec_path(y, "map", &spec->map_graph, err);
  if (y->kind == WEIR_YAML_LIST)
    return weir_fail(err, WEIR_W4024, &y->mark,
                     "map is a file, {graph: file} or {block: name}");
  WEIR_TRY(weir_spec_path(weir_yaml_get(y, "graph"), "graph", &spec->map_graph,
                          err));
  WEIR_TRY(weir_spec_text(weir_yaml_get(y, "block"), "block", &spec->map_block,
                          err));
  const weir_yaml *per = weir_yaml_get(y, "per");
  spec->map_per_example = is_scalar(per, "example");
  if (per != NULL && !spec->map_per_example && !is_scalar(per, "batch"))
    return weir_fail(err, WEIR_W4024, &per->mark, "per is batch or example");
  if ((spec->map_graph.size == 0) == (spec->map_block.size == 0))
    return weir_fail(err, WEIR_W4024, &y->mark,
                     "map needs `graph`, a file, or `block`, a name");
  return WEIR_OK;
}

/* ---- Order */

static weir_status read_shuffle(weir_data_spec *spec, weir_error *err) {
  const weir_yaml *y = get(spec, "shuffle");
  int64_t seed = 0;
  spec->buffer = INT64_MAX;
  if (y == NULL || weir_yaml_bool(y, &spec->shuffle)) return WEIR_OK;
  spec->shuffle = true;
  if (y->kind != WEIR_YAML_MAP)
    return weir_spec_int(y, "shuffle", 1, INT64_MAX, &spec->buffer, err);
  const weir_yaml *s = weir_yaml_get(y, "seed");
  WEIR_TRY(weir_spec_int(s, "seed", 0, INT64_MAX, &seed, err));
  spec->seeded = s != NULL;
  spec->seed = (uint64_t)seed;
  return weir_spec_int(weir_yaml_get(y, "buffer"), "buffer", 1, INT64_MAX,
                       &spec->buffer, err);
}

static weir_status shard_of(const weir_yaml *y, weir_shard *out,
                            weir_error *err) {
  static const struct {
    const char *name;
    weir_shard shard;
  } kNames[] = {{"equal", WEIR_SHARD_EQUAL},
                {"per_worker", WEIR_SHARD_EQUAL},
                {"by_load", WEIR_SHARD_BY_LOAD},
                {"none", WEIR_SHARD_NONE}};
  *out = WEIR_SHARD_AUTO;
  for (size_t i = 0; i < sizeof kNames / sizeof kNames[0]; i++)
    if (is_scalar(y, kNames[i].name)) *out = kNames[i].shard;
  if (y == NULL || *out != WEIR_SHARD_AUTO) return WEIR_OK;
  return weir_fail(err, WEIR_W4024, &y->mark,
                   "shard is equal, per_worker, by_load or none");
}

static weir_status read_shard(weir_data_spec *spec, weir_error *err) {
  weir_shard shard;
  WEIR_TRY(shard_of(get(spec, "shard"), &shard, err));
  spec->sharded = shard == WEIR_SHARD_AUTO || shard == WEIR_SHARD_EQUAL;
  return WEIR_OK;
}

weir_status weir_data_shares(const weir_graph *graph,
                             const weir_train_spec *train, bool between,
                             bool *out_equal, weir_error *err) {
  const weir_yaml_entry *section = NULL;
  const weir_yaml *y = NULL;
  weir_shard shard;
  if (graph->data != NULL && graph->data->kind == WEIR_YAML_MAP)
    section = weir_yaml_entry_of(graph->data, train->data);
  if (section != NULL && section->value->kind == WEIR_YAML_MAP)
    y = weir_yaml_get(section->value, "shard");
  WEIR_TRY(shard_of(y, &shard, err));
  bool sync = train->shared.way == WEIR_WAY_SYNC;
  *out_equal = between && !sync && shard == WEIR_SHARD_EQUAL;
  if (shard == WEIR_SHARD_BY_LOAD && (!between || sync))
    return weir_fail(err, WEIR_W4024, &y->mark,
                     "shard: by_load is for replicas between graphs, in mode "
                     "async or bounded");
  if (shard == WEIR_SHARD_NONE && between)
    return weir_fail(err, WEIR_W4024, &y->mark,
                     "shard: none has no effect between graphs: each batch is "
                     "of one worker");
  return WEIR_OK;
}

static weir_status read_remainder(weir_data_spec *spec, weir_error *err) {
  static const char *const kNames[] = {[WEIR_REMAINDER_AUTO] = "auto",
                                       [WEIR_REMAINDER_DROP] = "drop",
                                       [WEIR_REMAINDER_KEEP] = "keep",
                                       [WEIR_REMAINDER_PAD] = "pad"};
  WEIR_TABLE_OF(kNames, WEIR_REMAINDER_COUNT);
  const weir_yaml *y = get(spec, "remainder");
  if (y == NULL) return WEIR_OK;
  for (int i = 0; i < WEIR_REMAINDER_COUNT; i++)
    if (is_scalar(y, kNames[i])) {
      spec->remainder = (weir_remainder)i;
      return WEIR_OK;
    }
  return weir_fail(err, WEIR_W4024, &y->mark,
                   "remainder is drop, keep, pad or auto");
}

static weir_status read_repeat(weir_data_spec *spec, weir_error *err) {
  const weir_yaml *y = get(spec, "repeat");
  spec->repeat = 1;
  if (is_scalar(y, "forever")) {
    spec->repeat = 0;
    return WEIR_OK;
  }
  return weir_spec_int(y, "repeat", 1, INT32_MAX, &spec->repeat, err);
}

static weir_status read_bytes(const weir_yaml *y, uint64_t *out,
                              weir_error *err) {
  int64_t bytes;
  if (y == NULL) return WEIR_OK;
  if (y->kind != WEIR_YAML_SCALAR || !weir_quantity_bytes(y->text, &bytes))
    return weir_fail(err, WEIR_W4024, &y->mark,
                     "memory is a number of bytes, such as 64MiB");
  *out = (uint64_t)bytes;
  return WEIR_OK;
}

static weir_status read_order(weir_data_spec *spec, weir_error *err) {
  const weir_yaml *batch = get(spec, "batch");
  spec->take = -1;
  spec->prefetch = kDefaultPrefetch;
  spec->memory_bytes = kDefaultMemory;
  spec->batch_mark = batch != NULL ? batch->mark : spec->mark;
  WEIR_TRY(weir_spec_int(batch, "batch", 1, kMaxBatch, &spec->batch, err));
  WEIR_TRY(
      weir_spec_int(get(spec, "skip"), "skip", 0, INT64_MAX, &spec->skip, err));
  WEIR_TRY(
      weir_spec_int(get(spec, "take"), "take", 1, INT64_MAX, &spec->take, err));
  WEIR_TRY(weir_spec_int(get(spec, "prefetch"), "prefetch", 0, kMaxPrefetch,
                         &spec->prefetch, err));
  WEIR_TRY(read_bytes(get(spec, "memory"), &spec->memory_bytes, err));
  WEIR_TRY(read_shuffle(spec, err));
  WEIR_TRY(read_shard(spec, err));
  WEIR_TRY(read_remainder(spec, err));
  WEIR_TRY(read_repeat(spec, err));
  if (spec->stream && spec->batch == 0)
    return weir_fail(err, WEIR_W4024, &spec->mark,
                     "windows of streams need `batch`: one stream for each row "
                     "of it");
  if (spec->stream && (spec->shuffle || spec->skip > 0 || spec->take >= 0))
    return weir_fail(err, WEIR_W4024, &spec->mark,
                     "windows of streams keep their order: no shuffle, skip "
                     "or take");
  return WEIR_OK;
}

weir_status weir_data_spec_read(const weir_graph *graph, weir_sv name,
                                weir_arena *arena, weir_data_spec **out_spec,
                                weir_error *err) {
  *out_spec = NULL;
  weir_data_spec *spec = weir_arena_array(arena, 1, sizeof *spec);
  if (spec == NULL) return weir_fail_memory(err, sizeof *spec);
  WEIR_TRY(find_section(graph, name, spec, err));
  WEIR_TRY(read_source(spec, err));
  WEIR_TRY(read_files(spec, arena, err));
  WEIR_TRY(read_window(spec, err));
  WEIR_TRY(read_map(spec, err));
  WEIR_TRY(read_order(spec, err));
  WEIR_TRY(weir_data_spec_columns(spec, arena, err));
  *out_spec = spec;
  return WEIR_OK;
}
