/* SPDX-License-Identifier: Apache-2.0 */
/* run_case OP FILE: runs the op's cases on every kernel that takes them.
 * README.md has the format. Prints each failure with its place and a summary;
 * exits with 0, 1 (a case failed) or 2 (the file cannot be read). */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "kernels/profile.h"
#include "kernels/registry.h"
#include "tests/ops/case.h"
#include "tests/profiles.h"

enum { TEXT = 512, KERNELS = 1024 };

typedef struct tally {
  const weir_op_def *op;
  const char *path;
  int cases, runs, kernels, failures, values_not_run, grads, refusals;
  test_profiles profiles;
  uint64_t profile;      /* of the kernel under way */
  const op_grid *grid;   /* of the case under way, or NULL */
  bool in_grid[KERNELS]; /* kernels, then group kernels, that a grid ran */
} tally;

WEIR_PRINTF(3, 4)
static void fail(tally *t, const op_case *c, const char *fmt, ...) {
  va_list args;
  char text[TEXT] = "", profile[WEIR_PROFILE_TEXT];
  fprintf(stderr, "%s:%u: ", t->path, c->yaml->mark.line);
  va_start(args, fmt);
  vfprintf(stderr, fmt, args);
  va_end(args);
  if (t->grid != NULL) op_grid_print(t->grid, text, sizeof text);
  fprintf(stderr, "%s%s (%s)\n", t->grid != NULL ? ", with " : "", text,
          weir_profile_text(t->profile, profile));
  t->failures++;
}

/* ---- Expectations */

static void expect_error(tally *t, const op_case *c, const char *where,
                         weir_status status, const weir_diag *diag) {
  char why[TEXT];
  if (!op_case_expect_error(c, status, diag, why, sizeof why))
    fail(t, c, "%s: %s", where, why);
}

/* Compares |got| with the case's value of output |i|. */
static void expect_value(tally *t, const op_case *c, const char *where,
                         uint32_t i, const weir_tensor *got) {
  char why[TEXT];
  if (!op_case_expect_value(c, i, got, why, sizeof why))
    fail(t, c, "%s: %s", where, why);
}

static void expect_equal(tally *t, const op_case *c, const char *where,
                         const op_results *got, const op_results *want,
                         bool same_bits) {
  char why[TEXT];
  if (!op_case_expect_equal(c, got, want, same_bits, why, sizeof why))
    fail(t, c, "%s: %s", where, why);
}

/* ---- One case on one kernel */

typedef struct subject {
  const op_case *c;
  const weir_call *call;
  const op_results *ref; /* NULL while ref itself is run */
} subject;

/* Runs again in another way; the bits must be those of |first|. */
static void run_again(tally *t, const subject *s, const op_runner *runner,
                      const op_results *first, op_how how) {
  op_results again;
  weir_error err = WEIR_ERROR_INIT;
  char where[TEXT], why[TEXT] = "";
  snprintf(where, sizeof where, "%s, %s%d workers", op_runner_name(runner),
           how.in_place ? "in place, " : "", how.workers);
  weir_status status =
      op_run(runner, s->call, s->c->in, how, &again, &err, why, sizeof why);
  if (status != WEIR_OK)
    fail(t, s->c, "%s: %s %s", where, err.message, why);
  else
    expect_equal(t, s->c, where, &again, first, true);
  op_results_release(&again);
  t->runs++;
}

static bool can_be_in_place(const op_runner *runner, const subject *s) {
  const weir_call *call = s->call;
  const weir_operand *x = &call->in[0], *y = &call->out[0];
  bool elementwise = (call->op->flags & WEIR_OP_ELEMENTWISE) != 0;
  for (uint32_t i = 1; i < call->in_count; i++)
    if (s->c->in[i] == s->c->in[0] && !elementwise) return false;
  return runner->kernel != NULL && runner->kernel->in_place &&
         call->in_count > 0 && x->dtype == y->dtype &&
         x->elements == y->elements;
}

/* Runs again without the outputs that may be left out; the others keep their
 * bits. */
