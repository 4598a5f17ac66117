/* SPDX-License-Identifier: Apache-2.0 */
/* run_gpu [--every N] [OP...]: runs the cases of tests/ops, or of these ops
 * alone, on each kernel for GPUs that accepts them; with N, of a kernel's rows
 * of grids the first and then each N-th, and some sweeps of failures, as the
 * stand-in is slow. Prints each
 * failure with its place and a summary; exits with 0, 1 (a case failed, or a
 * kernel met none) or 2 (there is no GPU, or a file cannot be read). */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/registry.h"
#include "tests/cuda/ops/gpu_run.h"

enum { TEXT = 512, KERNELS = 1024, FILE_TEXT = 4096 };

typedef struct tally {
  gpu_world w;
  const weir_op_def *op;
  char path[FILE_TEXT];
  const op_grid *grid; /* of the case under way, or NULL */
  int cases, runs, kernels, failures, refused, faults;
  int every;         /* of a kernel's rows of grids */
  int met[KERNELS];  /* cases that a kernel accepted, */
  int rows[KERNELS]; /* those of grids */
} tally;

WEIR_PRINTF(4, 5)
static void fail(tally *t, const op_case *c, const weir_kernel_def *kernel,
                 const char *fmt, ...) {
  va_list args;
  char text[TEXT] = "", grid[TEXT] = "";
  va_start(args, fmt);
  vsnprintf(text, sizeof text, fmt, args);
  va_end(args);
  if (t->grid != NULL) op_grid_print(t->grid, grid, sizeof grid);
  fprintf(stderr, "%s:%u: %s: %s%s%s\n", t->path, c->yaml->mark.line,
          kernel != NULL ? kernel->name : "case", text,
          t->grid != NULL ? ", with " : "", grid);
  t->failures++;
}

typedef struct subject {
  const op_case *c;
  const weir_call *call;
  const weir_kernel_def *kernel;
  const op_results *ref;
  const weir_error *ref_err; /* of a case with an error */
} subject;

/* ---- One case on one kernel */

/* Runs once more; the bits must be those of |first|. */
static void run_again(tally *t, const subject *s, const weir_call *call,
                      const op_results *first, gpu_how how, const char *name) {
  op_results again;
  weir_error err = WEIR_ERROR_INIT;
  char why[TEXT] = "";
  weir_status status = gpu_run(&t->w, s->kernel, call, s->c->in, how, &again,
                               &err, why, sizeof why);
  if (status != WEIR_OK)
    fail(t, s->c, s->kernel, "%s: %s %s", name, err.message, why);
  else if (!op_case_expect_equal(s->c, &again, first, true, why, sizeof why))
    fail(t, s->c, s->kernel, "%s: %s", name, why);
  op_results_release(&again);
  t->runs++;
}

static bool can_be_in_place(const subject *s) {
  const weir_call *call = s->call;
  const weir_operand *x = &call->in[0], *y = &call->out[0];
  if (!s->kernel->in_place && !s->kernel->over_inputs) return false;
  for (uint32_t i = 1; i < call->in_count; i++)
    if (s->c->in[i] == s->c->in[0] &&
        (call->op->flags & WEIR_OP_ELEMENTWISE) == 0)
      return false;
  return call->in_count > 0 && x->dtype == y->dtype &&
         x->elements == y->elements;
}

/* Runs without the outputs that may be left out; the others keep their bits. */
static void run_without(tally *t, const subject *s, const op_results *first) {
  weir_call call = *s->call;
  weir_operand out[CASE_OUTPUTS];
  weir_registry alone = {.kernels = &s->kernel, .kernel_count = 1};
  bool any = false;
  for (uint32_t i = 0; i < call.out_count; i++) {
    bool leave = op_case_may_leave_out(call.op, i);
    out[i] = leave ? (weir_operand){0} : call.out[i];
    any = any || leave;
  }
  call.out = out;
  if (!any ||
      weir_kernel_choose(&alone, &call, WEIR_GPU, false, NULL, 0) == NULL)
    return;
  run_again(t, s, &call, first, (gpu_how){0}, "outputs left out");
}

/* Fails every call of CUDA in prepare and run in turn. */
static void run_failing(tally *t, const subject *s, const op_results *first) {
  weir_status status = WEIR_INTERNAL;
  for (uint64_t k = 1; status != WEIR_OK; k++) {
    op_results out;
    weir_error err = WEIR_ERROR_INIT;
    char why[TEXT] = "";
    status = gpu_run(&t->w, s->kernel, s->call, s->c->in,
                     (gpu_how){.fail_at = k}, &out, &err, why, sizeof why);
    t->faults += status != WEIR_OK;
    if (status == WEIR_OK &&
        !op_case_expect_equal(s->c, &out, first, true, why, sizeof why))
      fail(t, s->c, s->kernel, "call %d of CUDA: %s", (int)k, why);
    op_results_release(&out);
    if (status == WEIR_OK || strcmp(err.id, "W5001") == 0) continue;
    fail(t, s->c, s->kernel, "call %d of CUDA: %s %s %s", (int)k, err.id,
         err.message, why);
    return;
  }
}

