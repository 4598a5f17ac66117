/* SPDX-License-Identifier: Apache-2.0 */
#include "placement/replica/replica_dump.h"

#include "placement/report/dump_internal.h"
#include "runtime/graph/pattern.h"

/* The edges of one server in one direction. */
static void sum(const weir_place_replica *r, uint32_t server, bool push,
                uint32_t *count, int64_t *bytes) {
  *count = 0;
  *bytes = 0;
  for (uint32_t i = 0; i < r->edge_count; i++) {
    const weir_replica_edge *e = &r->edges[i];
    if (e->server != server || e->push != push) continue;
    ++*count;
    *bytes += (int64_t)e->bytes;
  }
}

bool weir_replica_write(const weir_place_replica *r, const weir_writer *out) {
  char held[32], pull[32], push[32];
  if (r == NULL) return true;
  bool ok = weir_place_print(
      out, "one replica of %u between graphs, %.*s, on %u server%s\n",
      r->replicas, WEIR_SV(r->mode), r->servers, r->servers == 1 ? "" : "s");
  for (uint32_t k = 0; k < r->servers && ok; k++) {
    uint32_t pulls, pushes;
    int64_t down, up;
    sum(r, k, false, &pulls, &down);
    sum(r, k, true, &pushes, &up);
    ok = weir_place_print(
        out, "  /job:ps/task:%u holds %s   pull %u, %s   push %u, %s\n", k,
        weir_quantity_print_bytes((int64_t)r->held[k], held), pulls,
        weir_quantity_print_bytes(down, pull), pushes,
        weir_quantity_print_bytes(up, push));
  }
  for (uint32_t i = 0; i < r->whole_count && ok; i++)
    ok = weir_place_print(out, "  %.*s is not cut: %.*s needs all of it\n",
                          WEIR_SV(r->whole[i].name), WEIR_SV(r->whole[i].node));
  return ok;
}

bool weir_replica_write_edges(const weir_place_replica *r, weir_sv pattern,
                              const weir_writer *out) {
  char bytes[32];
  bool ok = true;
  for (uint32_t i = 0; r != NULL && i < r->edge_count && ok; i++) {
    const weir_replica_edge *e = &r->edges[i];
    if (pattern.size > 0 && !weir_pattern_fits(pattern, e->name)) continue;
    ok = weir_place_print(out, "%s %-32.*s %12s  %s /job:ps/task:%u\n",
                          e->push ? "push" : "pull", WEIR_SV(e->name),
                          weir_quantity_print_bytes((int64_t)e->bytes, bytes),
                          e->push ? "to" : "from", e->server);
  }
  return ok;
}

static void write_whole(const weir_place_replica *r, weir_json_writer *w) {
  if (r->whole_count == 0) return;
  weir_json_key(w, "whole");
  weir_json_array_begin(w, false);
  for (uint32_t i = 0; i < r->whole_count; i++) {
    weir_json_object_begin(w, true);
    weir_json_key_text(w, "variable", r->whole[i].name);
    weir_json_key_text(w, "for", r->whole[i].node);
    weir_json_object_end(w);
  }
  weir_json_array_end(w);
}

void weir_replica_write_json(const weir_place_replica *r, weir_json_writer *w) {
  if (r == NULL) return;
  weir_json_key(w, "replicas");
  weir_json_object_begin(w, false);
  weir_json_key_text(w, "mode", r->mode);
  weir_json_key_int(w, "count", r->replicas);
  weir_json_key_int(w, "servers", r->servers);
  weir_json_key(w, "held_bytes");
  weir_json_array_begin(w, true);
  for (uint32_t k = 0; k < r->servers; k++)
    weir_json_int(w, (int64_t)r->held[k]);
  weir_json_array_end(w);
  weir_json_key(w, "edges");
  weir_json_array_begin(w, false);
  for (uint32_t i = 0; i < r->edge_count; i++) {
    const weir_replica_edge *e = &r->edges[i];
    weir_json_object_begin(w, true);
    weir_json_key_text(w, e->push ? "push" : "pull", e->name);
    weir_json_key_int(w, "server", e->server);
    weir_json_key_int(w, "bytes", (int64_t)e->bytes);
    weir_json_object_end(w);
  }
  weir_json_array_end(w);
  write_whole(r, w);
  weir_json_object_end(w);
}
