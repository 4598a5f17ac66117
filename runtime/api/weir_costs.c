/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/api/weir_costs.h"

#include <stdio.h>
#include <string.h>

#include "placement/lower/cost_file_read.h"
#include "runtime/base/machine/machine.h"
#include "runtime/base/strbuf.h"
#include "runtime/exec/gpu/gpus.h"
#include "runtime/exec/measure/calibrate.h"
#include "runtime/exec/measure/calibrate_gpu.h"
#include "runtime/exec/measure/calibrate_gpu_link.h"
#include "runtime/exec/measure/calibrate_link.h"

/* ---- Facts of this machine */

/* The fact of weir_fact called |name|. */
static weir_sv fact(const char *name, char *text, size_t capacity) {
  const char *found;
  for (size_t i = 0; weir_fact(i, &found, text, capacity); i++)
    if (strcmp(found, name) == 0 && text[0] != '\0') return weir_sv_from(text);
  return WEIR_SV_LIT("unknown");
}

static weir_status describe_machine(weir_costs *costs, weir_error *err) {
  char text[256], build[700], version[64], onednn[64];
  weir_machine machine;
  weir_machine_read(&machine);
  WEIR_TRY(weir_costs_set_fact(costs, WEIR_SV_LIT("cpu"),
                               weir_sv_from(machine.name), err));
  WEIR_TRY(weir_costs_set_fact(costs, WEIR_SV_LIT("features"),
                               fact("cpu", text, sizeof text), err));
  WEIR_TRY(weir_costs_set_fact(costs, WEIR_SV_LIT("cores"),
                               fact("cores", text, sizeof text), err));
  snprintf(build, sizeof build, "weir %.*s, %.*s, oneDNN %.*s",
           WEIR_SV(fact("version", version, sizeof version)),
           WEIR_SV(fact("compiler", text, sizeof text)),
           WEIR_SV(fact("onednn", onednn, sizeof onednn)));
  return weir_costs_set_fact(costs, WEIR_SV_LIT("build"), weir_sv_from(build),
                             err);
}

/* Of a table that holds times of a GPU. */
static weir_status describe_gpu(weir_runtime *runtime, weir_costs *costs,
                                weir_error *err) {
  char text[128];
  WEIR_TRY(weir_gpus_name(runtime->env.gpus, text, sizeof text, err));
  return weir_costs_set_fact(costs, WEIR_SV_LIT("gpu"), weir_sv_from(text),
                             err);
}

static bool tells_of_gpus(const weir_costs *costs) {
  for (uint32_t i = 0; i < costs->fact_count; i++)
    if (weir_sv_is(costs->facts[i].name, "gpu")) return true;
  return false;
}

/* ---- Files */

/* A cost file that is read. */
typedef struct cost_source {
  const char *path;
  bool again; /* measured once more: the file may be missing, and costs of
               * another machine are dropped */
  const weir_diag_sink *sink; /* of warnings; may be NULL */
} cost_source;

static void warn(const cost_source *from, const weir_cost_fact *fact,
                 weir_sv here) {
  weir_error warning = WEIR_ERROR_INIT;
  (void)weir_fail(&warning, WEIR_W3046, NULL,
                  "%.100s was measured elsewhere: its %.*s is \"%.150s\", "
                  "here it is \"%.150s\"",
                  from->path, WEIR_SV(fact->name), fact->text.data,
                  here.size == 0 ? "" : here.data);
  if (from->again)
    weir_hint(&warning, "its earlier contents were dropped");
  else
    weir_hint(&warning, "measure here: --calibrate");
  weir_diag_warn(from->sink, &warning);
}

/* Compares the facts of the file with this machine's; the first difference is a
 * warning. */
