/* SPDX-License-Identifier: Apache-2.0 */
/* The side of a meeting that registers. */
#include "runtime/dist/meet/meet_guest.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "runtime/dist/meet/meet_link.h"
#include "runtime/net/wire_error.h"

static const int64_t kSecond = 1000000000;

struct weir_meet_guest {
  const weir_env *env;
  weir_meet_guest_options options;
  char scheduler[WEIR_NET_ADDRESS_BYTES];
  weir_wires *wires;
  bool started;
  weir_node_call read;
  /* The control thread's: */
  weir_peer *peer; /* dialled; NULL: none is */
  bool up, over;   /* the link is; the scheduler has refused */
  int64_t next_ns; /* when it dials again */
  int64_t word_ns; /* when it says again what it waits for */
  uint32_t servers_here, workers_here;
  char told[WEIR_NET_ADDRESS_BYTES]; /* own address, as the scheduler knows */
  pthread_mutex_t lock;
  pthread_cond_t changed;
  /* Under the lock: */
  bool reads; /* |read| is posted */
  bool stopped, seated;
  uint32_t rank;
  weir_status status; /* why it is refused; OK: it is not */
  weir_error refused;
};

static int64_t now_of(const weir_meet_guest *g) {
  return g->env->clock->now_ns(g->env->clock->self);
}

static weir_ps_task self_of(const weir_meet_guest *g) {
  return (weir_ps_task){g->options.role, g->rank};
}

/* ---- To the scheduler */

static void knock(weir_meet_guest *g) {
  Weir__V1__MeetKnock k = WEIR__V1__MEET_KNOCK__INIT;
  const weir_meet_guest_options *o = &g->options;
  pthread_mutex_lock(&g->lock);
  k.seated = g->seated;
  k.ranked = g->seated || o->ranked;
  k.rank = g->seated ? g->rank : o->rank;
  pthread_mutex_unlock(&g->lock);
  k.role = (uint32_t)o->role;
  k.servers = o->meet.servers;
  k.workers = o->meet.workers;
  g->told[0] = '\0';
  if (k.seated) weir_ps_book_get(o->meet.book, self_of(g), g->told);
  k.address = g->told;
  Weir__V1__Control m = WEIR__V1__CONTROL__INIT;
  m.body_case = WEIR__V1__CONTROL__BODY_MEET_KNOCK;
  m.meet_knock = &k;
  weir_link_send(g->peer, 0, &m);
}

static void link_up(void *self, weir_peer *peer) {
  weir_meet_guest *g = self;
  if (peer != g->peer) return;
  g->up = true;
  knock(g);
}

/* ---- From the scheduler */

static void on_refused(weir_meet_guest *g, const Weir__V1__Error *words) {
  weir_error why = WEIR_ERROR_INIT;
  weir_status s = weir_wire_error_get(words, &why);
  g->over = true;
  pthread_mutex_lock(&g->lock);
  g->status = s;
  weir_error_copy(&g->refused, &why);
  pthread_cond_broadcast(&g->changed);
  pthread_mutex_unlock(&g->lock);
  if (g->options.refused != NULL) g->options.refused(g->options.self);
}

static void on_rank(weir_meet_guest *g, uint32_t rank) {
  char name[32], text[128];
  pthread_mutex_lock(&g->lock);
  bool news = !g->seated;
  if (news) g->rank = rank;
  g->seated = true;
  pthread_cond_broadcast(&g->changed);
  pthread_mutex_unlock(&g->lock);
  if (!news) return;
  weir_meet_name(g->options.role, rank, name);
  snprintf(text, sizeof text, "the scheduler at %.40s: this process is %s",
           g->scheduler, name);
  weir_meet_say(&g->options.meet, text);
}

/* Its own address is its net's to say. */
static void note_addresses(const weir_meet_guest *g,
                           const Weir__V1__MeetSeat *seat) {
  weir_ps_book *book = g->options.meet.book;
  weir_ps_book_set(book, (weir_ps_task){WEIR_PS_CHIEF, 0}, seat->chief);
  for (uint32_t i = 0; i < seat->n_servers; i++)
    if (g->options.role != WEIR_PS_SERVER || i != g->rank)
      weir_ps_book_set(book, (weir_ps_task){WEIR_PS_SERVER, i},
                       seat->servers[i]);
}

