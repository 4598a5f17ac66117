/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/cuda/graph_case.h"

#include "kernels/cuda/ew.h"

enum { kSide = GRAPH_CASE_SIDE, kCount = GRAPH_CASE_COUNT };
enum { kBytes = kCount * sizeof(float), kRow = kSide * sizeof(float) };

static const float kWeights[kCount] = {1, 2,  0, -1, 3, -2, 1, 0,
                                       0, -1, 2, 2,  1, 1,  1, -3};
static const float kBias[kSide] = {1, -2, 3, 4};

static weir_device_place at(const weir_device_buffer *b) {
  return (weir_device_place){b, 0};
}

/* |k| is 4, or 0: then the product is the bias. */
static weir_status plan(graph_case *c, int64_t k, weir_gemm_plan **out_plan,
                        weir_device_buffer *out_scratch) {
  const weir_gemm_desc desc = {.type = WEIR_GEMM_F32,
                               .epilogue = WEIR_GEMM_BIAS,
                               .m = kSide,
                               .n = kSide,
                               .k = k,
                               .batch = 1,
                               .a = {.ld = kSide},
                               .b = {.ld = kSide},
                               .d = {.ld = kSide},
                               .alpha = 1};
  size_t bytes = 0;
  WEIR_TRY(c->d->vt->gemm->plan(c->d, &desc, out_plan, &bytes, &c->err));
  return c->d->vt->alloc(c->d, bytes, out_scratch, &c->err);
}

static weir_status make_buffers(graph_case *c) {
  const weir_device_vtable *vt = c->d->vt;
  weir_device_buffer *all[] = {&c->x, &c->y, &c->w, &c->z, &c->t, &c->u};
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
    WEIR_TRY(vt->alloc(c->d, kBytes, all[i], &c->err));
  WEIR_TRY(vt->alloc(c->d, kRow, &c->bias, &c->err));
  WEIR_TRY(vt->host_alloc(c->d, kBytes, (void **)&c->in, &c->err));
  return vt->host_alloc(c->d, 2 * kBytes, (void **)&c->out, &c->err);
}

static weir_status make_all(graph_case *c) {
  const weir_device_vtable *vt = c->d->vt;
  WEIR_TRY(vt->queue_create(c->d, &c->q, &c->err));
  WEIR_TRY(vt->queue_create(c->d, &c->p, &c->err));
  WEIR_TRY(vt->event_create(c->d, &c->e, &c->err));
  WEIR_TRY(vt->body(c->d, "unary_f32", &c->unary, &c->err));
  WEIR_TRY(vt->body(c->d, "fill", &c->fill, &c->err));
  WEIR_TRY(make_buffers(c));
  WEIR_TRY(plan(c, kSide, &c->product, &c->scratch[0]));
  WEIR_TRY(plan(c, 0, &c->rows, &c->scratch[1]));
  WEIR_TRY(vt->copy_in(c->d, c->q, at(&c->w), kWeights, kBytes, &c->err));
  WEIR_TRY(vt->copy_in(c->d, c->q, at(&c->bias), kBias, kRow, &c->err));
  return graph_case_wait(c, c->q);
}

weir_status graph_case_create(graph_case *c, const weir_allocator *alloc,
                              size_t limit_bytes) {
  weir_device_name name = weir_device_name_any();
  name.index = (weir_index_range){0, 0};
  *c = (graph_case){.err = WEIR_ERROR_INIT};
  WEIR_TRY(cuda_world_create(alloc, &name, limit_bytes, &c->d, &c->err));
  c->created = true;
  WEIR_TRY(make_all(c));
  c->ready = true;
  return WEIR_OK;
}

