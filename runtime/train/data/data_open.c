/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/train/data/data_open.h"

#include "runtime/base/diag/nearest.h"
#include "runtime/base/size.h"
#include "runtime/train/data/data_check.h"
#include "runtime/train/data/data_files.h"
#include "runtime/train/data/data_internal.h"
#include "runtime/train/data/data_map.h"
#include "runtime/train/data/data_vocabulary.h"
#include "runtime/train/source/source_window.h"

/* From a section to a data set that can be iterated. Everything that can be
 * wrong is found here, before a training begins: source, columns and their
 * transforms, order, map, the graph's inputs, and at last the size of an epoch,
 * which depends on all of them. After this the data set is immutable; iterators
 * share it without a lock. */

/* ---- The source */

static weir_status open_windows(const weir_source_context *context,
                                weir_source **source, weir_error *err) {
  weir_source *inner = *source;
  if (context->spec->length == 0) return WEIR_OK;
  *source = NULL;
  return weir_source_window_open(context, inner, source, err);
}

/* The size of batches: the section's, else the one that the graph fixes, else
 * 1. */
static int64_t find_batch(const weir_graph *g, const weir_data_spec *spec,
                          const weir_source *source) {
  if (spec->batch > 0) return spec->batch;
  for (uint32_t i = 0; i < g->input_count; i++)
    for (uint32_t c = 0; c < source->column_count; c++) {
      const weir_shape *shape = g->values[g->inputs[i].value].shape;
      if (weir_sv_equal(g->inputs[i].name, source->columns[c].name) &&
          shape->rank > 0 && weir_dim_known(shape->dims[0]) &&
          shape->dims[0].value > 0)
        return shape->dims[0].value;
    }
  return 1;
}

static weir_sv column_at(const void *self, size_t i) {
  return ((const weir_source *)self)->columns[i].name;
}

/* Columns that the section speaks of must be there. */
static weir_status check_mentions(const weir_data_spec *spec,
                                  const weir_source *source, weir_error *err) {
  for (uint32_t i = 0; i < spec->column_count; i++) {
    const weir_column_spec *said = &spec->columns[i];
    uint32_t c = 0;
    while (c < source->column_count &&
           !weir_sv_equal(source->columns[c].name, said->name))
      c++;
    if (c < source->column_count || said->ignored) continue;
    weir_status s = weir_fail(err, WEIR_W4021, &said->mark,
                              "data set '%.*s' has no column '%.*s'",
                              WEIR_SV(spec->name), WEIR_SV(said->name));
    weir_sv near =
        weir_nearest_name(said->name, source->column_count, column_at, source);
    if (near.size > 0) weir_hint(err, "did you mean '%.*s'?", WEIR_SV(near));
    return s;
  }
  return WEIR_OK;
}

/* ---- Columns */

static weir_status add_column(weir_dataset *set,
                              const weir_source_context *context, uint32_t from,
                              weir_transform *transforms, uint32_t *read_from,
                              weir_error *err) {
  const weir_source_column *in = &set->source->columns[from];
  const weir_column_spec *said = weir_data_column_spec(set->spec, in->name);
  if (said != NULL && said->ignored) return WEIR_OK;
  uint32_t c = set->read_count++;
  weir_data_column *out = &set->read_columns[c];
  read_from[c] = from;
  if (in->rank >= WEIR_MAX_RANK)
    return weir_fail(err, WEIR_W4022, &in->mark,
                     "column '%.*s' has more than %d dimensions",
                     WEIR_SV(in->name), WEIR_MAX_RANK - 1);
  if (said != NULL && said->code == WEIR_CODE_VOCABULARY && !in->converted) {
    WEIR_TRY(weir_data_vocabulary_load(context, &said->vocabulary, in->name,
                                       &set->vocabularies[from], err));
    if (set->vocabularies[from] == NULL)
      return weir_fail(err, WEIR_W4024, &said->vocabulary.mark,
                       "the vocabulary of a column of numbers is a list, a "
                       "file, or another data set's");
  }
  WEIR_TRY(weir_transform_init(in, said, set->vocabularies[from], &set->arena,
                               &transforms[c], err));
  out->name = in->name;
  out->dtype = transforms[c].to;
  out->rank = in->rank + 1;
  out->dims[0] = set->batch;
  for (int32_t d = 0; d < in->rank; d++) out->dims[d + 1] = in->dims[d];
  return WEIR_OK;
}

