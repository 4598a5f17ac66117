/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/dist/kv/client.h"

#include <assert.h>
#include <inttypes.h>

#include "runtime/base/size.h"

/* Queues and what is sent again; see client.h.
 *
 * Ops under way stand in the order in which they were sent first. Entries to
 * barriers stand apart: their answers come when all members are there. */

typedef struct list {
  weir_kv_op *first, *last;
  uint32_t count;
} list;

/* A server. */
typedef struct lane {
  bool up, joined;
  uint64_t life; /* 0: none has answered yet */
  uint64_t seq;  /* the last number */
  bool dead;     /* |why| */
  weir_error why;
  uint64_t bytes; /* under way */
  list waiting, sent;
  list entering, entered; /* barriers: before their first sending, and after */
  uint64_t tickets;
} lane;

struct weir_kv_client {
  const weir_allocator *alloc;
  weir_kv_client_options options;
  weir_kv_client_calls calls;
  uint64_t order;
  bool over;
  lane lanes[];
};

static void append(list *l, weir_kv_op *op) {
  op->next = NULL;
  op->prev = l->last;
  if (l->last != NULL)
    l->last->next = op;
  else
    l->first = op;
  l->last = op;
  l->count++;
}

static void take_out(list *l, weir_kv_op *op) {
  *(op->prev != NULL ? &op->prev->next : &l->first) = op->next;
  *(op->next != NULL ? &op->next->prev : &l->last) = op->prev;
  l->count--;
}

static bool is_change(const weir_kv_op *op) {
  return op->message.kind == WEIR_KV_DECLARE ||
         op->message.kind == WEIR_KV_PUSH ||
         op->message.kind == WEIR_KV_PUSH_PULL;
}

/* ---- Life */

weir_status weir_kv_client_create(const weir_allocator *alloc,
                                  const weir_kv_client_options *options,
                                  const weir_kv_client_calls *calls,
                                  weir_kv_client **out_client,
                                  weir_error *err) {
  size_t bytes;
  *out_client = NULL;
  if (options->servers < 1 || options->servers > 64 ||
      options->incarnation == 0)
    return weir_fail(err, WEIR_W7090, NULL,
                     "a member with %" PRIu32
                     " servers of keys, 1 to 64 are expected",
                     options->servers);
  if (!weir_size_mul(options->servers, sizeof(lane), &bytes) ||
      !weir_size_add(bytes, sizeof(weir_kv_client), &bytes))
    return weir_fail_memory(err, SIZE_MAX);
  weir_kv_client *c = weir_alloc_array(alloc, 1, bytes);
  if (c == NULL) return weir_fail_memory(err, bytes);
  c->alloc = alloc;
  c->options = *options;
  c->calls = *calls;
  *out_client = c;
  return WEIR_OK;
}

void weir_kv_client_release(weir_kv_client *c) {
  if (c != NULL) weir_free(c->alloc, c);
}

/* ---- Ends of ops */

static void end_op(weir_kv_client *c, list *l, weir_kv_op *op,
                   weir_status status, const weir_error *err) {
  take_out(l, op);
  op->status = status;
  if (status != WEIR_OK) op->err = *err;
  c->calls.done(c->calls.self, op);
}

static void end_all(weir_kv_client *c, list *l, const weir_error *why) {
  while (l->first != NULL) end_op(c, l, l->first, why->code, why);
}

static void end_sent(weir_kv_client *c, lane *l, weir_kv_op *op,
                     weir_status status, const weir_error *err) {
  l->bytes -= op->bytes;
  end_op(c, &l->sent, op, status, err);
}

static void kill_lane(weir_kv_client *c, lane *l, const weir_error *why) {
  l->dead = true;
  l->why = *why;
  end_all(c, &l->sent, why);
  end_all(c, &l->waiting, why);
  end_all(c, &l->entering, why);
  end_all(c, &l->entered, why);
  l->bytes = 0;
}

static void give_up(weir_kv_client *c, uint32_t server,
                    const weir_kv_message *m) {
  weir_error err = WEIR_ERROR_INIT;
  weir_fail(&err, WEIR_W7011, NULL,
            "ps:%" PRIu32 " sends %s %" PRIu64 ", for which nobody asked",
            server, weir_kv_kind_name(m->kind), m->seq);
  c->calls.give_up(c->calls.self, server, &err);
}