void graph_case_release(graph_case *c) {
  if (c->d == NULL) return;
  const weir_device_vtable *vt = c->d->vt;
  weir_device_buffer *all[] = {&c->x,    &c->y,          &c->w,
                               &c->bias, &c->z,          &c->t,
                               &c->u,    &c->scratch[0], &c->scratch[1]};
  vt->queue_release(c->d, c->q);
  vt->queue_release(c->d, c->p);
  vt->graph_release(c->d, c->graph);
  vt->event_release(c->d, c->e);
  vt->gemm->release(c->d, c->product);
  vt->gemm->release(c->d, c->rows);
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
    vt->free(c->d, all[i]);
  vt->host_free(c->d, c->in);
  vt->host_free(c->d, c->out);
  weir_device_release(c->d);
}

void graph_case_fill(graph_case *c, int round) {
  for (int i = 0; i < kCount; i++)
    c->in[i] = (float)((i * 7 + round * 5) % 11 - 5);
  for (int i = 0; i < 2 * kCount; i++) c->out[i] = 99;
}

static weir_status put_launches(graph_case *c) {
  const weir_device_grid grid = {{1, 1, 1}, WEIR_BODY_THREADS, 0};
  const weir_device_vtable *vt = c->d->vt;
  const weir_gemm_operands product = {.a = at(&c->y),
                                      .b = at(&c->w),
                                      .d = at(&c->z),
                                      .bias = at(&c->bias),
                                      .workspace = at(&c->scratch[0])};
  const float seven = 7;
  weir_unary_args relu = {
      .y = c->y.handle, .x = c->x.handle, .n = kCount, .op = WEIR_UNARY_relu};
  weir_fill_args fill = {.y = c->z.handle, .n = 1, .size = sizeof seven};
  memcpy(&fill.value, &seven, sizeof seven);
  WEIR_TRY(
      vt->launch(c->d, c->q, c->unary, &grid, &relu, sizeof relu, &c->err));
  WEIR_TRY(vt->gemm->run(c->d, c->product, c->q, &product, &c->err));
  return vt->launch(c->d, c->q, c->fill, &grid, &fill, sizeof fill, &c->err);
}

weir_status graph_case_put(graph_case *c) {
  const weir_device_vtable *vt = c->d->vt;
  const weir_gemm_operands rows = {
      .d = at(&c->u), .bias = at(&c->bias), .workspace = at(&c->scratch[1])};
  WEIR_TRY(vt->copy_in(c->d, c->q, at(&c->x), c->in, kBytes, &c->err));
  WEIR_TRY(put_launches(c));
  WEIR_TRY(vt->copy(c->d, c->q, at(&c->t), at(&c->z), kBytes, &c->err));
  WEIR_TRY(vt->copy_out(c->d, c->q, c->out, at(&c->t), kBytes, &c->err));
  WEIR_TRY(vt->gemm->run(c->d, c->rows, c->q, &rows, &c->err));
  return vt->copy_out(c->d, c->q, c->out + kCount, at(&c->u), kBytes, &c->err);
}

weir_status graph_case_capture(graph_case *c) {
  weir_error other = WEIR_ERROR_INIT;
  WEIR_TRY(c->d->vt->capture_begin(c->d, c->q, &c->err));
  weir_status s = graph_case_put(c);
  weir_status ended = c->d->vt->capture_end(c->d, c->q, &c->graph,
                                            s == WEIR_OK ? &c->err : &other);
  return s == WEIR_OK ? ended : s;
}

weir_status graph_case_wait(graph_case *c, weir_queue *q) {
  WEIR_TRY(c->d->vt->record(c->d, q, c->e, &c->err));
  return c->d->vt->wait(c->d, c->e, &c->err);
}

void graph_case_check(const graph_case *c) {
  float want[2 * kCount];
  for (int i = 0; i < kCount; i++) {
    want[i] = want[kCount + i] = kBias[i % kSide];
    for (int k = 0; k < kSide; k++) {
      float x = c->in[i / kSide * kSide + k];
      want[i] += (x > 0 ? x : 0) * kWeights[k * kSide + i % kSide];
    }
  }
  want[0] = 7;
  for (int i = 0; i < 2 * kCount; i++)
    if (want[i] != c->out[i])
      fail_msg("value %d: %g, want %g", i, (double)c->out[i], (double)want[i]);
}
