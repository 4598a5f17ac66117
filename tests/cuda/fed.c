/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/cuda/fed.h"

#include "runtime/exec/gpu/gpu_tensor.h"

const char fed_text[] =
    "weir: 1\n"
    "inputs: {x: 'f32[5, 7]', n: 'f32[7] = ones([7])'}\n"
    "nodes:\n"
    "  y: add(x, n)\n"
    "  z: sub(mul(y, 2), x)\n"
    "  v: reshape(y, [35])\n"
    "outputs: [y, z, x, v]\n"
    "placement:\n";

float fed_value(int round, int i) {
  return (float)((i * 5 + round * 3) % 17 - 8);
}

static void count_release(void *self, void *data) {
  (void)data;
  ((foreign *)self)->released++;
}

weir_status foreign_write(foreign *f, int round, size_t offset,
                          weir_error *err) {
  float values[FED_COUNT];
  for (int i = 0; i < FED_COUNT; i++) values[i] = fed_value(round, i);
  return weir_gpu_write(f->gpu, (weir_device_place){&f->buffer, offset}, values,
                        sizeof values, err);
}

weir_status foreign_make(foreign *f, scene *s, size_t offset) {
  const int64_t dims[] = {FED_ROWS, FED_COLS};
  const weir_shape shape = weir_shape_of(2, dims);
  *f = (foreign){0};
  WEIR_TRY(weir_gpus_open(s->world.env.gpus, 0, &f->gpu, &s->err));
  weir_device *d = f->gpu->gpu.device;
  WEIR_TRY(
      d->vt->alloc(d, FED_COUNT * sizeof(float) + offset, &f->buffer, &s->err));
  WEIR_TRY(foreign_write(f, 0, offset, &s->err));
  const weir_tensor_memory memory = {
      WEIR_F32, &shape, (char *)f->buffer.handle + offset, count_release, f};
  WEIR_TRY(weir_tensor_wrap(s->world.env.alloc, &memory, &f->tensor, &s->err));
  weir_gpu_tensor_mark(f->tensor, 0);
  return WEIR_OK;
}

void foreign_drop(foreign *f) {
  bool made = f->tensor != NULL;
  weir_tensor_unref(f->tensor);
  assert_int_equal(f->released, made);
  if (f->buffer.handle == NULL) return;
  weir_device *d = f->gpu->gpu.device;
  d->vt->free(d, &f->buffer);
}

weir_value_id fed_input(const scene *s) {
  return s->graph->inputs[0].value;
}

weir_status fed_run(scene *s, weir_tensor *x, bool stays,
                    weir_exec_fetch *fetches) {
  const weir_exec_feed feed = {fed_input(s), x};
  for (uint32_t i = 0; i < s->graph->output_count; i++)
    fetches[i] =
        (weir_exec_fetch){.value = s->graph->outputs[i].value, .stays = stays};
  s->err = (weir_error)WEIR_ERROR_INIT;
  const weir_exec_request request = {.feeds = &feed,
                                     .feed_count = 1,
                                     .fetches = fetches,
                                     .fetch_count = s->graph->output_count};
  return weir_exec_run(s->session, &request, &s->err);
}
