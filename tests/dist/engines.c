/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/dist/engines.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "placement/carry/carry_plan.h"
#include "placement/solve/placer.h"
#include "runtime/base/env_system.h"
#include "runtime/exec/compile/compile_needs.h"
#include "runtime/exec/session/session_run.h"
#include "runtime/exec/session/session_vars.h"
#include "runtime/graph/load/load.h"
#include "runtime/net/wire.h"

/* ---- Graphs */

static void feed_all(office *o) {
  const weir_graph *g = weir_session_graph(o->planner);
  uint32_t x = 2654435761u;
  for (uint32_t i = 0; i < g->input_count; i++) {
    const weir_value *v = &g->values[g->inputs[i].value];
    weir_shape shape = *v->shape;
    for (int32_t d = 0; d < shape.rank; d++)
      if (!weir_dim_known(shape.dims[d])) shape.dims[d] = weir_dim_of(16);
    assert_true(o->feed_count < ENGINE_FEEDS);
    weir_exec_feed *f = &o->feeds[o->feed_count++];
    f->value = g->inputs[i].value;
    assert_ok(weir_tensor_create_shaped(o->world.env.alloc, v->dtype, &shape,
                                        &f->tensor, &o->err),
              &o->err);
    for (int64_t k = 0;
         k < (int64_t)(f->tensor->bytes / weir_dtype_size(v->dtype)); k++) {
      x = x * 1664525u + 1013904223u;
      if (weir_dtype_is_float(v->dtype))
        weir_tensor_set_f64(f->tensor, k, (double)(x >> 8) * 0x1p-23 - 1);
      else
        weir_tensor_set_i64(f->tensor, k, x >> 31);
    }
  }
}

static void load(office *o, const char *name, const char *text) {
  char path[1024];
  weir_env env = o->world.env;
  weir_load_options options = {.registry = weir_builtin_registry(),
                               .keep_sources = true};
  env.fs = weir_env_system()->fs;
  snprintf(path, sizeof path,
           name[0] == '/' ? "%s%s" : "%s/graphs/%s.weir.yaml",
           name[0] == '/' ? "" : getenv("WEIR_SOURCE_ROOT"), name);
  assert_ok(text != NULL
                ? weir_graph_load_text(&env, weir_sv_from(text), name, &options,
                                       &o->graph, &o->err)
                : weir_graph_load(&env, path, &options, &o->graph, &o->err),
            &o->err);
}

static weir_exec_request request_of(office *o, weir_exec_fetch *fetches,
                                    const weir_run_options *options) {
  for (uint32_t k = 0; k < o->fetch_count; k++)
    fetches[k] = (weir_exec_fetch){.value = o->fetches[k]};
  return (weir_exec_request){.feeds = o->feeds,
                             .feed_count = o->feed_count,
                             .fetches = fetches,
                             .fetch_count = o->fetch_count,
                             .targets = o->targets,
                             .target_count = o->target_count,
                             .options = options};
}

static void place(office *o, const char *placer, bool train) {
  const weir_allocator *a = o->world.env.alloc;
  weir_place_request request = {.graph = o->graph,
                                .cluster = "ps=1,worker=2",
                                .inference = !train,
                                .options = {.placer = weir_placer_find(placer),
                                            .strictness = WEIR_PLACE_WARN,
                                            .ask = weir_compile_needs,
                                            .ask_self = &o->world.env}};
  weir_plan *homes = NULL;
  const weir_partition *partition = NULL;
  weir_exec_fetch fetches[ENGINE_FETCHES];
  assert_ok(weir_placing_create(a, &request, &o->placing, &homes, &o->err),
            &o->err);
  weir_plan_unref(homes);
  weir_session_options options = {.placing = o->placing};
  assert_ok(weir_exec_session_create(&o->world.env, o->pool, o->goal->graph,
                                     &options, &o->planner, &o->err),
            &o->err);
  assert_ok(weir_exec_session_create(&o->world.env, o->pool, o->goal->graph,
                                     NULL, &o->alone, &o->err),
            &o->err);
  const weir_graph *own = weir_session_graph(o->planner);
  bool mesh = o->graph->mesh != NULL;
  o->fetch_count = mesh ? own->output_count : o->goal->fetch_count;
  assert_true(o->fetch_count <= ENGINE_FETCHES);
  for (uint32_t k = 0; k < o->fetch_count; k++)
    o->fetches[k] = mesh ? own->outputs[k].value : o->goal->fetches[k];
  o->targets = o->goal->targets;
  o->target_count = o->goal->target_count;
  feed_all(o);
  weir_exec_request wanted = request_of(o, fetches, NULL);
  assert_ok(weir_session_cut_of(o->planner, &wanted, &o->cut, &o->err),
            &o->err);
  assert_ok(weir_placing_plan(o->placing, o->cut->graph, &o->plan, &o->err),
            &o->err);
  assert_ok(weir_plan_partition(o->plan, &partition, &o->err), &o->err);
  assert_ok(weir_task_cut_create(a, o->plan->placement, partition, &o->tasks,
                                 &o->err),
            &o->err);
}

