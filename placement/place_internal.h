/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PLACEMENT_PLACE_INTERNAL_H_
#define PLACEMENT_PLACE_INTERNAL_H_

#include "placement/place.h"

/* The start of one plan, beside its placing. */
typedef struct weir_plan_start {
  const weir_place_request *request; /* its |stop| and |given|; or NULL */
  const weir_diag_sink *sink;        /* of warnings; or NULL */
  bool given;  /* |request->given|, or |request->before| carried over, counts */
  bool wishes; /* every wish must name a node of the graph */
  bool half;   /* of two plans of one request: half of the budget */
} weir_plan_start;

#endif
