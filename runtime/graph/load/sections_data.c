/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/graph/load/sections_data.h"

#include "runtime/base/join.h"
#include "runtime/graph/load/keys.h"
#include "runtime/graph/load/loader.h"
#include "runtime/graph/load/report.h"
#include "runtime/io/run_folder.h"

/* `data:`: the keys and the form of their values. Keys that only some sources
 * take are in the source's row (data_form.h). runtime/train/spec/data_spec.c
 * gives keys their meaning; files are not opened here. */

static const char *const kWindowKeys[] = {"length", "shift",  "stride",
                                          "target", "stream", NULL};
static const char *const kMapKeys[] = {"graph", "block", "per", NULL};
static const char *const kShuffleKeys[] = {"buffer", "seed", NULL};
static const char *const kColumnKeys[] = {"dtype", "shape", "default", "fields",
                                          NULL};
static const char *const kNormaliseKeys[] = {"mean", "std", "scale", "offset",
                                             NULL};
static const char *const kBucketizeKeys[] = {"boundaries", NULL};
static const char *const kHashKeys[] = {"buckets", NULL};
static const char *const kVocabularyKeys[] = {"list",    "file", "from", "save",
                                              "unknown", "size", NULL};

/* The keys that every source takes. */
static const weir_data_key kCommon[] = {
    {"source", NULL, false, false},
    {"columns", kColumnKeys, true, false},
    {"features", kColumnKeys, true, true},
    {"ignore", NULL, false, false},
    {"normalise", kNormaliseKeys, true, true},
    {"normalize", kNormaliseKeys, true, true},
    {"bucketize", kBucketizeKeys, true, true},
    {"hash_bucket", kHashKeys, true, true},
    {"vocabulary", kVocabularyKeys, true, true},
    {"window", kWindowKeys, false, true},
    {"map", kMapKeys, false, false},
    {"skip", NULL, false, false},
    {"take", NULL, false, false},
    {"shard", NULL, false, false},
    {"shuffle", kShuffleKeys, false, false},
    {"batch", NULL, false, false},
    {"remainder", NULL, false, false},
    {"repeat", NULL, false, false},
    {"prefetch", NULL, false, false},
    {"memory", NULL, false, false},
};

enum { kCommonCount = sizeof kCommon / sizeof kCommon[0] };

const weir_data_key *weir_data_common_key(size_t i) {
  return i < kCommonCount ? &kCommon[i] : NULL;
}

/* The keys that a section may hold: the common ones and those of |form|, or of
 * any source while the section's own is not known. */
typedef struct section_keys {
  weir_data_form_fn forms;
  const weir_data_form *form; /* NULL: not known */
} section_keys;

/* Key |i|, or NULL past the last one. */
static const weir_data_key *key_at(const section_keys *k, size_t i) {
  const weir_data_form *form = k->form;
  if (i < kCommonCount) return &kCommon[i];
  i -= kCommonCount;
  for (size_t f = 0; k->form != NULL || (form = k->forms(f)) != NULL; f++) {
    for (const weir_data_key *key = form->keys; key->name != NULL; key++)
      if (i-- == 0) return key;
    if (k->form != NULL) break;
  }
  return NULL;
}

static weir_sv key_name(const void *self, size_t i) {
  return weir_sv_from(key_at(self, i)->name);
}

static void report_key(weir_loader *l, const section_keys *k,
                       const weir_yaml_entry *e) {
  size_t count = kCommonCount;
  while (key_at(k, count) != NULL) count++;
  weir_report_begin(l, WEIR_W1009, &e->key_mark,
                    "unknown key '%.*s' in a data set%s%s", WEIR_SV(e->key),
                    k->form != NULL ? " of source " : "",
                    k->form != NULL ? k->form->name : "");
  weir_report_nearest(l, e->key, count, key_name, k);
  weir_report_send(l);
}

static void check_value(weir_loader *l, const weir_data_key *key,
                        const weir_yaml *y) {
  if (key->must_be_map && !weir_want_kind(l, y, WEIR_YAML_MAP, key->name))
    return;
  if (y->kind != WEIR_YAML_MAP || key->keys == NULL) return;
  if (!key->by_column) {
    weir_check_keys(l, y, key->name, key->keys, false);
    return;
  }
  for (uint32_t i = 0; i < y->count && weir_loader_going(l); i++)
    if (y->entries[i].value->kind == WEIR_YAML_MAP)
      weir_check_keys(l, y->entries[i].value, key->name, key->keys, false);
}