/* ---- Sending */

static void send(weir_kv_client *c, uint32_t server, weir_kv_op *op) {
  op->message.incarnation = c->options.incarnation;
  op->message.life = c->lanes[server].life;
  c->calls.send(c->calls.self, server, &op->message, op);
}

/* Next of those that wait; NULL: none. */
static weir_kv_op *choose(const lane *l) {
  weir_kv_op *best = l->waiting.first;
  for (weir_kv_op *op = best; op != NULL; op = op->next)
    if (op->priority > best->priority) best = op;
  return best;
}

static bool has_room(const weir_kv_client *c, const lane *l,
                     const weir_kv_op *op) {
  if (l->sent.first == NULL) return true;
  return l->sent.count < WEIR_KV_WINDOW &&
         op->bytes <= c->options.window_bytes &&
         l->bytes <= c->options.window_bytes - op->bytes;
}

/* Sends what may be. */
static void pump(weir_kv_client *c, uint32_t server) {
  lane *l = &c->lanes[server];
  for (weir_kv_op *op;
       l->joined && (op = choose(l)) != NULL && has_room(c, l, op);) {
    take_out(&l->waiting, op);
    append(&l->sent, op);
    l->bytes += op->bytes;
    op->numbered = is_change(op);
    if (op->numbered) op->message.seq = ++l->seq;
    op->message.request = op->order;
    send(c, server, op);
  }
}

/* Tickets under way are less than the window apart. */
static void enter(weir_kv_client *c, uint32_t server) {
  lane *l = &c->lanes[server];
  for (weir_kv_op *op; l->joined && (op = l->entering.first) != NULL;) {
    if (l->entered.first != NULL &&
        l->tickets + 1 - l->entered.first->message.ticket >= WEIR_KV_WINDOW)
      return;
    take_out(&l->entering, op);
    append(&l->entered, op);
    op->message.ticket = ++l->tickets;
    send(c, server, op);
  }
}

/* Those before |op| on its key go before it. */
static void raise_earlier(const lane *l, const weir_kv_op *op) {
  for (weir_kv_op *at = l->waiting.first; at != NULL; at = at->next)
    if (at->priority < op->priority &&
        strcmp(at->message.name, op->message.name) == 0)
      at->priority = op->priority;
}

void weir_kv_client_submit(weir_kv_client *c, weir_kv_op *op) {
  lane *l = &c->lanes[op->server];
  bool enters = op->message.kind == WEIR_KV_ENTER;
  op->order = ++c->order;
  if (l->dead) {
    append(&l->waiting, op);
    end_op(c, &l->waiting, op, l->why.code, &l->why);
  } else if (enters) {
    append(&l->entering, op);
    enter(c, op->server);
  } else {
    raise_earlier(l, op);
    append(&l->waiting, op);
    pump(c, op->server);
  }
}

/* ---- Links */

void weir_kv_client_up(weir_kv_client *c, uint32_t server) {
  lane *l = &c->lanes[server];
  weir_kv_message join = {.kind = WEIR_KV_JOIN,
                          .incarnation = c->options.incarnation};
  l->up = true;
  l->joined = false;
  if (!c->over) c->calls.send(c->calls.self, server, &join, NULL);
}

void weir_kv_client_down(weir_kv_client *c, uint32_t server) {
  c->lanes[server].up = c->lanes[server].joined = false;
}

/* A change that is done, as the mark says. */
static void end_marked(weir_kv_client *c, lane *l, weir_kv_op *op,
                       const weir_kv_message *m) {
  weir_error err = WEIR_ERROR_INIT;
  uint64_t back = m->seq - op->message.seq;
  bool refused = back < WEIR_KV_WINDOW && m->mask >> back & 1;
  if (refused)
    weir_fail(&err, WEIR_W7113, NULL,
              "ps:%" PRIu32
              " refused %s of key `%.64s`; its words were lost "
              "with the link",
              op->server, weir_kv_kind_name(op->message.kind),
              op->message.name);
  if (refused || op->message.kind != WEIR_KV_PUSH_PULL) {
    op->version = 0; /* it was lost with the link */
    end_sent(c, l, op, err.code, &err);
    return;
  }
  op->message.kind = WEIR_KV_PULL; /* the push counts; its values are missing */
  op->message.version = 0;
  op->numbered = false;
  op->message.seq = 0;
  op->message.value_bytes = 0;
  send(c, op->server, op);
}

