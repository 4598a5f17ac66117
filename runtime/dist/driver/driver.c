/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/dist/driver/driver.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/strbuf.h"
#include "runtime/dist/driver/driver_internal.h"
#include "runtime/net/wire_error.h"

/* The session: start, messages, loss, end.
 *
 * Invariant: in READY every place has a peer that is up and has begun. The
 * first failure is the one that is reported; its consequences come later and
 * are not. A failure is noted at once and acted upon by tick(), so no callback
 * comes from inside a call.
 *
 * The tasks close the connections of a session that ends well: then End is read
 * before the closed connection, on any transport. */

weir_status weir_driver_create(const weir_allocator *alloc, weir_link *link,
                               int64_t now_ns,
                               const weir_driver_options *options,
                               const weir_driver_calls *calls,
                               weir_driver **out_driver, weir_error *err) {
  weir_driver *d = weir_alloc_array(alloc, 1, sizeof *d);
  *out_driver = NULL;
  if (d == NULL) return weir_fail_memory(err, sizeof *d);
  d->alloc = alloc;
  weir_arena_init(&d->arena, alloc);
  d->link = link;
  d->options = *options;
  d->unsure_end = &d->unsure;
  d->calls = *calls;
  d->error = (weir_error)WEIR_ERROR_INIT;
  if (options->share != NULL)
    snprintf(d->share, sizeof d->share, "%s", options->share);
  const int64_t second = 1000000000;
  weir_driver_options *o = &d->options;
  if (o->start_ns == 0) o->start_ns = 30 * second;
  if (o->register_ns == 0) o->register_ns = 300 * second;
  if (o->hang_ns == 0) o->hang_ns = 2 * second;
  o->tasks = NULL;
  o->share = NULL;
  d->now_ns = now_ns;
  d->until_ns = now_ns + o->start_ns;
  d->profile = options->profile != 0 ? options->profile : UINT64_MAX;
  d->places =
      weir_arena_array(&d->arena, options->task_count, sizeof *d->places);
  weir_status s =
      d->places != NULL ? WEIR_OK : weir_fail_memory(err, sizeof *d->places);
  for (uint32_t i = 0; s == WEIR_OK && i < options->task_count; i++) {
    weir_driver_place *p = &d->places[i];
    const weir_driver_task *t = &options->tasks[i];
    snprintf(p->job, sizeof p->job, "%s", t->job);
    p->index = t->index;
    snprintf(p->name, sizeof p->name, "%s:%" PRIu32, p->job, p->index);
    snprintf(p->address, sizeof p->address, "%s", t->address);
    p->last = (weir_error)WEIR_ERROR_INIT;
    p->waits = weir_arena_array(&d->arena, options->task_count, sizeof(bool));
    weir_link_target target = {p->job, p->index, p->address, d->until_ns};
    s = p->waits == NULL ? weir_fail_memory(err, options->task_count)
                         : weir_link_dial(link, now_ns, &target, &p->peer, err);
    if (s != WEIR_OK) break;
    p->peer->place = i;
    d->count = i + 1;
  }
  if (s != WEIR_OK)
    weir_driver_release(d);
  else
    *out_driver = d;
  return s;
}

#define PART_NS INT64_C(5000000000) /* for the tasks to close */

/* All, or those that have no session. */
static void drop_peers(weir_driver *d, bool all) {
  for (uint32_t i = 0; i < d->count; i++) {
    weir_driver_place *p = &d->places[i];
    if (p->peer == NULL) continue;
    if (d->state != WEIR_DRIVER_OVER) d->calls.place(d->calls.self, i, NULL);
    if (!all && p->begun) continue;
    weir_link_drop(p->peer);
    p->peer = NULL;
  }
}

void weir_driver_release(weir_driver *d) {
  if (d == NULL) return;
  drop_peers(d, true);
  weir_driver_free_steps(d);
  weir_vec_free(d->alloc, &d->steps);
  weir_vec_free(d->alloc, &d->requests);
  weir_arena_release(&d->arena);
  weir_free(d->alloc, d);
}