static void check_keys(weir_loader *l, const section_keys *k,
                       const weir_yaml *set) {
  for (uint32_t i = 0; i < set->count && weir_loader_going(l); i++) {
    const weir_yaml_entry *e = &set->entries[i];
    const weir_data_key *key = NULL;
    if (weir_sv_starts_with(e->key, "x-")) continue;
    for (size_t n = 0; (key = key_at(k, n)) != NULL; n++)
      if (weir_sv_is(e->key, key->name)) break;
    if (key == NULL)
      report_key(l, k, e);
    else
      check_value(l, key, e->value);
  }
}

/* ---- The source */

static weir_sv source_name(const void *self, size_t i) {
  return weir_sv_from(((const section_keys *)self)->forms(i)->name);
}

static void report_source(weir_loader *l, const section_keys *k,
                          const weir_yaml *y) {
  char names[256] = "";
  size_t count = 0;
  for (const weir_data_form *f; (f = k->forms(count)) != NULL; count++)
    weir_join_name(names, sizeof names, f->name);
  weir_report_begin(l, WEIR_W1010, &y->mark, "source '%.*s' is none of %s",
                    WEIR_SV(y->text), names);
  weir_report_nearest(l, y->text, count, source_name, k);
  weir_report_send(l);
}

/* Finds the section's source; reports one that is missing or unknown. */
static void find_source(weir_loader *l, const weir_yaml *set, section_keys *k) {
  const weir_yaml *y = weir_yaml_get(set, "source");
  const weir_data_form *form = NULL;
  if (y == NULL) {
    weir_report(l, WEIR_W1010, &set->mark, "a data set needs `source`");
    return;
  }
  if (!weir_want_kind(l, y, WEIR_YAML_SCALAR, "source")) return;
  for (size_t i = 0; (form = k->forms(i)) != NULL; i++)
    if (weir_sv_is(y->text, form->name)) break;
  k->form = form;
  if (form == NULL) report_source(l, k, y);
}

/* ---- Files to write */

static void check_save(weir_loader *l, const weir_yaml *vocabulary) {
  const weir_yaml *y = NULL;
  if (vocabulary != NULL && vocabulary->kind == WEIR_YAML_MAP)
    y = weir_yaml_get(vocabulary, "save");
  if (y == NULL || y->kind != WEIR_YAML_SCALAR) return;
  weir_error err = WEIR_ERROR_INIT;
  weir_run_name name = {
      .text = y->text, .key = "save", .plain = y->plain, .mark = &y->mark};
  if (weir_run_name_check(&name, &err) != WEIR_OK) weir_report_error(l, &err);
}

static void check_saves(weir_loader *l, const weir_yaml *set) {
  const weir_yaml *text = weir_yaml_get(set, "text");
  const weir_yaml *columns = weir_yaml_get(set, "vocabulary");
  if (text != NULL && text->kind == WEIR_YAML_MAP)
    check_save(l, weir_yaml_get(text, "vocabulary"));
  if (columns == NULL || columns->kind != WEIR_YAML_MAP) return;
  for (uint32_t i = 0; i < columns->count && weir_loader_going(l); i++)
    check_save(l, columns->entries[i].value);
}

static void check_set(weir_loader *l, const weir_yaml *set) {
  section_keys k = {l->options->data_form, NULL};
  if (!weir_want_kind(l, set, WEIR_YAML_MAP, "a data set")) return;
  if (k.forms == NULL) return;
  find_source(l, set, &k);
  check_keys(l, &k, set);
  check_saves(l, set);
  const weir_yaml *ignore = weir_yaml_get(set, "ignore");
  if (ignore != NULL) weir_want_kind(l, ignore, WEIR_YAML_LIST, "ignore");
}

void weir_section_check_data(weir_loader *l, const weir_yaml *y) {
  if (y == NULL || !weir_want_kind(l, y, WEIR_YAML_MAP, "data")) return;
  for (uint32_t i = 0; i < y->count && weir_loader_going(l); i++) {
    const weir_yaml_entry *e = &y->entries[i];
    if (weir_sv_starts_with(e->key, "x-")) continue;
    if (weir_sv_is(e->key, "root"))
      weir_want_kind(l, e->value, WEIR_YAML_SCALAR, "root");
    else
      check_set(l, e->value);
  }
}
