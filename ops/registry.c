/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/registry.h"

static bool is_called(const weir_op_def *op, weir_sv name) {
  if (weir_sv_is(name, op->name)) return true;
  for (const char *const *alias = op->aliases; *alias != NULL; alias++)
    if (weir_sv_is(name, *alias)) return true;
  return false;
}

const weir_op_def *weir_registry_find_op(const weir_registry *registry,
                                         weir_sv name) {
  const weir_op_def *found = NULL;
  for (const weir_registry *r = registry; r != NULL; r = r->next)
    for (size_t i = 0; i < r->op_count; i++) {
      if (weir_sv_is(name, r->ops[i]->name)) return r->ops[i];
      if (found == NULL && is_called(r->ops[i], name)) found = r->ops[i];
    }
  return found;
}

size_t weir_registry_op_count(const weir_registry *registry) {
  size_t count = 0;
  for (const weir_registry *r = registry; r != NULL; r = r->next)
    count += r->op_count;
  return count;
}

const weir_op_def *weir_registry_op_at(const weir_registry *registry,
                                       size_t i) {
  for (const weir_registry *r = registry; r != NULL; r = r->next) {
    if (i < r->op_count) return r->ops[i];
    i -= r->op_count;
  }
  return NULL;
}

uint32_t weir_op_input_count(const weir_op_def *op) {
  uint32_t n = 0;
  while (n < WEIR_OP_INPUTS && op->inputs[n].name != NULL) n++;
  return n;
}

uint32_t weir_op_output_count(const weir_op_def *op) {
  uint32_t n = 0;
  while (n < WEIR_OP_OUTPUTS && op->outputs[n].name != NULL) n++;
  return n;
}

uint32_t weir_op_attr_count(const weir_op_def *op) {
  uint32_t n = 0;
  while (n < WEIR_OP_ATTRS && op->attrs[n].name != NULL) n++;
  return n;
}

int weir_op_attr_index(const weir_op_def *op, weir_sv name) {
  uint32_t count = weir_op_attr_count(op);
  for (uint32_t i = 0; i < count; i++)
    if (weir_sv_is(name, op->attrs[i].name)) return (int)i;
  return -1;
}
