/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "runtime/dist/link/link_internal.h"

/* Limits of connections that came in, and the words about those refused.
 *
 * A connection that has said Hello keeps its place. One that has not has none
 * to keep: ours says Hello as soon as it may, so when too many are silent the
 * one that has been so for longest makes room (as in a cache of half-open
 * connections, RFC 4987 section 3.3). So strangers that connect and say nothing
 * cannot keep a process out that speaks.
 *
 * A stranger must not fill a log either: one line a second tells of the first
 * and of the number of all others. */

enum { LINE_NS = 1000000000 };

static bool is_greeting(const weir_peer *p) {
  return p->incoming && p->state == WEIR_PEER_GREETING;
}

static void too_many(weir_link *link, const char *address) {
  weir_error err = WEIR_ERROR_INIT;
  weir_fail(&err, WEIR_W7030, NULL,
            "more than %" PRIu32
            " connections have said no Hello yet, and "
            "this one is the oldest",
            link->options.max_greeting);
  weir_link_refused(link, address, &err);
}

static void room_for_bulk(weir_link *link) {
  if (link->strays.count < link->options.max_greeting) return;
  weir_link_stray *items = link->strays.items;
  size_t oldest = 0;
  for (size_t i = 1; i < link->strays.count; i++)
    if (items[i].until_ns < items[oldest].until_ns) oldest = i;
  weir_connection c = items[oldest].c;
  items[oldest] = items[--link->strays.count];
  too_many(link, "a bulk connection");
  link->bulk.close(link->bulk.self, c);
}

void weir_link_make_room(weir_link *link, bool bulk) {
  weir_peer *oldest = NULL;
  uint32_t count = 0;
  if (bulk) {
    room_for_bulk(link);
    return;
  }
  for (size_t i = 0; i < link->peers.count; i++) {
    weir_peer *p = link->peers.items[i];
    if (!is_greeting(p)) continue;
    count++;
    if (oldest == NULL || p->next_ns < oldest->next_ns) oldest = p;
  }
  if (oldest == NULL || count < link->options.max_greeting) return;
  too_many(link, oldest->address);
  weir_link_drop(oldest);
}

weir_status weir_link_check_room(const weir_link *link, const weir_peer *peer,
                                 const Weir__V1__Hello *hello,
                                 weir_error *err) {
  uint32_t count = 0;
  for (size_t i = 0; i < link->peers.count; i++) {
    const weir_peer *p = link->peers.items[i];
    count += p != peer && p->incoming && p->state >= WEIR_PEER_BULK &&
             p->state <= WEIR_PEER_UP && p->incarnation != hello->incarnation;
  }
  if (count < link->options.max_peers) return WEIR_OK;
  char name[WEIR_TASK_NAME_BYTES];
  weir_link_name(link->self.job, link->self.index, name);
  return weir_fail(err, WEIR_W7030, NULL,
                   "%" PRIu32
                   " processes are connected to %s, which takes at "
                   "most %" PRIu32,
                   count, name, link->options.max_peers);
}

void weir_link_refused(weir_link *link, const char *address,
                       const weir_error *why) {
  if (link->refused.count++ > 0) return;
  snprintf(link->refused.text, sizeof link->refused.text, "refused %s: %.450s",
           address, why->message);
}

int64_t weir_link_tell_refused(weir_link *link) {
  uint32_t more = link->refused.count - 1;
  if (link->refused.count == 0) return INT64_MAX;
  if (link->now_ns < link->refused.next_ns) return link->refused.next_ns;
  link->refused.count = 0;
  link->refused.next_ns = link->now_ns + LINE_NS;
  if (link->events.refused == NULL) return INT64_MAX;
  char text[sizeof link->refused.text + 64];
  snprintf(text, sizeof text, "%s", link->refused.text);
  size_t n = strlen(text);
  if (more > 0)
    snprintf(text + n, sizeof text - n, "; and %" PRIu32 " more", more);
  link->events.refused(link->events.self, text);
  return INT64_MAX;
}