static void check_results(tally *t, const subject *s, const op_results *got) {
  char why[TEXT] = "";
  for (uint32_t i = 0; i < got->count; i++)
    if (got->out[i] != NULL &&
        !op_case_expect_value(s->c, i, got->out[i], why, sizeof why))
      fail(t, s->c, s->kernel, "%s", why);
  if (s->c->against_ref &&
      !op_case_expect_equal(s->c, got, s->ref, false, why, sizeof why))
    fail(t, s->c, s->kernel, "%s", why);
  run_without(t, s, got);
  if (can_be_in_place(s))
    run_again(t, s, s->call, got, (gpu_how){.in_place = true}, "in place");
  if (t->grid != NULL || (t->every > 1 && t->cases % 29 != 0)) return;
  if (!gpu_prepare_sweep(s->kernel, s->call, NULL, why, sizeof why) ||
      !gpu_prepare_sweep(s->kernel, s->call, t->w.device, why, sizeof why))
    fail(t, s->c, s->kernel, "%s", why);
  if (t->w.standin != NULL) run_failing(t, s, got);
}

/* The failure is the reference kernel's, word for word. */
static void check_error(tally *t, const subject *s, weir_status status,
                        const weir_error *err) {
  if (status == WEIR_OK)
    fail(t, s->c, s->kernel, "no error, want %s: %s", s->ref_err->id,
         s->ref_err->message);
  else if (strcmp(err->id, s->ref_err->id) != 0 ||
           strcmp(err->message, s->ref_err->message) != 0)
    fail(t, s->c, s->kernel, "want %s: %s, got %s: %s", s->ref_err->id,
         s->ref_err->message, err->id, err->message);
  op_results out;
  weir_error other = WEIR_ERROR_INIT;
  char why[TEXT] = "";
  status = gpu_run(&t->w, s->kernel, s->call, s->c->in,
                   (gpu_how){.faulted = true}, &out, &other, why, sizeof why);
  if (status != WEIR_OK)
    fail(t, s->c, s->kernel, "after a fault: %s %s", other.message, why);
  op_results_release(&out);
  t->runs++;
}

static void run_on(tally *t, const subject *s) {
  op_results got;
  weir_error err = WEIR_ERROR_INIT;
  char why[TEXT] = "";
  weir_status status = gpu_run(&t->w, s->kernel, s->call, s->c->in,
                               (gpu_how){0}, &got, &err, why, sizeof why);
  t->runs++;
  if (why[0] != 0)
    fail(t, s->c, s->kernel, "%s", why);
  else if (s->c->error.size > 0)
    check_error(t, s, status, &err);
  else if (status != WEIR_OK)
    fail(t, s->c, s->kernel, "%s %s", err.id, err.message);
  else
    check_results(t, s, &got);
  op_results_release(&got);
}

/* ---- One case */

/* The kernels whose turn the case is, into |out|; the case counts as met by all
 * that accept it. How many. */
static size_t take_kernels(tally *t, const weir_call *call,
                           const weir_kernel_def **out) {
  const weir_registry *r = weir_builtin_registry();
  char refusals[TEXT] = "";
  size_t count = 0;
  bool any = false;
  for (size_t i = 0; i < r->kernel_count && i < KERNELS; i++) {
    weir_registry alone = {.kernels = &r->kernels[i], .kernel_count = 1};
    if (weir_kernel_choose(&alone, call, WEIR_GPU, false, refusals,
                           sizeof refusals) == NULL)
      continue;
    t->met[i]++;
    any = true;
    if (t->grid == NULL || t->rows[i]++ % t->every == 0)
      out[count++] = r->kernels[i];
  }
  t->refused += !any;
  return count;
}

static void run_call(tally *t, const op_case *c, const weir_call *call) {
  const weir_kernel_def *kernels[KERNELS];
  op_results ref;
  weir_error err = WEIR_ERROR_INIT;
  char why[TEXT] = "";
  const weir_registry *r = weir_builtin_registry();
  op_runner runner = {.kernel =
                          weir_kernel_choose(r, call, WEIR_CPU, true, NULL, 0)};
  size_t count = take_kernels(t, call, kernels);
  if (runner.kernel == NULL) {
    fail(t, c, NULL, "no reference kernel");
    return;
  }
  if (count == 0) return; /* the reference's own results are of tests/ops */
  weir_status status = op_run(&runner, call, c->in, (op_how){.workers = 1},
                              &ref, &err, why, sizeof why);
  subject s = {.c = c, .call = call, .ref = &ref, .ref_err = &err};
  if ((status == WEIR_OK) == (c->error.size > 0)) {
    fail(t, c, runner.kernel, "%s %s", err.id, err.message);
    count = 0;
  }
  for (size_t i = 0; i < count; i++) {
    s.kernel = kernels[i];
    run_on(t, &s);
  }
  op_results_release(&ref);
}