static weir_status compare(weir_runtime *runtime, const weir_costs *costs,
                           const cost_source *from, bool *same,
                           weir_error *err) {
  weir_costs *here = NULL;
  weir_sv text;
  WEIR_TRY(weir_costs_create(runtime->env.alloc, &here, err));
  weir_error none = WEIR_ERROR_INIT;
  weir_status s = describe_machine(here, err);
  if (s == WEIR_OK && tells_of_gpus(costs))
    (void)describe_gpu(runtime, here, &none); /* no GPU is a difference */
  const weir_cost_fact *f =
      s == WEIR_OK ? weir_costs_differ(costs, here, &text) : NULL;
  if (f != NULL) warn(from, f, text);
  *same = f == NULL;
  weir_costs_release(here);
  return s;
}

static weir_status read_costs(weir_runtime *runtime, const cost_source *from,
                              weir_costs **out_costs, weir_error *err) {
  const char *path = from->path;
  const weir_fs *fs = runtime->env.fs;
  weir_file file = {0};
  weir_error missing = WEIR_ERROR_INIT;
  weir_costs *costs = NULL;
  bool same = false;
  *out_costs = NULL;
  weir_status s = fs->read(fs->self, NULL, path, WEIR_COST_FILE_BYTES, false,
                           &file, &missing);
  if (s == WEIR_NOT_FOUND && from->again) return WEIR_OK;
  if (s != WEIR_OK) {
    weir_error_copy(err, &missing);
    return s;
  }
  weir_sv text = {(const char *)file.bytes.data, file.bytes.size};
  s = weir_costs_read(runtime->env.alloc, text, path, &costs, err);
  fs->close(fs->self, &file);
  if (s == WEIR_OK) s = compare(runtime, costs, from, &same, err);
  if (s == WEIR_OK && (same || !from->again))
    *out_costs = costs;
  else
    weir_costs_release(costs);
  return s;
}

static weir_status save_costs(weir_runtime *runtime, const weir_costs *costs,
                              const char *path, weir_error *err) {
  const weir_fs *fs = runtime->env.fs;
  weir_strbuf text;
  weir_strbuf_init(&text, runtime->env.alloc);
  weir_writer out = weir_strbuf_writer(&text);
  weir_status s = weir_costs_write(costs, &out)
                      ? weir_strbuf_status(&text, err)
                      : weir_fail_memory(err, text.size);
  weir_sv view = weir_strbuf_view(&text);
  weir_bytes bytes = {(const uint8_t *)view.data, view.size};
  if (s == WEIR_OK) s = fs->write(fs->self, path, bytes, err);
  weir_strbuf_release(&text);
  return s;
}

static weir_status measure_costs(weir_runtime *runtime,
                                 const weir_measure_request *request,
                                 weir_costs **costs, weir_error *err) {
  if (*costs == NULL)
    WEIR_TRY(weir_costs_create(runtime->env.alloc, costs, err));
  WEIR_TRY(describe_machine(*costs, err));
  return weir_calibrate(&runtime->env, request, *costs, err);
}

/* ---- Costs for a plan */

/* The units of request |r|, not placed yet. */
static weir_status lower(const weir_place_request *r, const weir_goal *goal,
                         const weir_cluster *cluster, weir_placement **out,
                         weir_error *err) {
  const weir_graph *g = goal->graph;
  weir_lower_options options = {
      .strictness = r->options.strictness,
      .logical = r->graph->mesh != NULL && r->graph->mesh->logical};
  weir_cut *cut = NULL;
  weir_shape *shapes =
      weir_alloc_array(g->alloc, g->input_count, sizeof *shapes);
  if (shapes == NULL)
    return weir_fail_memory(err, g->input_count * sizeof *shapes);
  weir_status s = weir_graph_input_shapes(g, r->shapes, 0, shapes, err);
  if (s == WEIR_OK) s = weir_goal_cut(goal, shapes, &cut, err);
  if (s == WEIR_OK)
    s = weir_placement_create(g->alloc, cut->graph, cluster, &options, out,
                              err);
  weir_cut_release(cut);
  weir_free(g->alloc, shapes);
  return s;
}

