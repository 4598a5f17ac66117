/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/registry.h"

#include "tests/check.h"

static const weir_registry *builtin(void) {
  static weir_registry registry;
  registry.ops = weir_builtin_ops;
  registry.op_count = weir_builtin_op_count;
  return &registry;
}

static bool is_one_of(const char *name, const char *const *names) {
  for (; *names != NULL; names++)
    if (strcmp(name, *names) == 0) return true;
  return false;
}

static void table_is_sorted_and_unique(void **state) {
  (void)state;
  assert_true(weir_builtin_op_count > 100);
  for (size_t i = 1; i < weir_builtin_op_count; i++)
    assert_true(
        strcmp(weir_builtin_ops[i - 1]->name, weir_builtin_ops[i]->name) < 0);
}

/* An alias names one op only; min and max, which name an op each, are aliases
 * of the reductions as well (those have one input, the ops two). */
static void aliases_are_unique(void **state) {
  (void)state;
  for (size_t i = 0; i < weir_builtin_op_count; i++)
    for (const char *const *a = weir_builtin_ops[i]->aliases; *a != NULL; a++)
      for (size_t j = 0; j < weir_builtin_op_count; j++) {
        const weir_op_def *other = weir_builtin_ops[j];
        bool shared = strcmp(*a, "min") == 0 || strcmp(*a, "max") == 0;
        if (strcmp(*a, other->name) == 0 && !shared)
          fail_msg("%s: alias %s is an op", weir_builtin_ops[i]->name, *a);
        if (i != j && is_one_of(*a, other->aliases))
          fail_msg("%s and %s: alias %s", weir_builtin_ops[i]->name,
                   other->name, *a);
      }
}

static void every_op_is_documented(void **state) {
  (void)state;
  /* Their inputs' dtypes are all there is to check, and these are any. */
  const char *const takes_all[] = {
      "cast",  "group", "identity",  "no_op",      "stop_gradient",
      "shape", "size",  "ones_like", "zeros_like", NULL};
  for (size_t i = 0; i < weir_builtin_op_count; i++) {
    const weir_op_def *op = weir_builtin_ops[i];
    if (op->summary == NULL || op->summary[strlen(op->summary) - 1] != '.')
      fail_msg("%s: the summary is no sentence", op->name);
    if (op->doc != NULL && op->doc[strlen(op->doc) - 1] != '.')
      fail_msg("%s: the doc does not end in a full stop", op->name);
    if (op->example == NULL) fail_msg("%s: no example", op->name);
    if ((op->refuses[0] == NULL) != is_one_of(op->name, takes_all))
      fail_msg("%s: refuses", op->name);
    for (uint32_t a = 0; a < weir_op_attr_count(op); a++)
      if (op->attrs[a].doc == NULL || op->attrs[a].doc[0] == '\0')
        fail_msg("%s: attribute %s has no doc", op->name, op->attrs[a].name);
    if (op->shape == NULL || op->cost == NULL)
      fail_msg("%s: no shape rule or no cost", op->name);
  }
}

/* The example is a call of the op or an alias, or has one in it. */
static void examples_name_their_op(void **state) {
  (void)state;
  for (size_t i = 0; i < weir_builtin_op_count; i++) {
    const weir_op_def *op = weir_builtin_ops[i];
    bool found = strstr(op->example, op->name) != NULL;
    for (const char *const *a = op->aliases; *a != NULL; a++)
      found = found || strstr(op->example, *a) != NULL;
    if (!found) fail_msg("%s: example %s", op->name, op->example);
  }
}

static bool is_type(const weir_op_def *op, const char *type) {
  if (type == NULL) return true;
  for (int i = 0; i < WEIR_OP_TYPES && op->types[i].name != NULL; i++)
    if (strcmp(op->types[i].name, type) == 0) return true;
  return weir_dtype_from_name(type, strlen(type)) != WEIR_DTYPE_NONE;
}

static void check_type_vars(const weir_op_def *op) {
  for (int i = 0; i < WEIR_OP_TYPES && op->types[i].name != NULL; i++) {
    const weir_type_var *var = &op->types[i];
    assert_true(var->types != 0 && (var->types & ~WEIR_ALL_TYPES) == 0);
    if (var->attr == NULL) continue;
    int at = weir_op_attr_index(op, weir_sv_from(var->attr));
    if (at < 0 || op->attrs[at].kind != WEIR_ATTR_DTYPE)
      fail_msg("%s: type %s comes from %s", op->name, var->name, var->attr);
  }
}

