/* SPDX-License-Identifier: Apache-2.0
 * Trains from C: a callback for every step, a stop when the loss is small, an
 * evaluation, and a run with the trained variables.
 *   cc train.c $(pkg-config --cflags --libs weir) -o train && ./train */
#include <stdio.h>
#include <weir.h>

static const char text[] =
    "weir: 1\n"
    "dims: [n]\n"
    "inputs: {x: 'f32[n]', y: 'f32[n]'}\n"
    "nodes:\n"
    "  a: var([], init=zeros())\n"
    "  b: var([], init=zeros())\n"
    "  line: add(mul(x, a), b)\n"
    "  loss: mean(square(sub(line, y)))\n"
    "outputs: [line]\n"
    "data:\n"
    "  train: {source: memory, values: {x: [0, 1, 2, 3], y: [1, 3, 5, 7]}, "
    "batch: 4}\n"
    "train:\n"
    "  minimize: loss\n"
    "  optimizer: momentum(lr=0.05, momentum=0.8)\n"
    "  steps: 5000\n"
    "  eval: {data: train, metrics: [loss]}\n";

static void on_step(void *self, const weir_train_progress *progress) {
  weir_trainer *const *trainer = self;
  if (progress->loss < 1e-10) weir_trainer_stop(*trainer);
}

static weir_status print(weir_trainer *trainer, const char *name,
                         weir_error *err) {
  weir_tensor *value = NULL;
  weir_status s = weir_trainer_variable_get(trainer, name, &value, err);
  if (s == WEIR_OK)
    printf("%s = %.3f\n", name,
           (double)*(const float *)weir_tensor_data(value));
  weir_tensor_release(value);
  return s;
}

int main(void) {
  weir_error err = WEIR_ERROR_INIT;
  weir_runtime *runtime = NULL;
  weir_graph *graph = NULL;
  weir_trainer *trainer = NULL;
  weir_train_end end = WEIR_TRAIN_END_GOING;
  weir_train_report report = {.struct_size = sizeof report};
  weir_train_callbacks calls = {
      .struct_size = sizeof calls, .self = &trainer, .step = on_step};
  weir_train_opts opts = {.struct_size = sizeof opts, .callbacks = &calls};
  weir_status s = weir_runtime_create(NULL, &runtime, &err);
  if (s == WEIR_OK)
    s = weir_graph_load_buffer(runtime, text, sizeof text - 1, "line", NULL,
                               &graph, &err);
  if (s == WEIR_OK)
    s = weir_trainer_create(runtime, graph, &opts, &trainer, &err);
  if (s == WEIR_OK) s = weir_trainer_run(trainer, &end, &err);
  if (s == WEIR_OK) s = weir_trainer_eval(trainer, NULL, &report, &err);
  if (s == WEIR_OK) {
    printf("%s, %s %s 1e-6\n", weir_train_end_name(end), report.values[0].name,
           report.values[0].value < 1e-6 ? "<" : ">=");
    s = print(trainer, "a", &err);
  }
  if (s == WEIR_OK) s = print(trainer, "b", &err);
  if (s != WEIR_OK) fprintf(stderr, "%s: %s\n", err.id, err.message);
  weir_trainer_release(trainer);
  weir_graph_release(graph);
  weir_runtime_release(runtime);
  return s == WEIR_OK ? 0 : 1;
}