/* Once for each number of threads that a device of the cluster has. */
static weir_status measure_devices(weir_runtime *runtime,
                                   const weir_cluster *cluster,
                                   weir_measure_request *request,
                                   weir_costs **costs, weir_error *err) {
  for (uint32_t c = 0; c < cluster->class_count; c++) {
    const weir_cluster_class *cls = &cluster->classes[c];
    bool measured = false;
    for (uint32_t b = 0; b < c; b++)
      measured |= cluster->classes[b].count > 0 &&
                  cluster->classes[b].kind == cls->kind &&
                  cluster->classes[b].threads == cls->threads;
    if (cls->count == 0 || measured || !weir_device_kinds[cls->kind]->host)
      continue;
    request->threads = (int)cls->threads;
    WEIR_TRY(measure_costs(runtime, request, costs, err));
  }
  return WEIR_OK;
}

static weir_status measure_gpus(weir_runtime *runtime,
                                const weir_place_request *r,
                                const weir_cluster *cluster, weir_costs *costs,
                                weir_error *err) {
  uint32_t count;
  WEIR_TRY(weir_gpus_count(runtime->env.gpus, &count, err));
  WEIR_TRY(weir_calibrate_gpu(&runtime->env, r, costs, err));
  bool two = count > 1 && cluster->kind_count[WEIR_GPU] > 1;
  WEIR_TRY(weir_calibrate_gpu_links(&runtime->env, two, costs, err));
  return describe_gpu(runtime, costs, err);
}

/* Where they cannot be measured, that is a warning: a plan may be for GPUs that
 * are not there. */
static void try_gpus(weir_runtime *runtime, const weir_place_request *r,
                     const weir_cluster *cluster, weir_costs *costs) {
  weir_error why = WEIR_ERROR_INIT;
  if (cluster->kind_count[WEIR_GPU] == 0 ||
      measure_gpus(runtime, r, cluster, costs, &why) == WEIR_OK)
    return;
  weir_hint(&why,
            "no GPU was measured: units on GPUs keep the costs of the table");
  weir_diag_warn(r->sink, &why);
}

/* Measures those units, and copies where the cluster has two devices. */
static weir_status measure(weir_runtime *runtime, const weir_place_request *r,
                           weir_costs **costs, weir_error *err) {
  weir_cluster *cluster = NULL;
  weir_placement *units = NULL;
  weir_goal *goal = NULL;
  weir_status s = weir_cluster_choose(runtime->env.alloc, r, &cluster, err);
  if (s == WEIR_OK) s = weir_goal_create(r->graph, r->inference, &goal, err);
  if (s == WEIR_OK) goal->with_gpus = cluster->kind_count[WEIR_GPU] > 0;
  if (s == WEIR_OK) s = lower(r, goal, cluster, &units, err);
  if (s == WEIR_OK) {
    weir_measure_request request = {
        .goal = goal, .shapes = r->shapes, .placement = units};
    s = measure_devices(runtime, cluster, &request, costs, err);
  }
  if (s == WEIR_OK && cluster->device_count > 1)
    s = weir_calibrate_link(&runtime->env, *costs, err);
  if (s == WEIR_OK) try_gpus(runtime, r, cluster, *costs);
  weir_placement_release(units);
  weir_goal_release(goal);
  weir_cluster_release(cluster);
  return s;
}

/* The costs of the file, with the new measurements. */
weir_status weir_plan_costs_find(weir_runtime *runtime, const weir_plan_opts *o,
                                 const weir_place_request *r,
                                 weir_costs **costs, weir_error *err) {
  cost_source from = {o->costs, o->calibrate, r->sink};
  if (o->before != NULL && o->costs == NULL && !o->calibrate &&
      o->before->placing->costs != NULL)
    *costs = weir_costs_ref(o->before->placing->costs);
  if (o->costs != NULL) WEIR_TRY(read_costs(runtime, &from, costs, err));
  if (!o->calibrate) return WEIR_OK;
  WEIR_TRY(measure(runtime, r, costs, err));
  return o->costs == NULL ? WEIR_OK
                          : save_costs(runtime, *costs, o->costs, err);
}