static void run_without(tally *t, const subject *s, const op_runner *runner,
                        const op_results *first) {
  op_results again;
  weir_call call = *s->call;
  weir_operand out[CASE_OUTPUTS];
  weir_error err = WEIR_ERROR_INIT;
  char why[TEXT] = "";
  bool any = false;
  for (uint32_t i = 0; i < call.out_count; i++) {
    bool leave = op_case_may_leave_out(call.op, i);
    out[i] = leave ? (weir_operand){0} : call.out[i];
    any = any || leave;
  }
  call.out = out;
  if (!any || !op_runner_accepts(runner, &call)) return;
  weir_status status = op_run(runner, &call, s->c->in, (op_how){.workers = 3},
                              &again, &err, why, sizeof why);
  if (status != WEIR_OK)
    fail(t, s->c, "%s, outputs left out: %s %s", op_runner_name(runner),
         err.message, why);
  else
    expect_equal(t, s->c, "outputs left out", &again, first, true);
  op_results_release(&again);
  t->runs++;
}

static void check_results(tally *t, const subject *s, const op_runner *runner,
                          const op_results *got) {
  char why[TEXT] = "";
  for (uint32_t i = 0; i < got->count; i++)
    expect_value(t, s->c, op_runner_name(runner), i, got->out[i]);
  if (s->ref != NULL && s->c->against_ref)
    expect_equal(t, s->c, op_runner_name(runner), got, s->ref, false);
  run_again(t, s, runner, got, (op_how){.workers = 2});
  run_again(t, s, runner, got, (op_how){.workers = 3});
  run_without(t, s, runner, got);
  if (can_be_in_place(runner, s))
    run_again(t, s, runner, got, (op_how){.workers = 2, .in_place = true});
  if (t->grid == NULL && !op_run_sweep(runner, s->call, why, sizeof why))
    fail(t, s->c, "%s: %s", op_runner_name(runner), why);
}

/* |*out| gets the results, for the caller to release. */
static void run_on(tally *t, const subject *s, const op_runner *runner,
                   op_results *out) {
  weir_diag diag = {.error = WEIR_ERROR_INIT};
  char why[TEXT] = "";
  weir_status status = op_run(runner, s->call, s->c->in, (op_how){.workers = 1},
                              out, &diag.error, why, sizeof why);
  t->runs++;
  if (why[0] != 0)
    fail(t, s->c, "%s: %s", op_runner_name(runner), why);
  else if (s->c->error.size > 0)
    expect_error(t, s->c, op_runner_name(runner), status, &diag);
  else if (status != WEIR_OK)
    fail(t, s->c, "%s: %s %s", op_runner_name(runner), diag.error.id,
         diag.error.message);
  else
    check_results(t, s, runner, out);
}

static void run_on_others(tally *t, subject *s) {
  const weir_registry *r = weir_builtin_registry();
  for (size_t i = 0; i < r->kernel_count + r->group_kernel_count; i++) {
    op_runner runner = {0};
    op_results out = {0};
    if (i < r->kernel_count)
      runner.kernel = r->kernels[i];
    else
      runner.group = r->group_kernels[i - r->kernel_count];
    if (runner.kernel != NULL &&
        (strncmp(runner.kernel->name, "ref.", 4) == 0 ||
         strcmp(runner.kernel->op, t->op->name) != 0))
      continue;
    if (!op_runner_accepts(&runner, s->call)) continue;
    t->kernels++;
    if (t->grid != NULL) t->in_grid[i] = true;
    run_on(t, s, &runner, &out);
    op_results_release(&out);
  }
}

/* ---- One case */

