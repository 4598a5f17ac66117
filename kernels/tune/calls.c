/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/tune/calls.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "kernels/profile.h"
#include "runtime/base/machine/machine.h"
#include "runtime/base/map.h"

/* ---- The hash of a call */

static uint64_t mix(uint64_t h, int64_t x) {
  return weir_hash_bytes(&x, sizeof x, h);
}

static uint64_t mix_operand(uint64_t h, const weir_operand *o) {
  h = mix(mix(h, o->dtype), o->layout);
  h = mix(mix(h, o->value != NULL), o->rank);
  return weir_hash_bytes(o->dims, (size_t)o->rank * sizeof *o->dims, h);
}

static uint64_t mix_attr(uint64_t h, const weir_attr *a) {
  h = mix(mix(h, a->kind), a->count);
  switch (a->kind) {
    case WEIR_ATTR_INT:
      return mix(h, a->i);
    case WEIR_ATTR_FLOAT:
      return weir_hash_bytes(&a->f, sizeof a->f, h);
    case WEIR_ATTR_BOOL:
      return mix(h, a->b);
    case WEIR_ATTR_STRING:
      return weir_hash_bytes(a->s.data, a->s.size, h);
    case WEIR_ATTR_DTYPE:
      return mix(h, a->dtype);
    case WEIR_ATTR_INTS:
      for (uint32_t i = 0; i < a->count; i++) h = mix(h, a->dims[i].value);
      return h;
    case WEIR_ATTR_FLOATS:
      return weir_hash_bytes(a->floats, a->count * sizeof *a->floats, h);
    case WEIR_ATTR_TENSOR:
      return weir_hash_bytes(a->tensor->data, a->tensor->bytes,
                             mix(h, a->tensor->dtype));
    default:
      return h;
  }
}

static uint64_t mix_call(uint64_t h, const weir_call *call) {
  const weir_op_def *op = call->op;
  h = weir_hash_bytes(op->name, strlen(op->name), h);
  for (uint32_t i = 0; i < WEIR_OP_ATTRS && op->attrs[i].name != NULL; i++)
    h = mix_attr(h, &call->attrs[i]);
  h = mix(mix(h, call->in_count), call->out_count);
  for (uint32_t i = 0; i < call->in_count; i++)
    h = mix_operand(h, &call->in[i]);
  for (uint32_t i = 0; i < call->out_count; i++)
    h = mix_operand(h, &call->out[i]);
  return h;
}

/* ---- Its text */

/* Cut where it would leave no room for the hash. */
typedef struct words {
  char *text;
  size_t used;
} words;

enum { HASH = 18, ROOM = WEIR_TUNE_CALL_BYTES - HASH };

WEIR_PRINTF(2, 3)
static void add(words *w, const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  int n = vsnprintf(w->text + w->used, ROOM - w->used, fmt, args);
  va_end(args);
  if (n > 0)
    w->used += (size_t)n < ROOM - w->used ? (size_t)n : ROOM - 1 - w->used;
}

static void add_operand(words *w, const weir_operand *o) {
  if (o->dtype == WEIR_DTYPE_NONE) return;
  add(w, " %s[", weir_dtype_name(o->dtype));
  for (int32_t i = 0; i < o->rank; i++)
    add(w, "%s%" PRId64, i > 0 ? ", " : "", o->dims[i]);
  add(w, "]");
}

static void end(words *w, uint64_t hash) {
  snprintf(w->text + w->used, HASH + 1, " #%016" PRIx64, hash);
}

void weir_tune_text_of_call(const weir_call *call,
                            char text[WEIR_TUNE_CALL_BYTES]) {
  words w = {text, 0};
  add(&w, "%s", call->op->name);
  for (uint32_t i = 0; i < call->in_count; i++) add_operand(&w, &call->in[i]);
  end(&w, mix_call(1, call));
}

void weir_tune_text_of_group(const weir_group *group,
                             char text[WEIR_TUNE_CALL_BYTES]) {
  words w = {text, 0};
  uint64_t h = mix(2, group->call_count);
  for (uint32_t c = 0; c < group->call_count; c++) {
    const weir_call *call = &group->calls[c];
    add(&w, "%s%s", c > 0 ? " " : "", call->op->name);
    h = mix_call(h, call);
    for (uint32_t i = 0; i < call->in_count; i++)
      h = mix(mix(h, group->refs[c][i].member), group->refs[c][i].index);
  }
  for (uint32_t i = 0; i < group->in_count; i++) {
    add_operand(&w, &group->in[i]);
    h = mix_operand(h, &group->in[i]);
  }
  for (uint32_t i = 0; i < group->out_count; i++)
    h = mix(mix_operand(h, &group->out[i]), group->out_calls[i]);
  end(&w, h);
}

/* Names have no quotes in the file. */
void weir_tune_machine(uint64_t profile, char text[WEIR_TUNE_MACHINE_BYTES]) {
  weir_machine m;
  char under[WEIR_PROFILE_TEXT];
  weir_machine_read(&m);
  snprintf(text, WEIR_TUNE_MACHINE_BYTES, "%s, %s, rules %d", m.name,
           weir_profile_text(profile, under), (int)(profile >> 48 & 0xff));
  for (char *c = text; *c != '\0'; c++)
    if (*c == '\'') *c = '?';
}

const weir_tune_call *weir_tune_find_call(const weir_tune_calls *calls,
                                          const char *text) {
  for (size_t i = 0; i < calls->list.count; i++)
    if (strcmp(calls->list.items[i].text, text) == 0)
      return &calls->list.items[i];
  return NULL;
}

void weir_tune_write_calls(const weir_tune_calls *calls, weir_strbuf *out) {
  weir_strbuf_printf(out, "cpu:\n  machine: '%s'\n%s", calls->machine,
                     calls->list.count > 0 ? "  calls:\n" : "  calls: []\n");
  for (size_t i = 0; i < calls->list.count; i++) {
    const weir_tune_call *c = &calls->list.items[i];
    weir_strbuf_printf(out, "    - {call: '%s', kernel: %s, ns: %" PRId64 "}\n",
                       c->text, c->kernel, c->ns);
  }
}
