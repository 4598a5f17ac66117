/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/join.h"
#include "runtime/dist/driver/driver_internal.h"

/* The hang report: which task a step waits for.
 *
 * At the deadline of a step all tasks are asked for the values that they wait
 * for. Task a waits for task b if a value of the step is to come from b. Among
 * the tasks that have not replied to the step, one that does not answer at all
 * is the root; else one that still computes; else one that waits for no other
 * unfinished task. If there is none, the graph has a cycle (each node has a
 * successor, and there are finitely many), found by following first successors.
 *
 * Cost: tasks^2 bits, and one message to each task and back. */

void weir_driver_hang(weir_driver *d, const weir_driver_run_step *step) {
  d->state = WEIR_DRIVER_HANGING;
  d->until_ns = d->now_ns + d->options.hang_ns;
  d->hang_number++;
  d->hang_step = step->step;
  Weir__V1__AskPending body = WEIR__V1__ASK_PENDING__INIT;
  Weir__V1__Control m = WEIR__V1__CONTROL__INIT;
  body.number = d->hang_number;
  m.body_case = WEIR__V1__CONTROL__BODY_ASK_PENDING;
  m.ask_pending = &body;
  for (uint32_t i = 0; i < d->count; i++) {
    d->places[i].told = false;
    memset(d->places[i].waits, 0, d->count * sizeof(bool));
    weir_driver_send(d, i, &m);
  }
}

static uint32_t place_of(const weir_driver *d, const Weir__V1__Task *task) {
  for (uint32_t i = 0; task != NULL && i < d->count; i++)
    if (d->places[i].index == task->index &&
        strcmp(d->places[i].job, task->job) == 0)
      return i;
  return UINT32_MAX;
}

void weir_driver_tell_pending(weir_driver *d, uint32_t place,
                              const Weir__V1__TellPending *told) {
  if (d->state != WEIR_DRIVER_HANGING || told->number != d->hang_number) return;
  weir_driver_place *p = &d->places[place];
  p->told = true;
  p->running = told->running;
  for (size_t i = 0; i < told->n_waits; i++) {
    const Weir__V1__Wait *w = told->waits[i];
    uint32_t peer = place_of(d, w->peer);
    if (peer != UINT32_MAX && w->slot != NULL && w->slot->step == d->hang_step)
      p->waits[peer] = true;
  }
}

static bool unfinished(const weir_driver_run_step *step, uint32_t place) {
  return step->parts[place] == WEIR_PART_WAITS;
}

/* The first unfinished task that |place| waits for; UINT32_MAX. */
static uint32_t successor(const weir_driver *d,
                          const weir_driver_run_step *step, uint32_t place) {
  for (uint32_t i = 0; i < d->count; i++)
    if (i != place && d->places[place].waits[i] && unfinished(step, i))
      return i;
  return UINT32_MAX;
}

/* Tasks that wait for |root|, directly or not. */
static void waiting(const weir_driver *d, const weir_driver_run_step *step,
                    uint32_t root, char *text, size_t size) {
  text[0] = '\0';
  for (uint32_t i = 0; i < d->count; i++)
    if (i != root && unfinished(step, i))
      weir_join_name(text, size, d->places[i].name);
}

static void name_root(const weir_driver *d, const weir_driver_run_step *step,
                      char *text, size_t size) {
  char others[160], state[96];
  uint32_t root = UINT32_MAX;
  for (uint32_t i = 0; i < d->count && root == UINT32_MAX; i++)
    if (unfinished(step, i) && !d->places[i].told) root = i;
  for (uint32_t i = 0; i < d->count && root == UINT32_MAX; i++)
    if (unfinished(step, i) && d->places[i].running > 0) root = i;
  for (uint32_t i = 0; i < d->count && root == UINT32_MAX; i++)
    if (unfinished(step, i) && successor(d, step, i) == UINT32_MAX) root = i;
  if (root == UINT32_MAX) return;
  const weir_driver_place *p = &d->places[root];
  if (!p->told)
    snprintf(state, sizeof state, "does not answer");
  else if (p->running > 0)
    snprintf(state, sizeof state, "still computes %" PRIu32 " instructions",
             p->running);
  else
    snprintf(state, sizeof state, "waits for no task and does not end");
  waiting(d, step, root, others, sizeof others);
  snprintf(text, size, "%s %s%s%s", p->name, state,
           others[0] != '\0' ? "; not done either: " : "", others);
}

static void name_cycle(const weir_driver *d, const weir_driver_run_step *step,
                       char *text, size_t size) {
  uint32_t at = UINT32_MAX;
  for (uint32_t i = 0; i < d->count && at == UINT32_MAX; i++)
    if (unfinished(step, i)) at = i;
  /* After as many moves as there are tasks we are on the cycle. */
  for (uint32_t i = 0; at != UINT32_MAX && i < d->count; i++)
    at = successor(d, step, at);
  if (at == UINT32_MAX) return;
  uint32_t first = at;
  size_t used = (size_t)snprintf(text, size, "%s", d->places[at].name);
  do {
    at = successor(d, step, at);
    int n = snprintf(text + used, size - used, " waits for %s%s",
                     d->places[at].name, at == first ? "" : ", which");
    if (n < 0 || (size_t)n >= size - used) return;
    used += (size_t)n;
  } while (at != first);
}

static void report(weir_driver *d) {
  char text[400] = "nobody knows why", words[WEIR_LAST_WORDS];
  weir_error err = WEIR_ERROR_INIT;
  const weir_driver_run_step *step = NULL;
  for (size_t i = 0; i < d->steps.count && step == NULL; i++)
    if (d->steps.items[i]->step == d->hang_step) step = d->steps.items[i];
  if (step != NULL) {
    name_cycle(d, step, text, sizeof text);
    name_root(d, step, text, sizeof text);
  }
  weir_driver_last_words(d, words, sizeof words);
  weir_fail(&err, WEIR_W7021, NULL,
            "step %" PRIu64 " is not done after %.1f s: %s; %s", d->hang_step,
            step != NULL ? (double)(d->now_ns - step->start_ns) / 1e9 : 0.0,
            text, words);
  weir_driver_fail(d, &err);
}

int64_t weir_driver_hang_tick(weir_driver *d) {
  bool all = true;
  for (uint32_t i = 0; i < d->count; i++) all = all && d->places[i].told;
  if (!all && d->now_ns < d->until_ns) return d->until_ns;
  report(d);
  return d->now_ns;
}