static void pack(office *o, bool train) {
  const weir_allocator *a = o->world.env.alloc;
  weir_bundle bundle = {
      .sources = o->graph->sources, .train = train, .placing = o->placing};
  weir_strbuf_init(&o->bundle, a);
  weir_strbuf_init(&o->plan_bytes, a);
  assert_ok(weir_bundle_blobs_make(a, bundle.sources, &o->blobs, &o->err),
            &o->err);
  assert_ok(
      weir_bundle_pack(a, &bundle, &o->blobs, weir_session_graph(o->planner),
                       &o->bundle, &o->err),
      &o->err);
  assert_ok(weir_plan_pack(o->plan, &o->plan_bytes, &o->err), &o->err);
  weir_blob_name((weir_bytes){(uint8_t *)o->bundle.data, o->bundle.size},
                 o->bundle_name);
  weir_blob_name(
      (weir_bytes){(uint8_t *)o->plan_bytes.data, o->plan_bytes.size},
      o->plan_name);
}

static void begin(office *o) {
  const weir_cluster *c = o->placing->cluster;
  weir_exchange_options options = {
      .rendezvous = {.epoch = 9, .tasks = c->task_count},
      .out = &o->ends[ENGINES].out};
  o->count = c->task_count;
  for (uint32_t i = 0; i <= ENGINES; i++) {
    office_end_init(o, i);
  }
  for (uint32_t i = 0; i < o->count; i++) {
    snprintf(o->names[i], sizeof o->names[i], "%.*s:%u",
             WEIR_SV(c->tasks[i].job), c->tasks[i].index);
    o->name_list[i] = o->names[i];
  }
  assert_ok(weir_exchange_create(&o->world.env, &options, &o->remote, &o->err),
            &o->err);
  for (uint32_t i = 0; i < o->count; i++) {
    office_end *e = &o->ends[i];
    weir_run_engine_options run = {.threads = 1, .events = e->events};
    weir_engine_session session = {.epoch = 9,
                                   .self = i,
                                   .task_count = o->count,
                                   .tasks = o->name_list,
                                   .out = &e->out};
    assert_ok(weir_run_engine_create(&o->world.env, &run, &e->engine, &o->err),
              &o->err);
    assert_ok(e->engine->vt->begin(e->engine, &session, &o->err), &o->err);
    e->live = true;
  }
}

void office_open(office *o, const char *name, const char *text,
                 const char *placer, bool train) {
  *o = (office){.err = WEIR_ERROR_INIT};
  exec_world_init(&o->world);
  pthread_mutex_init(&o->lock, NULL);
  pthread_cond_init(&o->more, NULL);
  o->pool = exec_pool(&o->world, 1);
  load(o, name, text);
  assert_ok(weir_goal_create(o->graph, !train, &o->goal, &o->err), &o->err);
  place(o, placer, train);
  pack(o, train);
  begin(o);
}

static void drop_fetches(office *o) {
  for (uint32_t k = 0; k < ENGINE_FETCHES; k++) {
    weir_free(o->world.env.alloc, (void *)(uintptr_t)o->got[k].data);
    o->got[k] = (weir_bytes){NULL, 0};
  }
}

