/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/dist/task/front_begin.h"

#include <stdio.h>
#include <string.h>

/* Which lane a driver that begins gets.
 *
 * Its own, if it has one: a later session of the same job takes the place of
 * the one before. Else a free one, if all sessions fit (the same share, the
 * same tasks) and some driver is there; a session whose driver is gone holds
 * nothing that a new one could go on with. Where all drivers are gone the new
 * session waits behind one that ends, as on a task with one lane. */

static weir_task *own_lane(weir_front *f, const weir_peer *peer) {
  for (uint32_t i = 0; i < f->turns.count; i++)
    if (weir_task_is_of(f->turns.tasks[i], peer->job_id))
      return f->turns.tasks[i];
  return NULL;
}

/* A free one, at best one that has seen the job: it has its fence. */
static weir_task *free_lane(weir_front *f, const weir_peer *peer) {
  weir_task *found = NULL;
  for (uint32_t i = 0; i < f->turns.count; i++) {
    weir_task *task = f->turns.tasks[i];
    if (!weir_task_is_free(task)) continue;
    if (found == NULL || weir_task_has_served(task, peer->job_id)) found = task;
  }
  return found;
}

static weir_status refuse(const weir_task *other, const Weir__V1__Begin *begin,
                          weir_error *err) {
  weir_task_state state = {.phase = WEIR__V1__TASK_PHASE__FREE};
  weir_task_describe(other, &state);
  char which[WEIR_WIRE_SHARE_BYTES + 32] = "";
  if (state.share[0] != '\0')
    snprintf(which, sizeof which, ", in share %s", state.share);
  return weir_fail(err, WEIR_W7024, NULL,
                   "the task works for another driver, at %s%s%s",
                   weir_task_driver_address(other), which,
                   strcmp(state.share, begin->share) == 0 && which[0] != '\0'
                       ? ", with other tasks"
                       : "");
}

static weir_status find(weir_front *f, weir_peer *peer,
                        const Weir__V1__Begin *begin, weir_task **out,
                        weir_error *err) {
  weir_task *ending = NULL;
  bool active = false;
  *out = own_lane(f, peer);
  if (*out != NULL) return WEIR_OK;
  for (uint32_t i = 0; i < f->turns.count; i++) {
    weir_task *task = f->turns.tasks[i];
    if (weir_task_is_free(task)) continue;
    if (weir_task_is_active(task)) {
      active = true;
      if (!weir_task_fits(task, begin)) return refuse(task, begin, err);
    } else {
      ending = task;
    }
  }
  *out = !active && ending != NULL ? ending : free_lane(f, peer);
  if (*out != NULL) return WEIR_OK;
  if (f->turns.count == WEIR_TURNS_TASKS)
    return weir_fail(err, WEIR_W7024, NULL,
                     "the task works for %d drivers of share %s already, "
                     "which is all it takes",
                     WEIR_TURNS_TASKS, begin->share);
  return weir_front_add_lane(f, out, err);
}

void weir_front_begin(weir_front *f, int64_t now_ns, weir_peer *peer,
                      const Weir__V1__Control *m) {
  weir_error err = WEIR_ERROR_INIT;
  weir_task *task = NULL;
  if (find(f, peer, m->begin, &task, &err) == WEIR_OK)
    weir_task_message(task, now_ns, peer, m);
  else
    weir_task_refuse(peer, m->epoch, &err);
}
