/* SPDX-License-Identifier: Apache-2.0 */
#include "placement/report/dump_moves.h"

#include "placement/report/dump_internal.h"
#include "runtime/base/table.h"

/* ---- Moves of one plan, all by one mover */

weir_status weir_place_mover_begin(weir_place_mover *m,
                                   const weir_place_view *v, weir_error *err) {
  m->v = v;
  WEIR_TRY(weir_mover_begin(&m->moves, v->alloc, v->problem, err));
  weir_mover_take(&m->moves, v->plan);
  return WEIR_OK;
}

void weir_place_mover_end(weir_place_mover *m) {
  weir_mover_end(&m->moves);
}

/* ---- One node on one device */

const char *weir_place_chance_text(weir_place_chance_kind kind) {
  static const char *const texts[] = {
      [WEIR_PLACE_HERE] = "chosen",
      [WEIR_PLACE_POSSIBLE] = "",
      [WEIR_PLACE_NOT_ALLOWED] = "a request forbids it",
      [WEIR_PLACE_KERNEL_MISSING] = "no kernel",
      [WEIR_PLACE_READERS_MISSING] = "no kernel for what reads it",
      [WEIR_PLACE_ROOM_MISSING] = "no room",
      [WEIR_PLACE_TOO_LARGE] = "too large for its memory"};
  WEIR_TABLE_OF(texts, WEIR_PLACE_CHANCES);
  return texts[kind];
}

/* Bytes that |node| needs at once: what stays, its tensors, and while it runs.
 * Saturates. */
static int64_t needed_bytes(const weir_place_problem *p, uint32_t node) {
  int64_t bytes = p->resident_bytes[node];
  bool over = __builtin_add_overflow(bytes, p->temp_bytes[node], &bytes);
  for (uint32_t t = p->out_first[node]; t < p->out_first[node + 1]; t++)
    if (!weir_place_is_kept(p, t))
      over |= __builtin_add_overflow(
          bytes, weir_place_held(p, p->tensor_bytes[t]), &bytes);
  for (uint32_t i = p->in_first[node]; i < p->in_first[node + 1]; i++)
    over |= __builtin_add_overflow(
        bytes, weir_place_held(p, p->tensor_bytes[p->in_tensor[i]]), &bytes);
  return over ? INT64_MAX : bytes;
}

static bool is_of_group(const weir_place_problem *p, uint32_t node,
                        uint32_t other) {
  return node == other || (p->group[node] != WEIR_PLACE_NONE &&
                           p->group[node] == p->group[other]);
}

/* The verdict on one node of the group. */
static weir_place_chance_kind refuse_one(const weir_place_view *v,
                                         uint32_t node, uint32_t device) {
  const weir_place_problem *p = v->problem;
  uint32_t cls = p->devices[device].cls;
  if (p->cost[(size_t)node * p->class_count + cls] == WEIR_PLACE_NO_KERNEL)
    return WEIR_PLACE_KERNEL_MISSING;
  if (weir_place_allows(p, node, device)) return WEIR_PLACE_POSSIBLE;
  if (v->placement == NULL || !v->placement->units[node].with_readers)
    return WEIR_PLACE_NOT_ALLOWED;
  uint32_t at = v->plan->device[node];
  return p->devices[at].cls != cls ? WEIR_PLACE_READERS_MISSING
                                   : WEIR_PLACE_NOT_ALLOWED;
}

weir_place_chance_kind weir_place_refusal(const weir_place_view *v,
                                          uint32_t node, uint32_t device) {
  const weir_place_problem *p = v->problem;
  weir_place_chance_kind kind = WEIR_PLACE_POSSIBLE;
  uint32_t from = node, to = node + 1;
  if (p->group[node] != WEIR_PLACE_NONE) {
    from = 0;
    to = p->node_count;
  }
  for (uint32_t n = from; n < to; n++) {
    if (!is_of_group(p, node, n)) continue;
    weir_place_chance_kind one = refuse_one(v, n, device);
    if (one == WEIR_PLACE_KERNEL_MISSING) return one;
    if (one != WEIR_PLACE_POSSIBLE) kind = one;
  }
  if (kind != WEIR_PLACE_POSSIBLE) return kind;
  return needed_bytes(p, node) > p->devices[device].memory_bytes
             ? WEIR_PLACE_TOO_LARGE
             : WEIR_PLACE_ROOM_MISSING;
}

