/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_BASE_DIAG_PRINT_H_
#define WEIR_BASE_DIAG_PRINT_H_

#include "runtime/base/diag/diag.h"

/* Prints a diagnostic with its source lines. */

/* Prints one diagnostic. Allocates nothing: it must work without memory. */
bool weir_diag_print(const weir_diag_printer *printer, const weir_diag *diag);

#endif
