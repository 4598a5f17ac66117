/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of each op, by kind of device.
 *
 * An op is in one of three states on a kind: some kernel takes it, none does,
 * or it needs none there. The placer asks the same questions, of a node's
 * dtypes and shapes; here any dtype will do. Cost: O(ops * kernels), some
 * thousand comparisons of names. */
#include <stdio.h>
#include <string.h>

#include "kernels/kernel.h"
#include "runtime/api/weir_internal.h"
#include "runtime/base/json/json.h"
#include "runtime/base/strbuf.h"
#include "runtime/base/table.h"
#include "runtime/tools/tools.h"

/* What an op does that needs no kernel; NULL: it needs one. */
static const char *const without_kernel[] = {
    [WEIR_INSTR_KERNEL] = NULL,
    [WEIR_INSTR_COPY] = "a copy",
    [WEIR_INSTR_SEND] = "a copy",
    [WEIR_INSTR_RECV] = "a copy",
    [WEIR_INSTR_COLLECTIVE] = "copies between devices",
    [WEIR_INSTR_VAR_READ] = "a variable",
    [WEIR_INSTR_VAR_COMMIT] = "writes a variable",
    [WEIR_INSTR_LOOP] = NULL, /* its body has kernels */
    [WEIR_INSTR_BRANCH] = NULL,
    [WEIR_INSTR_FEED] = "an input",
    [WEIR_INSTR_FETCH] = "an output",
    [WEIR_INSTR_CONST] = "a constant",
    [WEIR_INSTR_NONE] = "control alone"};
WEIR_TABLE_OF(without_kernel, WEIR_INSTR_KIND_COUNT);

/* Why an op has no kernel of a kind that is no host. */
static const char *lacks(const weir_op_def *op) {
  if (strcmp(op->name, "task") == 0) return "it waits by the host's clock";
  if (strcmp(op->name, "attention") == 0 ||
      strcmp(op->name, "attention_grad") == 0)
    return "on a GPU it is matmul and softmax";
  return NULL;
}

/* One op's row. */
typedef struct op_row {
  const weir_op_def *op;
  const char *none;                  /* why it needs no kernel; or NULL */
  bool bodies;                       /* it runs graphs, where their nodes run */
  bool has[WEIR_DEVICE_KINDS];       /* some kernel */
  unsigned types[WEIR_DEVICE_KINDS]; /* that kernels take */
} op_row;

typedef struct op_counts {
  size_t ops, none, has[WEIR_DEVICE_KINDS];
} op_counts;

/* The dtypes that the op itself takes where a kernel is chosen: those of its
 * first input, or of its first output without inputs. */
static unsigned own_types(const weir_op_def *op) {
  const weir_port *p =
      op->inputs[0].name != NULL ? &op->inputs[0] : &op->outputs[0];
  unsigned all = 0;
  if (p->name != NULL && p->type != NULL)
    for (int i = 0; i < WEIR_OP_TYPES && op->types[i].name != NULL; i++)
      if (strcmp(op->types[i].name, p->type) == 0) return op->types[i].types;
  for (unsigned bit = 1; bit <= WEIR_BOOL; bit <<= 1) {
    const char *name = weir_dtype_name((weir_dtype)bit);
    if (p->type == NULL || strcmp(name, p->type) == 0) all |= bit;
  }
  return all;
}

static op_row row_of(const weir_registry *registry, const weir_op_def *op) {
  op_row row = {.op = op, .none = without_kernel[op->instr]};
  if ((op->flags & WEIR_OP_VIEW) != 0) row.none = "a view of its input";
  row.bodies = op->instr == WEIR_INSTR_LOOP || op->instr == WEIR_INSTR_BRANCH;
  for (int k = 0; k < WEIR_DEVICE_KINDS; k++) row.has[k] = row.bodies;
  if (row.none != NULL || row.bodies) return row;
  for (const weir_registry *r = registry; r != NULL; r = r->next)
    for (size_t i = 0; i < r->kernel_count; i++) {
      const weir_kernel_def *k = r->kernels[i];
      if (strcmp(k->op, op->name) != 0) continue;
      row.has[k->device] = true;
      row.types[k->device] |= k->types & own_types(op);
    }
  return row;
}

static void count(op_counts *c, const op_row *row) {
  c->ops++;
  c->none += row->none != NULL;
  for (int k = 0; k < WEIR_DEVICE_KINDS; k++) c->has[k] += row->has[k];
}

/* ---- Text */

typedef struct op_out {
  const weir_registry *registry;
  weir_write_fn write;
  void *self;
  bool ok;
} op_out;

static void put(op_out *out, const char *text) {
  if (out->ok) out->ok = out->write(out->self, text, strlen(text));
}

enum { NAME_COLUMNS = 24, KIND_COLUMNS = 26 };

/* "f32 f64", padded to its column. */
static void put_types(op_out *out, const op_row *row, int kind) {
  char text[128];
  snprintf(text, sizeof text, "%s",
           row->bodies && row->has[kind] ? "runs its body"
           : lacks(row->op) != NULL      ? lacks(row->op)
                                         : "-");
  size_t used = 0;
  for (unsigned bit = 1; row->has[kind] && bit <= WEIR_BOOL; bit <<= 1)
    if ((row->types[kind] & bit) != 0)
      used += (size_t)snprintf(text + used, sizeof text - used, "%s%s",
                               used > 0 ? " " : "",
                               weir_dtype_name((weir_dtype)bit));
  char padded[160];
  bool last = kind + 1 == WEIR_DEVICE_KINDS;
  snprintf(padded, sizeof padded, " %-*s", last ? 0 : KIND_COLUMNS, text);
  put(out, padded);
}

