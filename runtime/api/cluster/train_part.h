/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_API_TRAIN_PART_H_
#define WEIR_API_TRAIN_PART_H_

#include "runtime/api/weir_internal.h"
#include "runtime/train/ps/chief.h"

/* Inside of weir_train_part, for trainers: a chief's. */

/* What the chief's loop needs; lent, NULL where this process is not the chief.
 */
const weir_chief_options *weir_train_part_chief(const weir_train_part *part);
/* The trainer of a chief has been made with |opts|, or is to be released: the
 * chief trains too, from here until |end|. Errors: those of weir_ps_replica_*.
 */
weir_status weir_train_part_begin(weir_train_part *part,
                                  const weir_train_opts *opts, weir_error *err);
void weir_train_part_end(weir_train_part *part); /* NULL-safe */

#endif