/* Ops that are no kernels: types and shapes, and values known beforehand. */
static void check_types(tally *t, const op_case *c, const weir_graph *g,
                        weir_node_id node) {
  char text[128], why[TEXT];
  for (uint32_t i = 0; i < g->nodes[node].output_count; i++) {
    const weir_value *value = &g->values[g->nodes[node].first_output + i];
    if (c->out[i] == NULL) continue;
    if (value->known != NULL) {
      expect_value(t, c, "known value", i, value->known);
      continue;
    }
    weir_tensor *want = op_case_tensor(c->out[i], value->dtype, 0);
    if (want == NULL || !weir_shape_equal(&want->shape, value->shape)) {
      weir_shape_print(value->shape, NULL, NULL, text, sizeof text);
      snprintf(why, sizeof why, "output %u has shape %s", i, text);
      fail(t, c, "%s", why);
    }
    weir_tensor_unref(want);
    t->values_not_run++;
  }
}

/* Values known to the shape rule must be those that kernels compute. */
static void check_folding(tally *t, const op_case *c) {
  weir_graph *g = NULL;
  weir_node_id node = 0;
  weir_diag diag = {.error = WEIR_ERROR_INIT};
  weir_status status = op_case_build(c, true, &g, &node, &diag);
  if (status != WEIR_OK) {
    fail(t, c, "with constants: %s %s", diag.error.id, diag.error.message);
    return;
  }
  for (uint32_t i = 0; i < g->nodes[node].output_count; i++) {
    const weir_value *value = &g->values[g->nodes[node].first_output + i];
    if (value->known != NULL)
      expect_value(t, c, "folded value", i, value->known);
  }
  weir_graph_unref(g);
}

static int64_t elements_of(const weir_operand *operands, uint32_t count) {
  int64_t sum = 0;
  for (uint32_t i = 0; i < count; i++)
    if (operands[i].dtype != WEIR_DTYPE_NONE) sum += operands[i].elements;
  return sum;
}

/* Ops whose reference kernels only copy bytes, or give a few numbers. */
static bool is_brief(const weir_op_def *op) {
  static const char *const kBrief[] = {
      "dim",  "flatten", "identity",      "reshape", "shape",
      "size", "squeeze", "stop_gradient", "task",    "unsqueeze"};
  for (size_t i = 0; i < sizeof kBrief / sizeof *kBrief; i++)
    if (strcmp(op->name, kBrief[i]) == 0) return true;
  return false;
}

/* A reference kernel asks for the time, and ends when it is over. */
static void check_late(tally *t, const subject *s, const op_runner *runner) {
  char why[TEXT] = "";
  int64_t looks = op_run_late(runner, s->call, s->c->in, why, sizeof why);
  bool work = elements_of(s->call->in, s->call->in_count) > 0 &&
              elements_of(s->call->out, s->call->out_count) > 0;
  if (looks < 0)
    fail(t, s->c, "%s: %s", op_runner_name(runner), why);
  else if (looks == 0 && work && !is_brief(t->op))
    fail(t, s->c, "%s does not look whether its time is over",
         op_runner_name(runner));
  else if (looks > 100)
    fail(t, s->c, "%s looks %lld times and goes on", op_runner_name(runner),
         (long long)looks);
}

static void run_call(tally *t, const op_case *c, const weir_call *call) {
  op_results ref = {0};
  subject s = {.c = c, .call = call};
  op_runner runner = {.kernel =
                          weir_kernel_choose(weir_builtin_registry(), call,
                                             WEIR_CPU, true, NULL, 0)};
  if (runner.kernel == NULL) {
    fail(t, c, "no reference kernel");
    return;
  }
  run_on(t, &s, &runner, &ref);
  if (c->error.size == 0) check_late(t, &s, &runner);
  s.ref = &ref;
  weir_call other = *call;
  s.call = &other;
  for (int i = 0; i < t->profiles.count; i++) {
    t->profile = other.profile = t->profiles.list[i];
    run_on_others(t, &s);
  }
  t->profile = t->profiles.list[0];
  op_results_release(&ref);
}

static void check_grad(tally *t, const op_case *c) {
  char why[TEXT] = "";
  t->grads++;
  if (!op_case_check_grad(c, why, sizeof why)) fail(t, c, "%s", why);
}

