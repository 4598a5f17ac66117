/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/graph/split/split_pin.h"

#include <stdio.h>
#include <string.h>

#include "runtime/base/map.h"
#include "runtime/device/name.h"
#include "runtime/graph/pass/pass.h"

/* A step of one worker and the servers as one graph whose nodes ask for
 * devices: a placer then times pulls, pushes and updates like any other copies
 * and nodes. Cost: one copy of the graph. */

typedef struct pinner {
  const weir_split *split;
  const weir_train_graph *train;
  const weir_split_devices *devices;
  weir_pass pass;
  uint8_t *side; /* per node: weir_train_side */
  weir_map vars; /* names to places in split->vars */
  weir_error *err;
} pinner;

static weir_status list(pinner *p) {
  for (uint32_t i = 0; i < p->train->mark_count; i++)
    p->side[p->train->marks[i].node] = (uint8_t)p->train->marks[i].side;
  for (uint32_t i = 0; i < p->split->var_count; i++)
    if (!weir_map_put(&p->vars, p->split->vars[i].name, i, NULL))
      return weir_fail_memory(p->err, p->split->vars[i].name.size);
  return WEIR_OK;
}

/* The device of node |id|: "" for one that follows its variable. */
static weir_status ask(const pinner *p, weir_node_id id, char *text,
                       size_t size) {
  const weir_node *node = &p->train->graph->nodes[id];
  const weir_split_devices *d = p->devices;
  weir_train_side last =
      p->split->clip_at_worker ? WEIR_TRAIN_CLIP : WEIR_TRAIN_WORKER;
  weir_device_name name = weir_device_name_any();
  text[0] = 0;
  if (node->op->instr == WEIR_INSTR_VAR_COMMIT) return WEIR_OK;
  if (node->op->instr == WEIR_INSTR_VAR_READ) {
    uint32_t var = weir_map_get(&p->vars, node->name);
    if (var != WEIR_MAP_NONE) {
      uint32_t server = p->split->vars[var].server;
      snprintf(text, size, "/job:%.*s/task:%u", WEIR_SV(d->server),
               server == WEIR_SPLIT_ALL ? 0 : server);
      return WEIR_OK;
    }
  } else if (p->side[id] > last) {
    snprintf(text, size, "/job:%.*s", WEIR_SV(d->server));
    return WEIR_OK;
  }
  if (node->device.size > 0)
    WEIR_TRY(weir_device_name_parse(node->device, &name, NULL, p->err));
  snprintf(name.job, sizeof name.job, "%.*s", WEIR_SV(d->worker));
  name.task.first = name.task.last = (int32_t)d->worker_task;
  weir_device_name_print(&name, text, size);
  return WEIR_OK;
}

static weir_status copy(pinner *p) {
  char text[192];
  for (weir_node_id id = 0; id < p->pass.from->node_count; id++) {
    WEIR_TRY(ask(p, id, text, sizeof text));
    weir_sv device = weir_sv_from(text);
    device.data = weir_arena_string(weir_graph_builder_arena(p->pass.builder),
                                    device.data, device.size);
    if (device.data == NULL) return weir_fail_memory(p->err, device.size);
    weir_pass_change change = {.input_count = UINT32_MAX, .device = &device};
    WEIR_TRY(weir_pass_copy_with(&p->pass, id, &change, p->err));
  }
  return WEIR_OK;
}

weir_status weir_split_pin(const weir_split *split,
                           const weir_train_graph *train,
                           const weir_split_devices *devices,
                           weir_graph **out_graph, weir_error *err) {
  weir_error local = WEIR_ERROR_INIT;
  pinner p = {.split = split,
              .train = train,
              .devices = devices,
              .err = err != NULL ? err : &local};
  const weir_graph *g = train->graph;
  weir_map_init(&p.vars, g->alloc);
  p.side = weir_alloc_array(g->alloc, g->node_count, sizeof *p.side);
  weir_status s = weir_pass_begin(&p.pass, g, p.err);
  if (s == WEIR_OK && p.side == NULL)
    s = weir_fail_memory(p.err, g->node_count);
  if (s == WEIR_OK) s = list(&p);
  if (s == WEIR_OK) s = copy(&p);
  s = weir_pass_end(&p.pass, s, out_graph, p.err);
  weir_map_release(&p.vars);
  weir_free(g->alloc, p.side);
  return s;
}
