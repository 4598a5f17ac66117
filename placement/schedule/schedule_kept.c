/* SPDX-License-Identifier: Apache-2.0 */
#include "placement/schedule/schedule_kept.h"

/* A keeper that is not the maker is a variable, in the group of its
 * assignments: where one of them is, it is too. */

uint32_t weir_schedule_memory_keeper(const weir_scheduler *s, uint32_t t,
                                     uint32_t node, uint32_t device) {
  const weir_place_problem *p = s->p;
  uint32_t keeper = p->tensor_keeper[t];
  if (keeper == node) return device;
  if (keeper == WEIR_PLACE_NONE) return WEIR_PLACE_NONE;
  uint32_t group = p->group[keeper];
  if (group == WEIR_PLACE_NONE) return WEIR_PLACE_NONE;
  return p->group[node] == group ? device : s->group_device[group];
}

int64_t weir_schedule_memory_takes(const weir_scheduler *s, uint32_t t,
                                   uint32_t device) {
  return s->memory->kept_at[t] == device
             ? 0
             : weir_place_held(s->p, s->p->tensor_bytes[t]);
}

int64_t weir_schedule_memory_temp(const weir_scheduler *s, uint32_t node,
                                  uint32_t device) {
  const weir_place_problem *p = s->p;
  uint32_t in = p->over_in[node], out = p->over_out[node];
  if (in == WEIR_PLACE_NONE ||
      weir_schedule_memory_keeper(s, out, node, device) == device)
    return p->temp_bytes[node];
  return p->temp_bytes[node] - weir_schedule_memory_takes(s, in, device);
}
