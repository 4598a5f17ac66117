/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/base/module_toy.h"

/* Modules for test_module.c: one source, a few libraries. */

#ifndef TOY_VERSION
#define TOY_VERSION WEIR_MODULE_VERSION
#endif
#ifndef TOY_SYMBOL
#define TOY_SYMBOL weir_module
#endif

static weir_status twice(const weir_module_host *host, const weir_env *env,
                         int value, int *out_value, weir_error *err) {
  int *copy = host->alloc(env, sizeof *copy);
  if (copy == NULL) return host->fail(err, "W6001", "no room for a number");
  *copy = value;
  *out_value = 2 * *copy;
  host->free(env, copy);
  if (host->now_ns(env) == 0) return host->fail(err, "W7777", "no such id");
  if (value < 0) return host->fail(err, "W5008", "a number below 0");
  return WEIR_OK;
}

static const toy_functions kFunctions = {twice};

extern const weir_module_head TOY_SYMBOL;
WEIR_API const weir_module_head TOY_SYMBOL = {TOY_VERSION, 5, "toy",
                                              &kFunctions};
