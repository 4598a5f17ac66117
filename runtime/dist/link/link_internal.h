/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_DIST_LINK_LINK_INTERNAL_H_
#define WEIR_DIST_LINK_LINK_INTERNAL_H_

#include "runtime/base/vec.h"
#include "runtime/dist/link/link.h"
#include "runtime/net/wire.h"

/* Shared by the files of the link. */

/* A bulk connection that came in and has not named its peer. */
typedef struct weir_link_stray {
  weir_connection c;
  int64_t until_ns;
} weir_link_stray;

/* Processes that a task has had: the last is the present one. */
enum { WEIR_LINK_PASTS = 4, WEIR_LINK_TASKS = 4096 };
typedef struct weir_link_past {
  char job[WEIR_JOB_BYTES];
  uint32_t index;
  uint64_t gone[WEIR_LINK_PASTS]; /* incarnations that others replaced */
  uint64_t present;
} weir_link_past;

struct weir_link {
  const weir_allocator *alloc;
  weir_link_self self;
  weir_link_options options;
  weir_link_events events;
  weir_transport *control;
  weir_link_bulk bulk;
  int64_t now_ns, ticked_ns;
  uint64_t pings, tags;
  WEIR_VEC(weir_peer *) peers;
  WEIR_VEC(weir_link_stray) strays;
  WEIR_VEC(weir_link_past) pasts;
  bool failed; /* some peer waits to be reported lost */
  struct {     /* connections that were refused and are not told yet */
    uint32_t count;
    int64_t next_ns;                         /* no line before */
    char text[WEIR_NET_ADDRESS_BYTES + 512]; /* about the first of them */
  } refused;
};

/* link_limits.c: */

/* Room for one more connection in its greeting: closes the oldest one if there
 * are too many. */
void weir_link_make_room(weir_link *link, bool bulk);
/* Whether |peer|, which says Hello, has room among the others. Errors: W7030.
 */
weir_status weir_link_check_room(const weir_link *link, const weir_peer *peer,
                                 const Weir__V1__Hello *hello, weir_error *err);
/* Notes a connection from |address| that was refused. */
void weir_link_refused(weir_link *link, const char *address,
                       const weir_error *why);
/* Tells of them when it is time; returns when that is, or INT64_MAX. */
int64_t weir_link_tell_refused(weir_link *link);

/* link_hello.c: checks of Hello and the answers. */

/* Fills |hello| and the two tasks that it points to from the link's own. */
typedef struct weir_link_greeting {
  Weir__V1__Hello hello;
  Weir__V1__Task from, to;
} weir_link_greeting;
void weir_link_greet(const weir_link *link, const weir_peer *to, bool bulk,
                     weir_link_greeting *out);
/* Checks a Hello of another process against our own. Errors: W7023 (for good),
 * W7024 (another process of that task is not known to be dead yet). */
weir_status weir_link_check_hello(weir_link *link, const Weir__V1__Hello *hello,
                                  weir_error *err);
/* Takes the identity of |peer| from |hello|. */
void weir_link_keep_hello(weir_peer *peer, const Weir__V1__Hello *hello);
/* Notes the process of a task; those before it are old from here on. */
weir_status weir_link_note(weir_link *link, const weir_peer *peer,
                           weir_error *err);
/* A Hello or HelloReply came on the control connection of |peer|. */
void weir_link_greeted(weir_link *link, weir_peer *peer,
                       const Weir__V1__Control *m);

/* link_names.c: whether the certificate of connection |c|'s other side is of
 * task |job|:|index|, "" the driver; without certificates it need not be. |who|
 * begins the message. Errors: W7063. */
weir_status weir_link_check_names(const weir_link *link, weir_connection c,
                                  bool bulk, const Weir__V1__Task *task,
                                  const char *who, weir_error *err);

/* link_probe.c: |peer|'s connection has ended, as |why| says. False: nobody is
 * to be asked.
 */
bool weir_link_probe(weir_link *link, weir_peer *peer, const weir_error *why);
/* Whether |c| is a probe, which has been answered then: |text| NULL: somebody
 * listens there. */
bool weir_link_probed(weir_link *link, weir_connection c, const weir_sv *text);
void weir_link_probe_late(weir_link *link, weir_peer *peer);

/* link.c: */

/* The live peer of a control or bulk connection; NULL. */
weir_peer *weir_link_find(weir_link *link, weir_connection c, bool bulk);
/* Packs and sends on control or bulk connection |c|. */
weir_status weir_link_post(weir_link *link, weir_connection c, bool bulk,
                           uint64_t epoch, Weir__V1__Control *message,
                           weir_error *err);
/* Closes all connections of |peer|. */
void weir_link_close(weir_link *link, weir_peer *peer);
/* |peer| is up, with both connections. */
void weir_link_up(weir_link *link, weir_peer *peer);
/* An attempt of a dialled peer, an incoming one, or a peer that is up has
 * failed: dials again later, or marks it to be reported. */
void weir_link_failed(weir_link *link, weir_peer *peer, const weir_error *why,
                      bool for_good);
/* Frees dropped peers. */
void weir_link_reap(weir_link *link);
/* "worker:1", "the driver". */
void weir_link_name(const char *job, uint32_t index,
                    char name[WEIR_TASK_NAME_BYTES]);

#endif
