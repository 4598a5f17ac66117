/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/train/data/data_vocabulary.h"

#include "runtime/train/data/data_internal.h"
#include "runtime/train/data/data_open.h"
#include "runtime/train/source/source_text.h"

/* Vocabularies that exist before the data are read: a list in the section, a
 * file, or another data set's. */

static weir_status from_list(const weir_source_context *context,
                             const weir_vocabulary_spec *spec,
                             weir_vocabulary **out, weir_error *err) {
  const weir_yaml *list = spec->list;
  weir_sv *texts = weir_arena_array(context->arena, list->count, sizeof *texts);
  if (texts == NULL) return weir_fail_memory(err, list->count * sizeof *texts);
  for (uint32_t i = 0; i < list->count; i++) texts[i] = list->items[i]->text;
  weir_vocabulary_list written = {texts, list->count, spec->unknown,
                                  "vocabulary"};
  return weir_vocabulary_from(context->env->alloc, &written, out, err);
}

static weir_status from_file(const weir_source_context *context,
                             const weir_vocabulary_spec *spec,
                             weir_vocabulary **out, weir_error *err) {
  const weir_env *env = context->env;
  weir_file file = {0};
  const char *path =
      weir_arena_string(context->arena, spec->file.data, spec->file.size);
  if (path == NULL) return weir_fail_memory(err, spec->file.size);
  WEIR_TRY(env->fs->read(env->fs->self, context->root, path, 1u << 30, false,
                         &file, err));
  weir_sv content = {(const char *)file.bytes.data, file.bytes.size};
  weir_status s =
      weir_vocabulary_parse(env->alloc, content, spec->unknown, path, out, err);
  env->fs->close(env->fs->self, &file);
  return s;
}

static const weir_yaml *nested(const weir_yaml *y, const char *key) {
  return y != NULL && y->kind == WEIR_YAML_MAP ? weir_yaml_get(y, key) : NULL;
}

/* One that is itself another's would let sets refer to each other for ever. */
static bool is_borrower(const weir_graph *graph, weir_sv name) {
  const weir_yaml_entry *e =
      graph->data != NULL ? weir_yaml_entry_of(graph->data, name) : NULL;
  if (e == NULL) return false;
  const weir_yaml *text = nested(nested(e->value, "text"), "vocabulary");
  const weir_yaml *all = nested(e->value, "vocabulary");
  bool found = nested(text, "from") != NULL;
  for (uint32_t i = 0; all != NULL && i < all->count; i++)
    found = found || nested(all->entries[i].value, "from") != NULL;
  return found;
}

static weir_status from_set(const weir_source_context *context,
                            const weir_vocabulary_spec *spec, weir_sv column,
                            weir_vocabulary **out, weir_error *err) {
  weir_dataset *set = NULL;
  weir_dataset_options options = {.root = context->root};
  if (is_borrower(context->graph, spec->from))
    return weir_fail(err, WEIR_W4024, &spec->mark,
                     "data set '%.*s' takes a vocabulary from another one "
                     "itself",
                     WEIR_SV(spec->from));
  WEIR_TRY(weir_dataset_open(context->env, context->graph, spec->from, &options,
                             &set, err));
  weir_vocabulary *v = weir_dataset_vocabulary(set, column);
  if (v != NULL) *out = weir_vocabulary_ref(v);
  weir_dataset_release(set);
  if (v != NULL) return WEIR_OK;
  return weir_fail(err, WEIR_W4024, &spec->mark,
                   "data set '%.*s' has no vocabulary for column '%.*s'",
                   WEIR_SV(spec->from), WEIR_SV(column));
}

weir_status weir_data_vocabulary_load(const weir_source_context *context,
                                      const weir_vocabulary_spec *spec,
                                      weir_sv column, weir_vocabulary **out,
                                      weir_error *err) {
  *out = NULL;
  if (spec->list != NULL) return from_list(context, spec, out, err);
  if (spec->file.size > 0) return from_file(context, spec, out, err);
  if (spec->from.size > 0) return from_set(context, spec, column, out, err);
  return WEIR_OK;
}

weir_vocabulary *weir_dataset_vocabulary(const weir_dataset *set,
                                         weir_sv column) {
  for (uint32_t c = 0; c < set->source->column_count; c++)
    if (weir_sv_equal(set->source->columns[c].name, column)) {
      if (set->source->columns[c].vocabulary != NULL)
        return set->source->columns[c].vocabulary;
      return set->vocabularies[c];
    }
  return NULL;
}

/* ---- Saving */

static weir_status save(const weir_dataset *set, const weir_vocabulary_spec *v,
                        weir_sv column, const weir_run_folder *run,
                        weir_error *err) {
  weir_strbuf text;
  const weir_vocabulary *vocabulary = weir_dataset_vocabulary(set, column);
  weir_run_name name = {.text = v->save, .key = "save", .mark = &v->save_mark};
  if (v->save.size == 0 || vocabulary == NULL) return WEIR_OK;
  weir_strbuf_init(&text, set->env->alloc);
  weir_status s = weir_vocabulary_write(vocabulary, &text, err);
  weir_bytes content = {(const uint8_t *)text.data, text.size};
  if (s == WEIR_OK) s = weir_run_save(set->env, run, &name, content, err);
  weir_strbuf_release(&text);
  return s;
}

weir_status weir_dataset_save(const weir_dataset *set,
                              const weir_run_folder *run, weir_error *err) {
  weir_text_options text;
  for (uint32_t i = 0; i < set->spec->column_count; i++) {
    const weir_column_spec *c = &set->spec->columns[i];
    if (c->code == WEIR_CODE_VOCABULARY && !c->ignored)
      WEIR_TRY(save(set, &c->vocabulary, c->name, run, err));
  }
  WEIR_TRY(weir_text_options_read(set->spec, &text, err));
  return save(set, &text.vocabulary, WEIR_SV_LIT("tokens"), run, err);
}