static void run_case(void *arg, const op_case *c, const op_grid *grid,
                     const char *why) {
  tally *t = arg;
  weir_graph *g = NULL;
  weir_node_id node = 0;
  weir_arena arena;
  weir_call call;
  weir_diag diag = {.error = WEIR_ERROR_INIT};
  t->grid = grid;
  weir_arena_init(&arena, weir_allocator_system());
  if (why != NULL) {
    fail(t, c, NULL, "%s", why);
  } else if (op_case_build(c, false, &g, &node, &diag) != WEIR_OK) {
    if (c->error.size == 0) fail(t, c, NULL, "%s", diag.error.message);
  } else if (op_case_call(g, node, &arena, &call)) {
    t->cases++;
    run_call(t, c, &call);
  }
  weir_graph_unref(g);
  weir_arena_release(&arena);
}

/* ---- All */

static bool has_kernel(const weir_op_def *op) {
  const weir_registry *r = weir_builtin_registry();
  for (size_t i = 0; i < r->kernel_count; i++)
    if (r->kernels[i]->device == WEIR_GPU &&
        strcmp(r->kernels[i]->op, op->name) == 0)
      return true;
  return false;
}

static bool is_wanted(const weir_op_def *op, int argc, char **argv) {
  for (int i = 1; i < argc; i++)
    if (strcmp(argv[i], op->name) == 0) return true;
  return argc < 2;
}

static bool run_op(tally *t, const weir_op_def *op, char *why,
                   size_t capacity) {
  tally before = *t;
  t->op = op;
  snprintf(t->path, sizeof t->path, "%s/tests/ops/%s.yaml",
           getenv("WEIR_SOURCE_ROOT"), op->name);
  if (!op_case_each(op, t->path, run_case, t, why, capacity)) return false;
  printf("%s: %d cases, %d refused, %d runs\n", op->name,
         t->cases - before.cases, t->refused - before.refused,
         t->runs - before.runs);
  return true;
}

/* Each kernel of these ops must have met a case. */
static int report(tally *t, int argc, char **argv) {
  const weir_registry *r = weir_builtin_registry();
  for (size_t i = 0; i < r->kernel_count && i < KERNELS; i++) {
    const weir_kernel_def *kernel = r->kernels[i];
    const weir_op_def *op = weir_registry_find_op(r, weir_sv_from(kernel->op));
    if (kernel->device != WEIR_GPU || !is_wanted(op, argc, argv)) continue;
    t->kernels++;
    if (t->met[i] > 0) continue;
    fprintf(stderr, "no case meets %s\n", kernel->name);
    t->failures++;
  }
  printf(
      "%d kernels for GPUs, %d cases, %d of them refused, %d runs, %d failed "
      "calls of CUDA, %d failures\n",
      t->kernels, t->cases, t->refused, t->runs, t->faults, t->failures);
  return t->failures > 0 || t->kernels == 0 || t->runs == 0;
}

int main(int argc, char **argv) {
  static tally t;
  const weir_registry *r = weir_builtin_registry();
  weir_error err = WEIR_ERROR_INIT;
  char why[TEXT] = "";
  int code = 2;
  bool whole = getenv("WEIR_SOURCE_ROOT") != NULL;
  t.every = 1;
  if (argc > 2 && strcmp(argv[1], "--every") == 0) {
    t.every = atoi(argv[2]) > 0 ? atoi(argv[2]) : 1;
    argv += 2;
    argc -= 2;
  }
  if (!whole) snprintf(why, sizeof why, "WEIR_SOURCE_ROOT is not set");
  if (whole && gpu_world_open(&t.w, &err) != WEIR_OK) {
    whole = false;
    snprintf(why, sizeof why, "%s", err.message);
  }
  for (size_t i = 0; whole && i < weir_registry_op_count(r); i++) {
    const weir_op_def *op = weir_registry_op_at(r, i);
    if (has_kernel(op) && is_wanted(op, argc, argv))
      whole = run_op(&t, op, why, sizeof why);
  }
  if (whole) code = report(&t, argc, argv);
  if (!gpu_world_close(&t.w, why, sizeof why)) code = 1;
  if (why[0] != 0) fprintf(stderr, "%s\n", why);
  return code;
}
