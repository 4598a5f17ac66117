/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PLACEMENT_PORTFOLIO_H_
#define PLACEMENT_PORTFOLIO_H_

#include "placement/solver/solver.h"

/* The best of all lists, in |s->best|, and |s->bounds|. Errors: W3012-W3014,
 * W6001. */
weir_status weir_solver_portfolio(weir_solver *s);

#endif
