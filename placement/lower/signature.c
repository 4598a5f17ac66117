/* SPDX-License-Identifier: Apache-2.0 */
/* Signatures of units: the key of measured costs (signature.h).
 *
 * A signature holds all that a kernel's time depends on and nothing else: names
 * of nodes are left out, so that a cost measured in one graph serves another.
 * Operands are numbered in the order of their first use, which makes the text
 * of a group independent of value numbers. Cost: O(text); a group's operands
 * are looked up one by one, O(members * inputs). */
#include "placement/lower/signature.h"

#include <assert.h>
#include <inttypes.h>

#include "placement/lower/cost_file.h"
#include "runtime/base/map.h"

/* ---- Values known before the run */

/* A variable is, unless some node assigns it. */
static void mark_variables(const weir_graph *g, bool *known) {
  for (weir_node_id id = 0; id < g->node_count; id++)
    if (g->nodes[id].op->instr == WEIR_INSTR_VAR_READ)
      known[g->nodes[id].first_output] = true;
  for (weir_node_id id = 0; id < g->node_count; id++) {
    const weir_node *n = &g->nodes[id];
    if (n->op->instr == WEIR_INSTR_VAR_COMMIT)
      known[g->nodes[g->values[n->inputs[0]].node].first_output] = false;
  }
}

static bool folds(const weir_signer *s, const weir_node *n) {
  if (n->body_count > 0 ||
      (n->op->flags & (WEIR_OP_RANDOM | WEIR_OP_EFFECT)) != 0)
    return false;
  if (n->op->instr != WEIR_INSTR_KERNEL) return false;
  for (uint32_t i = 0; i < n->input_count; i++)
    if (n->inputs[i] != WEIR_NO_VALUE && !s->known[n->inputs[i]]) return false;
  return true;
}

static void mark_known(weir_signer *s) {
  const weir_graph *g = s->graph;
  mark_variables(g, s->known);
  for (weir_node_id id = 0; id < g->node_count; id++) {
    const weir_node *n = &g->nodes[id];
    bool constant = n->op->instr == WEIR_INSTR_CONST || folds(s, n);
    for (uint32_t i = 0; i < n->output_count; i++)
      if (constant || g->values[n->first_output + i].known != NULL)
        s->known[n->first_output + i] = true;
    for (uint32_t i = 0; i < n->input_count; i++)
      if (n->inputs[i] != WEIR_NO_VALUE) s->read[n->inputs[i]] = true;
  }
  for (uint32_t i = 0; i < g->output_count; i++)
    s->read[g->outputs[i].value] = true;
}

weir_status weir_signer_create(const weir_allocator *alloc,
                               const weir_graph *graph, weir_signer *s,
                               weir_error *err) {
  size_t n = (size_t)graph->value_count + 1;
  *s = (weir_signer){.alloc = alloc, .graph = graph};
  s->known = weir_alloc_array(alloc, n, sizeof *s->known);
  s->read = weir_alloc_array(alloc, n, sizeof *s->read);
  if (s->known == NULL || s->read == NULL) {
    weir_signer_release(s);
    return weir_fail_memory(err, n * sizeof *s->known);
  }
  mark_known(s);
  return WEIR_OK;
}

void weir_signer_release(weir_signer *s) {
  weir_free(s->alloc, s->known);
  weir_free(s->alloc, s->read);
  s->known = s->read = NULL;
}

/* ---- Text. Bytes that a line of the cost file must not hold become '?'. */

static void add_clean(weir_strbuf *out, weir_sv text) {
  for (size_t i = 0; i < text.size; i++) {
    bool plain = text.data[i] >= ' ' && text.data[i] < 0x7f;
    weir_strbuf_append(out, plain ? &text.data[i] : "?", 1);
  }
}

static void add_dims(weir_strbuf *out, const weir_dim *dims, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    weir_strbuf_text(out, i > 0 ? "," : "");
    if (weir_dim_known(dims[i]))
      weir_strbuf_printf(out, "%" PRId64, dims[i].value);
    else
      weir_strbuf_text(out, "?");
  }
}

static void add_type(const weir_signer *s, weir_strbuf *out, weir_value_id id) {
  const weir_value *v = &s->graph->values[id];
  weir_strbuf_printf(out, "%s[", weir_dtype_name(v->dtype));
  if (v->shape->rank == WEIR_RANK_UNKNOWN)
    weir_strbuf_text(out, "?");
  else
    add_dims(out, v->shape->dims, (uint32_t)v->shape->rank);
  weir_strbuf_text(out, "]");
}

static bool add_attr(weir_strbuf *out, const char *name, const weir_attr *a,
                     const char *lead) {
  if (a->kind != WEIR_ATTR_INT && a->kind != WEIR_ATTR_BOOL &&
      a->kind != WEIR_ATTR_STRING && a->kind != WEIR_ATTR_DTYPE &&
      a->kind != WEIR_ATTR_INTS)
    return false;
  if (a->kind == WEIR_ATTR_BOOL && !a->b) return false;
  weir_strbuf_printf(out, "%s%s=", lead, name);
  if (a->kind == WEIR_ATTR_INT)
    weir_strbuf_printf(out, "%" PRId64, a->i);
  else if (a->kind == WEIR_ATTR_BOOL)
    weir_strbuf_text(out, "true");
  else if (a->kind == WEIR_ATTR_STRING)
    add_clean(out, a->s);
  else if (a->kind == WEIR_ATTR_DTYPE)
    weir_strbuf_text(out, weir_dtype_name(a->dtype));
  else {
    weir_strbuf_text(out, "[");
    add_dims(out, a->dims, a->count);
    weir_strbuf_text(out, "]");
  }
  return true;
}

