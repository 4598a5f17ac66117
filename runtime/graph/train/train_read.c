/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/graph/train/train_read.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "runtime/base/diag/nearest.h"
#include "runtime/base/quantity.h"
#include "runtime/base/table.h"
#include "runtime/base/yaml/yaml_scalar.h"
#include "runtime/io/run_folder.h"

/* Maps are read by tables of keys: a row has the key, the kind of its value and
 * the offset of its field, so a misspelt key, a wrong kind and a value out of
 * range are found in one place for all keys. */

/* ---- Findings */

bool weir_train_report_send(weir_train_reader *r) {
  const weir_error *err = &r->diag.error;
  if (r->errors == 0) {
    r->status = err->code;
    weir_error_copy(r->err, err);
  }
  r->errors++;
  if (r->sink != NULL) r->sink->report(r->sink->self, &r->diag);
  return false;
}

void weir_train_report_begin(weir_train_reader *r, weir_error_id id,
                             const weir_mark *at, const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  weir_diag_begin(&r->diag, id, at, fmt, args);
  va_end(args);
}

bool weir_train_report(weir_train_reader *r, weir_error_id id,
                       const weir_mark *at, const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  weir_diag_begin(&r->diag, id, at, fmt, args);
  va_end(args);
  return weir_train_report_send(r);
}

bool weir_train_memory(weir_train_reader *r) {
  if (r->fatal) return false;
  r->fatal = true;
  return weir_train_report(r, WEIR_W6001, NULL,
                           "out of memory while reading `train`");
}

void weir_train_nearest(weir_train_reader *r, weir_sv name, size_t count,
                        weir_sv (*name_at)(const void *self, size_t i),
                        const void *self) {
  weir_sv near = weir_nearest_name(name, count, name_at, self);
  if (near.size > 0)
    weir_hint(&r->diag.error, "did you mean %.*s?", WEIR_SV(near));
}

static weir_sv node_at(const void *self, size_t i) {
  return ((const weir_graph *)self)->nodes[i].name;
}

bool weir_train_no_node(weir_train_reader *r, weir_error_id id,
                        const weir_mark *at, weir_sv name, const char *what) {
  weir_train_report_begin(r, id, at, "%s: the graph has no node '%.*s'", what,
                          WEIR_SV(name));
  weir_train_nearest(r, name, r->graph->node_count, node_at, r->graph);
  return weir_train_report_send(r);
}

/* ---- Scalars */

bool weir_train_want(weir_train_reader *r, const weir_yaml *y,
                     weir_yaml_kind kind, const char *what) {
  if (y->kind == kind) return true;
  return weir_train_report(r, WEIR_W1010, &y->mark, "%s is %s, must be %s",
                           what, weir_yaml_kind_text(y->kind),
                           weir_yaml_kind_text(kind));
}

const weir_graph_param *weir_train_param(const weir_train_reader *r,
                                         weir_sv name) {
  for (uint32_t i = 0; i < r->graph->param_count; i++)
    if (!r->graph->params[i].list &&
        weir_sv_equal(r->graph->params[i].name, name))
      return &r->graph->params[i];
  return NULL;
}

weir_sv weir_train_scalar(const weir_train_reader *r, const weir_yaml *y) {
  const weir_graph_param *p = y->plain ? weir_train_param(r, y->text) : NULL;
  return p != NULL ? p->text : y->text;
}

bool weir_train_number(weir_train_reader *r, const weir_yaml *y,
                       const char *what, double *out) {
  if (!weir_train_want(r, y, WEIR_YAML_SCALAR, what)) return false;
  if (weir_text_float(weir_train_scalar(r, y), out)) return true;
  return weir_train_report(r, WEIR_W1010, &y->mark,
                           "%s is '%.*s', must be a number or a param of one",
                           what, WEIR_SV(y->text));
}

bool weir_train_bool(weir_train_reader *r, const weir_yaml *y, const char *what,
                     bool *out) {
  if (!weir_train_want(r, y, WEIR_YAML_SCALAR, what)) return false;
  weir_sv text = weir_train_scalar(r, y);
  *out = weir_sv_is(text, "true");
  if (*out || weir_sv_is(text, "false")) return true;
  return weir_train_report(r, WEIR_W1010, &y->mark,
                           "%s is '%.*s', must be true or false", what,
                           WEIR_SV(y->text));
}