static void link_message(void *self, weir_peer *peer,
                         const Weir__V1__Control *message) {
  weir_meet_guest *g = self;
  weir_error err = WEIR_ERROR_INIT;
  const Weir__V1__MeetSeat *seat = message->meet_seat;
  if (peer != g->peer) return;
  bool fits = message->body_case == WEIR__V1__CONTROL__BODY_MEET_SEAT &&
              (!seat->ranked || seat->n_servers == g->options.meet.servers);
  if (!fits) {
    weir_fail(&err, WEIR_W7011, NULL, "%s sends what is no seat of this job",
              peer->name);
    weir_link_give_up(peer, &err);
  } else if (weir_wire_error_is(seat->refused)) {
    on_refused(g, seat->refused);
  } else {
    g->servers_here = seat->servers_here;
    g->workers_here = seat->workers_here;
    if (!seat->ranked) return;
    on_rank(g, seat->rank);
    note_addresses(g, seat);
  }
}

static void link_lost(void *self, weir_peer *peer, const weir_error *why) {
  weir_meet_guest *g = self;
  char text[400];
  if (peer != g->peer) return;
  g->peer = NULL;
  g->next_ns = now_of(g) + kSecond / 5;
  if (g->up && !g->over) {
    snprintf(text, sizeof text, "the scheduler is lost: %.300s", why->message);
    weir_meet_say(&g->options.meet, text);
  }
  g->up = false;
}

/* ---- Time */

static int64_t dial(weir_meet_guest *g, int64_t now_ns) {
  if (g->over || g->peer != NULL) return INT64_MAX;
  if (now_ns < g->next_ns) return g->next_ns;
  const weir_link_target target = {
      .job = weir_meet_job, .address = g->scheduler, .until_ns = INT64_MAX};
  weir_error err = WEIR_ERROR_INIT;
  g->up = false;
  if (weir_link_dial(weir_wires_link(g->wires), now_ns, &target, &g->peer,
                     &err) == WEIR_OK)
    return INT64_MAX;
  g->next_ns = now_ns + kSecond;
  return g->next_ns;
}

/* What it waits for, in words. */
static void describe(const weir_meet_guest *g, char *text, size_t size) {
  const weir_meet_options *o = &g->options.meet;
  char how[240] = "";
  if (g->up) {
    snprintf(text, size,
             "waits for a rank: %" PRIu32 " of %" PRIu32 " servers and %" PRIu32
             " of %" PRIu32 " workers have registered",
             g->servers_here, o->servers, g->workers_here, o->workers);
    return;
  }
  if (g->peer != NULL) weir_peer_describe(g->peer, how, sizeof how);
  snprintf(text, size, "waits for the scheduler at %.80s: %s", g->scheduler,
           how);
}

static int64_t say_waiting(weir_meet_guest *g, int64_t now_ns) {
  char text[400];
  pthread_mutex_lock(&g->lock);
  bool waits = !g->seated && !g->over;
  pthread_mutex_unlock(&g->lock);
  if (!waits) return INT64_MAX;
  if (now_ns < g->word_ns) return g->word_ns;
  describe(g, text, sizeof text);
  weir_meet_say(&g->options.meet, text);
  g->word_ns = now_ns + 10 * kSecond;
  return g->word_ns;
}

static int64_t step(void *self, int64_t now_ns) {
  weir_meet_guest *g = self;
  int64_t next = dial(g, now_ns), word = say_waiting(g, now_ns);
  return word < next ? word : next;
}

static void stepped(void *self) {
  (void)self;
}

/* ---- The book */

/* Its net listens by now, perhaps elsewhere. */
static void read_book(void *self, bool runs) {
  weir_meet_guest *g = self;
  char own[WEIR_NET_ADDRESS_BYTES];
  pthread_mutex_lock(&g->lock);
  g->reads = false;
  bool seated = g->seated;
  pthread_mutex_unlock(&g->lock);
  if (!runs || !seated || !g->up || g->over) return;
  weir_ps_book_get(g->options.meet.book, self_of(g), own);
  if (strcmp(own, g->told) != 0) knock(g);
}

