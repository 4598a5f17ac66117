/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/graph/load/loader.h"

/* `data:`: which keys there are and what form their values have. What they
 * mean is runtime/train/data/data_spec.c's business; files are not opened here.
 */

static const char *const kSourceNames[] = {"memory", "npy",      "npz",  "idx",
                                           "csv",    "tfrecord", "text", NULL};
static const char *const kSetKeys[] = {
    "source",    "files",     "values",    "columns",     "features",
    "ignore",    "header",    "delimiter", "quote",       "text",
    "normalise", "normalize", "bucketize", "hash_bucket", "vocabulary",
    "window",    "map",       "skip",      "take",        "shard",
    "shuffle",   "batch",     "remainder", "repeat",      "prefetch",
    "memory",    NULL};
static const char *const kTextKeys[] = {"level", "vocabulary", "end_of_line",
                                        NULL};
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

/* A key of a set whose value may be a map. */
typedef struct nested {
  const char *key;
  const char *const *keys; /* of the map; NULL: any */
  bool by_column;          /* a map of columns, whose values may be maps */
  bool must_be_map;
} nested;

static const nested kNested[] = {
    {"files", NULL, false, false},
    {"values", NULL, false, true},
    {"text", kTextKeys, false, true},
    {"window", kWindowKeys, false, true},
    {"map", kMapKeys, false, false},
    {"shuffle", kShuffleKeys, false, false},
    {"columns", kColumnKeys, true, false},
    {"features", kColumnKeys, true, true},
    {"normalise", kNormaliseKeys, true, true},
    {"normalize", kNormaliseKeys, true, true},
    {"bucketize", kBucketizeKeys, true, true},
    {"hash_bucket", kHashKeys, true, true},
    {"vocabulary", kVocabularyKeys, true, true},
};

static void check_nested(weir_loader *l, const nested *n, const weir_yaml *y) {
  if (n->must_be_map && !weir_want_kind(l, y, WEIR_YAML_MAP, n->key)) return;
  if (y->kind != WEIR_YAML_MAP || n->keys == NULL) return;
  if (!n->by_column) {
    weir_check_keys(l, y, n->key, n->keys, false);
    return;
  }
  for (uint32_t i = 0; i < y->count && weir_loader_going(l); i++)
    if (y->entries[i].value->kind == WEIR_YAML_MAP)
      weir_check_keys(l, y->entries[i].value, n->key, n->keys, false);
}

static weir_sv source_at(const void *self, size_t i) {
  (void)self;
  return weir_sv_from(kSourceNames[i]);
}

static void check_source(weir_loader *l, const weir_yaml *set) {
  const weir_yaml *y = weir_yaml_get(set, "source");
  size_t count = 0;
  if (y == NULL) {
    weir_report(l, WEIR_W1010, &set->mark, "a data set needs `source`");
    return;
  }
  if (!weir_want_kind(l, y, WEIR_YAML_SCALAR, "source")) return;
  for (; kSourceNames[count] != NULL; count++)
    if (weir_sv_is(y->text, kSourceNames[count])) return;
  weir_report_begin(l, WEIR_W1010, &y->mark,
                    "source '%.*s' is none of memory, npy, npz, idx, csv, "
                    "tfrecord, text",
                    WEIR_SV(y->text));
  weir_report_nearest(l, y->text, count, source_at, NULL);
  weir_report_send(l);
}

static void check_set(weir_loader *l, const weir_yaml *set) {
  if (!weir_want_kind(l, set, WEIR_YAML_MAP, "a data set")) return;
  weir_check_keys(l, set, "a data set", kSetKeys, true);
  check_source(l, set);
  for (size_t i = 0; i < sizeof kNested / sizeof kNested[0]; i++) {
    const weir_yaml *y = weir_yaml_get(set, kNested[i].key);
    if (y != NULL && weir_loader_going(l)) check_nested(l, &kNested[i], y);
  }
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
