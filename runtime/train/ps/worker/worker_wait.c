/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/train/ps/worker/worker_wait.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* A wait is one for as long as state, run, servers and the number of runs done
 * are the same. Computing is a wait too: for a node that does not end. */

static void add_link(const weir_worker_wait *w, weir_ps_task peer, char *text,
                     size_t size) {
  char how[256] = "";
  size_t n = strlen(text);
  if (w->describe != NULL) w->describe(w->self, peer, how, sizeof how);
  const char *open = how[0] != '\0' ? " (" : "";
  const char *close = how[0] != '\0' ? ")" : "";
  if (peer.role == WEIR_PS_CHIEF)
    snprintf(text + n, size - n, " the chief%s%.100s%s", open, how, close);
  else
    snprintf(text + n, size - n, " server %u%s%.100s%s", peer.index, open, how,
             close);
}

static void add_servers(const weir_worker_wait *w, char *text, size_t size) {
  for (uint32_t s = 0; s < WEIR_PS_SERVERS; s++)
    if ((w->servers >> s & 1) != 0)
      add_link(w, (weir_ps_task){WEIR_PS_SERVER, s}, text, size);
}

static void say(const weir_worker_wait *w, int64_t now_ns, char *text,
                size_t size) {
  const weir_ps_task chief = {WEIR_PS_CHIEF, 0};
  static const char *const kFor[] = {
      [WEIR_PS_WAITS_JOIN] = "to be let in by",
      [WEIR_PS_WAITS_LEASE] = "runs from",
      [WEIR_PS_WAITS_PULL] = "values of",
      [WEIR_PS_COMPUTES] = "the end of its own run",
      [WEIR_PS_WAITS_PUSH] = "answers to pushes from",
      [WEIR_PS_WAITS_BYE] = "to be let go by"};
  snprintf(text, size, "has waited %" PRId64 " s for %s",
           (now_ns - w->since_ns) / 1000000000, kFor[w->state]);
  size_t n = strlen(text);
  if (w->state == WEIR_PS_COMPUTES)
    snprintf(text + n, size - n, " %" PRIu64, w->run);
  else if (w->state == WEIR_PS_WAITS_PULL || w->state == WEIR_PS_WAITS_PUSH)
    add_servers(w, text, size);
  else
    add_link(w, chief, text, size);
}

int64_t weir_worker_wait_look(weir_worker_wait *w, const weir_ps_worker *worker,
                              int64_t now_ns, char text[512]) {
  uint64_t run = 0, servers = 0;
  weir_ps_worker_state state = weir_ps_worker_look(worker, &run, &servers);
  uint64_t done = weir_ps_worker_count(worker)->computed + 1;
  text[0] = '\0';
  if (state == WEIR_PS_ENDED) return INT64_MAX;
  if (state != w->state || run != w->run || servers != w->servers ||
      done != w->done) {
    w->state = state;
    w->run = run;
    w->servers = servers;
    w->done = done;
    w->since_ns = now_ns;
    w->next_ns = now_ns + w->limit_ns;
  } else if (now_ns >= w->next_ns) {
    say(w, now_ns, text, 512);
    w->next_ns = now_ns + (now_ns - w->since_ns);
  }
  return w->next_ns;
}
