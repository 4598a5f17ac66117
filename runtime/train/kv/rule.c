/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/train/kv/rule.h"

#include <math.h>
#include <stdlib.h>

#include "kernels/kernel.h"
#include "runtime/base/strbuf.h"
#include "runtime/graph/load/load.h"
#include "runtime/graph/train/train_optim.h"

/* From a rule's text to a program.
 *
 * The text is cut into a name and arguments `key=number`, all of which are
 * checked here by their characters, so nothing of it but names and numbers
 * gets into the graph; whether the op has them is for the loader to say. Slots
 * and their first values follow from the table of optimizers. */

/* A rule that is being read. */
typedef struct reading {
  weir_kv_rule *rule;
  const weir_optimizer_def *def;
  const weir_op_def *op;
  weir_strbuf args; /* ", lr=0.1": all that are the op's */
  double initial;   /* NAN: not given */
  double momentum, centered;
  weir_error *err;
} reading;

static weir_status unsound(const reading *r, const char *why) {
  weir_status s = weir_fail(r->err, WEIR_W7117, NULL, "rule `%.128s`: %s",
                            r->rule->text, why);
  weir_hint(r->err, "add, assign, sgd(lr=0.1), adam(lr=0.001, beta1=0.8)");
  return s;
}

static const weir_optimizer_def *find_optimizer(weir_sv name) {
  const weir_optimizer_def *def;
  for (size_t i = 0; (def = weir_optimizer_at(i)) != NULL; i++) {
    if (weir_sv_is(name, def->name)) return def;
    for (int k = 0; k < 3 && def->aliases[k] != NULL; k++)
      if (weir_sv_is(name, def->aliases[k])) return def;
  }
  return NULL;
}

static weir_sv trim(weir_sv s) {
  while (s.size > 0 && s.data[0] == ' ') s.data++, s.size--;
  while (s.size > 0 && s.data[s.size - 1] == ' ') s.size--;
  return s;
}

/* What comes before |c|, which is passed over; all if there is none. */
static weir_sv cut(weir_sv *rest, char c) {
  const char *at = rest->size > 0 ? memchr(rest->data, c, rest->size) : NULL;
  size_t n = at != NULL ? (size_t)(at - rest->data) : rest->size;
  weir_sv head = {rest->data, n};
  rest->data += at != NULL ? n + 1 : n;
  rest->size -= at != NULL ? n + 1 : n;
  return trim(head);
}

static bool all_of(weir_sv s, const char *chars) {
  for (size_t i = 0; i < s.size; i++)
    if (strchr(chars, s.data[i]) == NULL || s.data[i] == '\0') return false;
  return s.size > 0;
}

/* true, false, or a number. */
static bool value_of(weir_sv text, double *out) {
  char number[32], *end;
  *out = weir_sv_is(text, "true");
  if (*out == 1 || weir_sv_is(text, "false")) return true;
  if (text.size >= sizeof number || !all_of(text, "0123456789.eE+-"))
    return false;
  memcpy(number, text.data, text.size);
  number[text.size] = '\0';
  *out = strtod(number, &end);
  return *end == '\0';
}

static weir_status read_arg(reading *r, weir_sv arg) {
  static const char kNames[] = "abcdefghijklmnopqrstuvwxyz_0123456789";
  double value;
  weir_sv key = cut(&arg, '='), text = trim(arg);
  if (!all_of(key, kNames) || !value_of(text, &value))
    return unsound(r, "arguments are name=number, between commas");
  if (weir_sv_is(key, "initial")) {
    if (r->def->slots[0].initial == NULL)
      return unsound(r, "this optimizer has no argument `initial`");
    r->initial = value;
    return WEIR_OK;
  }
  if (weir_sv_is(key, "momentum")) r->momentum = value;
  if (weir_sv_is(key, "centered")) r->centered = value;
  weir_strbuf_printf(&r->args, ", %.*s=%.*s", WEIR_SV(key), WEIR_SV(text));
  return WEIR_OK;
}

