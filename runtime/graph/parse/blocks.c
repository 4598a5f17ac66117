/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/graph/parse/blocks.h"

#include <assert.h>

#include "runtime/base/table.h"
#include "runtime/base/yaml/yaml_scalar.h"
#include "runtime/graph/load/keys.h"
#include "runtime/graph/load/params.h"
#include "runtime/graph/load/report.h"
#include "runtime/graph/parse/body.h"
#include "runtime/graph/parse/inputs.h"
#include "runtime/graph/parse/items.h"
#include "runtime/graph/parse/lex.h"
#include "runtime/graph/parse/updates.h"

/* Blocks: typed functions of the language. Signatures of all modules first,
 * bodies later: a call is bound against the signature of its block, which may
 * stand further down or in another file. */

const char *const weir_block_keys[] = {"in",  "attrs",  "nodes",
                                       "out", "update", NULL};
static const char *const kAttrKinds[] = {
    [WEIR_BLOCK_INT] = "int",     [WEIR_BLOCK_FLOAT] = "float",
    [WEIR_BLOCK_BOOL] = "bool",   [WEIR_BLOCK_STRING] = "string",
    [WEIR_BLOCK_DTYPE] = "dtype", [WEIR_BLOCK_INTS] = "ints",
    [WEIR_BLOCK_OP] = "op"};
WEIR_TABLE_OF(kAttrKinds, WEIR_BLOCK_ATTR_COUNT);

/* Inputs or attributes of one block. */
enum { WEIR_BLOCK_ARGUMENTS = 64 };

static bool few(weir_loader *l, const weir_yaml *y, const char *what) {
  return y->count <= WEIR_BLOCK_ARGUMENTS ||
         weir_report(l, WEIR_W1118, &y->mark, "a block has at most %d %s",
                     WEIR_BLOCK_ARGUMENTS, what);
}

static bool port(weir_loader *l, weir_block *b, weir_sv name,
                 const weir_mark *mark, const weir_yaml *type) {
  weir_block_port *p = &b->inputs[b->input_count++];
  *p = (weir_block_port){.name = name, .mark = *mark};
  if (!weir_is_name(name))
    return weir_report(l, WEIR_W1106, mark, "'%.*s' is not a name",
                       WEIR_SV(name));
  uint32_t offset = 0;
  if (type == NULL || weir_yaml_null(type)) return true;
  return weir_want_kind(l, type, WEIR_YAML_SCALAR, "an input's type") &&
         weir_type_parse(l, b->module, b, type, &offset, &p->type);
}

static bool ports(weir_loader *l, weir_block *b) {
  const weir_yaml *in = weir_yaml_get(b->yaml, "in");
  if (in == NULL) return true;
  if (in->kind == WEIR_YAML_SCALAR)
    return weir_want_kind(l, in, WEIR_YAML_LIST, "in");
  if (!few(l, in, "inputs")) return false;
  b->inputs = weir_arena_array(&l->work, in->count, sizeof *b->inputs);
  if (b->inputs == NULL) return weir_report_memory(l);
  bool ok = true;
  for (uint32_t i = 0; i < in->count; i++) {
    if (in->kind == WEIR_YAML_MAP) {
      const weir_yaml_entry *e = &in->entries[i];
      ok = port(l, b, e->key, &e->key_mark, e->value) && ok;
    } else if (!weir_want_kind(l, in->items[i], WEIR_YAML_SCALAR,
                               "an input's name")) {
      ok = false;
    } else {
      ok = port(l, b, in->items[i]->text, &in->items[i]->mark, NULL) && ok;
    }
  }
  return ok;
}

static weir_sv trim(weir_sv s) {
  while (s.size > 0 && s.data[0] == ' ') s.data++, s.size--;
  while (s.size > 0 && s.data[s.size - 1] == ' ') s.size--;
  return s;
}

static weir_sv kind_at(const void *self, size_t i) {
  return weir_sv_from(((const char *const *)self)[i]);
}

/* The default behind `=`: a scalar or flow list, read as YAML, so that it is
 * written like a param. A plain word stays one: relu, f32. */
