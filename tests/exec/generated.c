/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/exec/generated.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "placement/place.h"
#include "runtime/exec/session/session_run.h"
#include "runtime/graph/load/load.h"
#include "runtime/train/data/data_source.h"

enum { kWhyBytes = 512 };

bool run_load(const weir_env *env, const char *text, size_t size,
              weir_graph **out_graph, char *why) {
  weir_error err = WEIR_ERROR_INIT;
  weir_load_options options = {.registry = weir_builtin_registry(),
                               .data_form = weir_source_form};
  weir_status s = weir_graph_load_text(env, (weir_sv){text, size}, "generated",
                                       &options, out_graph, &err);
  if (s != WEIR_OK)
    snprintf(why, kWhyBytes, "load: %s %.400s", err.id, err.message);
  return s == WEIR_OK;
}

static void fill(weir_tensor *t, uint32_t seed) {
  float *data = t->data;
  uint32_t x = seed * 2654435761u + 1;
  for (size_t i = 0; i < t->bytes / sizeof *data; i++) {
    x = x * 1664525u + 1013904223u;
    data[i] = (float)(x >> 8) * 0x1p-23f - 1.0f;
  }
}

bool run_inputs(const weir_env *env, const weir_graph *graph,
                weir_tensor *inputs[RUN_INPUTS]) {
  bool ok = graph->input_count <= RUN_INPUTS;
  for (uint32_t i = 0; i < RUN_INPUTS; i++) inputs[i] = NULL;
  for (uint32_t i = 0; ok && i < graph->input_count; i++) {
    const weir_value *v = &graph->values[graph->inputs[i].value];
    if (v->dtype != WEIR_F32 && graph->inputs[i].has_default) continue;
    weir_shape shape = *v->shape; /* unknown sizes are 3 */
    for (int32_t d = 0; d < shape.rank; d++)
      if (!weir_dim_known(shape.dims[d])) shape.dims[d] = weir_dim_of(3);
    ok = weir_tensor_create_shaped(env->alloc, v->dtype, &shape, &inputs[i],
                                   NULL) == WEIR_OK;
    if (ok && v->dtype == WEIR_F32) fill(inputs[i], i);
    if (!ok || v->dtype == WEIR_F32) continue;
    memset(inputs[i]->data, 0, inputs[i]->bytes); /* ones: indices too */
    for (size_t at = 0; at < inputs[i]->bytes; at += weir_dtype_size(v->dtype))
      ((uint8_t *)inputs[i]->data)[at] = 1;
  }
  return ok;
}

void run_once(const weir_env *env, const weir_graph *graph,
              weir_tensor *const inputs[RUN_INPUTS], const run_way *way,
              run_result *out) {
  weir_exec_session *session = NULL;
  weir_exec_feed feeds[RUN_INPUTS];
  weir_exec_fetch fetches[RUN_OUTPUTS] = {{0}};
  uint32_t fed = 0;
  *out = (run_result){.error = WEIR_ERROR_INIT};
  for (uint32_t i = 0; i < graph->input_count; i++)
    if (inputs[i] != NULL)
      feeds[fed++] = (weir_exec_feed){graph->inputs[i].value, inputs[i]};
  out->count =
      graph->output_count < RUN_OUTPUTS ? graph->output_count : RUN_OUTPUTS;
  for (uint32_t i = 0; i < out->count; i++)
    fetches[i].value = graph->outputs[i].value;
  weir_session_options options = way->options;
  weir_placing *placing = NULL;
  weir_plan *plan = NULL;
  if (way->placer != NULL) {
    weir_place_request request = {
        .graph = graph,
        .cluster = "ps=1,worker=3",
        .options = {.placer = weir_placer_find(way->placer),
                    .seed = way->seed,
                    .strictness = WEIR_PLACE_WARN}};
    out->status =
        weir_placing_create(env->alloc, &request, &placing, &plan, &out->error);
    options.placing = placing;
    options.plan = plan;
  }
  if (out->status == WEIR_OK)
    out->status = weir_exec_session_create(env, way->pool, graph, &options,
                                           &session, &out->error);
  weir_exec_request request = {.feeds = feeds,
                               .feed_count = fed,
                               .fetches = fetches,
                               .fetch_count = out->count};
  if (out->status == WEIR_OK)
    out->status = weir_exec_run(session, &request, &out->error);
  for (uint32_t i = 0; i < out->count; i++) out->outputs[i] = fetches[i].tensor;
  weir_exec_session_release(session);
  weir_plan_unref(plan);
  weir_placing_unref(placing);
}