/* name, or name(arguments). */
static weir_status read_text(reading *r) {
  weir_sv rest = trim(weir_sv_from(r->rule->text));
  bool call = rest.size > 0 && rest.data[rest.size - 1] == ')';
  if (call) rest.size--;
  weir_sv name = cut(&rest, call ? '(' : '\0');
  r->def = find_optimizer(name);
  if (!call && weir_sv_is(name, "assign")) return WEIR_OK;
  if (!call && weir_sv_is(name, "add")) {
    r->rule->kind = WEIR_KV_ADD;
    return r->rule->dtype != WEIR_BOOL ? WEIR_OK
                                       : unsound(r, "bools are not added");
  }
  if (r->def == NULL) return unsound(r, "there is no such rule");
  if (!weir_dtype_is_float(r->rule->dtype))
    return unsound(r, "optimizers are for keys of f32 and f64");
  r->rule->kind = WEIR_KV_APPLY;
  r->op =
      weir_registry_find_op(weir_builtin_registry(), weir_sv_from(r->def->op));
  rest = trim(rest);
  while (rest.size > 0) WEIR_TRY(read_arg(r, cut(&rest, ',')));
  return WEIR_OK;
}

/* ---- The graph */

static bool has_slot(const reading *r, const weir_slot_def *slot) {
  const char *attr = slot->only_if_attr;
  if (attr == NULL) return true;
  return (strcmp(attr, "momentum") == 0 ? r->momentum : r->centered) != 0;
}

static void find_slots(reading *r, const char *names[WEIR_SLOTS]) {
  weir_kv_rule *rule = r->rule;
  for (int i = 0; i < WEIR_SLOTS && r->def->slots[i].name != NULL; i++) {
    const weir_slot_def *slot = &r->def->slots[i];
    if (!has_slot(r, slot)) continue;
    names[rule->slots] = slot->name;
    rule->initial[rule->slots++] = slot->initial != NULL && !isnan(r->initial)
                                       ? r->initial
                                       : slot->fallback;
  }
}

static bool has_step(const weir_op_def *op) {
  for (uint32_t i = 0; i < weir_op_input_count(op); i++)
    if (strcmp(op->inputs[i].name, "step") == 0) return true;
  return false;
}

/* Inputs in the order var, slots, grad, step; outputs var, slots. */
static void write_graph(const reading *r, const char *const *slots,
                        weir_strbuf *out) {
  const char *type = weir_dtype_name(r->rule->dtype);
  uint32_t n = r->rule->slots;
  weir_strbuf_printf(out, "weir: 1\ninputs:\n  var: %s[%d]\n", type,
                     WEIR_KV_CHUNK);
  for (uint32_t i = 0; i < n; i++)
    weir_strbuf_printf(out, "  %s: %s[%d]\n", slots[i], type, WEIR_KV_CHUNK);
  weir_strbuf_printf(out, "  grad: %s[%d]\n", type, WEIR_KV_CHUNK);
  if (has_step(r->op)) weir_strbuf_text(out, "  step: i64[]\n");
  weir_strbuf_text(out, "nodes:\n  o0");
  for (uint32_t i = 0; i < n; i++) weir_strbuf_printf(out, ", o%u", i + 1);
  weir_strbuf_printf(out, ": %s(var=var", r->def->op);
  for (uint32_t i = 0; i < n; i++)
    weir_strbuf_printf(out, ", %s=%s", slots[i], slots[i]);
  weir_strbuf_text(out, ", grad=grad");
  if (has_step(r->op)) weir_strbuf_text(out, ", step=step");
  weir_strbuf_sv(out, weir_strbuf_view(&r->args));
  weir_strbuf_text(out, ")\noutputs: [o0");
  for (uint32_t i = 0; i < n; i++) weir_strbuf_printf(out, ", o%u", i + 1);
  weir_strbuf_text(out, "]\n");
}

static weir_status load(reading *r, const weir_env *env, weir_error *err) {
  const char *slots[WEIR_SLOTS];
  const weir_load_options options = {.registry = weir_builtin_registry()};
  weir_error why = WEIR_ERROR_INIT;
  weir_strbuf text;
  find_slots(r, slots);
  weir_strbuf_init(&text, env->alloc);
  write_graph(r, slots, &text);
  weir_status s = weir_strbuf_status(&text, err);
  if (s == WEIR_OK) {
    s = weir_graph_load_text(env, weir_strbuf_view(&text), "rule", &options,
                             &r->rule->graph, &why);
    if (s == WEIR_RESOURCE_EXHAUSTED)
      weir_error_copy(err, &why);
    else if (s != WEIR_OK)
      s = unsound(r, why.message);
  }
  weir_strbuf_release(&text);
  return s;
}

