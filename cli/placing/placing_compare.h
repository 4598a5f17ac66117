/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_PLACING_COMPARE_H_
#define CLI_PLACING_COMPARE_H_

#include "cli/cli.h"

/* place --compare: the plans of all placers in one table. */

typedef struct cli_placing_comparer {
  /* Plans with |placer|; |searches|: a budget is for it. */
  weir_status (*plan)(void *self, const char *placer, bool searches,
                      weir_plan **out_plan, weir_error *err);
  void *self;
} cli_placing_comparer;

/* Prints a row for each placer, as text or JSON: its value of the objective,
 * step, peak, moved bytes, the part that the bound is of the value, and the
 * time that it took. A placer that finds no plan has its error in its row.
 * Errors: that of the last placer where none found a plan. */
weir_status cli_placing_compare(const cli_placing_comparer *comparer, bool json,
                                weir_error *err);
/* Refuses forms that the table does not have. Errors: W0002. */
weir_status cli_placing_compare_form(const cli_args *args, weir_error *err);
/* A sink for warnings that were shown already. */
void cli_placing_say_nothing(void *self, const weir_diag *diag);

#endif
