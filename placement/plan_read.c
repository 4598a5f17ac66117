/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a plan from its JSON. The text is untrusted: names, counts and ranges
 * are compared with the problem, unknown keys are skipped, and the result is
 * only a candidate until the checker has passed it. */
#include "placement/plan_read.h"

#include "placement/report/dump_internal.h"
#include "runtime/base/json/json.h"
#include "runtime/base/map.h"
#include "runtime/base/yaml/yaml_scalar.h"

typedef struct plan_reader {
  const weir_place_problem *p;
  weir_place_plan *plan;
  weir_json_reader json;
  weir_map devices;
  uint32_t nodes; /* read so far */
  const char *name;
  weir_error *err;
} plan_reader;

static weir_status bad(const plan_reader *r, const char *what) {
  weir_mark at = weir_json_mark(&r->json);
  weir_status s = weir_fail(r->err, WEIR_W3016, &at, "%s", what);
  weir_hint(r->err,
            "a plan is the output of weir place --json for this graph and "
            "cluster");
  return s;
}

static weir_status next(plan_reader *r, weir_json_token *token) {
  return weir_json_next(&r->json, token, r->err);
}

static weir_status read_int(plan_reader *r, int64_t *out) {
  weir_json_token token;
  WEIR_TRY(next(r, &token));
  if (token != WEIR_JSON_NUMBER || !weir_text_int(r->json.text, out))
    return bad(r, "an integer is expected");
  return WEIR_OK;
}

static weir_status read_device(plan_reader *r, uint32_t *out) {
  weir_json_token token;
  WEIR_TRY(next(r, &token));
  *out = token == WEIR_JSON_STRING ? weir_map_get(&r->devices, r->json.text)
                                   : WEIR_MAP_NONE;
  if (*out == WEIR_MAP_NONE)
    return bad(r, "it names a device that this cluster does not have");
  return WEIR_OK;
}

/* The name must be that of the node with this id: else the plan is another
 * graph's. */
static weir_status check_name(plan_reader *r, int64_t id) {
  char name[300];
  weir_json_token token;
  WEIR_TRY(next(r, &token));
  if (token != WEIR_JSON_STRING || id < 0 || id >= r->p->node_count ||
      (!r->json.escaped &&
       !weir_sv_is(r->json.text,
                   weir_place_node_text(r->p, (uint32_t)id, name))))
    return bad(r, "it is of another graph: the nodes' names differ");
  return WEIR_OK;
}

static weir_status read_node(plan_reader *r) {
  weir_json_token token;
  int64_t id = -1, start = -1, end = -1;
  uint32_t device = WEIR_PLACE_NONE;
  for (;;) {
    WEIR_TRY(next(r, &token));
    if (token == WEIR_JSON_OBJECT_END) break;
    if (weir_json_text_is(&r->json, "id"))
      WEIR_TRY(read_int(r, &id));
    else if (weir_json_text_is(&r->json, "name"))
      WEIR_TRY(check_name(r, id));
    else if (weir_json_text_is(&r->json, "device"))
      WEIR_TRY(read_device(r, &device));
    else if (weir_json_text_is(&r->json, "start_ns"))
      WEIR_TRY(read_int(r, &start));
    else if (weir_json_text_is(&r->json, "end_ns"))
      WEIR_TRY(read_int(r, &end));
    else
      WEIR_TRY(weir_json_skip(&r->json, r->err));
  }
  if (id != r->nodes || id >= r->p->node_count || device == WEIR_PLACE_NONE)
    return bad(r, "its nodes are not those of this graph, in order");
  r->plan->device[id] = device;
  r->plan->start_ns[id] = start;
  r->plan->end_ns[id] = end;
  r->plan->reason[id] = WEIR_PLACE_REPLAY;
  r->nodes++;
  return WEIR_OK;
}

