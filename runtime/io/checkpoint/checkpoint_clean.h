/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_IO_CHECKPOINT_CLEAN_H_
#define WEIR_IO_CHECKPOINT_CLEAN_H_

#include "runtime/io/checkpoint/checkpoint_internal.h"
#include "runtime/io/checkpoint/checkpoint_store.h"

/* Removes files that are no longer kept. */

/* Removes files left by runs that are gone. The lock is held. */
weir_status weir_checkpoint_tidy(const weir_checkpoint_place *place,
                                 weir_error *err);

/* Removes generations that are not kept, never |saved|. Unreadable ones are
 * left alone. */
weir_status weir_checkpoint_expire(const weir_checkpoint_place *place,
                                   weir_checkpoint_stem saved, weir_error *err);

/* Removes generations of steps that |wish| does not keep. Unreadable ones are
 * left alone. */
weir_status weir_checkpoint_remove(const weir_checkpoint_place *place,
                                   const weir_checkpoint_wish *wish,
                                   weir_error *err);

#endif