static void run_case(tally *t, const op_case *c) {
  weir_graph *g = NULL;
  weir_node_id node = 0;
  weir_arena arena;
  weir_call call;
  weir_diag diag = {.error = WEIR_ERROR_INIT};
  weir_arena_init(&arena, weir_allocator_system());
  weir_status status = op_case_build(c, false, &g, &node, &diag);
  if (status != WEIR_OK) {
    if (c->error.size > 0)
      expect_error(t, c, "check", status, &diag);
    else
      fail(t, c, "check: %s %s", diag.error.id, diag.error.message);
  } else if (t->op->instr != WEIR_INSTR_KERNEL) {
    if (c->error.size > 0) expect_error(t, c, "check", WEIR_OK, &diag);
    check_types(t, c, g, node);
  } else if (!op_case_call(g, node, &arena, &call)) {
    fail(t, c, "a shape is not known");
  } else {
    run_call(t, c, &call);
    if (c->error.size == 0) check_folding(t, c);
  }
  if (c->grad) check_grad(t, c);
  weir_graph_unref(g);
  weir_arena_release(&arena);
}

static void run_one(void *arg, const op_case *c, const op_grid *grid,
                    const char *why) {
  tally *t = arg;
  t->grid = grid;
  if (why == NULL)
    run_case(t, c);
  else
    fail(t, c, "%s", why);
  t->grid = NULL;
  t->cases++;
  t->refusals += c->error.size > 0;
}

/* Kernels that take no plain operands, which is all a case has, and the tests
 * of their layouts. */
static const char *const kNotPlain[] = {"cpu.reduce_sum.images"};

static bool is_plain_kernel(const weir_kernel_def *kernel) {
  for (size_t i = 0; i < sizeof kNotPlain / sizeof kNotPlain[0]; i++)
    if (strcmp(kernel->name, kNotPlain[i]) == 0) return false;
  return kernel->device == WEIR_CPU && strncmp(kernel->name, "ref.", 4) != 0;
}

/* Each fast kernel of the op must have run in a grid. */
static bool lacks_grid(const tally *t) {
  const weir_registry *r = weir_builtin_registry();
  bool lacks = false;
  for (size_t i = 0; i < r->kernel_count; i++) {
    const weir_kernel_def *kernel = r->kernels[i];
    if (t->in_grid[i] || !is_plain_kernel(kernel) ||
        strcmp(kernel->op, t->op->name) != 0)
      continue;
    fprintf(stderr, "%s: no grid reaches %s\n", t->path, kernel->name);
    lacks = true;
  }
  return lacks;
}

/* Each refusal that an op lists must have a case; bad constants are refused by
 * the loader, not by the op. */
static bool lacks_refusals(const tally *t) {
  if (t->op->instr != WEIR_INSTR_KERNEL || t->op->refuses[0] == NULL)
    return false;
  if (t->refusals > 0) return false;
  fprintf(stderr, "%s: no case of what %s refuses\n", t->path, t->op->name);
  return true;
}

static int report(const tally *t) {
  printf("%s: %d cases, %d kernels beside ref, %d runs, %d gradients\n",
         t->op->name, t->cases, t->kernels, t->runs, t->grads);
  if (t->values_not_run > 0)
    printf("  %d values not computed here: no kernel, the executor does it\n",
           t->values_not_run);
  if (lacks_refusals(t) || lacks_grid(t)) return 1;
  return t->failures > 0 || t->cases == 0 ? 1 : 0;
}

int main(int argc, char **argv) {
  char why[TEXT] = "";
  if (argc != 3) return fprintf(stderr, "usage: run_case OP FILE\n"), 2;
  tally t = {.path = argv[2],
             .op = weir_registry_find_op(weir_builtin_registry(),
                                         weir_sv_from(argv[1]))};
  if (!test_profiles_find(&t.profiles)) return 2;
  if (t.op == NULL) return fprintf(stderr, "no op %s\n", argv[1]), 2;
  if (!op_case_each(t.op, t.path, run_one, &t, why, sizeof why))
    return fprintf(stderr, "%s\n", why), 2;
  return report(&t);
}
