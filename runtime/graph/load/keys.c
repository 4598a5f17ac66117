/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/graph/load/keys.h"

#include "runtime/graph/load/loader.h"
#include "runtime/graph/load/report.h"

static weir_sv known_at(const void *self, size_t i) {
  return weir_sv_from(((const char *const *)self)[i]);
}

static void hint_foreign(weir_loader *l, const weir_foreign_key *keys,
                         weir_sv key) {
  for (; keys != NULL && keys->name != NULL; keys++)
    if (weir_sv_is(key, keys->name))
      weir_hint(&l->diag.error, "%s", keys->hint);
}

static bool check_keys(weir_loader *l, const weir_yaml *map, const char *where,
                       const char *const *known, bool extensions,
                       const weir_foreign_key *foreign) {
  bool ok = true;
  size_t count = 0;
  while (known[count] != NULL) count++;
  for (uint32_t i = 0; i < map->count; i++) {
    const weir_yaml_entry *e = &map->entries[i];
    if (extensions && weir_sv_starts_with(e->key, "x-")) continue;
    size_t k = 0;
    while (k < count && !weir_sv_is(e->key, known[k])) k++;
    if (k < count) continue;
    weir_report_begin(l, WEIR_W1009, &e->key_mark, "unknown key '%.*s' in %s",
                      WEIR_SV(e->key), where);
    weir_report_nearest(l, e->key, count, known_at, known);
    hint_foreign(l, foreign, e->key);
    ok = weir_report_send(l);
  }
  return ok;
}

bool weir_check_keys(weir_loader *l, const weir_yaml *map, const char *where,
                     const char *const *known, bool extensions) {
  return check_keys(l, map, where, known, extensions, NULL);
}

bool weir_check_keys_with(weir_loader *l, const weir_yaml *map,
                          const char *where, const char *const *known,
                          const weir_foreign_key *foreign) {
  return check_keys(l, map, where, known, true, foreign);
}

bool weir_want_kind(weir_loader *l, const weir_yaml *y, weir_yaml_kind kind,
                    const char *what) {
  if (y->kind == kind) return true;
  return weir_report(l, WEIR_W1010, &y->mark, "%s is %s, must be %s", what,
                     weir_yaml_kind_text(y->kind), weir_yaml_kind_text(kind));
}
