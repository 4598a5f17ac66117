/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_IO_CHECKPOINT_WRITE_H_
#define WEIR_IO_CHECKPOINT_WRITE_H_

#include "runtime/io/checkpoint/checkpoint_internal.h"

/* Writes the files of a generation. */

/* Writes one generation, and removes those that are no longer kept. */
weir_status weir_checkpoint_write(const weir_checkpoint_place *place,
                                  const weir_checkpoint_job *job,
                                  weir_error *err);

#endif
