/* SPDX-License-Identifier: Apache-2.0 */
#include <stdbool.h>
#include <string.h>

#include "kernels/kernel.h"
#include "runtime/base/env_system.h"
#include "runtime/dist/predict/answer.h"
#include "runtime/dist/predict/request.h"
#include "runtime/graph/load/load.h"
#include "runtime/net/rpc/services.h"
#include "tests/fuzz/fuzz.h"

/* Reads the input as a request to a server of predictions: the first byte says
 * to which service, and of which graph. A request that is taken must fit the
 * graph in all that the runners count on; a refusal has one of the ids that are
 * promised, and says why. */

#define HEAD "weir: 1\ndims: [b, n, m]\n"

enum { GRAPHS = 4, HEALTH = GRAPHS, WATCH, REFLECT };

static const char *const kTexts[GRAPHS] = {
    /* Rows of a batch. */
    HEAD
    "inputs: {x: 'f32[b, 2]', t: 'i32[b]'}\n"
    "nodes: {s: 'sum(x, axis=1)', y: 'add(s, cast(t, f32))'}\n"
    "outputs: [y, s]\n",
    /* Any shapes, and an input with a default. */
    HEAD
    "inputs: {x: 'f64[n, m]', k: 'f64[] = const(2, dtype=f64)', "
    "u: 'i64[m]'}\n"
    "nodes: {y: 'mul(sum(x), k)', z: 'sum(u)'}\noutputs: [y, z]\n",
    /* Values that kernels trust. */
    HEAD
    "inputs: {x: 'bool[b, 3]', p: 'u8[b, 1, 2]'}\n"
    "nodes: {y: 'cast(x, f32)', q: 'cast(p, f32)'}\n"
    "outputs: [y, q]\n",
    /* One shape and no batch. */
    "weir: 1\ninputs: {x: 'f32[2, 2]'}\nnodes: {y: 'neg(x)'}\noutputs: [y]\n"};

static weir_graph *graphs[GRAPHS];
static weir_predict_model models[GRAPHS];

/* Kept for the life of the process, where sanitizers can see them. */
static void make_models(void) {
  weir_error err = WEIR_ERROR_INIT;
  const weir_load_options load = {.registry = weir_builtin_registry()};
  if (graphs[0] != NULL) return;
  for (int i = 0; i < GRAPHS; i++) {
    weir_status s =
        weir_graph_load_text(weir_env_system(), weir_sv_from(kTexts[i]), "g",
                             &load, &graphs[i], &err);
    if (s == WEIR_OK)
      s = weir_predict_model_init(weir_allocator_system(), graphs[i],
                                  i < 3 ? 8 : 0, &models[i], &err);
    if (s != WEIR_OK) fprintf(stderr, "%s: %s\n", err.id, err.message);
    FUZZ_CHECK(s == WEIR_OK);
  }
  FUZZ_CHECK(models[0].rows == 8 && models[1].rows == 0);
}

static bool is_one_of(const char *id, const char *ids) {
  return strlen(id) == 5 && strstr(ids, id) != NULL;
}

/* ---- Predictions */

static void check_feed(const weir_predict_model *m, uint32_t i,
                       const weir_predict_request *r, weir_bytes bytes) {
  const weir_predict_port *port = &m->inputs[i];
  const weir_predict_feed *f = &r->feeds[i];
  FUZZ_CHECK(f->given || !weir_predict_must_feed(m, port));
  if (!f->given) return;
  FUZZ_CHECK(weir_predict_may_feed(m, port));
  FUZZ_CHECK(weir_shape_known(&f->shape));
  FUZZ_CHECK(f->shape.rank == port->shape->rank);
  for (int32_t k = 0; k < f->shape.rank; k++) {
    weir_dim want = port->shape->dims[k], have = f->shape.dims[k];
    FUZZ_CHECK(have.value >= 0);
    if (k == 0 && port->batched)
      FUZZ_CHECK(have.value == r->rows);
    else if (weir_dim_known(want))
      FUZZ_CHECK(have.value == want.value);
  }
  size_t size = weir_shape_bytes(&f->shape, port->dtype);
  if (port->batched) FUZZ_CHECK(size == (size_t)r->rows * port->row_bytes);
  if (size == 0) return;
  FUZZ_CHECK(f->data >= bytes.data && size <= bytes.size &&
             (size_t)(f->data - bytes.data) <= bytes.size - size);
  for (size_t k = 0; port->dtype == WEIR_BOOL && k < size; k++)
    FUZZ_CHECK(f->data[k] <= 1);
}

static void check_request(const weir_predict_model *m,
                          const weir_predict_request *r, weir_bytes bytes) {
  FUZZ_CHECK(r->rows >= 1 && r->rows <= (m->rows > 0 ? m->rows : 1));
  FUZZ_CHECK(r->output_count >= 1 && r->output_count <= m->output_count);
  for (uint32_t i = 0; i < r->output_count; i++) {
    FUZZ_CHECK(r->outputs[i] < m->output_count);
    for (uint32_t k = 0; k < i; k++) FUZZ_CHECK(r->outputs[i] != r->outputs[k]);
  }
  for (uint32_t i = 0; i < m->input_count; i++) check_feed(m, i, r, bytes);
}

static void read_request(const weir_predict_model *m, weir_bytes bytes) {
  weir_error err = WEIR_ERROR_INIT;
  weir_predict_request *r =
      weir_predict_request_create(weir_allocator_system(), m);
  FUZZ_CHECK(r != NULL);
  weir_status s = weir_predict_request_read(m, bytes, r, &err);
  if (s == WEIR_OK)
    check_request(m, r, bytes);
  else
    FUZZ_CHECK(
        err.message[0] != '\0' &&
        is_one_of(err.id, "W7075 W4009 W4011 W4012 W4016 W2001 W2002 W2003"));
  weir_free(weir_allocator_system(), r);
}

/* ---- The other services */

typedef weir_status (*service_fn)(weir_bytes request, weir_strbuf *answer,
                                  weir_error *err);

static weir_status check(weir_bytes request, weir_strbuf *answer,
                         weir_error *err) {
  return weir_rpc_health(request, true, answer, err);
}

static weir_status watch(weir_bytes request, weir_strbuf *answer,
                         weir_error *err) {
  bool known;
  WEIR_TRY(weir_rpc_health_known(request, &known, err));
  return weir_rpc_health_tell(
      known ? WEIR_RPC_SERVING : WEIR_RPC_SERVICE_UNKNOWN, answer, err);
}

static void ask(service_fn fn, weir_bytes request) {
  weir_error err = WEIR_ERROR_INIT;
  weir_strbuf answer;
  weir_strbuf_init(&answer, weir_allocator_system());
  weir_status s = fn(request, &answer, &err);
  FUZZ_CHECK(s == WEIR_OK ? answer.size > 0 : is_one_of(err.id, "W7075 W7076"));
  weir_strbuf_release(&answer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size == 0) return 0;
  make_models();
  weir_bytes rest = {data + 1, size - 1};
  if (data[0] < GRAPHS) read_request(&models[data[0]], rest);
  if (data[0] == HEALTH) ask(check, rest);
  if (data[0] == WATCH) ask(watch, rest);
  if (data[0] == REFLECT) ask(weir_rpc_reflect, rest);
  return 0;
}
