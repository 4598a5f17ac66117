/* SPDX-License-Identifier: Apache-2.0 */
#include "placement/bench/instance_json.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

void weir_instance_begin(weir_instance_source *s, const weir_allocator *alloc,
                         weir_sv text, const char *name, weir_error *err) {
  *s = (weir_instance_source){.alloc = alloc, .name = name, .err = err};
  weir_arena_init(&s->arena, alloc);
  weir_map_init(&s->node_of, alloc);
  weir_json_reader_init(&s->json, text, name, NULL);
}

void weir_instance_end(weir_instance_source *s) {
  weir_vec_free(s->alloc, &s->nodes);
  weir_vec_free(s->alloc, &s->edges);
  weir_map_release(&s->node_of);
  weir_arena_release(&s->arena);
}

/* ---- Messages */

static WEIR_PRINTF(3, 0) weir_status
    fail_list(const weir_instance_source *s, size_t at, const char *fmt,
              va_list args) {
  char text[256];
  weir_json_reader place = s->json;
  place.token_at = at;
  weir_mark mark = weir_json_mark(&place);
  mark.file = s->name;
  vsnprintf(text, sizeof text, fmt, args);
  return weir_fail(s->err, WEIR_W3015, &mark, "%s", text);
}

weir_status weir_instance_fail(const weir_instance_source *s, const char *fmt,
                               ...) {
  va_list args;
  va_start(args, fmt);
  weir_status status = fail_list(s, s->json.token_at, fmt, args);
  va_end(args);
  return status;
}

weir_status weir_instance_fail_at(const weir_instance_source *s, size_t at,
                                  const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  weir_status status = fail_list(s, at, fmt, args);
  va_end(args);
  return status;
}

/* ---- Values */

static weir_status want(weir_instance_source *s, weir_json_token kind,
                        const char *what) {
  weir_json_token token;
  WEIR_TRY(weir_json_next(&s->json, &token, s->err));
  if (token == kind) return WEIR_OK;
  return weir_instance_fail(s, "%s must be %s, found %s", what,
                            weir_json_token_name(kind),
                            weir_json_token_name(token));
}

weir_status weir_instance_number(weir_instance_source *s, const char *what,
                                 double least, double most, double *out) {
  WEIR_TRY(want(s, WEIR_JSON_NUMBER, what));
  if (!weir_json_get_double(&s->json, out) || !isfinite(*out) || *out < least ||
      *out > most)
    return weir_instance_fail(
        s, "%s is %.*s, want %g to %g", what,
        s->json.text.size < 40 ? (int)s->json.text.size : 40, s->json.text.data,
        least, most);
  return WEIR_OK;
}

weir_status weir_instance_text(weir_instance_source *s, const char *what,
                               weir_sv *out) {
  WEIR_TRY(want(s, WEIR_JSON_STRING, what));
  *out = s->json.text;
  return s->json.escaped ? weir_json_text(&s->json, &s->arena, out, s->err)
                         : WEIR_OK;
}

weir_status weir_instance_id(weir_instance_source *s, const char *what,
                             weir_sv *out) {
  int64_t value;
  WEIR_TRY(want(s, WEIR_JSON_NUMBER, what));
  if (!weir_json_get_int(&s->json, &value))
    return weir_instance_fail(s, "%s must be an integer", what);
  *out = s->json.text;
  return WEIR_OK;
}

weir_status weir_instance_bool(weir_instance_source *s, const char *what,
                               bool *out) {
  weir_json_token token;
  int64_t value = -1;
  WEIR_TRY(weir_json_next(&s->json, &token, s->err));
  *out = token == WEIR_JSON_TRUE;
  if (token == WEIR_JSON_TRUE || token == WEIR_JSON_FALSE) return WEIR_OK;
  if (token != WEIR_JSON_NUMBER || !weir_json_get_int(&s->json, &value) ||
      value < 0 || value > 1)
    return weir_instance_fail(s, "%s must be true, false, 0 or 1", what);
  *out = value == 1;
  return WEIR_OK;
}

weir_status weir_instance_list(weir_instance_source *s, const char *what,
                               weir_instance_item item, void *self) {
  weir_json_token token;
  WEIR_TRY(want(s, WEIR_JSON_ARRAY_BEGIN, what));
  for (;;) {
    WEIR_TRY(weir_json_next(&s->json, &token, s->err));
    if (token == WEIR_JSON_ARRAY_END) return WEIR_OK;
    if (token != WEIR_JSON_OBJECT_BEGIN)
      return weir_instance_fail(s, "%s must hold objects, found %s", what,
                                weir_json_token_name(token));
    WEIR_TRY(item(self, s->json.token_at));
  }
}

/* ---- Nodes and edges */

weir_status weir_instance_add_node(weir_instance_source *s, weir_sv name,
                                   size_t at) {
  uint32_t existing, id = (uint32_t)s->nodes.count;
  if (id >= WEIR_INSTANCE_NODES)
    return weir_instance_fail_at(s, at, "more than %d nodes",
                                 WEIR_INSTANCE_NODES);
  if (!weir_map_put(&s->node_of, name, id, &existing) ||
      !weir_vec_push(s->alloc, &s->nodes, (weir_instance_node){name, at}))
    return weir_fail_memory(s->err, sizeof(weir_map_slot));
  if (existing == WEIR_MAP_NONE) return WEIR_OK;
  return weir_instance_fail_at(s, at, "a second node is called %.*s",
                               WEIR_SV(name));
}

