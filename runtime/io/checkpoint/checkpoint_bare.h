/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_IO_CHECKPOINT_BARE_H_
#define WEIR_IO_CHECKPOINT_BARE_H_

#include "runtime/base/map.h"
#include "runtime/io/checkpoint/checkpoint_internal.h"

/* The shards of a checkpoint whose tensors are read later, or elsewhere. */

/* Checks the headers of all shards of |m| in |dir|, whose tensors |names| finds
 * by name. Errors: W4045, W4046, W6001, W6003. */
weir_status weir_checkpoint_check_headers(const weir_env *env,
                                          const weir_checkpoint_folder *dir,
                                          const weir_manifest *m,
                                          const weir_map *names,
                                          weir_error *err);

#endif