static void book_changed(void *self) {
  weir_meet_guest *g = self;
  pthread_mutex_lock(&g->lock);
  bool post = !g->reads;
  g->reads = true;
  if (post) weir_wires_post(g->wires, &g->read);
  pthread_mutex_unlock(&g->lock);
}

/* ---- Life */

static weir_status start(weir_meet_guest *g, weir_error *err) {
  const weir_meet_options *o = &g->options.meet;
  if (g->options.ranked &&
      g->options.rank >=
          (g->options.role == WEIR_PS_SERVER ? o->servers : o->workers))
    return weir_fail(err, WEIR_W7082, NULL,
                     "rank %" PRIu32 " is none of the job: it has %" PRIu32
                     " servers and %" PRIu32 " workers, from 0",
                     g->options.rank, o->servers, o->workers);
  if (o->address == NULL || strlen(o->address) >= sizeof g->scheduler)
    return weir_fail(err, WEIR_W7082, NULL,
                     "the scheduler has no address, or a long one");
  snprintf(g->scheduler, sizeof g->scheduler, "%s", o->address);
  weir_wires_calls wires = {.self = g,
                            .link = {g, link_up, link_message, link_lost, NULL},
                            .step = step,
                            .stepped = stepped};
  WEIR_TRY(weir_meet_wires(g->env, o, false, &wires, &g->wires, err));
  WEIR_TRY(weir_wires_start(g->wires, err));
  g->started = true;
  weir_ps_book_listen(o->book, WEIR_PS_READER_MEET, book_changed, g);
  return WEIR_OK;
}

weir_status weir_meet_guest_create(const weir_env *env,
                                   const weir_meet_guest_options *options,
                                   weir_meet_guest **out_guest,
                                   weir_error *err) {
  *out_guest = NULL;
  weir_meet_guest *g = weir_alloc_array(env->alloc, 1, sizeof *g);
  if (g == NULL) return weir_fail_memory(err, sizeof *g);
  g->env = env;
  g->options = *options;
  g->refused = (weir_error)WEIR_ERROR_INIT;
  g->read = (weir_node_call){.fn = read_book, .self = g};
  g->word_ns = now_of(g) + 2 * kSecond; /* at first it has waited for nobody */
  pthread_mutex_init(&g->lock, NULL);
  pthread_cond_init(&g->changed, NULL);
  weir_status s = start(g, err);
  if (s != WEIR_OK)
    weir_meet_guest_release(g);
  else
    *out_guest = g;
  return s;
}

weir_status weir_meet_guest_wait(weir_meet_guest *g, bool *out_seated,
                                 uint32_t *out_rank, weir_error *err) {
  pthread_mutex_lock(&g->lock);
  while (!g->stopped && !g->seated && g->status == WEIR_OK)
    pthread_cond_wait(&g->changed, &g->lock);
  *out_seated = g->seated;
  *out_rank = g->rank;
  pthread_mutex_unlock(&g->lock);
  return weir_meet_guest_error(g, err);
}

void weir_meet_guest_stop(weir_meet_guest *g) {
  if (g == NULL) return;
  pthread_mutex_lock(&g->lock);
  g->stopped = true;
  pthread_cond_broadcast(&g->changed);
  pthread_mutex_unlock(&g->lock);
}

weir_status weir_meet_guest_error(weir_meet_guest *g, weir_error *err) {
  pthread_mutex_lock(&g->lock);
  weir_status s = g->status;
  if (s != WEIR_OK) weir_error_copy(err, &g->refused);
  pthread_mutex_unlock(&g->lock);
  return s;
}

void weir_meet_guest_release(weir_meet_guest *g) {
  if (g == NULL) return;
  if (g->started) {
    weir_ps_book_listen(g->options.meet.book, WEIR_PS_READER_MEET, NULL, NULL);
    weir_wires_stop(g->wires);
  }
  weir_wires_release(g->wires);
  pthread_cond_destroy(&g->changed);
  pthread_mutex_destroy(&g->lock);
  weir_free(g->env->alloc, g);
}