static weir_status read_edge(plan_reader *r) {
  weir_json_token token;
  int64_t tensor = -1, start = -1, end = -1;
  weir_place_copy c = {.from = WEIR_PLACE_NONE, .to = WEIR_PLACE_NONE};
  for (;;) {
    WEIR_TRY(next(r, &token));
    if (token == WEIR_JSON_OBJECT_END) break;
    if (weir_json_text_is(&r->json, "tensor"))
      WEIR_TRY(read_int(r, &tensor));
    else if (weir_json_text_is(&r->json, "from"))
      WEIR_TRY(read_device(r, &c.from));
    else if (weir_json_text_is(&r->json, "to"))
      WEIR_TRY(read_device(r, &c.to));
    else if (weir_json_text_is(&r->json, "start_ns"))
      WEIR_TRY(read_int(r, &start));
    else if (weir_json_text_is(&r->json, "end_ns"))
      WEIR_TRY(read_int(r, &end));
    else
      WEIR_TRY(weir_json_skip(&r->json, r->err));
  }
  if (tensor < 0 || tensor >= r->p->tensor_count || c.from == WEIR_PLACE_NONE ||
      c.to == WEIR_PLACE_NONE)
    return bad(r, "an edge names a tensor or device that is not there");
  c.tensor = (uint32_t)tensor;
  c.link = r->p->link_of[(size_t)c.from * r->p->device_count + c.to];
  c.start_ns = start;
  c.end_ns = end;
  weir_place_plan *plan = r->plan;
  if (plan->copy_count == plan->copy_capacity &&
      !weir_vec_grow(plan->alloc, (void **)&plan->copies, &plan->copy_capacity,
                     plan->copy_count, 1, sizeof c))
    return weir_fail_memory(r->err, sizeof c);
  plan->copies[plan->copy_count++] = c;
  return WEIR_OK;
}

static weir_status read_list(plan_reader *r,
                             weir_status (*item)(plan_reader *r)) {
  weir_json_token token;
  WEIR_TRY(weir_json_expect(&r->json, WEIR_JSON_ARRAY_BEGIN, r->err));
  for (;;) {
    WEIR_TRY(next(r, &token));
    if (token == WEIR_JSON_ARRAY_END) return WEIR_OK;
    if (token != WEIR_JSON_OBJECT_BEGIN) return bad(r, "an object is expected");
    WEIR_TRY(item(r));
  }
}

static weir_status read_assumed(plan_reader *r) {
  r->plan->assumed = true;
  return weir_json_skip(&r->json, r->err);
}

static weir_status read_plan(plan_reader *r) {
  weir_json_token token;
  int64_t schema = 0, makespan = -1;
  WEIR_TRY(weir_json_expect(&r->json, WEIR_JSON_OBJECT_BEGIN, r->err));
  for (;;) {
    WEIR_TRY(next(r, &token));
    if (token == WEIR_JSON_OBJECT_END) break;
    if (weir_json_text_is(&r->json, "schema"))
      WEIR_TRY(read_int(r, &schema));
    else if (weir_json_text_is(&r->json, "makespan_ns"))
      WEIR_TRY(read_int(r, &makespan));
    else if (weir_json_text_is(&r->json, "assumed_kernels"))
      WEIR_TRY(read_assumed(r));
    else if (weir_json_text_is(&r->json, "nodes"))
      WEIR_TRY(read_list(r, read_node));
    else if (weir_json_text_is(&r->json, "edges"))
      WEIR_TRY(read_list(r, read_edge));
    else
      WEIR_TRY(weir_json_skip(&r->json, r->err));
  }
  WEIR_TRY(weir_json_expect(&r->json, WEIR_JSON_END, r->err));
  if (schema != 1) return bad(r, "it has another schema than 1");
  if (r->nodes != r->p->node_count)
    return bad(r, "it has fewer nodes than this graph");
  r->plan->makespan_ns = makespan;
  r->plan->placer = "replay";
  return WEIR_OK;
}

weir_status weir_place_plan_read(const weir_allocator *alloc,
                                 const weir_place_problem *problem,
                                 weir_sv json, const char *name,
                                 weir_place_plan **out_plan, weir_error *err) {
  plan_reader r = {.p = problem, .name = name, .err = err};
  *out_plan = NULL;
  WEIR_TRY(weir_place_plan_create(alloc, problem, &r.plan, err));
  weir_map_init(&r.devices, alloc);
  weir_status s = WEIR_OK;
  for (uint32_t d = 0; d < problem->device_count && s == WEIR_OK; d++)
    if (!weir_map_put(&r.devices, problem->devices[d].name, d, NULL))
      s = weir_fail_memory(err, problem->device_count * sizeof(weir_map_slot));
  weir_json_reader_init(&r.json, json, name, NULL);
  if (s == WEIR_OK) s = read_plan(&r);
  weir_map_release(&r.devices);
  if (s == WEIR_OK)
    *out_plan = r.plan;
  else
    weir_place_plan_release(r.plan);
  return s;
}