static bool attr_default(weir_loader *l, const weir_yaml *y, weir_sv text,
                         weir_block_attr *a) {
  const weir_yaml *root = NULL;
  weir_error err = WEIR_ERROR_INIT;
  weir_status s = weir_yaml_parse(text, y->mark.file, &l->options->limits,
                                  &l->work, NULL, &root, &err);
  if (s == WEIR_RESOURCE_EXHAUSTED && err.id[1] == '6')
    return weir_report_memory(l);
  if (s != WEIR_OK || !weir_const_from_yaml(l, root, &a->fallback))
    return weir_report(l, WEIR_W1118, &y->mark,
                       "the default '%.*s' is no value", WEIR_SV(text));
  if (a->fallback.kind == WEIR_CONST_STRING && root->plain)
    a->fallback.kind = WEIR_CONST_WORD;
  a->has_default = true;
  return true;
}

/* `int` or `int = 3`. */
static bool attr(weir_loader *l, const weir_yaml_entry *e, weir_block_attr *a) {
  *a = (weir_block_attr){.name = e->key, .mark = e->key_mark};
  if (!weir_is_name(e->key))
    return weir_report(l, WEIR_W1106, &e->key_mark, "'%.*s' is not a name",
                       WEIR_SV(e->key));
  const weir_yaml *y = e->value;
  if (!weir_want_kind(l, y, WEIR_YAML_SCALAR, "an attribute's kind"))
    return false;
  const char *equals = memchr(y->text.data, '=', y->text.size);
  weir_sv kind = y->text;
  if (equals != NULL) kind.size = (size_t)(equals - y->text.data);
  kind = trim(kind);
  uint32_t k = 0;
  while (k < WEIR_BLOCK_ATTR_COUNT && !weir_sv_is(kind, kAttrKinds[k])) k++;
  if (k == WEIR_BLOCK_ATTR_COUNT) {
    weir_report_begin(l, WEIR_W1118, &y->mark,
                      "'%.*s' is no kind of attribute: int float bool string "
                      "dtype ints op",
                      WEIR_SV(kind));
    weir_report_nearest(l, kind, k, kind_at, kAttrKinds);
    return weir_report_send(l);
  }
  a->kind = (weir_block_attr_kind)k;
  if (equals == NULL) return true;
  size_t from = (size_t)(equals - y->text.data) + 1;
  return attr_default(
      l, y, trim((weir_sv){y->text.data + from, y->text.size - from}), a);
}

static bool attrs(weir_loader *l, weir_block *b) {
  const weir_yaml *y = weir_yaml_get(b->yaml, "attrs");
  if (y == NULL) return true;
  if (!weir_want_kind(l, y, WEIR_YAML_MAP, "attrs")) return false;
  if (!few(l, y, "attributes")) return false;
  b->attrs = weir_arena_array(&l->work, y->count, sizeof *b->attrs);
  if (b->attrs == NULL) return weir_report_memory(l);
  bool ok = true;
  for (uint32_t i = 0; i < y->count; i++)
    ok = attr(l, &y->entries[i], &b->attrs[b->attr_count++]) && ok;
  return ok;
}

static bool out_names(weir_loader *l, weir_block *b) {
  const weir_yaml *out = weir_yaml_get(b->yaml, "out");
  if (out == NULL)
    return weir_report(l, WEIR_W1118, &b->mark, "block %.*s has no `out`",
                       WEIR_SV(b->name));
  b->out_count = out->kind == WEIR_YAML_SCALAR ? 1 : out->count;
  b->out_names = weir_arena_array(&l->work, b->out_count, sizeof(weir_sv));
  if (b->out_names == NULL) return weir_report_memory(l);
  if (out->kind == WEIR_YAML_MAP)
    for (uint32_t i = 0; i < out->count; i++)
      b->out_names[i] = out->entries[i].key;
  return true;
}

