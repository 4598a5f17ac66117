/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_API_PART_FIND_H_
#define WEIR_API_PART_FIND_H_

#include "runtime/api/cluster/train_part_internal.h"

/* Fills what is known before the part runs: the tasks, the part of this
 * process, addresses, certificates, the network's module. |tell| is for lines
 * of the log, with the part. Errors: those of weir_train_part_create. */
weir_status weir_part_find(weir_train_part *p, const weir_train_part_opts *o,
                           void (*tell)(void *part, const char *text),
                           weir_error *err);

#endif