size_t weir_driver_steps(const weir_driver *d) {
  return d->steps.count;
}

uint64_t weir_driver_profile(const weir_driver *d) {
  return d->begun && d->profile != UINT64_MAX ? d->profile : 0;
}

uint64_t weir_driver_committed(const weir_driver *d) {
  return d->committed;
}

uint64_t weir_driver_kept(const weir_driver *d) {
  return d->kept;
}

void weir_driver_send(weir_driver *d, uint32_t place, Weir__V1__Control *m) {
  if (d->places[place].peer != NULL)
    weir_link_send(d->places[place].peer, d->options.epoch, m);
}

void weir_driver_fail(weir_driver *d, const weir_error *why) {
  if (d->state == WEIR_DRIVER_FAILED || d->state == WEIR_DRIVER_OVER) return;
  d->error = (weir_error)WEIR_ERROR_INIT;
  weir_error_copy(&d->error, why);
  /* Before the start is over, started() gets the error too. */
  d->begun = d->state != WEIR_DRIVER_STARTING;
  d->state = WEIR_DRIVER_FAILED;
}

/* ---- Start */

static bool all_up(const weir_driver *d) {
  for (uint32_t i = 0; i < d->count; i++)
    if (d->places[i].peer == NULL || d->places[i].peer->state != WEIR_PEER_UP)
      return false;
  return true;
}

static weir_status begin(weir_driver *d, weir_error *err) {
  weir_arena arena;
  weir_arena_init(&arena, d->alloc);
  Weir__V1__Begin body = WEIR__V1__BEGIN__INIT;
  Weir__V1__Task *tasks = weir_arena_array(&arena, d->count, sizeof *tasks);
  body.tasks = weir_arena_array(&arena, d->count, sizeof *body.tasks);
  body.addresses = weir_arena_array(&arena, d->count, sizeof *body.addresses);
  if (tasks == NULL || body.tasks == NULL || body.addresses == NULL) {
    weir_arena_release(&arena);
    return weir_fail_memory(err, d->count * sizeof *tasks);
  }
  for (uint32_t i = 0; i < d->count; i++) {
    tasks[i] = (Weir__V1__Task)WEIR__V1__TASK__INIT;
    tasks[i].job = d->places[i].job;
    tasks[i].index = d->places[i].index;
    body.tasks[i] = &tasks[i];
    body.addresses[i] = d->places[i].address;
    if (d->places[i].peer->profile < d->profile)
      d->profile = d->places[i].peer->profile;
  }
  body.n_tasks = body.n_addresses = d->count;
  body.profile = d->profile;
  body.share = d->share;
  Weir__V1__Control m = WEIR__V1__CONTROL__INIT;
  m.body_case = WEIR__V1__CONTROL__BODY_BEGIN;
  m.begin = &body;
  for (uint32_t i = 0; i < d->count; i++) {
    body.index = i;
    weir_driver_send(d, i, &m);
  }
  d->begun = true;
  weir_arena_release(&arena);
  return WEIR_OK;
}

void weir_driver_up(weir_driver *d, int64_t now_ns, weir_peer *peer) {
  d->now_ns = now_ns;
  if (peer->place >= d->count || d->places[peer->place].peer != peer) return;
  d->calls.place(d->calls.self, peer->place, peer);
  weir_error err = WEIR_ERROR_INIT;
  if (d->state == WEIR_DRIVER_STARTING && !d->begun && all_up(d) &&
      begin(d, &err) != WEIR_OK)
    weir_driver_fail(d, &err);
}

static void begin_reply(weir_driver *d, uint32_t place,
                        const Weir__V1__BeginReply *reply) {
  weir_error err = WEIR_ERROR_INIT, words = WEIR_ERROR_INIT;
  if (d->state != WEIR_DRIVER_STARTING) return;
  if (weir_wire_error_is(reply->refused)) {
    (void)weir_wire_error_get(reply->refused, &words);
    weir_fail(&err, WEIR_W7024, NULL, "%s at %s refuses: %s",
              d->places[place].name, d->places[place].address, words.message);
    weir_driver_fail(d, &err);
    return;
  }
  d->places[place].begun = true;
  for (uint32_t i = 0; i < d->count; i++)
    if (!d->places[i].begun) return;
  d->state = WEIR_DRIVER_READY;
  d->calls.started(d->calls.self, NULL);
}

