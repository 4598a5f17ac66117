/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/placing/placing_compare.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/json.h"
#include "cli/system.h"
#include "runtime/base/quantity.h"

/* One placer's plan. */
typedef struct compared {
  weir_tools_row placer;
  bool is_planned;
  weir_status status;
  weir_error why; /* if it is not */
  weir_plan_figure wanted;
  int64_t step_ns, peak_bytes, moved_bytes, took_ns;
} compared;

enum { MOST_PLACERS = 32 };

static weir_status read_figures(const weir_plan *plan, compared *c,
                                weir_error *err) {
  size_t count = weir_plan_count(plan, WEIR_PLAN_FIGURES);
  for (size_t i = 0; i < count; i++) {
    weir_plan_figure f = {.struct_size = sizeof f};
    WEIR_TRY(weir_plan_figure_at(plan, i, &f, err));
    if (f.wanted) c->wanted = f;
    if (strcmp(f.name, "latency") == 0) c->step_ns = f.value;
    if (strcmp(f.name, "memory") == 0) c->peak_bytes = f.value;
    if (strcmp(f.name, "moved") == 0) c->moved_bytes = f.value;
  }
  return WEIR_OK;
}

static weir_status plan_one(const cli_placing_comparer *p, compared *c,
                            weir_error *err) {
  weir_plan *plan = NULL;
  int64_t begin = cli_now_ns();
  c->why = (weir_error)WEIR_ERROR_INIT;
  weir_status s =
      p->plan(p->self, c->placer.name,
              weir_tools_placer_searches(c->placer.name), &plan, &c->why);
  c->status = s;
  c->took_ns = cli_now_ns() - begin;
  c->is_planned = s == WEIR_OK;
  s = c->is_planned ? read_figures(plan, c, err) : WEIR_OK;
  weir_plan_release(plan);
  return s;
}

/* The best bound that a placer proved holds for all of them. */
static int64_t find_bound(const compared *list, size_t count) {
  int64_t bound = -1;
  for (size_t i = 0; i < count; i++)
    if (list[i].is_planned && list[i].wanted.bound > bound)
      bound = list[i].wanted.bound;
  return bound;
}

static double share_of(const compared *c, int64_t bound) {
  return c->wanted.value == 0 ? 1 : (double)bound / (double)c->wanted.value;
}

/* ---- As text */

static void print_row(const compared *c, int64_t bound) {
  char value[32], step[32], peak[32], moved[32], took[32], share[32] = "-";
  if (!c->is_planned) {
    cli_print("%-12s no plan: %s %s\n", c->placer.name, c->why.id,
              c->why.message);
    return;
  }
  if (bound >= 0)
    snprintf(share, sizeof share, "%.1f %%", 100 * share_of(c, bound));
  if (c->wanted.is_bytes)
    weir_quantity_print_bytes(c->wanted.value, value);
  else
    weir_quantity_print_time(c->wanted.value, value);
  cli_print("%-12s %12s %12s %12s %12s %9s %12s\n", c->placer.name, value,
            weir_quantity_print_time(c->step_ns, step),
            weir_quantity_print_bytes(c->peak_bytes, peak),
            weir_quantity_print_bytes(c->moved_bytes, moved), share,
            weir_quantity_print_time(c->took_ns, took));
}

static void print_table(const compared *list, size_t count, int64_t bound) {
  const char *objective = "value";
  for (size_t i = 0; i < count; i++)
    if (list[i].is_planned) objective = list[i].wanted.name;
  cli_print("%-12s %12s %12s %12s %12s %9s %12s\n", "placer", objective, "step",
            "peak", "moved", "bound", "took");
  for (size_t i = 0; i < count; i++) print_row(&list[i], bound);
}

/* ---- As JSON */

static void print_json(const compared *list, size_t count, int64_t bound) {
  weir_json_writer w;
  cli_json_list_begin(&w);
  for (size_t i = 0; i < count; i++) {
    const compared *c = &list[i];
    weir_json_object_begin(&w, true);
    weir_json_key_text(&w, "placer", weir_sv_from(c->placer.name));
    if (c->is_planned) {
      weir_json_key_text(&w, "objective", weir_sv_from(c->wanted.name));
      weir_json_key_int(&w, "value", c->wanted.value);
      weir_json_key_int(&w, "step_ns", c->step_ns);
      weir_json_key_int(&w, "peak_bytes", c->peak_bytes);
      weir_json_key_int(&w, "moved_bytes", c->moved_bytes);
      if (bound >= 0) weir_json_key_int(&w, "bound", bound);
      if (bound >= 0) cli_json_number(&w, "bound_share", share_of(c, bound));
      weir_json_key_int(&w, "took_ns", c->took_ns);
    } else {
      weir_json_key_text(&w, "error", weir_sv_from(c->why.id));
      weir_json_key_text(&w, "message", weir_sv_from(c->why.message));
    }
    weir_json_object_end(&w);
  }
  cli_json_list_end(&w);
}

weir_status cli_placing_compare(const cli_placing_comparer *p, bool json,
                                weir_error *err) {
  compared list[MOST_PLACERS];
  size_t count = 0, planned = 0;
  memset(list, 0, sizeof list);
  while (count < MOST_PLACERS && weir_tools_placer(count, &list[count].placer))
    count++;
  for (size_t i = 0; i < count; i++) {
    WEIR_TRY(plan_one(p, &list[i], err));
    planned += list[i].is_planned;
  }
  if (planned == 0) {
    *err = list[0].why;
    return list[0].status;
  }
  if (json)
    print_json(list, count, find_bound(list, count));
  else
    print_table(list, count, find_bound(list, count));
  return WEIR_OK;
}

weir_status cli_placing_compare_form(const cli_args *args, weir_error *err) {
  if (args->format == NULL || cli_is_json(args) ||
      strcmp(args->format, "text") == 0)
    return WEIR_OK;
  return cli_error(err, "W0002", "--compare is text or --json, not --format %s",
                   args->format);
}

void cli_placing_say_nothing(void *self, const weir_diag *diag) {
  (void)self;
  (void)diag;
}
