/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/exec/measure/step_profile_rows.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/strbuf.h"
#include "runtime/exec/program/program_internal.h"
#include "runtime/exec/run/run_slow.h"
#include "runtime/graph/graph.h"

/* Programs are taken from a list that grows while it is walked: the parts, then
 * the bodies of each one's instructions, breadth first, so nothing recurses and
 * a program's rows lie together. A row is then found by the address of its
 * instruction: the piece by bisection, the row by the distance from its
 * beginning. Cost: O(instructions + nodes), and O(log programs) to find. */

void weir_profile_rows_init(weir_profile_rows *rows,
                            const weir_allocator *alloc) {
  *rows = (weir_profile_rows){.alloc = alloc};
  weir_arena_init(&rows->arena, alloc);
}

void weir_profile_rows_release(weir_profile_rows *rows) {
  weir_vec_free(rows->alloc, &rows->list);
  weir_vec_free(rows->alloc, &rows->pieces);
  weir_arena_release(&rows->arena);
}

static bool keep(weir_profile_rows *rows, weir_sv *text) {
  const char *copy = weir_arena_string(&rows->arena, text->data, text->size);
  if (copy == NULL) return false;
  text->data = copy;
  return true;
}

static weir_sv text_of(const char *text) {
  return text != NULL ? weir_sv_from(text) : (weir_sv){"", 0};
}

static weir_dtype dtype_of(const weir_program *p, const weir_instr_spec *s) {
  if (s->out_count > 0 && s->out[0] != WEIR_NO_INDEX)
    return p->values[s->out[0]].dtype;
  if (s->in_count > 0 && s->in[0] != WEIR_NO_INDEX)
    return p->values[s->in[0]].dtype;
  return WEIR_F32;
}

static bool add_row(weir_profile_rows *rows, const weir_profile_piece *piece,
                    const weir_instr *instr) {
  const weir_program *p = piece->program;
  const weir_instr_spec *s = &instr->spec;
  weir_profile_row row = {.node = s->node,
                          .op = weir_sv_from(s->op != NULL ? s->op : "-"),
                          .kernel = text_of(s->kernel),
                          .algorithm = text_of(s->algorithm),
                          .reason = text_of(s->reason),
                          .device = p->device,
                          .category = weir_instr_category(s->kind),
                          .parent = piece->parent,
                          .threads = p->threads,
                          .dtype = dtype_of(p, s),
                          .on_host = p->gpu == NULL,
                          .flops = s->flops,
                          .bytes = s->bytes};
  return keep(rows, &row.node) && keep(rows, &row.op) &&
         keep(rows, &row.kernel) && keep(rows, &row.algorithm) &&
         keep(rows, &row.reason) && keep(rows, &row.device) &&
         weir_vec_push(rows->alloc, &rows->list, row);
}

/* ---- Groups */

/* The nodes of each group, in the graph's order, as lists. */
typedef struct groups {
  uint32_t count;
  uint32_t *first, *last; /* per group: node, or WEIR_NO_INDEX */
  uint32_t *next;         /* per node */
} groups;

static bool find_groups(const weir_allocator *a, const weir_graph *g,
                        groups *out) {
  *out = (groups){0};
  for (uint32_t n = 0; n < g->node_count; n++)
    if (g->nodes[n].group != WEIR_NO_GROUP && g->nodes[n].group >= out->count)
      out->count = g->nodes[n].group + 1;
  out->first = weir_alloc_array(a, out->count + 1u, sizeof *out->first);
  out->last = weir_alloc_array(a, out->count + 1u, sizeof *out->last);
  out->next = weir_alloc_array(a, g->node_count + 1u, sizeof *out->next);
  if (out->first == NULL || out->last == NULL || out->next == NULL)
    return false;
  for (uint32_t i = 0; i < out->count; i++) out->first[i] = WEIR_NO_INDEX;
  for (uint32_t n = 0; n < g->node_count; n++) {
    uint32_t at = g->nodes[n].group;
    out->next[n] = WEIR_NO_INDEX;
    if (at == WEIR_NO_GROUP) continue;
    if (out->first[at] == WEIR_NO_INDEX)
      out->first[at] = n;
    else
      out->next[out->last[at]] = n;
    out->last[at] = n;
  }
  return true;
}

