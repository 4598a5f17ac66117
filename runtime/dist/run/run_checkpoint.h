/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_DIST_RUN_CHECKPOINT_H_
#define WEIR_DIST_RUN_CHECKPOINT_H_

#include "runtime/dist/run/run_internal.h"

/* Checkpoints: engine.h's checkpoint. */

weir_status run_checkpoint(weir_engine *engine,
                           const struct Weir__V1__Control *message,
                           weir_error *err);

#endif
