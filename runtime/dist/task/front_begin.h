/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_DIST_TASK_FRONT_BEGIN_H_
#define WEIR_DIST_TASK_FRONT_BEGIN_H_

#include "runtime/dist/task/front_internal.h"

/* |message|, a Begin of |peer|, to the lane that it gets, or a refusal. */
void weir_front_begin(weir_front *front, int64_t now_ns, weir_peer *peer,
                      const struct Weir__V1__Control *message);

#endif
