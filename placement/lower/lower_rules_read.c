/* SPDX-License-Identifier: Apache-2.0 */
#include "placement/lower/lower_rules_read.h"

#include <string.h>

#include "placement/problem.h"
#include "runtime/base/yaml/yaml_scalar.h"
#include "runtime/graph/pattern.h"

/* Reads rules and finds the first one for a node.
 *
 * The first rule in the list counts, so of rules with one text the first is
 * kept in a table, and a node's rule is the least number among those that its
 * tables give and those that have to be tried. So a hundred thousand rules that
 * name a node or a scope each cost a node a few look-ups, not a hundred
 * thousand comparisons. */

/* ---- Reading */

static weir_status read_prefer(const weir_yaml *y, weir_error *err) {
  if (y->kind != WEIR_YAML_LIST || y->count == 0)
    return weir_fail(err, WEIR_W3020, &y->mark,
                     "`prefer` is a list of devices, as [gpu, cpu]");
  for (uint32_t i = 0; i < y->count; i++) {
    const weir_yaml *item = y->items[i];
    weir_device_name name;
    weir_error why = WEIR_ERROR_INIT;
    if (item->kind != WEIR_YAML_SCALAR)
      return weir_fail(err, WEIR_W3020, &item->mark,
                       "`prefer` is a list of devices, as [gpu, cpu]");
    if (weir_device_name_parse(item->text, &name, NULL, &why) != WEIR_OK)
      return weir_fail(err, WEIR_W1115, &item->mark, "%s", why.message);
  }
  return WEIR_OK;
}

static weir_status read_device(const weir_yaml *y, weir_lower_rule *r,
                               weir_error *err) {
  weir_error why = WEIR_ERROR_INIT;
  if (y->kind != WEIR_YAML_SCALAR)
    return weir_fail(err, WEIR_W3020, &y->mark,
                     "`device` is the name of a device, as /job:ps");
  r->has_device = true;
  if (weir_device_name_parse(y->text, &r->device, NULL, &why) != WEIR_OK)
    return weir_fail(err, WEIR_W1115, &y->mark, "%s", why.message);
  return WEIR_OK;
}

static weir_status read_match(const weir_yaml *y, weir_lower_rule *r,
                              weir_error *err) {
  if (y->kind != WEIR_YAML_SCALAR || y->text.size == 0)
    return weir_fail(err, WEIR_W3020, &y->mark,
                     "`match` is one pattern: a name, op:matmul or kind:var");
  r->match = y->text;
  if (weir_sv_starts_with(r->match, "kind:") &&
      !weir_sv_is(r->match, "kind:var"))
    return weir_fail(err, WEIR_W3020, &y->mark,
                     "`match` knows one kind: kind:var");
  return WEIR_OK;
}

/* `with` alone says where the nodes are. */
static weir_status read_with(const weir_yaml *y, const weir_yaml *rule,
                             weir_lower_rule *r, weir_error *err) {
  static const char *const others[] = {"device", "prefer", "balance", "soft"};
  if (y->kind != WEIR_YAML_SCALAR || y->text.size == 0)
    return weir_fail(err, WEIR_W3020, &y->mark, "`with` is the name of a node");
  for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
    const weir_yaml *other = weir_yaml_get(rule, others[i]);
    if (other == NULL) continue;
    weir_status s = weir_fail(err, WEIR_W3020, &other->mark,
                              "a rule with `with` has no `%s`", others[i]);
    weir_hint(err, "a rule for %.*s says where both are", WEIR_SV(y->text));
    return s;
  }
  r->with = y->text;
  return WEIR_OK;
}

static weir_status read_rule(const weir_yaml *y, weir_lower_rule *r,
                             weir_error *err) {
  *r = (weir_lower_rule){.match = WEIR_SV_LIT("*"), .mark = y->mark};
  const weir_yaml *match = weir_yaml_get(y, "match");
  const weir_yaml *device = weir_yaml_get(y, "device");
  const weir_yaml *soft = weir_yaml_get(y, "soft");
  const weir_yaml *balance = weir_yaml_get(y, "balance");
  const weir_yaml *with = weir_yaml_get(y, "with");
  r->prefer = weir_yaml_get(y, "prefer");
  if (match != NULL) WEIR_TRY(read_match(match, r, err));
  if (with != NULL) WEIR_TRY(read_with(with, y, r, err));
  if (device != NULL) WEIR_TRY(read_device(device, r, err));
  if (soft != NULL && !weir_yaml_bool(soft, &r->soft))
    return weir_fail(err, WEIR_W3020, &soft->mark,
                     "`soft` is true or false, not '%.*s'",
                     WEIR_SV(soft->text));
  if (balance != NULL) {
    r->balance =
        balance->kind == WEIR_YAML_SCALAR && weir_sv_is(balance->text, "bytes");
    if (!r->balance)
      return weir_fail(err, WEIR_W3020, &balance->mark,
                       "`balance` knows one way: bytes");
  }
  return r->prefer == NULL ? WEIR_OK : read_prefer(r->prefer, err);
}