bool weir_train_every(weir_train_reader *r, const weir_yaml *y,
                      const char *what, weir_every *out) {
  if (!weir_train_want(r, y, WEIR_YAML_SCALAR, what)) return false;
  weir_sv text = weir_train_scalar(r, y), unit;
  double value = 0;
  *out = (weir_every){0};
  if (weir_quantity_time(text, &out->ns) && out->ns > 0) return true;
  if (weir_quantity_split(text, &value, &unit) && value > 0) {
    if (weir_sv_is(unit, "epoch") || weir_sv_is(unit, "epochs")) {
      out->epochs = value;
      return true;
    }
    bool steps =
        unit.size == 0 || weir_sv_is(unit, "steps") || weir_sv_is(unit, "step");
    /* 9e18 is below 2^63, so the conversion is defined. */
    if (steps && value == floor(value) && value < 9e18) {
      out->steps = (uint64_t)value;
      return true;
    }
  }
  return weir_train_report(
      r, WEIR_W1131, &y->mark,
      "%s is '%.*s'; write steps (100), a time (600s) or epochs (1 epoch)",
      what, WEIR_SV(y->text));
}

bool weir_train_texts(weir_train_reader *r, const weir_yaml *y,
                      const char *what, const weir_sv **out, uint32_t *count) {
  const weir_yaml *const *items = &y;
  uint32_t n = 1;
  if (y->kind == WEIR_YAML_LIST) {
    items = y->items;
    n = y->count;
  }
  weir_sv *texts = weir_arena_array(r->arena, n, sizeof *texts);
  if (texts == NULL) return weir_train_memory(r);
  for (uint32_t i = 0; i < n; i++) {
    if (!weir_train_want(r, items[i], WEIR_YAML_SCALAR, what)) return false;
    texts[i] = items[i]->text;
  }
  *out = texts;
  *count = n;
  return true;
}

/* ---- Kinds of keys */

typedef bool (*kind_reader)(weir_train_reader *r, const weir_yaml_entry *e,
                            const weir_train_key *key, void *to);

static bool in_range(weir_train_reader *r, const weir_yaml_entry *e,
                     const weir_train_key *key, double value) {
  if (value >= key->min && (key->max == 0 || value <= key->max)) return true;
  if (key->max == 0)
    return weir_train_report(r, WEIR_W1131, &e->value->mark,
                             "%s is %g, must be %g or more", key->name, value,
                             key->min);
  return weir_train_report(r, WEIR_W1131, &e->value->mark,
                           "%s is %g, must be from %g to %g", key->name, value,
                           key->min, key->max);
}

static bool read_text(weir_train_reader *r, const weir_yaml_entry *e,
                      const weir_train_key *key, void *to) {
  if (!weir_train_want(r, e->value, WEIR_YAML_SCALAR, key->name)) return false;
  *(weir_sv *)to = e->value->text;
  return true;
}

static bool read_path(weir_train_reader *r, const weir_yaml_entry *e,
                      const weir_train_key *key, void *to) {
  if (!read_text(r, e, key, to)) return false;
  weir_run_name name = {.text = e->value->text,
                        .key = key->name,
                        .plain = e->value->plain,
                        .is_single = key->kind == WEIR_TRAIN_FILE,
                        .mark = &e->value->mark};
  weir_error err = WEIR_ERROR_INIT;
  if (weir_run_name_check(&name, &err) == WEIR_OK) return true;
  weir_diag_init(&r->diag, &err);
  return weir_train_report_send(r);
}

static bool count(weir_train_reader *r, const weir_yaml_entry *e,
                  const weir_train_key *key, double most, double *out) {
  if (!weir_train_number(r, e->value, key->name, out)) return false;
  if (*out != floor(*out) || *out > most)
    return weir_train_report(r, WEIR_W1131, &e->value->mark,
                             "%s is %g, must be an integer of at most %.0f",
                             key->name, *out, most);
  return in_range(r, e, key, *out);
}

/* 2^53: numbers are read as doubles, which are exact up to there. */
static bool read_count(weir_train_reader *r, const weir_yaml_entry *e,
                       const weir_train_key *key, void *to) {
  double value = 0;
  if (!count(r, e, key, 9007199254740992.0, &value)) return false;
  *(uint64_t *)to = (uint64_t)value;
  return true;
}

static bool read_count4(weir_train_reader *r, const weir_yaml_entry *e,
                        const weir_train_key *key, void *to) {
  double value = 0;
  if (!count(r, e, key, UINT32_MAX, &value)) return false;
  *(uint32_t *)to = (uint32_t)value;
  return true;
}

static bool read_number(weir_train_reader *r, const weir_yaml_entry *e,
                        const weir_train_key *key, void *to) {
  double value = 0;
  if (!weir_train_number(r, e->value, key->name, &value)) return false;
  if (!isfinite(value))
    return weir_train_report(r, WEIR_W1131, &e->value->mark,
                             "%s must be a finite number", key->name);
  if (!in_range(r, e, key, value)) return false;
  *(double *)to = value;
  return true;
}

