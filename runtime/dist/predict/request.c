/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/dist/predict/request.h"

#include <inttypes.h>
#include <stdio.h>

#include "runtime/base/bytes/proto.h"
#include "runtime/base/size.h"

/* Numbers of fields as in predict.proto. */

enum { kShown = 100 }; /* bytes of a name in a message */

/* DType's values, in order. */
static const weir_dtype kTypes[] = {WEIR_DTYPE_NONE, WEIR_F32, WEIR_F64,
                                    WEIR_I32,        WEIR_I64, WEIR_U8,
                                    WEIR_BOOL};
enum { kTypeCount = sizeof kTypes / sizeof *kTypes };

int64_t weir_predict_dtype_number(weir_dtype dtype) {
  int64_t i = 0;
  while (i < kTypeCount - 1 && kTypes[i] != dtype) i++;
  return i;
}

/* ---- A tensor */

typedef struct tensor {
  weir_sv name;
  uint64_t dtype;
  weir_shape shape;
  bool many; /* dimensions, more than there are */
  weir_reader data;
} tensor;

static void add_dim(tensor *t, uint64_t value) {
  if (t->shape.rank == WEIR_MAX_RANK) {
    t->many = true;
    return;
  }
  t->shape.dims[t->shape.rank++] = weir_dim_of((int64_t)value);
}

static weir_sv text_of(const weir_proto_field *f) {
  return (weir_sv){(const char *)f->sub.data, f->sub.size};
}

/* Reads a NamedTensor; false when it is none. */
static bool read_tensor(weir_reader r, tensor *out) {
  weir_proto_field f;
  *out = (tensor){.name = {"", 0}};
  while (weir_proto_next(&r, &f)) {
    bool bytes = f.wire == WEIR_PROTO_BYTES;
    if (f.number == 1 && bytes) out->name = text_of(&f);
    if (f.number == 2 && f.wire == WEIR_PROTO_VARINT) out->dtype = f.value;
    if (f.number == 3 && f.wire == WEIR_PROTO_VARINT) add_dim(out, f.value);
    while (f.number == 3 && bytes && weir_reader_left(&f.sub) > 0)
      add_dim(out, weir_proto_varint(&f.sub));
    if (f.number == 3 && f.sub.failed) return false;
    if (f.number == 4 && bytes) out->data = f.sub;
  }
  return !r.failed;
}

static int shown(weir_sv name) {
  return (int)(name.size < kShown ? name.size : kShown);
}

/* "f32[2, 3]" of the tensor that came. */
static const char *type_of(const tensor *t, char text[160]) {
  char shape[120];
  bool known = t->dtype > 0 && t->dtype < kTypeCount;
  (void)weir_shape_print(&t->shape, NULL, NULL, shape, sizeof shape);
  snprintf(text, 160, "%s%s", known ? weir_dtype_name(kTypes[t->dtype]) : "?",
           t->many ? "[more than 8 dimensions]" : shape);
  return text;
}

static weir_status misfit(const weir_predict_model *m,
                          const weir_predict_port *port, const tensor *t,
                          weir_error *err) {
  char want[192], have[160];
  weir_graph_type_text(m->graph, port->value, want, sizeof want);
  return weir_fail(err, WEIR_W4009, NULL, "input %.*s is %s, the value is %s",
                   shown(port->name), port->name.data, want, type_of(t, have));
}

static bool fits(const weir_predict_port *port, const weir_shape *shape) {
  const weir_shape *want = port->shape;
  if (want->rank == WEIR_RANK_UNKNOWN) return true;
  if (want->rank != shape->rank) return false;
  for (int32_t i = 0; i < want->rank; i++)
    if (weir_dim_known(want->dims[i]) &&
        want->dims[i].value != shape->dims[i].value &&
        !(i == 0 && port->batched))
      return false;
  return true;
}

static weir_status check_rows(const weir_predict_model *m,
                              const weir_predict_port *port, int64_t rows,
                              weir_predict_request *out, weir_error *err) {
  if (m->rows == 0) return WEIR_OK;
  if (rows < 1 || rows > m->rows)
    return weir_fail(err, WEIR_W4009, NULL,
                     "input %.*s has %" PRId64
                     " rows, a request takes 1 to %" PRId64,
                     shown(port->name), port->name.data, rows, m->rows);
  if (out->rows != 0 && out->rows != rows)
    return weir_fail(err, WEIR_W4009, NULL,
                     "input %.*s has %" PRId64 " rows, another %" PRId64,
                     shown(port->name), port->name.data, rows, out->rows);
  out->rows = rows;
  return WEIR_OK;
}

/* A bool is 0 or 1: kernels count on it. */
static bool bools_sound(const tensor *t) {
  if (kTypes[t->dtype] != WEIR_BOOL) return true;
  uint8_t all = 0;
  for (size_t i = 0; i < t->data.size; i++) all |= t->data.data[i];
  return all <= 1;
}

static weir_status check_tensor(const weir_predict_model *m,
                                const weir_predict_port *port, const tensor *t,
                                weir_predict_request *out, weir_error *err) {
  bool typed = t->dtype > 0 && t->dtype < kTypeCount;
  if (!typed || t->many || kTypes[t->dtype] != port->dtype)
    return misfit(m, port, t, err);
  WEIR_TRY(weir_shape_check(&t->shape, port->dtype, err));
  if (!fits(port, &t->shape)) return misfit(m, port, t, err);
  if (port->batched)
    WEIR_TRY(check_rows(m, port, t->shape.dims[0].value, out, err));
  size_t bytes = weir_shape_bytes(&t->shape, port->dtype);
  if (bytes != t->data.size)
    return weir_fail(err, WEIR_W4009, NULL,
                     "input %.*s has %zu bytes of data, its shape wants %zu",
                     shown(port->name), port->name.data, t->data.size, bytes);
  if (!bools_sound(t))
    return weir_fail(err, WEIR_W4009, NULL,
                     "input %.*s holds a bool that is neither 0 nor 1",
                     shown(port->name), port->name.data);
  return WEIR_OK;
}

