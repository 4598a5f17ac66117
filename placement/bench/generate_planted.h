/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_PLACEMENT_GENERATE_PLANTED_H_
#define WEIR_PLACEMENT_GENERATE_PLANTED_H_

#include "placement/bench/generate_internal.h"

/* Random problems with a known best plan. */

/* Cuts |processors| timelines of one length, without idle time, into tasks, and
 * draws edges that the plan keeps. */
bool weir_generate_planted(weir_generator *g);

#endif