/* Why the last attempt to reach it failed. */
static const weir_error *last_of(const weir_driver_place *p) {
  return p->peer != NULL ? &p->peer->last : &p->last;
}

/* Why a task is missing, or NULL: it is not. */
static const char *reason_of(const weir_driver *d, const weir_driver_place *p) {
  const weir_error *last = last_of(p);
  if (p->begun) return NULL;
  if (p->peer != NULL && p->peer->state == WEIR_PEER_UP)
    return d->begun ? "up, but does not begin" : NULL;
  return last->id[0] != '\0' ? last->message : "never answered";
}

/* "worker:1 at 127.0.0.1:4001: Connection refused". Errors name the task, and
 * often its address, themselves. */
static void describe(const weir_driver_place *p, const char *why, char *text,
                     size_t size) {
  char at[WEIR_NET_ADDRESS_BYTES + 8];
  size_t name = strlen(p->name);
  if (strncmp(why, p->name, name) == 0) {
    if (strncmp(why + name, ": ", 2) == 0)
      why += name + 2;
    else if (why[name] == ' ')
      why += name + 1;
  }
  size_t bytes = strlen(why);
  size_t tail = (size_t)snprintf(at, sizeof at, " at %s", p->address);
  if (bytes > tail && strcmp(why + bytes - tail, at) == 0) bytes -= tail;
  snprintf(text, size, "%s%s: %.*s", p->name, at,
           (int)(bytes < 150 ? bytes : 150), why);
}

static void missing(weir_driver *d, weir_error *err) {
  char list[512] = "", text[512], more[32] = "";
  size_t used = 0;
  uint32_t count = 0, told = 0;
  weir_error_id id = WEIR_W7022;
  for (uint32_t i = 0; i < d->count; i++) {
    const char *why = reason_of(d, &d->places[i]);
    if (why == NULL) continue;
    id = weir_link_id_of(last_of(&d->places[i]), id);
    count++;
    describe(&d->places[i], why, text, sizeof text);
    size_t n = strlen(text) + (used > 0 ? 2 : 0);
    if (told + 1 < count || n >= sizeof list - used) continue;
    snprintf(list + used, sizeof list - used, "%s%s", used > 0 ? "; " : "",
             text);
    used += n;
    told++;
  }
  if (told < count)
    snprintf(more, sizeof more, "; and %" PRIu32 " more", count - told);
  weir_fail(err, id, NULL, "%" PRIu32 " of %" PRIu32 " tasks are missing: %s%s",
            count, d->count, list, more);
}

/* ---- Loss */

static void lost_in_start(weir_driver *d, uint32_t place, const weir_peer *peer,
                          const weir_error *why) {
  weir_driver_place *p = &d->places[place];
  weir_error err = WEIR_ERROR_INIT;
  bool again = peer->met && !d->begun && d->now_ns < d->until_ns;
  weir_link_target target = {p->job, p->index, p->address, d->until_ns};
  if (again &&
      weir_link_dial(d->link, d->now_ns, &target, &p->peer, &err) == WEIR_OK) {
    p->peer->place = place;
    return;
  }
  p->last = (weir_error)WEIR_ERROR_INIT;
  weir_error_copy(&p->last, why);
  missing(d, &err);
  weir_driver_fail(d, &err);
}

bool weir_driver_awaits_words(const weir_driver *d) {
  for (uint32_t i = 0; i < d->count; i++) {
    const weir_peer *peer = d->places[i].peer;
    if (peer != NULL && peer->state == WEIR_PEER_PROBED && !peer->orderly)
      return true;
  }
  return false;
}

