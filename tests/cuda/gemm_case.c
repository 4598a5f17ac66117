/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/cuda/gemm_case.h"

#include <dlfcn.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>

#include "tests/cuda/standin_lt/half.h"

const standin_lt_control *standin_lt;

int gemm_case_open(void **state) {
  char path[PATH_MAX + 32];
  cuda_world_open(state);
  snprintf(path, sizeof path, "%s/libcublasLt.so.13", cuda_folder);
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) fail_msg("%s", dlerror());
  standin_lt = dlsym(library, "standin_lt_functions");
  assert_int_equal(standin_lt != NULL, standin != NULL);
  return 0;
}

void gemm_case_check_clean(void) {
  if (standin == NULL) return;
  standin_lt_counts n = standin_lt->counts();
  standin_lt->reset();
  assert_int_equal(n.refused, 0);
  assert_int_equal(n.handles, 0);
  assert_int_equal(n.ops, 0);
  assert_int_equal(n.layouts, 0);
  assert_int_equal(n.preferences, 0);
  cuda_world_check_clean();
}

gemm_case gemm_case_make(weir_gemm_type type, const int64_t sizes[4],
                         bool a_transposed, bool b_transposed, uint64_t seed) {
  int64_t m = sizes[0], n = sizes[1], k = sizes[2], gap = (int64_t)(seed % 3);
  gemm_case c = {.desc = {.type = type,
                          .m = m,
                          .n = n,
                          .k = k,
                          .a_transposed = a_transposed,
                          .b_transposed = b_transposed,
                          .batch = sizes[3],
                          .alpha = 1},
                 .before = 3,
                 .seed = seed};
  weir_gemm_desc *d = &c.desc;
  d->a.ld = (a_transposed ? m : k) + gap;
  d->b.ld = (b_transposed ? k : n) + gap * 2 % 3;
  d->c.ld = n + (gap + 1) % 3;
  d->d.ld = n + gap;
  d->a.stride = (a_transposed ? k : m) * d->a.ld + 1;
  d->b.stride = (b_transposed ? n : k) * d->b.ld + gap;
  d->c.stride = m * d->c.ld + 2;
  d->d.stride = m * d->d.ld + gap;
  return c;
}

enum { kAfter = 2, kNaN = 0xFF }; /* elements; 0xFF.. is NaN */
enum { A, B, C, D, BIAS, WORKSPACE, COUNT };

/* An operand: |host| has what is copied in, from the buffer's start on. */
typedef struct operand {
  size_t bytes; /* 0: there is none */
  unsigned char *host;
  weir_device_buffer buffer;
} operand;

typedef struct runner {
  weir_device *device;
  const gemm_case *c;
  operand all[COUNT];
  unsigned char *result; /* D as it comes back */
  weir_queue *queue;
  weir_event *event;
} runner;

static size_t size_of(const runner *r) {
  static const size_t kSizes[] = {4, 4, 8, 2, 2};
  return kSizes[r->c->desc.type];
}

static double get(const runner *r, const unsigned char *data, int64_t at) {
  uint16_t half;
  float f32;
  double f64;
  const unsigned char *from = data + (size_t)(at + r->c->before) * size_of(r);
  switch (r->c->desc.type) {
    case WEIR_GEMM_F64:
      memcpy(&f64, from, sizeof f64);
      return f64;
    case WEIR_GEMM_BF16:
      memcpy(&half, from, sizeof half);
      return (double)f32_of_bf16(half);
    case WEIR_GEMM_F16:
      memcpy(&half, from, sizeof half);
      return (double)f32_of_f16(half);
    default:
      memcpy(&f32, from, sizeof f32);
      return (double)f32;
  }
}

static void put(const runner *r, unsigned char *data, int64_t at, double x) {
  uint16_t half =
      r->c->desc.type == WEIR_GEMM_F16 ? f16_of((float)x) : bf16_of((float)x);
  float f32 = (float)x;
  unsigned char *to = data + (size_t)(at + r->c->before) * size_of(r);
  if (size_of(r) == 2) memcpy(to, &half, 2);
  if (size_of(r) == 4) memcpy(to, &f32, 4);
  if (size_of(r) == 8) memcpy(to, &x, 8);
}

/* A quarter's multiple from -2 to 2. */
static double value(uint64_t *seed) {
  *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return ((double)(*seed >> 60) - 7) / 4;
}

/* Elements of all matrices of a batch. */
static size_t reach(int64_t rows, int64_t cols, int64_t batch,
                    weir_gemm_matrix m) {
  if (rows == 0 || cols == 0 || batch == 0) return 0;
  return (size_t)((batch - 1) * (batch > 1 ? m.stride : 0) + (rows - 1) * m.ld +
                  cols);
}