static void ports_are_sound(void **state) {
  (void)state;
  for (size_t i = 0; i < weir_builtin_op_count; i++) {
    const weir_op_def *op = weir_builtin_ops[i];
    uint32_t in_count = weir_op_input_count(op);
    bool optional = false;
    check_type_vars(op);
    for (uint32_t p = 0; p < in_count; p++) {
      const weir_port *port = &op->inputs[p];
      if (!is_type(op, port->type) || (port->variadic && p + 1 != in_count) ||
          (optional && !port->optional))
        fail_msg("%s: input %s", op->name, port->name);
      optional = port->optional;
    }
    for (uint32_t p = 0; p < weir_op_output_count(op); p++)
      if (!is_type(op, op->outputs[p].type))
        fail_msg("%s: output %s", op->name, op->outputs[p].name);
    if ((op->flags & WEIR_OP_VIEW) && in_count != 1)
      fail_msg("%s: a view has one input", op->name);
  }
}

/* The default of a string is one of its choices, and of others not empty. */
static void defaults_are_sound(void **state) {
  (void)state;
  for (size_t i = 0; i < weir_builtin_op_count; i++) {
    const weir_op_def *op = weir_builtin_ops[i];
    for (uint32_t a = 0; a < weir_op_attr_count(op); a++) {
      const weir_attr_def *def = &op->attrs[a];
      if (weir_op_attr_index(op, weir_sv_from(def->name)) != (int)a)
        fail_msg("%s: attribute %s twice", op->name, def->name);
      if (def->choices != NULL && (def->fallback == NULL ||
                                   strstr(def->choices, def->fallback) == NULL))
        fail_msg("%s: default of %s", op->name, def->name);
      if (def->fallback != NULL && def->fallback[0] == '\0')
        fail_msg("%s: default of %s", op->name, def->name);
    }
  }
}

static void names_are_found(void **state) {
  (void)state;
  const weir_registry *r = builtin();
  const struct {
    const char *name, *op;
  } want[] = {{"matmul", "matmul"},
              {"conv", "conv2d"},
              {"max", "max"},
              {"mean", "reduce_mean"},
              {"average_pool", "avg_pool"},
              {"or", "logical_or"}};
  for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
    const weir_op_def *op =
        weir_registry_find_op(r, weir_sv_from(want[i].name));
    assert_non_null(op);
    assert_string_equal(op->name, want[i].op);
  }
  assert_null(weir_registry_find_op(r, WEIR_SV_LIT("matmull")));
  assert_null(weir_registry_find_op(r, WEIR_SV_LIT("")));
}

static void registries_chain(void **state) {
  (void)state;
  const weir_op_def mine = {.name = "zz_mine", .aliases = {"conv"}};
  const weir_op_def *const ops[] = {&mine};
  const weir_registry r = {.ops = ops, .op_count = 1, .next = builtin()};
  size_t count = weir_registry_op_count(&r);
  assert_int_equal(count, weir_builtin_op_count + 1);
  assert_ptr_equal(weir_registry_op_at(&r, 0), &mine);
  assert_ptr_equal(weir_registry_op_at(&r, 1), weir_builtin_ops[0]);
  assert_null(weir_registry_op_at(&r, count));
  assert_ptr_equal(weir_registry_find_op(&r, WEIR_SV_LIT("conv")), &mine);
  assert_non_null(weir_registry_find_op(&r, WEIR_SV_LIT("conv2d")));
}

/* Results that a reader of NumPy's manual would not expect. */
static void surprises_are_told(void **state) {
  static const struct {
    const char *op, *says;
  } kTold[] = {{"range", "i64 where all three numbers are integers, else f32"},
               {"reduce_sum", "wrap in their own dtype"},
               {"reduce_prod", "wrap on overflow"},
               {"matmul", "wrap on overflow"},
               {"clip", "a limit that is no integer counts as the next"},
               {"normal", "5.77 stddev"}};
  (void)state;
  for (size_t i = 0; i < sizeof kTold / sizeof kTold[0]; i++) {
    const weir_op_def *op =
        weir_registry_find_op(builtin(), weir_sv_from(kTold[i].op));
    assert_non_null(op);
    if (strstr(op->doc, kTold[i].says) == NULL)
      fail_msg("%s does not say: %s", kTold[i].op, kTold[i].says);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(table_is_sorted_and_unique),
      cmocka_unit_test(aliases_are_unique),
      cmocka_unit_test(every_op_is_documented),
      cmocka_unit_test(examples_name_their_op),
      cmocka_unit_test(ports_are_sound),
      cmocka_unit_test(defaults_are_sound),
      cmocka_unit_test(names_are_found),
      cmocka_unit_test(registries_chain),
      cmocka_unit_test(surprises_are_told),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