static void add_op(weir_strbuf *out, const weir_node *n) {
  bool any = false;
  weir_strbuf_text(out, n->op->name);
  for (uint32_t i = 0; i < WEIR_OP_ATTRS && n->op->attrs[i].name != NULL; i++)
    any |= add_attr(out, n->op->attrs[i].name, &n->attrs[i], any ? ", " : "[");
  if (any) weir_strbuf_text(out, "]");
}

/* ---- Bodies */

static weir_status hash_bodies(const weir_signer *s, const weir_node *n,
                               uint64_t *hash, uint32_t *nodes,
                               weir_error *err) {
  weir_status status = WEIR_OK;
  for (uint32_t k = 0; k < n->body_count && status == WEIR_OK; k++) {
    weir_signer body;
    weir_strbuf text;
    weir_strbuf_init(&text, s->alloc);
    status = weir_signer_create(s->alloc, n->bodies[k], &body, err);
    for (weir_node_id id = 0;
         status == WEIR_OK && id < n->bodies[k]->node_count; id++) {
      status = weir_sign(&body, &id, 1, &text, err);
      weir_sv view = weir_strbuf_view(&text);
      *hash = weir_hash_bytes(view.data, view.size, *hash);
      ++*nodes;
    }
    if (status == WEIR_OK) weir_signer_release(&body);
    weir_strbuf_release(&text);
  }
  return status;
}

/* ---- Operands */

/* Values that come from outside the unit, each once. */
typedef struct outside {
  const weir_signer *s;
  const weir_node_id *members;
  uint32_t count;
  WEIR_VEC(weir_value_id) values;
} outside;

static void add_operand(outside *o, weir_strbuf *out, weir_value_id id) {
  if (id == WEIR_NO_VALUE) {
    weir_strbuf_text(out, "-");
    return;
  }
  for (uint32_t m = 0; m < o->count; m++)
    if (o->members[m] == o->s->graph->values[id].node) {
      weir_strbuf_printf(out, "%%%u", m);
      return;
    }
  size_t at = 0;
  while (at < o->values.count && o->values.items[at] != id) at++;
  if (at == o->values.count && !weir_vec_push(o->s->alloc, &o->values, id))
    out->failed = true;
  weir_strbuf_printf(out, "%zu", at);
}

static void add_group(outside *o, weir_strbuf *out) {
  const weir_graph *g = o->s->graph;
  weir_strbuf_text(out, "{");
  for (uint32_t m = 0; m < o->count; m++) {
    const weir_node *n = &g->nodes[o->members[m]];
    weir_strbuf_text(out, m > 0 ? "; " : "");
    add_op(out, n);
    weir_strbuf_text(out, "(");
    for (uint32_t i = 0; i < n->input_count; i++) {
      weir_strbuf_text(out, i > 0 ? ", " : "");
      add_operand(o, out, n->inputs[i]);
    }
    weir_strbuf_text(out, ")");
  }
  weir_strbuf_text(out, "}");
}

static weir_status add_single(const weir_signer *s, const weir_node *n,
                              outside *o, weir_strbuf *out, weir_error *err) {
  uint64_t hash = 0;
  uint32_t nodes = 0;
  add_op(out, n);
  if (n->body_count > 0) {
    WEIR_TRY(hash_bodies(s, n, &hash, &nodes, err));
    weir_strbuf_printf(out, "<%u nodes %016" PRIx64 ">", nodes, hash);
  }
  for (uint32_t i = 0; i < n->input_count; i++)
    if (!weir_vec_push(s->alloc, &o->values, n->inputs[i])) out->failed = true;
  return WEIR_OK;
}

static void add_ends(const outside *o, weir_strbuf *out) {
  const weir_signer *s = o->s;
  const weir_node *last = &s->graph->nodes[o->members[o->count - 1]];
  weir_strbuf_text(out, "(");
  for (size_t i = 0; i < o->values.count; i++) {
    weir_value_id id = o->values.items[i];
    weir_strbuf_text(out, i > 0 ? ", " : "");
    if (id == WEIR_NO_VALUE) {
      weir_strbuf_text(out, "-");
      continue;
    }
    add_type(s, out, id);
    if (s->known[id]) weir_strbuf_text(out, "!");
  }
  weir_strbuf_text(out, ") ->");
  for (uint32_t i = 0; i < last->output_count; i++) {
    weir_strbuf_text(out, i > 0 ? ", " : " ");
    if (last->output_count > 1 && !s->read[last->first_output + i])
      weir_strbuf_text(out, "_");
    else
      add_type(s, out, last->first_output + i);
  }
}

/* Too long a text gets a hash of all of it for its end: two texts that share
 * their beginning stay apart. */
static void shorten(weir_strbuf *out) {
  if (out->size <= WEIR_COST_KEY_BYTES) return;
  uint64_t hash = weir_hash_bytes(out->data, out->size, 0);
  out->size = WEIR_COST_KEY_BYTES - 20;
  weir_strbuf_printf(out, "...%016" PRIx64, hash);
  assert(out->failed || out->size < WEIR_COST_KEY_BYTES);
}

weir_status weir_sign(const weir_signer *s, const weir_node_id *members,
                      uint32_t count, weir_strbuf *out, weir_error *err) {
  outside o = {.s = s, .members = members, .count = count};
  weir_status status = WEIR_OK;
  weir_strbuf_clear(out);
  if (count == 1)
    status = add_single(s, &s->graph->nodes[members[0]], &o, out, err);
  else
    add_group(&o, out);
  add_ends(&o, out);
  shorten(out);
  weir_vec_free(s->alloc, &o.values);
  return status == WEIR_OK ? weir_strbuf_status(out, err) : status;
}