weir_status weir_instance_add_edge(weir_instance_source *s,
                                   const weir_instance_edge *edge) {
  if (s->edges.count >= UINT32_MAX / 4)
    return weir_instance_fail_at(s, edge->at, "more than %u edges",
                                 UINT32_MAX / 4);
  if (!weir_vec_push(s->alloc, &s->edges, *edge))
    return weir_fail_memory(s->err, sizeof *edge);
  return WEIR_OK;
}

weir_status weir_instance_count(weir_instance_source *s, uint32_t node,
                                double ns, double bytes) {
  s->total_ns += ns;
  s->total_bytes += bytes;
  if (s->total_ns > WEIR_INSTANCE_TOTAL_NS)
    return weir_instance_fail_at(s, s->nodes.items[node].at,
                                 "with this node, all work and copies take "
                                 "more than 3 years");
  if (s->total_bytes > WEIR_INSTANCE_TOTAL_BYTES)
    return weir_instance_fail_at(s, s->nodes.items[node].at,
                                 "with this node, all sizes together are more "
                                 "than 1e18 bytes");
  return WEIR_OK;
}

static weir_status resolve(weir_instance_source *s, const weir_instance_edge *e,
                           weir_sv name, uint32_t *out) {
  *out = name.data == NULL ? WEIR_MAP_NONE : weir_map_get(&s->node_of, name);
  if (*out != WEIR_MAP_NONE) return WEIR_OK;
  if (name.data == NULL)
    return weir_instance_fail_at(s, e->at, "an edge without both its ends");
  return weir_instance_fail_at(s, e->at, "no node is called %.*s",
                               WEIR_SV(name));
}

/* ---- Topological order */

typedef struct visit {
  uint32_t *in_first, *out_first; /* per node, in |in|, |out| */
  weir_instance_edge **in, **out;
  uint32_t *waiting, *ready; /* |ready|: a queue of all nodes */
} visit;

static void sort_edges(weir_instance_source *s, visit *v) {
  size_t nodes = s->nodes.count;
  for (size_t i = 0; i < s->edges.count; i++) {
    v->in_first[s->edges.items[i].to + 2]++;
    v->out_first[s->edges.items[i].from + 2]++;
  }
  for (size_t n = 2; n < nodes + 2; n++) {
    v->in_first[n] += v->in_first[n - 1];
    v->out_first[n] += v->out_first[n - 1];
  }
  for (size_t i = 0; i < s->edges.count; i++) {
    weir_instance_edge *e = &s->edges.items[i];
    v->in[v->in_first[e->to + 1]++] = e;
    v->out[v->out_first[e->from + 1]++] = e;
  }
}

static weir_status visit_all(weir_instance_source *s, visit *v,
                             const weir_instance_visitor *visitor) {
  uint32_t nodes = (uint32_t)s->nodes.count, count = 0;
  for (uint32_t n = 0; n < nodes; n++) {
    v->waiting[n] = v->in_first[n + 1] - v->in_first[n];
    if (v->waiting[n] == 0) v->ready[count++] = n;
  }
  for (uint32_t done = 0; done < count; done++) {
    uint32_t n = v->ready[done], in = v->in_first[n], out = v->out_first[n];
    WEIR_TRY(visitor->emit(visitor->self, n, v->in + in,
                           v->in_first[n + 1] - in, v->out + out,
                           v->out_first[n + 1] - out));
    for (uint32_t i = out; i < v->out_first[n + 1]; i++)
      if (--v->waiting[v->out[i]->to] == 0) v->ready[count++] = v->out[i]->to;
  }
  if (count == nodes) return WEIR_OK;
  /* Back along nodes that wait until one is met again: it is on a cycle. */
  uint32_t n = 0;
  while (v->waiting[n] == 0) n++;
  for (uint32_t steps = 0; steps < nodes; steps++)
    for (uint32_t i = v->in_first[n]; i < v->in_first[n + 1]; i++)
      if (v->waiting[v->in[i]->from] != 0) {
        n = v->in[i]->from;
        break;
      }
  return weir_instance_fail_at(s, s->nodes.items[n].at,
                               "this node is on a cycle of edges");
}

weir_status weir_instance_visit(weir_instance_source *s,
                                const weir_instance_visitor *visitor) {
  const weir_allocator *a = s->alloc;
  size_t nodes = s->nodes.count, edges = s->edges.count;
  for (size_t i = 0; i < edges; i++) {
    weir_instance_edge *e = &s->edges.items[i];
    WEIR_TRY(resolve(s, e, e->from_name, &e->from));
    WEIR_TRY(resolve(s, e, e->to_name, &e->to));
  }
  visit v = {.in_first = weir_alloc_array(a, nodes + 2, sizeof *v.in_first),
             .out_first = weir_alloc_array(a, nodes + 2, sizeof *v.out_first),
             .in = weir_alloc_array(a, edges + 1, sizeof *v.in),
             .out = weir_alloc_array(a, edges + 1, sizeof *v.out),
             .waiting = weir_alloc_array(a, nodes + 1, sizeof *v.waiting),
             .ready = weir_alloc_array(a, nodes + 1, sizeof *v.ready)};
  weir_status status;
  if (v.in_first == NULL || v.out_first == NULL || v.in == NULL ||
      v.out == NULL || v.waiting == NULL || v.ready == NULL) {
    status = weir_fail_memory(s->err, nodes * sizeof *v.ready);
  } else {
    sort_edges(s, &v);
    status = visit_all(s, &v, visitor);
  }
  weir_free(a, v.in_first);
  weir_free(a, v.out_first);
  weir_free(a, v.in);
  weir_free(a, v.out);
  weir_free(a, v.waiting);
  weir_free(a, v.ready);
  return status;
}