/* Says how many tasks are silent beside one that is lost so: if all others of a
 * host are, or all, the way to them may be cut rather than they. "": none. */
static void silent_too(const weir_driver *d, const weir_peer *lost,
                       char words[WEIR_LAST_WORDS]) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < d->count; i++)
    count += d->places[i].peer != NULL &&
             weir_peer_is_suspect(d->places[i].peer, d->now_ns);
  words[0] = '\0';
  if (count > 0 && weir_peer_is_suspect(lost, d->now_ns))
    snprintf(words, WEIR_LAST_WORDS,
             ", and %" PRIu32 " of the %" PRIu32 " other tasks %s silent, too",
             count, d->count - 1, count == 1 ? "is" : "are");
}

void weir_driver_lost(weir_driver *d, int64_t now_ns, weir_peer *peer,
                      const weir_error *why) {
  d->now_ns = now_ns;
  if (peer->place >= d->count || d->places[peer->place].peer != peer) return;
  weir_driver_place *p = &d->places[peer->place];
  p->peer = NULL;
  if (d->state == WEIR_DRIVER_OVER) return; /* it has read End */
  d->calls.place(d->calls.self, peer->place, NULL);
  if (d->state == WEIR_DRIVER_STARTING) {
    lost_in_start(d, peer->place, peer, why);
  } else if (!peer->orderly || !weir_driver_awaits_words(d)) {
    /* A task that closes the connection may do so since one that was cut off
     * has asked it for the fate of a step: that one is to blame. */
    weir_error err = WEIR_ERROR_INIT;
    char words[WEIR_LAST_WORDS], others[WEIR_LAST_WORDS];
    weir_driver_last_words(d, words, sizeof words);
    silent_too(d, peer, others);
    weir_fail(&err, WEIR_W7020, NULL, "%s at %s is lost: %s%s; %s", p->name,
              p->address, why->message, others, words);
    weir_driver_fail(d, &err);
  }
}

/* ---- Messages */

void weir_driver_message(weir_driver *d, int64_t now_ns, weir_peer *peer,
                         const Weir__V1__Control *m) {
  d->now_ns = now_ns;
  uint32_t place = peer->place;
  if (place >= d->count || d->places[place].peer != peer ||
      m->epoch != d->options.epoch || d->state >= WEIR_DRIVER_FAILED)
    return;
  weir_error err = WEIR_ERROR_INIT;
  weir_status s = WEIR_OK;
  switch (m->body_case) {
    case WEIR__V1__CONTROL__BODY_BEGIN_REPLY:
      begin_reply(d, place, m->begin_reply);
      break;
    case WEIR__V1__CONTROL__BODY_REGISTER_REPLY:
      weir_driver_register_reply(d, place, m->register_reply);
      break;
    case WEIR__V1__CONTROL__BODY_STEP_REPLY:
      weir_driver_step_reply(d, place, m->step_reply);
      break;
    case WEIR__V1__CONTROL__BODY_COMMIT_REPLY:
      weir_driver_confirm(d, place, m->commit_reply->step);
      break;
    case WEIR__V1__CONTROL__BODY_VARIABLE_REPLY:
      weir_driver_variable_reply(d, place, m->variable_reply);
      break;
    case WEIR__V1__CONTROL__BODY_CHECKPOINT_REPLY:
      weir_driver_checkpoint_reply(d, place, m->checkpoint_reply);
      break;
    case WEIR__V1__CONTROL__BODY_TURN_REPLY:
      weir_driver_turn_reply(d, place, m->turn_reply);
      break;
    case WEIR__V1__CONTROL__BODY_TELL_PENDING:
      weir_driver_tell_pending(d, place, m->tell_pending);
      break;
    case WEIR__V1__CONTROL__BODY_BLOB_WANT:
      s = m->blob_want->hash.len == 24
              ? d->calls.blob(d->calls.self, place, m->blob_want->hash.data,
                              m->blob_want->number, &err)
              : weir_fail(&err, WEIR_W7011, NULL,
                          "the name of a blob has %zu bytes",
                          m->blob_want->hash.len);
      break;
    case WEIR__V1__CONTROL__BODY_VALUES:
    case WEIR__V1__CONTROL__BODY_READY:
    case WEIR__V1__CONTROL__BODY_CUT:
      s = d->calls.value(d->calls.self, place, m, &err);
      break;
    default:
      s = weir_fail(&err, WEIR_W7011, NULL,
                    "%s sends message %d, which is a driver's", peer->name,
                    (int)m->body_case);
  }
  if (s != WEIR_OK) weir_link_give_up(peer, &err);
}

