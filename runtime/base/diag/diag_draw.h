/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_BASE_DIAG_DRAW_H_
#define WEIR_BASE_DIAG_DRAW_H_

#include "runtime/base/diag/diag_out.h"

/* Draws the source lines of a diagnostic. */

/* The source lines with their underlines, from the arrow on; the width of the
 * line numbers comes back for the notes that follow. */
size_t weir_diag_draw(weir_diag_out *out, const weir_diag *diag);

#endif
