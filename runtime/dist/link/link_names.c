/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "runtime/dist/link/link_internal.h"

/* Names in certificates: weir://JOB/INDEX of a task, weir://driver of a driver,
 * which no job can have. A certificate may have several. Who has the name of
 * one task cannot speak for another, and a task cannot drive: the key of a
 * worker that leaks runs no graphs on the others. */

/* "weir://worker/0 ": with the space that ends a name in a list. */
static void name_of(const char *job, uint32_t index, char *out, size_t size) {
  if (job[0] == '\0')
    snprintf(out, size, "weir://driver ");
  else
    snprintf(out, size, "weir://%s/%" PRIu32 " ", job, index);
}

static bool has(const char *names, const char *want) {
  size_t size = strlen(want);
  while (*names != '\0') {
    if (strncmp(names, want, size) == 0) return true;
    while (*names != '\0' && *names++ != ' ') {
    }
  }
  return false;
}

weir_status weir_link_check_names(const weir_link *link, weir_connection c,
                                  bool bulk, const Weir__V1__Task *task,
                                  const char *who, weir_error *err) {
  char names[WEIR_NET_NAMES_BYTES], want[WEIR_JOB_BYTES + 32];
  weir_transport *t = bulk ? link->bulk.transport : link->control;
  if (!weir_transport_names(t, c, names)) return WEIR_OK;
  name_of(task->job, task->index, want, sizeof want);
  if (has(names, want)) return WEIR_OK;
  size_t used = strlen(names);
  return weir_fail(err, WEIR_W7063, NULL,
                   "%s: its certificate is of %.*s, not of %.*s", who,
                   used > 0 ? (int)(used < 200 ? used - 1 : 200) : 7,
                   used > 0 ? names : "no task", (int)strlen(want) - 1, want);
}

weir_error_id weir_link_id_of(const weir_error *why, weir_error_id otherwise) {
  static const weir_error_id kIds[] = {WEIR_W7060, WEIR_W7061, WEIR_W7062,
                                       WEIR_W7063, WEIR_W7064, WEIR_W7065};
  for (size_t i = 0; i < sizeof kIds / sizeof kIds[0]; i++)
    if (strcmp(why->id, weir_error_id_at((int)kIds[i] - 1)) == 0)
      return kIds[i];
  return otherwise;
}