/* ---- Time and the end */

/* |why|: the session has failed; NULL: it is done. */
static void send_end(weir_driver *d, const weir_error *why) {
  Weir__V1__End body = WEIR__V1__END__INIT;
  Weir__V1__Error words = WEIR__V1__ERROR__INIT;
  Weir__V1__Control m = WEIR__V1__CONTROL__INIT;
  body.stop = d->stop;
  if (why != NULL) {
    weir_wire_error_put(why, &words);
    body.why = &words;
  }
  m.body_case = WEIR__V1__CONTROL__BODY_END;
  m.end = &body;
  for (uint32_t i = 0; i < d->count; i++) {
    weir_driver_send(d, i, &m);
    if (d->places[i].peer != NULL) d->places[i].peer->parting = true;
  }
}

/* Everything under way ends; the tasks are told. Peers that are up stay, unless
 * the session has failed: they close. */
static void finish(weir_driver *d) {
  bool failed = d->state == WEIR_DRIVER_FAILED;
  bool start_failed = failed && !d->begun;
  if (!failed) {
    weir_fail(&d->error, WEIR_W7027, NULL, "the session is over");
    d->state = WEIR_DRIVER_FAILED;
  }
  weir_error why = d->error;
  weir_driver_steps_fail(d, &why);
  weir_driver_programs_fail(d, &why);
  weir_driver_turn_fail(d, &why);
  send_end(d, failed ? &why : NULL);
  drop_peers(d, failed);
  d->state = WEIR_DRIVER_OVER;
  d->until_ns = d->now_ns + PART_NS;
  if (start_failed) d->calls.started(d->calls.self, &why);
  d->calls.over(d->calls.self, failed ? &why : NULL);
}

void weir_driver_end(weir_driver *d, bool stop) {
  d->ending = true;
  d->stop = stop;
}

bool weir_driver_parted(const weir_driver *d) {
  if (d->state != WEIR_DRIVER_OVER) return false;
  for (uint32_t i = 0; i < d->count; i++)
    if (d->places[i].peer != NULL) return false;
  return true;
}

/* Waits for the tasks to close. */
static int64_t part(weir_driver *d) {
  if (weir_driver_parted(d)) return INT64_MAX;
  if (d->now_ns < d->until_ns) return d->until_ns;
  drop_peers(d, true);
  return INT64_MAX;
}

int64_t weir_driver_tick(weir_driver *d, int64_t now_ns) {
  d->now_ns = now_ns;
  int64_t next = INT64_MAX, other;
  if (d->state == WEIR_DRIVER_STARTING) {
    weir_error err = WEIR_ERROR_INIT;
    next = d->until_ns;
    if (now_ns >= d->until_ns) {
      missing(d, &err);
      weir_driver_fail(d, &err);
    }
  } else if (d->state == WEIR_DRIVER_READY) {
    next = weir_driver_step_tick(d);
    other = weir_driver_program_tick(d);
    if (other < next) next = other;
  }
  if (d->state == WEIR_DRIVER_HANGING) next = weir_driver_hang_tick(d);
  if (d->ending && d->state < WEIR_DRIVER_FAILED) {
    other = weir_driver_turn_wait(d);
    if (other > now_ns && other < next) next = other;
    if (other <= now_ns) finish(d);
  }
  if (d->state == WEIR_DRIVER_FAILED) finish(d);
  if (d->state == WEIR_DRIVER_OVER) return part(d);
  return next;
}