static weir_status make_columns(weir_dataset *set,
                                const weir_source_context *context,
                                weir_error *err) {
  uint32_t n = set->source->column_count;
  weir_transform *transforms =
      weir_arena_array(&set->arena, n, sizeof *transforms);
  uint32_t *read_from = weir_arena_array(&set->arena, n, sizeof *read_from);
  set->read_columns =
      weir_arena_array(&set->arena, n, sizeof *set->read_columns);
  set->vocabularies =
      weir_arena_array(&set->arena, n, sizeof(weir_vocabulary *));
  if (transforms == NULL || read_from == NULL || set->read_columns == NULL ||
      set->vocabularies == NULL)
    return weir_fail_memory(err, n * sizeof *transforms);
  set->transforms = transforms;
  set->read_from = read_from;
  for (uint32_t c = 0; c < n; c++)
    WEIR_TRY(add_column(set, context, c, transforms, read_from, err));
  set->columns = set->read_columns;
  set->column_count = set->read_count;
  if (set->read_count > 0) return WEIR_OK;
  return weir_fail(err, WEIR_W4024, &set->spec->mark,
                   "data set '%.*s' has no columns", WEIR_SV(set->spec->name));
}

/* ---- Order and batches */

static void make_order(weir_dataset *set, const weir_dataset_options *o) {
  const weir_data_spec *spec = set->spec;
  bool sharded = spec->sharded && o->shards > 0 && !spec->stream;
  set->order = (weir_order_spec){.examples = set->source->examples,
                                 .skip = spec->skip,
                                 .take = spec->take,
                                 .shard = sharded ? o->shard : 0,
                                 .shards = sharded ? o->shards : 0,
                                 .shuffle = spec->shuffle,
                                 .buffer = spec->buffer,
                                 .seed = spec->seeded ? spec->seed : o->seed};
  set->repeat = spec->repeat;
  set->round = weir_order_count(&set->order);
}

/* Examples of an epoch. The last ones may be too few for a batch: they are
 * dropped or padded, or make a smaller batch, which the graph must take. */
static weir_status count_epoch(weir_dataset *set, weir_error *err) {
  const weir_data_spec *spec = set->spec;
  weir_remainder r = spec->remainder;
  bool drops = r == WEIR_REMAINDER_DROP ||
               (r == WEIR_REMAINDER_AUTO && set->fixed_batch);
  set->pad = r == WEIR_REMAINDER_PAD;
  int64_t epoch = INT64_MAX;
  if (set->round == 0) epoch = 0;
  if (set->repeat > 0 && !weir_dim_mul_checked(set->round, set->repeat, &epoch))
    epoch = INT64_MAX;
  int64_t tail = epoch == INT64_MAX ? 0 : epoch % set->batch;
  if (drops) epoch -= tail;
  set->epoch = epoch;
  if (epoch == 0) {
    weir_status s = weir_fail(
        err, WEIR_W4033, &spec->mark,
        "data set '%.*s' gives no batch: %lld examples, batches of %lld",
        WEIR_SV(spec->name), (long long)set->round, (long long)set->batch);
    if (tail > 0) weir_hint(err, "`remainder: pad` fills up the last batch");
    return s;
  }
  if (tail == 0 || drops || set->pad) return WEIR_OK;
  for (uint32_t c = 0; c < set->column_count; c++) set->columns[c].dims[0] = -1;
  if (!set->fixed_batch) return WEIR_OK;
  return weir_fail(err, WEIR_W4022, &spec->mark,
                   "the last batch of data set '%.*s' has %lld examples, the "
                   "graph takes %lld only: drop it or pad it",
                   WEIR_SV(spec->name), (long long)tail, (long long)set->batch);
}

