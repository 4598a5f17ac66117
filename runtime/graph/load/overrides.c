/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/graph/load/overrides.h"

#include <stdio.h>

#include "runtime/base/yaml/yaml_scalar.h"
#include "runtime/graph/load/report.h"

/* A tree is immutable, and aliases share parts of it. So the maps and lists
 * along a path are copied, each with the slot that the path goes through; what
 * stands beside the path is shared with the old tree. A path of d parts costs
 * the entries of d collections. */

typedef struct override {
  const weir_param_value *from;
  const weir_yaml *value;
} override;

/* Takes the first part of |*rest|, without its escapes. */
static bool next_part(weir_loader *l, weir_sv *rest, weir_sv *out_part) {
  char *text = weir_arena_string(l->arena, rest->data, rest->size);
  size_t from = 0, to = 0;
  if (text == NULL) return weir_report_memory(l);
  for (; from < rest->size && rest->data[from] != '.'; from++) {
    if (rest->data[from] == '\\' && from + 1 < rest->size) from++;
    text[to++] = rest->data[from];
  }
  *out_part = (weir_sv){text, to};
  rest->data += from;
  rest->size -= from;
  return true;
}

static bool refuse(weir_loader *l, const override *o, weir_sv part,
                   const char *why) {
  return weir_report(l, WEIR_W1137, NULL, "--set %.*s: '%.*s' %s",
                     WEIR_SV(o->from->name), WEIR_SV(part), why);
}

static const weir_yaml **item(weir_loader *l, const override *o, weir_yaml *y,
                              weir_sv part) {
  weir_yaml number = {.kind = WEIR_YAML_SCALAR, .plain = true, .text = part};
  int64_t i = -1;
  if (!weir_yaml_int(&number, &i) || i < 0 || i >= y->count)
    return refuse(l, o, part, "is no place in the list there"), NULL;
  const weir_yaml **items =
      weir_arena_array(&l->trees, y->count, sizeof(const weir_yaml *));
  if (items == NULL) return weir_report_memory(l), NULL;
  memcpy(items, y->items, y->count * sizeof *items);
  y->items = items;
  return &items[i];
}

static const weir_yaml **entry(weir_loader *l, const override *o, weir_yaml *y,
                               weir_sv part) {
  weir_yaml_entry *entries =
      weir_arena_array(&l->trees, (size_t)y->count + 1, sizeof *entries);
  if (entries == NULL) return weir_report_memory(l), NULL;
  if (y->count > 0) memcpy(entries, y->entries, y->count * sizeof *entries);
  y->entries = entries;
  for (uint32_t i = 0; i < y->count; i++)
    if (weir_sv_equal(entries[i].key, part)) return &entries[i].value;
  entries[y->count] = (weir_yaml_entry){part, o->value->mark, NULL};
  return &entries[y->count++].value;
}

/* The slot that |part| names below the value in |slot|, which becomes a copy.
 * Nothing, or null, becomes a map. NULL: reported. */
static const weir_yaml **descend(weir_loader *l, const override *o,
                                 const weir_yaml **slot, weir_sv part) {
  const weir_yaml *was = *slot;
  bool none = was == NULL || weir_yaml_null(was);
  if (part.size == 0) return refuse(l, o, part, "is an empty key"), NULL;
  if (!none && was->kind == WEIR_YAML_SCALAR)
    return refuse(l, o, part, "stands below a value that has no keys"), NULL;
  weir_yaml *is = weir_arena_array(&l->trees, 1, sizeof *is);
  if (is == NULL) return weir_report_memory(l), NULL;
  if (none)
    *is = (weir_yaml){.kind = WEIR_YAML_MAP, .mark = o->value->mark};
  else
    *is = *was;
  *slot = is;
  return is->kind == WEIR_YAML_LIST ? item(l, o, is, part)
                                    : entry(l, o, is, part);
}

static bool put(weir_loader *l, weir_module *main, const override *o) {
  const weir_yaml **slot = &main->root;
  uint32_t most = l->options->limits.depth, depth = 0;
  weir_sv rest = o->from->name, part = {0};
  if (most == 0) most = 64;
  for (bool more = true; more; depth++) {
    if (!next_part(l, &rest, &part)) return false;
    if (depth == most) return refuse(l, o, part, "is nested too deeply");
    slot = descend(l, o, slot, part);
    if (slot == NULL) return false;
    more = rest.size > 0;
    if (more) rest.data++, rest.size--; /* the dot */
  }
  *slot = o->value;
  return true;
}

static bool apply(weir_loader *l, weir_module *main,
                  const weir_param_value *from) {
  override o = {from, NULL};
  weir_error err = WEIR_ERROR_INIT;
  char file[128]; /* what messages call it */
  snprintf(file, sizeof file, "--set %.*s", WEIR_SV(from->name));
  weir_yaml_request request = {.text = from->text,
                               .file = file,
                               .limits = &l->options->limits,
                               .tree = &l->trees,
                               .texts = l->arena};
  weir_status s = weir_yaml_parse_into(&request, NULL, &o.value, &err);
  if (s == WEIR_OK) return put(l, main, &o);
  if (s == WEIR_RESOURCE_EXHAUSTED && err.id[1] == '6')
    return weir_report_memory(l);
  return weir_report_error(l, &err);
}

bool weir_overrides_apply(weir_loader *l, weir_module *main) {
  for (size_t i = 0; i < l->options->override_count; i++)
    if (!apply(l, main, &l->options->overrides[i])) return false;
  return true;
}