static bool read_bool(weir_train_reader *r, const weir_yaml_entry *e,
                      const weir_train_key *key, void *to) {
  return weir_train_bool(r, e->value, key->name, to);
}

static bool read_every(weir_train_reader *r, const weir_yaml_entry *e,
                       const weir_train_key *key, void *to) {
  return weir_train_every(r, e->value, key->name, to);
}

static bool read_time(weir_train_reader *r, const weir_yaml_entry *e,
                      const weir_train_key *key, void *to) {
  if (!weir_train_want(r, e->value, WEIR_YAML_SCALAR, key->name)) return false;
  if (weir_quantity_time(weir_train_scalar(r, e->value), to)) return true;
  return weir_train_report(r, WEIR_W1131, &e->value->mark,
                           "%s is '%.*s'; write a time: 30m, 600s, 1.5h",
                           key->name, WEIR_SV(e->value->text));
}

static bool read_bytes(weir_train_reader *r, const weir_yaml_entry *e,
                       const weir_train_key *key, void *to) {
  if (!weir_train_want(r, e->value, WEIR_YAML_SCALAR, key->name)) return false;
  weir_sv text = weir_train_scalar(r, e->value);
  if (weir_sv_is(text, "none")) {
    *(int64_t *)to = 0;
    return true;
  }
  if (weir_quantity_bytes(text, to)) return true;
  return weir_train_report(r, WEIR_W1131, &e->value->mark,
                           "%s is '%.*s'; write a size, 64MiB, or none",
                           key->name, WEIR_SV(e->value->text));
}

static bool read_submap(weir_train_reader *r, const weir_yaml_entry *e,
                        const weir_train_key *key, void *to) {
  return weir_train_read_map(r, e->value, key->name, key->sub, to);
}

static bool read_choice(weir_train_reader *r, const weir_yaml_entry *e,
                        const weir_train_key *key, void *to) {
  if (!weir_train_want(r, e->value, WEIR_YAML_SCALAR, key->name)) return false;
  weir_sv text = e->value->text;
  for (const char *c = key->choices; *c != '\0';) {
    size_t n = strcspn(c, "|");
    if (weir_sv_equal(text, (weir_sv){c, n})) {
      *(weir_sv *)to = text;
      return true;
    }
    c += n + (c[n] == '|');
  }
  return weir_train_report(r, WEIR_W1131, &e->value->mark,
                           "%s is '%.*s', must be one of %s", key->name,
                           WEIR_SV(text), key->choices);
}

static bool read_custom(weir_train_reader *r, const weir_yaml_entry *e,
                        const weir_train_key *key, void *to) {
  return key->read(r, e, to);
}

static const kind_reader kReaders[] = {
    [WEIR_TRAIN_TEXT] = read_text,     [WEIR_TRAIN_FOLDER] = read_path,
    [WEIR_TRAIN_FILE] = read_path,     [WEIR_TRAIN_COUNT] = read_count,
    [WEIR_TRAIN_COUNT4] = read_count4, [WEIR_TRAIN_NUMBER] = read_number,
    [WEIR_TRAIN_BOOL] = read_bool,     [WEIR_TRAIN_EVERY] = read_every,
    [WEIR_TRAIN_TIME] = read_time,     [WEIR_TRAIN_BYTES] = read_bytes,
    [WEIR_TRAIN_MAP] = read_submap,    [WEIR_TRAIN_CHOICE] = read_choice,
    [WEIR_TRAIN_CUSTOM] = read_custom};
WEIR_TABLE_OF(kReaders, WEIR_TRAIN_KIND_COUNT);

static weir_sv key_at(const void *self, size_t i) {
  return weir_sv_from(((const weir_train_key *)self)[i].name);
}

bool weir_train_read_map(weir_train_reader *r, const weir_yaml *y,
                         const char *where, const weir_train_key *keys,
                         void *target) {
  if (!weir_train_want(r, y, WEIR_YAML_MAP, where)) return false;
  bool ok = true;
  size_t known = 0;
  while (keys[known].name != NULL) known++;
  for (uint32_t i = 0; i < y->count && !r->fatal; i++) {
    const weir_yaml_entry *e = &y->entries[i];
    if (weir_sv_starts_with(e->key, "x-")) continue;
    size_t k = 0;
    while (k < known && !weir_sv_is(e->key, keys[k].name)) k++;
    if (k < known) {
      void *to = (char *)target + keys[k].offset;
      ok = kReaders[keys[k].kind](r, e, &keys[k], to) && ok;
      continue;
    }
    weir_train_report_begin(r, WEIR_W1009, &e->key_mark,
                            "unknown key '%.*s' in %s", WEIR_SV(e->key), where);
    weir_train_nearest(r, e->key, known, key_at, keys);
    ok = weir_train_report_send(r);
  }
  return ok && !r->fatal;
}