weir_status weir_place_mover_try(weir_place_mover *m, uint32_t node, uint32_t d,
                                 weir_place_chance *out, weir_error *err) {
  const weir_place_plan *plan = m->v->plan;
  weir_error why = WEIR_ERROR_INIT;
  *out = (weir_place_chance){WEIR_PLACE_NOT_ALLOWED, {-1, -1}};
  if (plan->device[node] == d) {
    *out = (weir_place_chance){WEIR_PLACE_HERE,
                               {plan->end_ns[node], plan->makespan_ns}};
    return WEIR_OK;
  }
  if (!weir_mover_may(&m->moves, node, d)) {
    out->kind = weir_place_refusal(m->v, node, d);
    return WEIR_OK;
  }
  weir_status s = weir_mover_try(&m->moves, node, d, 0, NULL, &why);
  if (s == WEIR_OK) {
    const weir_place_plan *moved = m->moves.plan;
    *out = (weir_place_chance){WEIR_PLACE_POSSIBLE,
                               {moved->end_ns[node], moved->makespan_ns}};
  } else if (strcmp(why.id, "W3013") == 0) {
    out->kind = weir_place_refusal(m->v, node, d);
    return WEIR_OK;
  }
  if (s != WEIR_OK) weir_error_copy(err, &why);
  return s;
}

weir_status weir_place_chance_of(const weir_place_view *view, uint32_t node,
                                 uint32_t device, weir_place_chance *out,
                                 weir_error *err) {
  weir_place_mover m;
  weir_status s = weir_place_mover_begin(&m, view, err);
  if (s == WEIR_OK) s = weir_place_mover_try(&m, node, device, out, err);
  weir_place_mover_end(&m);
  return s;
}

/* ---- All nodes on all devices */

static weir_status fill_node(weir_mover *m, uint32_t n,
                             weir_place_alternative *row, weir_error *err) {
  const weir_place_plan *plan = m->of;
  for (uint32_t d = 0; d < m->p->device_count; d++) {
    row[d] = (weir_place_alternative){-1, -1};
    if (plan->device[n] == d) {
      row[d] = (weir_place_alternative){plan->end_ns[n], plan->makespan_ns};
    } else if (weir_mover_may(m, n, d)) {
      weir_error why = WEIR_ERROR_INIT;
      weir_status s = weir_mover_try(m, n, d, 0, NULL, &why);
      if (s != WEIR_OK && strcmp(why.id, "W6001") == 0)
        return weir_fail_memory(err, sizeof *row);
      if (s == WEIR_OK)
        row[d] =
            (weir_place_alternative){m->plan->end_ns[n], m->plan->makespan_ns};
    }
  }
  return WEIR_OK;
}

/* In the order of the plan: the moves then share their beginnings. */
static weir_status fill(weir_mover *m, weir_place_alternative *all,
                        weir_error *err) {
  for (uint32_t i = 0; i < m->p->node_count; i++) {
    uint32_t n = m->order[i];
    WEIR_TRY(fill_node(m, n, all + (size_t)n * m->p->device_count, err));
  }
  return WEIR_OK;
}

weir_status weir_place_alternatives_create(const weir_place_view *v,
                                           weir_place_alternative **out_all,
                                           weir_error *err) {
  const weir_place_problem *p = v->problem;
  size_t count = (size_t)p->node_count * p->device_count;
  *out_all = NULL;
  if (!weir_mover_is_cheap(p)) return WEIR_OK;
  weir_place_alternative *all =
      weir_alloc_array(v->alloc, count + 1, sizeof *all);
  if (all == NULL) return weir_fail_memory(err, count * sizeof *all);
  weir_place_mover m;
  weir_status s = weir_place_mover_begin(&m, v, err);
  if (s == WEIR_OK) s = fill(&m.moves, all, err);
  weir_place_mover_end(&m);
  if (s == WEIR_OK)
    *out_all = all;
  else
    weir_free(v->alloc, all);
  return s;
}