void run_release(run_result *result) {
  for (uint32_t i = 0; i < result->count; i++)
    weir_tensor_unref(result->outputs[i]);
  result->count = 0;
}

static bool same_form(const weir_graph *graph, const run_result *a,
                      const run_result *b, char *why) {
  if (a->status != b->status || strcmp(a->error.id, b->error.id) != 0) {
    snprintf(why, kWhyBytes, "'%s %.200s' and '%s %.200s'", a->error.id,
             a->error.message, b->error.id, b->error.message);
    return false;
  }
  for (uint32_t i = 0; a->status == WEIR_OK && i < a->count; i++) {
    const weir_tensor *x = a->outputs[i], *y = b->outputs[i];
    if (x->dtype == y->dtype && weir_shape_equal(&x->shape, &y->shape))
      continue;
    snprintf(why, kWhyBytes, "%.*s: shapes differ",
             (int)graph->outputs[i].name.size, graph->outputs[i].name.data);
    return false;
  }
  return true;
}

static bool same_tensor(const weir_tensor *x, const weir_tensor *y, char *why) {
  const uint8_t *a = x->data, *b = y->data;
  size_t size = weir_dtype_size(x->dtype), at = 0;
  if (x->bytes == 0 || memcmp(a, b, x->bytes) == 0) return true;
  while (a[at] == b[at]) at++;
  int n = snprintf(why, kWhyBytes, "element %zu of %zu differs", at / size,
                   x->bytes / size);
  if (x->dtype == WEIR_F32)
    snprintf(why + n, kWhyBytes - (size_t)n, ": %a and %a",
             (double)((const float *)x->data)[at / size],
             (double)((const float *)y->data)[at / size]);
  return false;
}

static void put_output(const weir_graph *graph, uint32_t i, char *why) {
  char text[kWhyBytes];
  snprintf(text, sizeof text, "%.*s: %.300s", (int)graph->outputs[i].name.size,
           graph->outputs[i].name.data, why);
  memcpy(why, text, sizeof text);
}

bool run_same_bits(const weir_graph *graph, const run_result *a,
                   const run_result *b, char *why) {
  if (!same_form(graph, a, b, why)) return false;
  if (a->status != WEIR_OK) return true;
  for (uint32_t i = 0; i < a->count; i++) {
    if (same_tensor(a->outputs[i], b->outputs[i], why)) continue;
    put_output(graph, i, why);
    return false;
  }
  return true;
}

static bool near_tensor(const weir_tensor *x, const weir_tensor *y,
                        double tolerance, char *why) {
  const float *a = x->data, *b = y->data;
  size_t n = x->bytes / sizeof *a;
  double top = 1;
  for (size_t i = 0; i < n; i++)
    if (isfinite(a[i]) && fabs((double)a[i]) > top) top = fabs((double)a[i]);
  for (size_t i = 0; i < n; i++) {
    bool finite = isfinite(a[i]) && isfinite(b[i]);
    if (!finite && (isnan(a[i]) ? isnan(b[i]) : a[i] == b[i])) continue;
    if (finite && fabs((double)a[i] - (double)b[i]) <= tolerance * top)
      continue;
    snprintf(why, kWhyBytes, "element %zu of %zu: %.9g, want %.9g", i, n,
             (double)b[i], (double)a[i]);
    return false;
  }
  return true;
}

bool run_near(const weir_graph *graph, const run_result *want,
              const run_result *got, double tolerance, char *why) {
  if (!same_form(graph, want, got, why)) return false;
  if (want->status != WEIR_OK) return true;
  for (uint32_t i = 0; i < want->count; i++) {
    if (want->outputs[i]->dtype != WEIR_F32) continue;
    if (near_tensor(want->outputs[i], got->outputs[i], tolerance, why))
      continue;
    put_output(graph, i, why);
    return false;
  }
  return true;
}
