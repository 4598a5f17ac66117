/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_KERNELS_ISA_UNDER_TEST_H_
#define TESTS_KERNELS_ISA_UNDER_TEST_H_

#include <stdbool.h>

#include "kernels/cpu/isa/isa.h"

/* Kernels under each instruction set of this machine. A program that links
 * isa_under_test.c with --wrap=weir_isa_choose prepares its kernels with the
 * set that was asked for last, instead of the best one. For one thread. */

/* Takes the |i|-th set, best first; false past the last. */
bool isa_under_test(int i);
/* "avx2". */
const char *isa_under_test_name(void);

/* What the linker calls weir_isa_choose. */
const weir_isa *__wrap_weir_isa_choose(void);

#endif