/* ---- The program */

static weir_status make_tensors(weir_kv_rule *rule, weir_error *err) {
  const weir_graph *g = rule->graph;
  for (uint32_t i = 0; i < g->input_count; i++) {
    const weir_value *v = &g->values[g->inputs[i].value];
    WEIR_TRY(weir_tensor_create_shaped(rule->alloc, v->dtype, v->shape,
                                       &rule->in[i], err));
    memset(rule->in[i]->data, 0, rule->in[i]->bytes);
  }
  rule->grad = rule->in[rule->slots + 1];
  if (g->input_count > rule->slots + 2) {
    rule->step = rule->in[rule->slots + 2];
    weir_tensor_set_i64(rule->step, 0, 1);
  }
  return WEIR_OK;
}

static weir_status bind(weir_kv_rule *rule, weir_error *err) {
  const weir_graph *g = rule->graph;
  weir_exec_feed feeds[WEIR_SLOTS + 3];
  weir_exec_fetch fetches[WEIR_SLOTS + 1];
  for (uint32_t i = 0; i < g->input_count; i++)
    feeds[i] = (weir_exec_feed){g->inputs[i].value, rule->in[i]};
  for (uint32_t i = 0; i < g->output_count; i++)
    fetches[i] = (weir_exec_fetch){.value = g->outputs[i].value};
  const weir_exec_request request = {.feeds = feeds,
                                     .feed_count = g->input_count,
                                     .fetches = fetches,
                                     .fetch_count = g->output_count};
  WEIR_TRY(weir_exec_bind(rule->session, &request, &rule->binding, err));
  for (uint32_t i = 0; i < g->output_count; i++)
    rule->out[i] = fetches[i].tensor;
  return WEIR_OK;
}

/* The first run finds learning rates that no run accepts. */
static weir_status compile(reading *r, const weir_env *env, weir_pool *pool) {
  weir_kv_rule *rule = r->rule;
  weir_error why = WEIR_ERROR_INIT;
  const weir_session_options options = {.seed = 1};
  if (rule->kind != WEIR_KV_APPLY) return WEIR_OK;
  WEIR_TRY(weir_strbuf_status(&r->args, r->err));
  WEIR_TRY(load(r, env, r->err));
  WEIR_TRY(weir_exec_session_create(env, pool, rule->graph, &options,
                                    &rule->session, r->err));
  WEIR_TRY(make_tensors(rule, r->err));
  WEIR_TRY(bind(rule, r->err));
  weir_status s = weir_binding_run(rule->binding, NULL, &why);
  return s == WEIR_OK ? s : unsound(r, why.message);
}

weir_status weir_kv_rule_create(const weir_env *env, weir_pool *pool,
                                const char *text, weir_dtype dtype,
                                weir_kv_rule **out_rule, weir_error *err) {
  size_t size = strlen(text);
  weir_kv_rule *rule = weir_alloc_array(env->alloc, 1, sizeof *rule);
  char *copy = weir_alloc_array(env->alloc, size + 1, 1);
  *out_rule = NULL;
  if (rule == NULL || copy == NULL) {
    weir_free(env->alloc, rule);
    weir_free(env->alloc, copy);
    return weir_fail_memory(err, sizeof *rule);
  }
  memcpy(copy, text, size);
  rule->alloc = env->alloc;
  rule->dtype = dtype;
  rule->text = copy;
  reading r = {.rule = rule, .initial = NAN, .err = err};
  weir_strbuf_init(&r.args, env->alloc);
  weir_status s = read_text(&r);
  if (s == WEIR_OK) s = compile(&r, env, pool);
  weir_strbuf_release(&r.args);
  if (s == WEIR_OK)
    *out_rule = rule;
  else
    weir_kv_rule_release(rule);
  return s;
}

void weir_kv_rule_release(weir_kv_rule *rule) {
  if (rule == NULL) return;
  weir_binding_release(rule->binding);
  for (uint32_t i = 0; i < WEIR_SLOTS + 1; i++) weir_tensor_unref(rule->out[i]);
  for (uint32_t i = 0; i < WEIR_SLOTS + 3; i++) weir_tensor_unref(rule->in[i]);
  weir_exec_session_release(rule->session);
  weir_graph_unref(rule->graph);
  weir_free(rule->alloc, (char *)(uintptr_t)rule->text);
  weir_free(rule->alloc, rule);
}