static weir_status check_shuffle(const weir_dataset *set, weir_error *err) {
  bool back = set->spec->shuffle || set->spec->length > 0;
  if (!set->source->forward_only || !back) return WEIR_OK;
  weir_mark at = {.file = set->source->file};
  weir_status s = weir_fail(
      err, WEIR_W4035, &at,
      "data set '%.*s': a gzip file larger than `memory` (%llu "
      "bytes) cannot be shuffled",
      WEIR_SV(set->spec->name), (unsigned long long)set->spec->memory_bytes);
  weir_hint(err, "raise `memory`, or decompress the file");
  return s;
}

/* ---- Data sets */

static weir_status open_set(weir_dataset *set, weir_sv name,
                            const weir_dataset_options *o, weir_error *err) {
  WEIR_TRY(weir_data_spec_read(set->graph, name, &set->arena, &set->spec, err));
  WEIR_TRY(weir_data_root(set->graph, o->root, &set->arena, &set->root, err));
  if (o->shards > 0 && o->shard >= o->shards)
    return weir_fail(err, WEIR_W0004, NULL, "shard %u of %u", o->shard,
                     o->shards);
  weir_source_context context = {.env = set->env,
                                 .graph = set->graph,
                                 .spec = set->spec,
                                 .arena = &set->arena,
                                 .root = set->root,
                                 .shard = o->shard,
                                 .shards = o->shards,
                                 .batch = set->spec->batch};
  WEIR_TRY(set->spec->source->open(&context, &set->source, err));
  WEIR_TRY(open_windows(&context, &set->source, err));
  WEIR_TRY(check_mentions(set->spec, set->source, err));
  set->batch = find_batch(set->graph, set->spec, set->source);
  WEIR_TRY(make_columns(set, &context, err));
  make_order(set, o);
  WEIR_TRY(weir_data_map_open(set, o->pool, err));
  WEIR_TRY(check_shuffle(set, err));
  WEIR_TRY(weir_data_check_columns(set, err));
  return count_epoch(set, err);
}

static void report(const weir_diag_sink *sink, const weir_error *err) {
  weir_diag diag;
  if (sink == NULL) return;
  weir_diag_init(&diag, err);
  sink->report(sink->self, &diag);
}

weir_status weir_dataset_open(const weir_env *env, const weir_graph *graph,
                              weir_sv name, const weir_dataset_options *options,
                              weir_dataset **out_dataset, weir_error *err) {
  const weir_dataset_options none = {0};
  weir_error own = WEIR_ERROR_INIT;
  if (options == NULL) options = &none;
  if (err == NULL) err = &own;
  *out_dataset = NULL;
  weir_dataset *set = weir_alloc_array(env->alloc, 1, sizeof *set);
  if (set == NULL) return weir_fail_memory(err, sizeof *set);
  atomic_init(&set->refs, 1);
  set->env = env;
  set->graph = weir_graph_ref(graph);
  weir_arena_init(&set->arena, env->alloc);
  weir_status s = open_set(set, name, options, err);
  if (s == WEIR_OK) {
    *out_dataset = set;
  } else {
    report(options->sink, err);
    weir_dataset_release(set);
  }
  return s;
}

weir_dataset *weir_dataset_ref(weir_dataset *set) {
  atomic_fetch_add(&set->refs, 1);
  return set;
}

void weir_dataset_release(weir_dataset *set) {
  if (set == NULL || atomic_fetch_sub(&set->refs, 1) != 1) return;
  for (uint32_t c = 0; set->vocabularies != NULL && set->source != NULL &&
                       c < set->source->column_count;
       c++)
    weir_vocabulary_release(set->vocabularies[c]);
  weir_data_map_release(set->map);
  weir_source_release(set->source);
  weir_graph_unref(set->graph);
  weir_arena_release(&set->arena);
  weir_free(set->env->alloc, set);
}

uint32_t weir_dataset_column_count(const weir_dataset *set) {
  return set->column_count;
}

const weir_data_column *weir_dataset_column(const weir_dataset *set,
                                            uint32_t i) {
  return &set->columns[i];
}

int64_t weir_dataset_examples(const weir_dataset *set) {
  return set->epoch == INT64_MAX ? -1 : set->epoch;
}

int64_t weir_dataset_batches(const weir_dataset *set) {
  if (set->epoch == INT64_MAX) return -1;
  return set->epoch / set->batch + (set->epoch % set->batch > 0);
}