static void send_again(weir_kv_client *c, uint32_t server,
                       const weir_kv_message *m) {
  lane *l = &c->lanes[server];
  for (weir_kv_op *next, *op = l->sent.first; op != NULL; op = next) {
    next = op->next;
    if (op->numbered && op->message.seq <= m->seq)
      end_marked(c, l, op, m);
    else
      send(c, server, op);
  }
  for (weir_kv_op *op = l->entered.first; op != NULL; op = op->next)
    send(c, server, op);
}

static void on_joined(weir_kv_client *c, uint32_t server,
                      const weir_kv_message *m) {
  lane *l = &c->lanes[server];
  weir_error why = WEIR_ERROR_INIT;
  if (l->joined || m->seq > l->seq) {
    give_up(c, server, m);
    return;
  }
  if (l->life != 0 && l->life != m->life) {
    weir_fail(&why, WEIR_W7114, NULL,
              "ps:%" PRIu32 " was started anew: the keys that it held are gone",
              server);
    kill_lane(c, l, &why);
    return;
  }
  l->life = m->life;
  l->joined = true;
  send_again(c, server, m);
  pump(c, server);
  enter(c, server);
}

/* ---- Answers */

weir_kv_op *weir_kv_client_find(const weir_kv_client *c, uint32_t server,
                                const weir_kv_message *m) {
  weir_kv_op *op = c->lanes[server].sent.first;
  while (op != NULL && op->message.request != m->request) op = op->next;
  return op;
}

static void on_done(weir_kv_client *c, uint32_t server,
                    const weir_kv_message *m) {
  lane *l = &c->lanes[server];
  weir_error err = WEIR_ERROR_INIT;
  weir_kv_op *op = weir_kv_client_find(c, server, m);
  if (op == NULL) {
    if (m->data != NULL) c->calls.drop(c->calls.self, m->data);
    give_up(c, server, m);
    return;
  }
  op->version = m->version;
  op->newer = m->newer;
  op->data = m->data;
  weir_status status = weir_kv_get_error(m, &err);
  end_sent(c, l, op, status, &err);
  pump(c, server);
}

static void on_passed(weir_kv_client *c, uint32_t server,
                      const weir_kv_message *m) {
  lane *l = &c->lanes[server];
  weir_error err = WEIR_ERROR_INIT;
  weir_kv_op *op = l->entered.first;
  while (op != NULL && op->message.ticket != m->ticket) op = op->next;
  if (op == NULL) return; /* a second answer, to an entry sent again */
  weir_status status = weir_kv_get_error(m, &err);
  end_op(c, &l->entered, op, status, &err);
  enter(c, server);
}

void weir_kv_client_message(weir_kv_client *c, uint32_t server,
                            const weir_kv_message *m) {
  const lane *l = &c->lanes[server];
  if (l->dead || c->over) {
    if (m->data != NULL) c->calls.drop(c->calls.self, m->data);
  } else if (m->kind == WEIR_KV_JOINED) {
    on_joined(c, server, m);
  } else if (!l->joined || m->incarnation != c->options.incarnation) {
    if (m->data != NULL) c->calls.drop(c->calls.self, m->data);
    give_up(c, server, m);
  } else if (m->kind == WEIR_KV_DONE) {
    on_done(c, server, m);
  } else if (m->kind == WEIR_KV_PASSED) {
    on_passed(c, server, m);
  } else {
    give_up(c, server, m);
  }
}

void weir_kv_client_end(weir_kv_client *c, const weir_error *why) {
  c->over = true;
  for (uint32_t i = 0; i < c->options.servers; i++) {
    lane *l = &c->lanes[i];
    weir_kv_message leave = {.kind = WEIR_KV_LEAVE,
                             .incarnation = c->options.incarnation};
    if (l->joined) c->calls.send(c->calls.self, i, &leave, NULL);
    if (!l->dead) kill_lane(c, l, why);
  }
}
