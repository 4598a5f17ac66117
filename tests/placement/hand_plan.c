/* SPDX-License-Identifier: Apache-2.0 */
/* Problems of known families and an expert's devices for them (hand_plan.h). */
#include "tests/placement/hand_plan.h"

#include <stdio.h>
#include <string.h>

#include "placement/bench/generate.h"
#include "placement/schedule/rank.h"
#include "placement/schedule/schedule.h"

static bool add_task(void *self, const weir_task *t) {
  weir_place_builder *b = self;
  weir_place_node_spec spec = {.name = weir_sv_from(t->name),
                               .cost = &t->cost_ns,
                               .group = WEIR_PLACE_NONE};
  uint32_t n = weir_place_add_node(b, &spec);
  weir_place_add_tensor(b, n, t->out_bytes);
  for (uint32_t i = 0; i < t->input_count; i++)
    weir_place_add_use(b, n, t->inputs[i]);
  return true;
}

weir_status hand_plan_problem(const weir_allocator *alloc, const char *kind,
                              uint64_t nodes, uint32_t devices,
                              const weir_place_link *link,
                              weir_place_problem **out, weir_error *err) {
  weir_place_builder *b = NULL;
  weir_generated made;
  weir_generate_options o = {.nodes = nodes, .seed = 3, .fs_per_byte = 100000};
  WEIR_TRY(weir_place_builder_create(alloc, 1, &b, err));
  for (uint32_t d = 0; d < devices; d++)
    weir_place_add_device(b,
                          &(weir_place_device){WEIR_SV_LIT("d"), 0, INT64_MAX});
  weir_place_connect_all(b, link);
  weir_task_sink sink = {b, add_task};
  weir_status s =
      weir_generate(alloc, weir_sv_from(kind), &o, &sink, &made, err);
  if (s == WEIR_OK) s = weir_place_builder_finish(b, out, err);
  weir_place_builder_release(b);
  return s;
}

/* The three numbers of NAME_1_2_3. */
static void indices_of(weir_sv name, unsigned out[3]) {
  char text[96];
  memset(out, 0, 3 * sizeof *out);
  snprintf(text, sizeof text, "%.*s", WEIR_SV(name));
  sscanf(text, "%*[a-z0-9]_%u_%u_%u", &out[0], &out[1], &out[2]);
}

/* Rows of the grid of |devices|: the largest divisor up to its root. */
static unsigned rows_of(unsigned devices) {
  unsigned rows = 1;
  for (unsigned r = 2; r * r <= devices; r++)
    if (devices % r == 0) rows = r;
  return rows;
}

static void assign_devices(const char *kind, const weir_place_problem *p,
                           uint32_t *device) {
  unsigned at[3], layers = 0, devices = p->device_count;
  unsigned rows = rows_of(devices), columns = devices / rows;
  for (uint32_t n = 0; n < p->node_count; n++) {
    indices_of(p->names[n], at);
    if (at[1] + 1 > layers) layers = at[1] + 1;
  }
  for (uint32_t n = 0; n < p->node_count; n++) {
    indices_of(p->names[n], at);
    if (strcmp(kind, "cholesky") == 0)
      device[n] = at[0] % rows * columns + at[1] % columns;
    else if (strcmp(kind, "pipeline") == 0)
      device[n] = (uint32_t)((uint64_t)at[1] * devices / layers);
    else
      device[n] = at[0] % devices;
  }
}

/* The batches of a pipeline go one after the other, all else by rank. */
static void assign_keys(const char *kind, const weir_place_problem *p,
                        int64_t *key) {
  unsigned at[3];
  weir_place_rank(p, WEIR_RANK_MEAN, key);
  for (uint32_t n = 0; strcmp(kind, "pipeline") == 0 && n < p->node_count;
       n++) {
    indices_of(p->names[n], at);
    key[n] = -(int64_t)at[0] * p->node_count - n;
  }
}

weir_status hand_plan_step(const weir_allocator *alloc, const char *kind,
                           const weir_place_problem *p, int64_t *out,
                           weir_error *err) {
  size_t n = (size_t)p->node_count + 1;
  weir_scheduler *scheduler = NULL;
  weir_place_plan *plan = NULL;
  int64_t *key = weir_alloc_array(alloc, n, sizeof *key);
  uint32_t *device = weir_alloc_array(alloc, 4 * n, sizeof *device);
  weir_status s = WEIR_OK;
  if (key == NULL || device == NULL) s = weir_fail_memory(err, n * sizeof *key);
  if (s == WEIR_OK) s = weir_scheduler_create(alloc, p, &scheduler, err);
  if (s == WEIR_OK) s = weir_place_plan_create(alloc, p, &plan, err);
  if (s == WEIR_OK) {
    assign_devices(kind, p, device);
    assign_keys(kind, p, key);
    weir_place_order(p, key, device + n, device + 2 * n, device + 3 * n);
    weir_schedule_input input = {.order = device + 3 * n, .device = device};
    s = weir_schedule_run(scheduler, &input, plan, NULL, err);
  }
  if (s == WEIR_OK) *out = plan->makespan_ns;
  weir_place_plan_release(plan);
  weir_scheduler_release(scheduler);
  weir_free(alloc, device);
  weir_free(alloc, key);
  return s;
}
