/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_EXEC_CONTROL_CASES_H_
#define TESTS_EXEC_CONTROL_CASES_H_

#include "runtime/tensor/tensor.h"

/* Graphs with scan, while and if, and their values by hand. */

enum { CONTROL_OUTPUTS = 4, CONTROL_VALUES = 12 };

typedef struct control_case {
  const char *name, *text;
  /* Each output's values, NAN at the end of the list. */
  double want[CONTROL_OUTPUTS][CONTROL_VALUES];
  double tolerance;
} control_case;

extern const control_case control_cases[];
extern const size_t control_case_count;

/* Fails the test unless |got| is output |output|; |way|: how it was made. */
void control_case_check(const control_case *c, const char *way, uint32_t output,
                        const weir_tensor *got);

#endif
