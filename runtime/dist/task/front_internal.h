/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_DIST_TASK_FRONT_INTERNAL_H_
#define WEIR_DIST_TASK_FRONT_INTERNAL_H_

#include "runtime/dist/task/front.h"

/* Shared by the files of the front. */

struct weir_front {
  const weir_allocator *alloc;
  weir_link *link;
  weir_task_options options;
  weir_front_calls calls;
  weir_turns turns; /* the lanes, by number */
};

/* Makes one more. Errors: those of calls.lane, W6001. */
weir_status weir_front_add_lane(weir_front *front, weir_task **out_task,
                                weir_error *err);

#endif
