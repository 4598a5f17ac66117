/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_DIST_RENDEZVOUS_INTERNAL_H_
#define WEIR_DIST_RENDEZVOUS_INTERNAL_H_

#include "runtime/dist/channel/cells.h"

/* Joins the local call and the frame that has arrived. |c| is incoming and our
 * side has called. False: |err| says how the value does not fit, and |c| is as
 * before; else it may be over. */

/* A large value has |total| bytes: says Ready, after taking memory if the
 * receiver has none. */
bool weir_rendezvous_announced(weir_rendezvous *r, weir_cell *c, uint64_t total,
                               weir_error *err);
/* The value is |data|: ends the cell. */
bool weir_rendezvous_deliver(weir_rendezvous *r, weir_cell *c, weir_bytes data,
                             weir_error *err);

#endif