/* ---- The index */

static bool is_wild(char c) {
  return c == '*' || c == '?';
}

/* Bytes of |text| before its first wildcard. */
static size_t plain_size(weir_sv text) {
  size_t n = 0;
  while (n < text.size && !is_wild(text.data[n])) n++;
  return n;
}

static bool is_op(weir_sv text) {
  return weir_sv_starts_with(text, "op:");
}

static weir_status add_to_index(weir_lower_rules *r, uint32_t at,
                                weir_error *err) {
  weir_sv text = r->items[at].match;
  size_t plain = plain_size(text);
  bool ok;
  if (plain == text.size) {
    ok = weir_map_put(&r->whole, text, at, NULL);
  } else if (plain + 1 == text.size && text.data[plain] == '*' && plain < 256 &&
             !is_op(text)) {
    r->sizes[plain >> 6] |= UINT64_C(1) << (plain & 63);
    ok = weir_map_put(&r->beginning, (weir_sv){text.data, plain}, at, NULL);
  } else {
    ok = weir_vec_push(r->alloc, &r->others, at);
  }
  return ok ? WEIR_OK : weir_fail_memory(err, sizeof at);
}

weir_status weir_lower_rules_read(const weir_allocator *alloc,
                                  const weir_yaml *y, weir_lower_rules *out,
                                  weir_error *err) {
  *out = (weir_lower_rules){.alloc = alloc};
  weir_map_init(&out->whole, alloc);
  weir_map_init(&out->beginning, alloc);
  if (y == NULL || y->kind != WEIR_YAML_LIST) return WEIR_OK;
  out->items =
      weir_alloc_array(alloc, (size_t)y->count + 1, sizeof *out->items);
  if (out->items == NULL)
    return weir_fail_memory(err, y->count * sizeof *out->items);
  for (; out->count < y->count; out->count++) {
    WEIR_TRY(read_rule(y->items[out->count], &out->items[out->count], err));
    WEIR_TRY(add_to_index(out, out->count, err));
  }
  return WEIR_OK;
}

void weir_lower_rules_release(weir_lower_rules *r) {
  weir_map_release(&r->whole);
  weir_map_release(&r->beginning);
  weir_vec_free(r->alloc, &r->others);
  weir_free(r->alloc, r->items);
}

enum { OP_BYTES = 128 }; /* of "op:" and the name of an op */

/* ---- Use */

bool weir_place_pattern_matches(weir_sv pattern, const weir_node *node) {
  if (weir_sv_is(pattern, "kind:var"))
    return node->op->instr == WEIR_INSTR_VAR_READ;
  if (is_op(pattern))
    return weir_pattern_fits((weir_sv){pattern.data + 3, pattern.size - 3},
                             weir_sv_from(node->op->name));
  return weir_pattern_fits(pattern, node->name);
}

static uint32_t find_whole(const weir_lower_rules *r, weir_sv text,
                           uint32_t best) {
  uint32_t at = weir_map_get(&r->whole, text);
  return at < best ? at : best;
}

/* A name that looks like another form is none: its rule counts by that form. */
static bool is_form(weir_sv text) {
  return is_op(text) || weir_sv_is(text, "kind:var");
}

uint32_t weir_lower_rules_find(const weir_lower_rules *r,
                               const weir_node *node) {
  char op[OP_BYTES] = "op:";
  uint32_t best = WEIR_PLACE_NONE;
  size_t size = strlen(node->op->name);
  if (r->whole.count > 0) {
    if (!is_form(node->name)) best = find_whole(r, node->name, best);
    if (size < sizeof op - 3) {
      memcpy(op + 3, node->op->name, size);
      best = find_whole(r, (weir_sv){op, size + 3}, best);
    }
    if (node->op->instr == WEIR_INSTR_VAR_READ)
      best = find_whole(r, WEIR_SV_LIT("kind:var"), best);
  }
  for (size_t n = 0; r->beginning.count > 0 && n <= node->name.size && n < 256;
       n++) {
    if (((r->sizes[n >> 6] >> (n & 63)) & 1) == 0) continue;
    uint32_t at = weir_map_get(&r->beginning, (weir_sv){node->name.data, n});
    if (at < best) best = at;
  }
  for (size_t i = 0; i < r->others.count && r->others.items[i] < best; i++)
    if (weir_place_pattern_matches(r->items[r->others.items[i]].match, node))
      best = r->others.items[i];
  return best;
}
