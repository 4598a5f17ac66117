/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_BASE_MODULE_TOY_H_
#define TESTS_BASE_MODULE_TOY_H_

#include "runtime/base/module.h"

/* The functions of the modules of test_module.c; version 5. */
typedef struct toy_functions {
  weir_status (*twice)(const weir_module_host *host, const weir_env *env,
                       int value, int *out_value, weir_error *err);
} toy_functions;

#endif
