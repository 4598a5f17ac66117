/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>

#include "runtime/dist/driver/driver_internal.h"

/* Commits that the tasks have confirmed.
 *
 * A commit is decided when it is sent, and kept when all parts that write have
 * confirmed it: by CommitReply, or by the number in each StepReply. Nobody
 * waits for that: a step that is decided goes to the unsure ones, and the next
 * one starts. What a task has confirmed stays committed there; a task that
 * never hears of the commit aborts with all others that did not (task_fate.c),
 * so only a kept step may be reported as one that cannot be lost.
 *
 * Invariant: the unsure steps are in the order of their numbers, all of them
 * are larger than |kept|, and the last one is |committed|.
 *
 * Cost: a number in each StepReply, a message of some ten bytes for each Commit
 * that does not ride on a RunStep. */

enum { KEPT_AT_ONCE = 8 };

void weir_driver_release_step(weir_driver *d, weir_driver_run_step *step) {
  if (step == NULL) return;
  weir_vec_free(d->alloc, &step->fetches);
  weir_arena_release(&step->arena);
  weir_free(d->alloc, step);
}

static void take_first(weir_driver *d) {
  weir_driver_run_step *step = d->unsure;
  d->unsure = step->next;
  if (d->unsure == NULL) d->unsure_end = &d->unsure;
  weir_driver_release_step(d, step);
}

void weir_driver_forget_unsure(weir_driver *d) {
  while (d->unsure != NULL) take_first(d);
}

void weir_driver_doubt(weir_driver *d, weir_driver_run_step *step) {
  const weir_driver_prog *p = weir_driver_find(d, step->program);
  for (uint32_t i = 0; i < d->count; i++)
    if (step->parts[i] != WEIR_PART_NONE)
      step->parts[i] = p->part_writes[i] ? WEIR_PART_WAITS : WEIR_PART_DONE;
  step->next = NULL;
  *d->unsure_end = step;
  d->unsure_end = &step->next;
  if ((d->options.plant & KEPT_AT_ONCE) != 0) d->kept = step->step;
}

static bool is_confirmed(const weir_driver *d,
                         const weir_driver_run_step *step) {
  for (uint32_t i = 0; i < d->count; i++)
    if (step->parts[i] == WEIR_PART_WAITS) return false;
  return true;
}

void weir_driver_confirm(weir_driver *d, uint32_t place, uint64_t number) {
  for (weir_driver_run_step *s = d->unsure; s != NULL; s = s->next)
    if (s->step <= number && s->parts[place] == WEIR_PART_WAITS)
      s->parts[place] = WEIR_PART_DONE;
  while (d->unsure != NULL && is_confirmed(d, d->unsure)) {
    d->kept = d->unsure->step;
    take_first(d);
  }
  if (d->unsure == NULL) weir_driver_turn_kept(d);
}

void weir_driver_last_words(const weir_driver *d, char *text, size_t size) {
  if (d->committed == d->kept)
    snprintf(text, size, "the last committed step is %" PRIu64, d->kept);
  else
    snprintf(text, size,
             "the last step that all tasks have committed is %" PRIu64
             ", and step %" PRIu64 " may be lost",
             d->kept, d->committed);
}