void office_close(office *o) {
  weir_error why = WEIR_ERROR_INIT;
  weir_fail(&why, WEIR_W7027, NULL, "the test ends");
  for (uint32_t i = 0; i < o->count; i++) {
    o->ends[i].live = false;
    o->ends[i].engine->vt->end(o->ends[i].engine);
  }
  for (uint32_t i = 0; i < o->count; i++)
    while (!o->ends[i].ended) office_pump(o);
  for (uint32_t i = 0; i < o->count; i++)
    o->ends[i].engine->vt->release(o->ends[i].engine);
  weir_exchange_abort(o->remote, &why);
  while (o->first != NULL) office_pump(o);
  weir_exchange_release(o->remote);
  drop_fetches(o);
  for (uint32_t i = 0; i < o->feed_count; i++)
    weir_tensor_unref(o->feeds[i].tensor);
  weir_bundle_blobs_release(&o->blobs);
  free(o->spoilt);
  weir_strbuf_release(&o->bundle);
  weir_strbuf_release(&o->plan_bytes);
  weir_task_cut_release(o->tasks);
  weir_plan_unref(o->plan);
  weir_cut_release(o->cut);
  weir_exec_session_release(o->planner);
  weir_exec_session_release(o->alone);
  weir_placing_unref(o->placing);
  weir_goal_release(o->goal);
  weir_graph_unref(o->graph);
  weir_pool_release(o->pool);
  pthread_cond_destroy(&o->more);
  pthread_mutex_destroy(&o->lock);
  exec_world_check_empty(&o->world);
}

/* ---- Programs and steps */

static bool works(const office *o, uint32_t place) {
  return o->tasks->tasks[place].part_count > 0;
}

void office_register(office *o) {
  if (!office_try_register(o)) fail_msg("%s %s", o->err.id, o->err.message);
}

bool office_try_register(office *o) {
  Weir__V1__Register r = WEIR__V1__REGISTER__INIT;
  Weir__V1__Feed feeds[ENGINE_FEEDS], *rows[ENGINE_FEEDS];
  Weir__V1__Shape shapes[ENGINE_FEEDS];
  int64_t dims[ENGINE_FEEDS][WEIR_MAX_RANK];
  weir_plan_hashes want;
  for (uint32_t i = 0; i < o->feed_count; i++) {
    const weir_tensor *t = o->feeds[i].tensor;
    feeds[i] = (Weir__V1__Feed)WEIR__V1__FEED__INIT;
    shapes[i] = (Weir__V1__Shape)WEIR__V1__SHAPE__INIT;
    for (int32_t d = 0; d < t->shape.rank; d++)
      dims[i][d] = t->shape.dims[d].value;
    shapes[i].n_dims = (size_t)t->shape.rank;
    shapes[i].dims = dims[i];
    feeds[i].value = o->feeds[i].value;
    feeds[i].dtype = t->dtype;
    feeds[i].shape = &shapes[i];
    rows[i] = &feeds[i];
  }
  r.program = 1;
  r.bundle = (ProtobufCBinaryData){WEIR_BLOB_NAME_BYTES, o->bundle_name};
  r.plan = (ProtobufCBinaryData){WEIR_BLOB_NAME_BYTES, o->plan_name};
  r.n_feeds = o->feed_count;
  r.feeds = rows;
  r.n_fetches = o->fetch_count;
  r.fetches = o->fetches;
  r.n_targets = o->target_count;
  r.targets = (uint32_t *)(uintptr_t)o->targets;
  assert_ok(weir_plan_hashes_get(o->plan, &want, &o->err), &o->err);
  for (uint32_t i = 0; i < o->count; i++)
    if (works(o, i))
      assert_ok(o->ends[i].engine->vt->add(o->ends[i].engine, &r, &o->err),
                &o->err);
  bool all = true;
  for (uint32_t i = 0; i < o->count; i++) {
    office_end *e = &o->ends[i];
    if (!works(o, i)) continue;
    while (!e->added) office_pump(o);
    e->added = false;
    if (e->error.id[0] != '\0') {
      o->err = e->error;
      all = false;
    } else {
      assert_null(weir_plan_hashes_differ(&want, &e->hashes));
    }
  }
  return all;
}

static void start_step(office *o, uint32_t place, uint64_t random_step) {
  office_end *e = &o->ends[place];
  weir_engine_value values[ENGINE_FEEDS];
  weir_engine_step step = {.program = 1,
                           .step = o->step,
                           .random_step = random_step,
                           .feeds = values};
  e->stepped = e->prepared = false;
  e->error = (weir_error)WEIR_ERROR_INIT;
  for (uint32_t i = 0; i < o->feed_count; i++) {
    weir_value_id id = o->cut->values[o->feeds[i].value];
    const weir_tensor *t = o->feeds[i].tensor;
    weir_slot slot = {WEIR__V1__VALUE_KIND__FEED, i, o->step};
    if (id == WEIR_NO_VALUE || weir_task_of_value(o->tasks, id) != place)
      continue;
    if (t->bytes <= WEIR_WIRE_VALUE_BYTES)
      values[step.feed_count++] = (weir_engine_value){i, t->data, t->bytes};
    else
      office_send(o, place, &slot, (weir_bytes){t->data, t->bytes});
  }
  assert_ok(e->engine->vt->start(e->engine, &step, &o->err), &o->err);
}