/* Names the nodes of a group's row, and makes its op of theirs. */
static bool fill_members(weir_profile_rows *rows, weir_profile_row *row,
                         const weir_graph *g, const groups *all, uint32_t at) {
  weir_strbuf ops;
  uint32_t count = 0;
  for (uint32_t n = all->first[at]; n != WEIR_NO_INDEX; n = all->next[n])
    count++;
  weir_sv *members = weir_arena_array(&rows->arena, count, sizeof *members);
  bool ok = members != NULL;
  weir_strbuf_init(&ops, rows->alloc);
  count = 0;
  for (uint32_t n = all->first[at]; ok && n != WEIR_NO_INDEX;
       n = all->next[n]) {
    ok = weir_strbuf_printf(&ops, "%s%s", count > 0 ? "+" : "",
                            g->nodes[n].op->name);
    members[count] = g->nodes[n].name;
    ok = ok && keep(rows, &members[count++]);
  }
  row->op = weir_strbuf_view(&ops);
  ok = ok && keep(rows, &row->op);
  if (!ok) row->op = (weir_sv){"", 0};
  row->members = members;
  row->member_count = ok ? count : 0;
  weir_strbuf_release(&ops);
  return ok;
}

static bool name_groups(weir_profile_rows *rows,
                        const weir_profile_piece *piece) {
  const weir_program *p = piece->program;
  const weir_graph *g = p->graph;
  groups all = {0};
  if (g == NULL) return true;
  bool ok = find_groups(rows->alloc, g, &all);
  for (uint32_t i = 0; ok && i < p->instr_count; i++) {
    const weir_instr_spec *s = &p->instrs[i].spec;
    if (s->op == NULL || strcmp(s->op, "group") != 0) continue;
    assert(s->node_order < g->node_count);
    uint32_t at = g->nodes[s->node_order].group;
    if (at != WEIR_NO_GROUP)
      ok = fill_members(rows, &rows->list.items[piece->first + i], g, &all, at);
  }
  weir_free(rows->alloc, all.first);
  weir_free(rows->alloc, all.last);
  weir_free(rows->alloc, all.next);
  return ok;
}

/* ---- All programs */

static bool add_piece(weir_profile_rows *rows, const weir_program *program,
                      uint32_t parent) {
  weir_profile_piece piece = {.program = program, .parent = parent};
  return weir_vec_push(rows->alloc, &rows->pieces, piece);
}

/* The rows of piece |at|, and its bodies as further pieces. */
static bool take_piece(weir_profile_rows *rows, size_t at) {
  weir_profile_piece piece = rows->pieces.items[at];
  piece.first = (uint32_t)rows->list.count;
  rows->pieces.items[at] = piece;
  for (uint32_t i = 0; i < piece.program->instr_count; i++)
    if (!add_row(rows, &piece, &piece.program->instrs[i])) return false;
  for (uint32_t i = 0; i < piece.program->instr_count; i++) {
    const weir_instr_spec *s = &piece.program->instrs[i].spec;
    for (uint32_t k = 0; k < s->body_count; k++)
      if (!add_piece(rows, s->bodies[k], piece.first + i)) return false;
  }
  return name_groups(rows, &piece);
}

static int by_address(const void *a, const void *b) {
  uintptr_t x = (uintptr_t)((const weir_profile_piece *)a)->program->instrs;
  uintptr_t y = (uintptr_t)((const weir_profile_piece *)b)->program->instrs;
  return (x > y) - (x < y);
}

weir_status weir_profile_rows_make(weir_profile_rows *rows,
                                   const weir_program *program,
                                   weir_error *err) {
  bool ok = true;
  for (const weir_program *p = program; ok && p != NULL; p = p->next_part)
    ok = add_piece(rows, p, WEIR_NO_INDEX);
  for (size_t i = 0; ok && i < rows->pieces.count; i++)
    ok = take_piece(rows, i);
  if (!ok) return weir_fail_memory(err, 0);
  qsort(rows->pieces.items, rows->pieces.count, sizeof *rows->pieces.items,
        by_address);
  return WEIR_OK;
}

uint32_t weir_profile_rows_find(const weir_profile_rows *rows,
                                const weir_instr *instr) {
  size_t low = 0, high = rows->pieces.count;
  while (low < high) { /* the first piece that begins behind |instr| */
    size_t middle = low + (high - low) / 2;
    if ((uintptr_t)rows->pieces.items[middle].program->instrs <=
        (uintptr_t)instr)
      low = middle + 1;
    else
      high = middle;
  }
  /* A program without instructions may have the address of its neighbour. */
  while (low > 0) {
    const weir_profile_piece *piece = &rows->pieces.items[--low];
    if (piece->program->instr_count == 0) continue;
    size_t at = (size_t)(instr - piece->program->instrs);
    return at < piece->program->instr_count ? piece->first + (uint32_t)at
                                            : WEIR_NO_INDEX;
  }
  return WEIR_NO_INDEX;
}