static void add(runner *r, int i, size_t elements) {
  operand *o = &r->all[i];
  if (elements == 0) return;
  o->bytes = (elements + (size_t)r->c->before + kAfter) * size_of(r);
  o->host = malloc(o->bytes);
  if (o->host != NULL) memset(o->host, kNaN, o->bytes);
}

/* Fills the matrices of a batch. */
static void fill(runner *r, int i, int64_t rows, int64_t cols,
                 weir_gemm_matrix m) {
  uint64_t seed = r->c->seed * 31 + (uint64_t)i;
  int64_t batch = r->c->desc.batch;
  add(r, i, reach(rows, cols, batch, m));
  if (r->all[i].bytes == 0) return;
  for (int64_t b = 0; b < batch; b++)
    for (int64_t row = 0; row < rows; row++)
      for (int64_t col = 0; col < cols; col++)
        put(r, r->all[i].host,
            b * (batch > 1 ? m.stride : 0) + row * m.ld + col, value(&seed));
}

/* D, and C where it is another one, are NaN where nothing is read. */
static void prepare(runner *r) {
  const weir_gemm_desc *d = &r->c->desc;
  bool at = d->a_transposed, bt = d->b_transposed;
  fill(r, A, at ? d->k : d->m, at ? d->m : d->k, d->a);
  fill(r, B, bt ? d->n : d->k, bt ? d->k : d->n, d->b);
  size_t c = reach(d->m, d->n, d->batch, d->c);
  if (d->beta != 0 && r->c->in_place)
    fill(r, D, d->m, d->n, d->d);
  else
    add(r, D, reach(d->m, d->n, d->batch, d->d));
  if (!r->c->in_place && d->beta != 0) fill(r, C, d->m, d->n, d->c);
  if (!r->c->in_place && d->beta == 0) add(r, C, c);
  if (d->epilogue % 2 == 1 && d->batch > 0) {
    const weir_gemm_matrix row = {.ld = d->n};
    fill(r, BIAS, 1, d->n, row);
  }
  r->result = r->all[D].bytes > 0 ? malloc(r->all[D].bytes) : NULL;
}

static double factor(const runner *r, int i, bool transposed,
                     weir_gemm_matrix m, const int64_t at[3]) {
  int64_t row = transposed ? at[1] : at[0], col = transposed ? at[0] : at[1];
  int64_t stride = r->c->desc.batch > 1 ? m.stride : 0;
  return get(r, r->all[i].host, at[2] * stride + row * m.ld + col);
}

/* What an element of D must be, before it is rounded. */
static double expected(const runner *r, int64_t b, int64_t row, int64_t col) {
  const weir_gemm_desc *d = &r->c->desc;
  double x = 0;
  for (int64_t i = 0; i < d->k; i++)
    x += factor(r, A, d->a_transposed, d->a, (int64_t[]){row, i, b}) *
         factor(r, B, d->b_transposed, d->b, (int64_t[]){i, col, b});
  x = d->k > 0 && d->alpha != 0 ? x * d->alpha : 0;
  if (d->beta != 0)
    x += d->beta * factor(r, r->c->in_place ? D : C, false,
                          r->c->in_place ? d->d : d->c,
                          (int64_t[]){row, col, b});
  if (r->all[BIAS].bytes > 0) x += get(r, r->all[BIAS].host, col);
  if (d->epilogue == WEIR_GEMM_RELU || d->epilogue == WEIR_GEMM_RELU_BIAS)
    return x < 0 ? 0 : x;
  if (d->epilogue >= WEIR_GEMM_GELU_TANH)
    return 0.5 * x *
           (1 + tanh(sqrt(2 / acos(-1)) * (x + 0.044715 * pow(x, 3))));
  return x;
}

/* How far from the exact value a result may lie: the last rounding, and what
 * tanh costs, of which cuBLASLt takes a quick one. Without it, not at all: both
 * are rounded the same way. */
static double tolerance(const runner *r, double want) {
  static const double kSteps[] = {0x1p-17, 0x1p-17, 0x1p-17, 0x1p-8, 0x1p-10};
  if (r->c->desc.epilogue < WEIR_GEMM_GELU_TANH) return 0;
  return kSteps[r->c->desc.type] * (1 + fabs(want));
}

