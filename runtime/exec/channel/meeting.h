/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_EXEC_MEETING_H_
#define WEIR_EXEC_MEETING_H_

#include "runtime/base/vec.h"
#include "runtime/exec/channel/ended.h"

/* Where the ranks of a collective meet, within one process. Under the channel's
 * lock. */

/* One step of a group: the parts that have come. */
typedef struct weir_meeting {
  uint64_t step;
  uint32_t ranks, arrived;
  size_t scratch_bytes;
  void *scratch;
  const weir_collective **parts;
  weir_channel_done **done;
} weir_meeting;

typedef WEIR_VEC(weir_meeting) weir_meeting_list;

typedef struct weir_meetings {
  const weir_allocator *alloc;
  WEIR_VEC(weir_meeting_list) groups; /* by group number */
} weir_meetings;

/* |part| comes to its step's meeting; the last to come does the work. Ended
 * calls go to |out|. */
void weir_meetings_join(weir_meetings *meetings, uint64_t step,
                        const weir_collective *part, weir_channel_done *done,
                        weir_ended *out);

/* Ends the meetings of |*step|, or all (NULL), with out->err. */
void weir_meetings_end(weir_meetings *meetings, const uint64_t *step,
                       weir_ended *out);

void weir_meetings_release(weir_meetings *meetings);

#endif