/* ---- Requests */

weir_predict_request *weir_predict_request_create(const weir_allocator *alloc,
                                                  const weir_predict_model *m) {
  size_t feeds, outputs, bytes = sizeof(weir_predict_request);
  if (!weir_size_mul(m->input_count, sizeof(weir_predict_feed), &feeds) ||
      !weir_size_mul(m->output_count, sizeof(uint32_t), &outputs) ||
      !weir_size_add(bytes, feeds, &bytes) ||
      !weir_size_add(bytes, outputs, &bytes))
    return NULL;
  weir_predict_request *r = weir_alloc(alloc, bytes);
  if (r == NULL) return NULL;
  *r = (weir_predict_request){.feeds = (weir_predict_feed *)(r + 1)};
  for (uint32_t i = 0; i < m->input_count; i++)
    r->feeds[i] = (weir_predict_feed){.given = false};
  r->outputs = (uint32_t *)(r->feeds + m->input_count);
  return r;
}

static uint32_t find(const weir_predict_port *ports, uint32_t count,
                     weir_sv name) {
  uint32_t i = 0;
  while (i < count && !weir_sv_equal(ports[i].name, name)) i++;
  return i;
}

static weir_status no_input(const weir_predict_model *m, weir_sv name,
                            weir_error *err) {
  weir_value_id value = weir_graph_find_value(m->graph, name);
  for (uint32_t i = 0; i < m->graph->input_count; i++)
    if (m->graph->inputs[i].value == value && value != WEIR_NO_VALUE)
      return weir_fail(err, WEIR_W4011, NULL,
                       "no output depends on input %.*s: leave it out",
                       shown(name), name.data);
  return weir_fail(err, WEIR_W4011, NULL, "the graph has no input %.*s",
                   shown(name), name.data);
}

static weir_status add_input(const weir_predict_model *m, weir_reader r,
                             weir_predict_request *out, weir_error *err) {
  tensor t;
  if (!read_tensor(r, &t))
    return weir_fail(err, WEIR_W7075, NULL,
                     "an input of the request cannot be read");
  uint32_t i = find(m->inputs, m->input_count, t.name);
  if (i == m->input_count) return no_input(m, t.name, err);
  const weir_predict_port *port = &m->inputs[i];
  if (!weir_predict_may_feed(m, port))
    return weir_fail(err, WEIR_W4011, NULL,
                     "input %.*s has a default and is not of the batch: it "
                     "stays as it is while requests are batched",
                     shown(t.name), t.name.data);
  if (out->feeds[i].given)
    return weir_fail(err, WEIR_W4009, NULL, "input %.*s is given twice",
                     shown(t.name), t.name.data);
  WEIR_TRY(check_tensor(m, port, &t, out, err));
  out->feeds[i] = (weir_predict_feed){true, t.shape, t.data.data};
  return WEIR_OK;
}

static weir_status add_output(const weir_predict_model *m, weir_sv name,
                              weir_predict_request *out, weir_error *err) {
  uint32_t k = find(m->outputs, m->output_count, name);
  if (k == m->output_count)
    return weir_fail(err, WEIR_W4016, NULL, "the graph has no output %.*s",
                     shown(name), name.data);
  for (uint32_t i = 0; i < out->output_count; i++)
    if (out->outputs[i] == k)
      return weir_fail(err, WEIR_W4016, NULL, "output %.*s is wanted twice",
                       shown(name), name.data);
  out->outputs[out->output_count++] = k;
  return WEIR_OK;
}

static weir_status complete(const weir_predict_model *m,
                            weir_predict_request *out, weir_error *err) {
  for (uint32_t i = 0; i < m->input_count; i++) {
    const weir_predict_port *port = &m->inputs[i];
    char type[192];
    if (out->feeds[i].given || !weir_predict_must_feed(m, port)) continue;
    weir_graph_type_text(m->graph, port->value, type, sizeof type);
    return weir_fail(err, WEIR_W4012, NULL, "input %.*s, %s, is missing",
                     shown(port->name), port->name.data, type);
  }
  if (m->rows == 0) out->rows = 1;
  for (uint32_t k = 0; out->output_count == 0 && k < m->output_count; k++)
    out->outputs[k] = k;
  if (out->output_count == 0) out->output_count = m->output_count;
  return WEIR_OK;
}

weir_status weir_predict_request_read(const weir_predict_model *m,
                                      weir_bytes bytes,
                                      weir_predict_request *out,
                                      weir_error *err) {
  weir_reader r = weir_reader_of(bytes.data, bytes.size);
  weir_proto_field f;
  while (weir_proto_next(&r, &f)) {
    if (f.wire != WEIR_PROTO_BYTES) continue;
    if (f.number == 1) WEIR_TRY(add_input(m, f.sub, out, err));
    if (f.number == 2) WEIR_TRY(add_output(m, text_of(&f), out, err));
  }
  if (r.failed)
    return weir_fail(err, WEIR_W7075, NULL, "the request cannot be read");
  return complete(m, out, err);
}
