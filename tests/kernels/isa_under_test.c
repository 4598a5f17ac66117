/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/kernels/isa_under_test.h"

#include <stddef.h>

#include "kernels/cpu/isa/choose.h"

static const weir_isa *taken;

bool isa_under_test(int i) {
  const weir_isa *isa = weir_isa_at(i);
  if (isa != NULL) taken = isa;
  return isa != NULL;
}

const weir_isa *__wrap_weir_isa_choose(void) {
  return taken != NULL ? taken : weir_isa_at(0);
}

const char *isa_under_test_name(void) {
  return __wrap_weir_isa_choose()->name;
}
