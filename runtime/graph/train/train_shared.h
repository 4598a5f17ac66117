/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_GRAPH_TRAIN_SHARED_H_
#define WEIR_GRAPH_TRAIN_SHARED_H_

#include "runtime/graph/train/train_read.h"

/* Keys of `train` that several processes give a meaning to: they are read into
 * spec->shared, and remembered for a training in one process, where they have
 * no effect: weir_train_unused. Readers of rows of the section's table. */

/* mode: sync(aggregate=2) */
bool weir_train_read_mode(weir_train_reader *r, const weir_yaml_entry *e,
                          void *target);
/* sync: {aggregate: 2}, and the other ways */
bool weir_train_read_way(weir_train_reader *r, const weir_yaml_entry *e,
                         void *target);
/* After all keys: those that do not go together; fills spec->shared.between. */
bool weir_train_check_shared(weir_train_reader *r);

/* sync_every, replicate, lr_scale, evict_after, ps */
bool weir_train_read_shared(weir_train_reader *r, const weir_yaml_entry *e,
                            void *target);

#endif