static void put_row(op_out *out, const op_row *row) {
  char name[96];
  snprintf(name, sizeof name, "%-*s", NAME_COLUMNS, row->op->name);
  put(out, name);
  if (row->none != NULL) {
    put(out, " no kernel is needed: ");
    put(out, row->none);
  } else {
    for (int k = 0; k < WEIR_DEVICE_KINDS; k++) put_types(out, row, k);
  }
  put(out, "\n");
}

/* "28 have none for GPU: argsort, ..." */
static void put_lacking(op_out *out, const op_counts *c, int kind) {
  weir_strbuf text;
  const weir_registry *r = out->registry;
  size_t lacking = c->ops - c->none - c->has[kind];
  if (lacking == 0 || !out->ok) return;
  weir_strbuf_init(&text, weir_allocator_system());
  bool ok = weir_strbuf_printf(&text, "%zu have none for %s:", lacking,
                               weir_device_kinds[kind]->spelling);
  const char *between = " ";
  for (size_t i = 0; i < weir_registry_op_count(r) && ok; i++) {
    op_row row = row_of(r, weir_registry_op_at(r, i));
    if (row.none != NULL || row.has[kind]) continue;
    ok = weir_strbuf_printf(&text, "%s%s", between, row.op->name);
    between = ", ";
  }
  ok = ok && weir_strbuf_append(&text, "", 1);
  if (ok)
    out->ok = weir_tools_wrap(weir_strbuf_view(&text).data, 0, 2, out->write,
                              out->self);
  weir_strbuf_release(&text);
}

static bool write_text(op_out *out) {
  const weir_registry *r = out->registry;
  op_counts c = {0};
  char line[160];
  snprintf(line, sizeof line, "%-*s", NAME_COLUMNS, "op");
  put(out, line);
  for (int k = 0; k < WEIR_DEVICE_KINDS; k++) {
    bool last = k + 1 == WEIR_DEVICE_KINDS;
    snprintf(line, sizeof line, " %-*s", last ? 0 : KIND_COLUMNS,
             weir_device_kinds[k]->spelling);
    put(out, line);
  }
  put(out, "\n");
  for (size_t i = 0; i < weir_registry_op_count(r); i++) {
    op_row row = row_of(r, weir_registry_op_at(r, i));
    count(&c, &row);
    put_row(out, &row);
  }
  snprintf(line, sizeof line, "%zu ops, of which %zu need no kernel\n", c.ops,
           c.none);
  put(out, line);
  for (int k = 0; k < WEIR_DEVICE_KINDS; k++) {
    snprintf(line, sizeof line, "%zu have a kernel for %s\n", c.has[k],
             weir_device_kinds[k]->spelling);
    put(out, line);
    put_lacking(out, &c, k);
  }
  return out->ok;
}

/* ---- JSON */

static void json_row(weir_json_writer *w, const op_row *row) {
  weir_json_object_begin(w, true);
  weir_json_key_text(w, "name", weir_sv_from(row->op->name));
  if (row->none != NULL)
    weir_json_key_text(w, "no_kernel_needed", weir_sv_from(row->none));
  if (row->bodies) {
    weir_json_key(w, "bodies");
    weir_json_bool(w, true);
  }
  bool all = true;
  for (int k = 0; k < WEIR_DEVICE_KINDS; k++) all = all && row->has[k];
  if (row->none == NULL && !all && lacks(row->op) != NULL)
    weir_json_key_text(w, "lacks", weir_sv_from(lacks(row->op)));
  for (int k = 0; row->none == NULL && k < WEIR_DEVICE_KINDS; k++) {
    if (!row->has[k]) continue;
    weir_json_key(w, weir_device_kinds[k]->name);
    weir_json_array_begin(w, true);
    for (unsigned bit = 1; bit <= WEIR_BOOL; bit <<= 1)
      if ((row->types[k] & bit) != 0)
        weir_json_string(w, weir_sv_from(weir_dtype_name((weir_dtype)bit)));
    weir_json_array_end(w);
  }
  weir_json_object_end(w);
}

static bool write_json(const op_out *out) {
  const weir_registry *r = out->registry;
  weir_json_writer w;
  op_counts c = {0};
  weir_json_writer_init(&w, (weir_writer){out->self, out->write}, 2);
  weir_json_object_begin(&w, false);
  weir_json_key(&w, "ops");
  weir_json_array_begin(&w, false);
  for (size_t i = 0; i < weir_registry_op_count(r); i++) {
    op_row row = row_of(r, weir_registry_op_at(r, i));
    count(&c, &row);
    json_row(&w, &row);
  }
  weir_json_array_end(&w);
  weir_json_key(&w, "counts");
  weir_json_object_begin(&w, true);
  weir_json_key_int(&w, "ops", (int64_t)c.ops);
  weir_json_key_int(&w, "no_kernel_needed", (int64_t)c.none);
  for (int k = 0; k < WEIR_DEVICE_KINDS; k++)
    weir_json_key_int(&w, weir_device_kinds[k]->name, (int64_t)c.has[k]);
  weir_json_object_end(&w);
  weir_json_object_end(&w);
  return weir_json_finish(&w);
}

bool weir_tools_op_devices(bool json, weir_write_fn write, void *self) {
  op_out out = {weir_builtin_registry(), write, self, true};
  return json ? write_json(&out) : write_text(&out);
}
