/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/dist/task/front_begin.h"
#include "runtime/dist/task/front_internal.h"

/* Events to the lanes.
 *
 * Most events go to all of them: a task passes over a peer that is not its
 * session's. Begin is for one lane; a question about the fate of a step is for
 * the lane that knows the session, or else for the first, which says that it
 * does not. */

weir_status weir_front_add_lane(weir_front *f, weir_task **out_task,
                                weir_error *err) {
  weir_engine *engine = NULL;
  weir_task_calls calls = {0};
  weir_task_options options = f->options;
  uint32_t lane = f->turns.count;
  *out_task = NULL;
  options.turns = &f->turns;
  options.lane = lane;
  WEIR_TRY(f->calls.lane(f->calls.self, lane, &engine, &calls, err));
  if (weir_task_create(f->alloc, f->link, engine, &options, &calls, out_task) !=
      WEIR_OK)
    return weir_fail_memory(err, sizeof options);
  f->turns.tasks[lane] = *out_task;
  f->turns.count++;
  return WEIR_OK;
}

weir_status weir_front_create(const weir_allocator *alloc, weir_link *link,
                              const weir_task_options *options,
                              const weir_front_calls *calls,
                              weir_front **out_front, weir_error *err) {
  weir_task *first = NULL;
  weir_front *f = weir_alloc_array(alloc, 1, sizeof *f);
  *out_front = f;
  if (f == NULL) return weir_fail_memory(err, sizeof *f);
  f->alloc = alloc;
  f->link = link;
  if (options != NULL) f->options = *options;
  f->calls = *calls;
  weir_status s = weir_front_add_lane(f, &first, err);
  if (s == WEIR_OK) return WEIR_OK;
  weir_front_release(f);
  *out_front = NULL;
  return s;
}

void weir_front_release(weir_front *f) {
  if (f == NULL) return;
  for (uint32_t i = 0; i < f->turns.count; i++)
    weir_task_release(f->turns.tasks[i]);
  weir_free(f->alloc, f);
}

void weir_front_up(weir_front *f, int64_t now_ns, weir_peer *peer) {
  for (uint32_t i = 0; i < f->turns.count; i++)
    weir_task_up(f->turns.tasks[i], now_ns, peer);
}

static weir_task *lane_that_knows(weir_front *f, const weir_peer *peer,
                                  uint64_t epoch) {
  for (uint32_t i = 0; i < f->turns.count; i++)
    if (weir_task_knows(f->turns.tasks[i], peer->job_id, epoch))
      return f->turns.tasks[i];
  return f->turns.tasks[0];
}

void weir_front_message(weir_front *f, int64_t now_ns, weir_peer *peer,
                        const Weir__V1__Control *m) {
  if (m->body_case == WEIR__V1__CONTROL__BODY_BEGIN) {
    weir_front_begin(f, now_ns, peer, m);
    return;
  }
  if (m->body_case == WEIR__V1__CONTROL__BODY_ASK_FATE) {
    weir_task_message(lane_that_knows(f, peer, m->epoch), now_ns, peer, m);
    return;
  }
  for (uint32_t i = 0; i < f->turns.count; i++)
    weir_task_message(f->turns.tasks[i], now_ns, peer, m);
}

void weir_front_lost(weir_front *f, int64_t now_ns, weir_peer *peer,
                     const weir_error *why) {
  for (uint32_t i = 0; i < f->turns.count; i++)
    weir_task_lost(f->turns.tasks[i], now_ns, peer, why);
}

void weir_front_on_engine(weir_front *f, int64_t now_ns, uint32_t lane,
                          weir_engine_event *event) {
  weir_task_on_engine(f->turns.tasks[lane], now_ns, event);
}

int64_t weir_front_tick(weir_front *f, int64_t now_ns) {
  int64_t next = INT64_MAX;
  for (uint32_t i = 0; i < f->turns.count; i++) {
    int64_t other = weir_task_tick(f->turns.tasks[i], now_ns);
    if (other < next) next = other;
  }
  return next;
}

void weir_front_shut(weir_front *f) {
  for (uint32_t i = 0; i < f->turns.count; i++)
    weir_task_shut(f->turns.tasks[i]);
}

bool weir_front_is_free(const weir_front *f) {
  for (uint32_t i = 0; i < f->turns.count; i++)
    if (!weir_task_is_free(f->turns.tasks[i])) return false;
  return true;
}

void weir_front_describe(const weir_front *f, weir_task_state *out) {
  *out = (weir_task_state){.phase = WEIR__V1__TASK_PHASE__FREE};
  for (uint32_t i = 0; i < f->turns.count; i++)
    weir_task_describe(f->turns.tasks[i], out);
}
