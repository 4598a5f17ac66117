/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_PLACEMENT_INSTANCE_STG_H_
#define WEIR_PLACEMENT_INSTANCE_STG_H_

#include "placement/bench/instance.h"

/* Reads problems of the Standard Task Graph set. */

/* A problem of the Standard Task Graph set; |options| give its devices. */
weir_status weir_instance_read_stg(const weir_allocator *alloc, weir_sv text,
                                   const char *name,
                                   const weir_instance_options *options,
                                   weir_place_problem **out_problem,
                                   weir_error *err);

#endif