static void fetch_here(void *self, weir_status status, const weir_error *err) {
  (void)err;
  *(int *)self = status == WEIR_OK ? 1 : 2;
}

static void receive_fetches(office *o) {
  for (uint32_t k = 0; k < o->fetch_count; k++) {
    if (o->got[k].data != NULL) continue;
    int here = 0;
    weir_slot slot = {WEIR__V1__VALUE_KIND__FETCH, k, o->step};
    weir_channel_done done = {.fn = fetch_here, .self = &here};
    uint32_t maker = weir_task_of_value(o->tasks, o->cut->fetches[k]);
    weir_exchange_recv_owned(o->remote, maker, &slot, 64 << 20, &o->got[k],
                             &done);
    while (here == 0) office_pump(o);
  }
}

bool office_step(office *o, uint64_t random_step, bool commit) {
  weir_error why = WEIR_ERROR_INIT;
  bool failed = false;
  drop_fetches(o);
  o->step++;
  for (uint32_t i = 0; i < o->count; i++)
    if (works(o, i)) start_step(o, i, random_step);
  for (uint32_t i = 0; i < o->count; i++) {
    if (!works(o, i)) continue;
    while (!o->ends[i].stepped) office_pump(o);
    if (o->ends[i].error.id[0] != '\0') {
      o->err = o->ends[i].error;
      failed = true;
    }
  }
  receive_fetches(o);
  weir_fail(&why, WEIR_W7027, NULL, "the test gives it up");
  for (uint32_t i = 0; i < o->count; i++) {
    weir_engine *e = o->ends[i].engine;
    if (!works(o, i)) continue;
    if (commit && !failed)
      e->vt->commit(e, o->step);
    else
      e->vt->abort(e, o->step, &why);
  }
  if (failed || !commit) weir_exchange_drop(o->remote, o->step, &why);
  return !failed;
}

void office_compare(office *o, uint64_t random_step) {
  weir_exec_fetch fetches[ENGINE_FETCHES];
  weir_run_options options = {.step = random_step};
  weir_exec_request request = request_of(o, fetches, &options);
  assert_ok(weir_session_own_run(o->alone, &request, &o->err), &o->err);
  for (uint32_t k = 0; k < o->fetch_count; k++) {
    const weir_tensor *t = fetches[k].tensor;
    assert_int_equal(o->got[k].size, t->bytes);
    if (memcmp(o->got[k].data, t->data, t->bytes) != 0)
      fail_msg("fetch %u differs from one process", k);
    weir_tensor_unref(fetches[k].tensor);
  }
}

static void compare_variable(office *o, weir_node_id node, weir_sv name) {
  uint32_t home = weir_placing_home_task(o->placing, name);
  weir_tensor *want = NULL;
  weir_bytes got = {NULL, 0};
  int here = 0;
  assert_ok(weir_session_get(o->alone, node, &want, &o->err), &o->err);
  office_end *e = &o->ends[home];
  weir_slot slot = {WEIR__V1__VALUE_KIND__VARIABLE, node, ++o->request};
  weir_channel_done done = {.fn = fetch_here, .self = &here};
  weir_exchange_recv_owned(o->remote, home, &slot, 64 << 20, &got, &done);
  e->told = false;
  assert_ok(e->engine->vt->get(e->engine, 1, o->request, &node, 1, &o->err),
            &o->err);
  while (!e->told || here == 0) office_pump(o);
  if (e->error.id[0] != '\0') fail_msg("%s %s", e->error.id, e->error.message);
  assert_int_equal(got.size, want->bytes);
  if (memcmp(got.data, want->data, got.size) != 0)
    fail_msg("variable %.*s differs", WEIR_SV(name));
  weir_free(o->world.env.alloc, (void *)(uintptr_t)got.data);
  weir_tensor_unref(want);
}

void office_compare_variables(office *o) {
  const weir_graph *g = weir_session_graph(o->planner);
  for (weir_node_id id = 0; id < g->node_count; id++) {
    const weir_node *node = &g->nodes[id];
    if (node->op->instr != WEIR_INSTR_VAR_READ) continue;
    uint32_t home = weir_placing_home_task(o->placing, node->name);
    if (home != WEIR_PLACE_NONE && works(o, home))
      compare_variable(o, id, node->name);
  }
}

uint32_t office_crossings(const office *o) {
  return o->tasks->crossing_count;
}