/* Compares D; elements between its rows must be as they were. */
static weir_status check(const runner *r, weir_error *err) {
  const weir_gemm_desc *d = &r->c->desc;
  size_t bytes = r->all[D].bytes;
  unsigned char *rest = bytes > 0 ? malloc(bytes) : NULL;
  double got = 0, want = 0;
  bool right = true;
  if (rest == NULL) return WEIR_OK; /* no element */
  memcpy(rest, r->result, bytes);
  for (int64_t b = 0; b < d->batch && right; b++)
    for (int64_t row = 0; row < d->m && right; row++)
      for (int64_t col = 0; col < d->n && right; col++) {
        int64_t at = b * (d->batch > 1 ? d->d.stride : 0) + row * d->d.ld + col;
        got = get(r, r->result, at);
        put(r, rest, at, expected(r, b, row, col));
        want = get(r, rest, at);
        right = fabs(got - want) <= tolerance(r, want);
        memcpy(rest + (size_t)(at + r->c->before) * size_of(r),
               r->all[D].host + (size_t)(at + r->c->before) * size_of(r),
               size_of(r));
      }
  if (right) right = memcmp(rest, r->all[D].host, bytes) == 0;
  free(rest);
  if (right) return WEIR_OK;
  return weir_fail(err, WEIR_W9001, NULL,
                   "wrong: %g, want %g; type %d, %d x %d x %d, transposed %d "
                   "%d, batch %d, epilogue %d, beta %g, seed %d",
                   got, want, (int)d->type, (int)d->m, (int)d->n, (int)d->k,
                   d->a_transposed, d->b_transposed, (int)d->batch,
                   (int)d->epilogue, d->beta, (int)r->c->seed);
}

static weir_status bring_in(runner *r, weir_error *err) {
  weir_device *d = r->device;
  WEIR_TRY(d->vt->queue_create(d, &r->queue, err));
  WEIR_TRY(d->vt->event_create(d, &r->event, err));
  for (int i = 0; i < COUNT; i++) {
    operand *o = &r->all[i];
    if (o->bytes == 0) continue;
    WEIR_TRY(d->vt->alloc(d, o->bytes, &o->buffer, err));
    if (o->host == NULL) continue; /* the workspace */
    weir_device_place start = {&o->buffer, 0};
    WEIR_TRY(d->vt->copy_in(d, r->queue, start, o->host, o->bytes, err));
  }
  return WEIR_OK;
}

static weir_device_place place_of(const runner *r, int i) {
  const operand *o = &r->all[i];
  if (o->bytes == 0) return (weir_device_place){0};
  return (weir_device_place){&o->buffer, (size_t)r->c->before * size_of(r)};
}

static weir_status multiply(runner *r, const weir_gemm_plan *plan,
                            weir_error *err) {
  weir_device *d = r->device;
  weir_gemm_operands o = {.a = place_of(r, A),
                          .b = place_of(r, B),
                          .c = place_of(r, r->c->in_place ? D : C),
                          .d = place_of(r, D),
                          .bias = place_of(r, BIAS),
                          .workspace = place_of(r, WORKSPACE)};
  o.workspace.offset = 0;
  WEIR_TRY(d->vt->gemm->run(d, plan, r->queue, &o, err));
  if (r->result != NULL) {
    weir_device_place start = {&r->all[D].buffer, 0};
    WEIR_TRY(
        d->vt->copy_out(d, r->queue, r->result, start, r->all[D].bytes, err));
  }
  WEIR_TRY(d->vt->record(d, r->queue, r->event, err));
  WEIR_TRY(d->vt->wait(d, r->event, err));
  return check(r, err);
}

weir_status gemm_case_run_plan(weir_device *device, const gemm_case *c,
                               const weir_gemm_plan *plan,
                               size_t workspace_bytes, weir_error *err) {
  runner r = {.device = device, .c = c};
  prepare(&r);
  r.all[WORKSPACE].bytes = workspace_bytes;
  weir_status s = bring_in(&r, err);
  if (s == WEIR_OK) s = multiply(&r, plan, err);
  device->vt->queue_release(device, r.queue);
  device->vt->event_release(device, r.event);
  for (int i = 0; i < COUNT; i++) {
    device->vt->free(device, &r.all[i].buffer);
    free(r.all[i].host);
  }
  free(r.result);
  return s;
}

weir_status gemm_case_run(weir_device *device, const gemm_case *c,
                          weir_error *err) {
  const weir_gemm_vtable *gemm = device->vt->gemm;
  weir_gemm_plan *plan = NULL;
  size_t workspace_bytes = 0;
  weir_status s = gemm->plan(device, &c->desc, &plan, &workspace_bytes, err);
  if (s == WEIR_OK)
    s = gemm_case_run_plan(device, c, plan, workspace_bytes, err);
  gemm->release(device, plan);
  return s;
}