bool weir_blocks_declare(weir_loader *l, weir_module *m) {
  const weir_yaml *y = weir_yaml_get(m->root, "blocks");
  if (y == NULL) return true;
  if (!weir_want_kind(l, y, WEIR_YAML_MAP, "blocks")) return false;
  m->blocks = weir_arena_array(&l->work, y->count, sizeof *m->blocks);
  if (m->blocks == NULL) return weir_report_memory(l);
  for (uint32_t i = 0; i < y->count && weir_loader_going(l); i++) {
    const weir_yaml_entry *e = &y->entries[i];
    weir_block *b = &m->blocks[m->block_count++];
    b->name = e->key;
    b->mark = e->key_mark;
    b->module = m;
    b->yaml = e->value;
    weir_map_init(&b->body.names, l->alloc);
    if (!weir_is_name(e->key))
      weir_report(l, WEIR_W1106, &e->key_mark, "'%.*s' is not a name",
                  WEIR_SV(e->key));
    b->broken =
        !weir_want_kind(l, e->value, WEIR_YAML_MAP, "a block") ||
        !weir_check_keys(l, e->value, "a block", weir_block_keys, false) ||
        !ports(l, b) || !attrs(l, b) || !out_names(l, b);
    if (!weir_map_put(&m->block_names, e->key, i, NULL))
      return weir_report_memory(l);
  }
  return weir_loader_going(l);
}

static bool bind_signature(weir_loader *l, weir_module *m, weir_block *b) {
  bool ok = true;
  for (uint32_t i = 0; i < b->input_count; i++) {
    weir_body_name input = {b->inputs[i].name, &b->inputs[i].mark,
                            WEIR_BIND_INPUT | i};
    ok = weir_body_bind(l, m, b, &b->body, &input) && ok;
  }
  for (uint32_t i = 0; i < b->attr_count; i++) {
    weir_body_name attr = {b->attrs[i].name, &b->attrs[i].mark,
                           WEIR_BIND_ATTR | i};
    ok = weir_body_bind(l, m, b, &b->body, &attr) && ok;
  }
  return ok;
}

/* The results are hidden items at the end of the body: an expression of `out`
 * is evaluated like any node. */
static bool add_outs(weir_loader *l, weir_module *m, weir_block *b) {
  const weir_yaml *out = weir_yaml_get(b->yaml, "out");
  for (uint32_t i = 0; i < b->out_count && weir_loader_going(l); i++) {
    const weir_yaml *y = out->kind == WEIR_YAML_SCALAR ? out
                         : out->kind == WEIR_YAML_LIST ? out->items[i]
                                                       : out->entries[i].value;
    assert(b->body.count < b->body.capacity);
    weir_item *item = &b->body.items[b->body.count++];
    *item =
        (weir_item){.kind = WEIR_ITEM_CALL, .mark = &y->mark, .hidden = true};
    if (!weir_want_kind(l, y, WEIR_YAML_SCALAR, "a result") ||
        !weir_item_call(l, m, b, y, item))
      item->kind = WEIR_ITEM_BROKEN;
  }
  return weir_loader_going(l);
}

static bool parse_block(weir_loader *l, weir_module *m, weir_block *b) {
  const weir_yaml *nodes = weir_yaml_get(b->yaml, "nodes");
  uint32_t count = nodes != NULL ? nodes->count : 0;
  const weir_yaml *update = weir_yaml_get(b->yaml, "update");
  if (nodes != NULL && !weir_want_kind(l, nodes, WEIR_YAML_MAP, "nodes"))
    return false;
  count += weir_updates_count(update);
  if (!weir_body_begin(l, &b->body, count + b->out_count)) return false;
  if (!bind_signature(l, m, b)) return false;
  if (nodes != NULL) weir_body_add_nodes(l, m, b, nodes, &b->body);
  weir_updates_parse(l, m, b, update, &b->body);
  return add_outs(l, m, b);
}

bool weir_blocks_parse(weir_loader *l, weir_module *m) {
  for (uint32_t i = 0; i < m->block_count && weir_loader_going(l); i++) {
    weir_block *b = &m->blocks[i];
    if (!b->broken) b->broken = !parse_block(l, m, b);
  }
  return weir_loader_going(l);
}
