/* SPDX-License-Identifier: Apache-2.0 */
/* A plan as bytes: a mark, counts, then the rows of nodes and of copies. */
#include "placement/carry/carry_plan.h"
#include "placement/carry/carry_bytes.h"

enum { PLAN_MARK = 0x314e4c50, NODE_BYTES = 20, COPY_BYTES = 28 }; /* PLN1 */

/* ---- Writing */

weir_status weir_plan_pack(const weir_plan *plan, weir_strbuf *out,
                           weir_error *err) {
  const weir_place_plan *p = plan->result.plan;
  weir_carry_u32(out, PLAN_MARK);
  weir_carry_i64(out, p->makespan_ns);
  weir_carry_u32(out, p->node_count);
  for (uint32_t i = 0; i < p->node_count; i++) {
    weir_carry_u32(out, p->device[i]);
    weir_carry_i64(out, p->start_ns[i]);
    weir_carry_i64(out, p->end_ns[i]);
  }
  weir_carry_u32(out, p->copy_count);
  for (uint32_t i = 0; i < p->copy_count; i++) {
    const weir_place_copy *c = &p->copies[i];
    weir_carry_u32(out, c->tensor);
    weir_carry_u32(out, c->from);
    weir_carry_u32(out, c->to);
    weir_carry_i64(out, c->start_ns);
    weir_carry_i64(out, c->end_ns);
  }
  return weir_strbuf_status(out, err);
}

/* ---- Reading */

static bool read_nodes(weir_reader *r, const weir_place_problem *problem,
                       weir_place_plan *p) {
  if (weir_carried_count(r, NODE_BYTES) != problem->node_count) return false;
  for (uint32_t i = 0; i < problem->node_count; i++) {
    p->device[i] = weir_reader_u32le(r);
    p->start_ns[i] = weir_carried_i64(r);
    p->end_ns[i] = weir_carried_i64(r);
    p->reason[i] = WEIR_PLACE_REPLAY;
    if (p->device[i] >= problem->device_count) return false;
  }
  return !r->failed;
}

static bool read_copy(weir_reader *r, const weir_place_problem *problem,
                      weir_place_copy *c) {
  *c = (weir_place_copy){.tensor = weir_reader_u32le(r),
                         .from = weir_reader_u32le(r),
                         .to = weir_reader_u32le(r)};
  c->start_ns = weir_carried_i64(r);
  c->end_ns = weir_carried_i64(r);
  if (r->failed || c->tensor >= problem->tensor_count ||
      c->from >= problem->device_count || c->to >= problem->device_count)
    return false;
  c->link = problem->link_of[(size_t)c->from * problem->device_count + c->to];
  return c->link != WEIR_PLACE_NONE;
}

static weir_status malformed(weir_error *err) {
  return weir_fail(err, WEIR_W7051, NULL,
                   "the plan that came is not one for this graph and cluster");
}

static weir_status read_plan(weir_reader *r, const weir_place_problem *problem,
                             weir_place_plan *p, weir_error *err) {
  if (weir_reader_u32le(r) != PLAN_MARK) return malformed(err);
  p->makespan_ns = weir_carried_i64(r);
  p->placer = "replay";
  if (!read_nodes(r, problem, p)) return malformed(err);
  uint32_t count = weir_carried_count(r, COPY_BYTES);
  p->copies = weir_alloc_array(p->alloc, (size_t)count + 1, sizeof *p->copies);
  if (p->copies == NULL) return weir_fail_memory(err, count);
  p->copy_capacity = (size_t)count + 1;
  for (; p->copy_count < count; p->copy_count++)
    if (!read_copy(r, problem, &p->copies[p->copy_count]))
      return malformed(err);
  return r->failed || weir_reader_left(r) != 0 ? malformed(err) : WEIR_OK;
}

weir_status weir_place_plan_unpack(const weir_allocator *alloc,
                                   const weir_place_problem *problem,
                                   weir_bytes bytes, weir_place_plan **out_plan,
                                   weir_error *err) {
  weir_reader r = weir_reader_of(bytes.data, bytes.size);
  weir_place_plan *p = NULL;
  *out_plan = NULL;
  WEIR_TRY(weir_place_plan_create(alloc, problem, &p, err));
  weir_status s = read_plan(&r, problem, p, err);
  if (s == WEIR_OK)
    *out_plan = p;
  else
    weir_place_plan_release(p);
  return s;
}
