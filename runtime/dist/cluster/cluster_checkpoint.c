/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints of a remote: what tasks hold, write and send.
 *
 * Hold is under |moment|, as gets
 * and decisions are: so all tasks hold the values of one step. What follows is
 * between the thread that saves and the tasks; steps go on meanwhile.
 *
 * A task that fails to write or to read says so, and the session goes on. One
 * that does not send what it holds has lost its sense of the session. */
#include "runtime/dist/cluster/cluster_checkpoint.h"

#include "runtime/dist/cluster/cluster_ask.h"
#include "runtime/dist/cluster/cluster_turn.h"
#include "runtime/dist/cluster/cluster_vars.h"

/* ---- Holding */

typedef struct held {
  weir_checkpoint_owners base;
  weir_dist_session *session;
  weir_arena arena;
  uint32_t count;
  weir_node_id *nodes;
  uint32_t *places;  /* of each node */
  uint64_t *numbers; /* of each place; 0: it holds nothing */
} held;

typedef struct drop_op {
  weir_dist_op base;
  const held *held;
} drop_op;

static weir_status start_drop(weir_dist_op *base, weir_error *err) {
  (void)err;
  const held *h = ((const drop_op *)base)->held;
  weir_dist *d = base->dist;
  for (uint32_t t = 0; t < d->options.task_count; t++) {
    Weir__V1__CheckpointHold body = WEIR__V1__CHECKPOINT_HOLD__INIT;
    Weir__V1__Control m = WEIR__V1__CONTROL__INIT;
    if (h->numbers[t] == 0) continue;
    body.drop = h->numbers[t];
    m.body_case = WEIR__V1__CONTROL__BODY_CHECKPOINT_HOLD;
    m.checkpoint_hold = &body;
    weir_driver_tell(d->driver, t, &m);
  }
  return WEIR_OK;
}

/* Of a session that is over nothing is held. */
static void release_held(weir_checkpoint_owners *owners) {
  held *h = (held *)owners;
  const weir_allocator *alloc = h->session->dist->env->alloc;
  drop_op op = {.base = {.start = start_drop}, .held = h};
  if (h->numbers != NULL)
    (void)weir_dist_call(h->session->dist, &op.base, NULL);
  weir_arena_release(&h->arena);
  weir_free(alloc, h);
}

static uint32_t owner_of(const weir_checkpoint_owners *owners, size_t i) {
  return ((const held *)owners)->places[i];
}

static weir_status make_held(weir_dist_session *s, const weir_node_id *nodes,
                             uint32_t count, held **out, weir_error *err) {
  uint32_t tasks = s->dist->options.task_count;
  held *h = weir_alloc_array(s->dist->env->alloc, 1, sizeof *h);
  *out = h;
  if (h == NULL) return weir_fail_memory(err, sizeof *h);
  h->session = s;
  weir_arena_init(&h->arena, s->dist->env->alloc);
  h->nodes = weir_arena_array(&h->arena, count + 1u, sizeof *h->nodes);
  h->places = weir_arena_array(&h->arena, count + 1u, sizeof *h->places);
  h->numbers = weir_arena_array(&h->arena, tasks, sizeof *h->numbers);
  if (h->nodes == NULL || h->places == NULL || h->numbers == NULL)
    return weir_fail_memory(err, count * sizeof *h->nodes);
  for (uint32_t i = 0; i < count; i++) {
    const weir_dist_variable *v = weir_dist_variable_of(s, nodes[i]);
    if (v == NULL)
      return weir_fail(err, WEIR_W0004, NULL, "node %u is no variable",
                       nodes[i]);
    h->nodes[i] = nodes[i];
    h->places[i] = v->home;
  }
  h->count = count;
  return WEIR_OK;
}

/* The nodes of |place|, in |arena|. */
static weir_status nodes_at(const held *h, uint32_t place, weir_arena *arena,
                            uint32_t **out, size_t *out_count,
                            weir_error *err) {
  *out_count = 0;
  *out = weir_arena_array(arena, h->count + 1u, sizeof **out);
  if (*out == NULL) return weir_fail_memory(err, h->count * sizeof **out);
  for (uint32_t i = 0; i < h->count; i++)
    if (h->places[i] == place) (*out)[(*out_count)++] = h->nodes[i];
  return WEIR_OK;
}

static weir_status hold_all(held *h, weir_arena *arena, weir_error *err) {
  weir_dist_session *s = h->session;
  uint32_t tasks = s->dist->options.task_count, count = 0;
  Weir__V1__CheckpointHold *bodies =
      weir_arena_array(arena, tasks, sizeof *bodies);
  weir_dist_ask *asks = weir_arena_array(arena, tasks, sizeof *asks);
  if (bodies == NULL || asks == NULL)
    return weir_fail_memory(err, tasks * sizeof *asks);
  for (uint32_t t = 0; t < tasks; t++) {
    Weir__V1__CheckpointHold *body = &bodies[count];
    *body = (Weir__V1__CheckpointHold)WEIR__V1__CHECKPOINT_HOLD__INIT;
    WEIR_TRY(nodes_at(h, t, arena, &body->nodes, &body->n_nodes, err));
    if (body->n_nodes == 0) continue;
    body->program = s->program;
    weir_dist_ask *a = &asks[count++];
    *a = (weir_dist_ask){.place = t, .number = &body->request};
    a->message = (Weir__V1__Control)WEIR__V1__CONTROL__INIT;
    a->message.body_case = WEIR__V1__CONTROL__BODY_CHECKPOINT_HOLD;
    a->message.checkpoint_hold = body;
  }
  weir_status status = weir_dist_ask_all(s->dist, asks, count, err);
  for (uint32_t i = 0; i < count; i++)
    if (asks[i].error.id[0] == '\0')
      h->numbers[asks[i].place] = *asks[i].number;
  return status;
}

/* ---- Writing */

static weir_status order_ask(const held *h, const weir_checkpoint_order *o,
                             Weir__V1__CheckpointFolder *folder,
                             weir_arena *arena, weir_dist_ask *out,
                             weir_error *err) {
  Weir__V1__CheckpointWrite *body = weir_arena_array(arena, 1, sizeof *body);
  uint32_t *nodes = weir_arena_array(arena, o->count + 1, sizeof *nodes);
  char *run_id = weir_arena_string(arena, o->run_id.data, o->run_id.size);
  if (body == NULL || nodes == NULL || run_id == NULL)
    return weir_fail_memory(err, o->count * sizeof *nodes);
  for (size_t i = 0; i < o->count; i++) nodes[i] = h->nodes[o->entries[i]];
  *body = (Weir__V1__CheckpointWrite)WEIR__V1__CHECKPOINT_WRITE__INIT;
  body->held = h->numbers[o->owner];
  body->folder = folder;
  body->file = (char *)(uintptr_t)o->file;
  body->run_id = run_id;
  body->nodes = nodes;
  body->n_nodes = o->count;
  *out = (weir_dist_ask){.place = o->owner,
                         .number = &body->request,
                         .crcs = o->crcs,
                         .crc_count = o->count};
  out->message = (Weir__V1__Control)WEIR__V1__CONTROL__INIT;
  out->message.body_case = WEIR__V1__CONTROL__BODY_CHECKPOINT_WRITE;
  out->message.checkpoint_write = body;
  return WEIR_OK;
}

static weir_status write_all(held *h, Weir__V1__CheckpointFolder *folder,
                             weir_checkpoint_order *orders, size_t count,
                             weir_arena *arena, weir_error *err) {
  weir_dist_ask *asks = weir_arena_array(arena, count + 1, sizeof *asks);
  if (asks == NULL) return weir_fail_memory(err, count * sizeof *asks);
  for (size_t i = 0; i < count; i++)
    WEIR_TRY(order_ask(h, &orders[i], folder, arena, &asks[i], err));
  WEIR_TRY(weir_dist_ask_all(h->session->dist, asks, (uint32_t)count, err));
  for (size_t i = 0; i < count; i++) {
    orders[i].written = !asks[i].apart;
    orders[i].bytes = asks[i].bytes;
    orders[i].crc = asks[i].crc;
  }
  return WEIR_OK;
}

static weir_status write_shards(weir_checkpoint_owners *owners,
                                const weir_checkpoint_common *place,
                                weir_checkpoint_order *orders, size_t count,
                                weir_error *err) {
  held *h = (held *)owners;
  Weir__V1__CheckpointFolder folder;
  weir_arena arena;
  if (!weir_dist_can_tell(place, &folder)) return WEIR_OK;
  weir_arena_init(&arena, h->session->dist->env->alloc);
  weir_status s = write_all(h, &folder, orders, count, &arena, err);
  weir_arena_release(&arena);
  return s;
}

static weir_status read_piece(weir_checkpoint_owners *owners, size_t i,
                              uint64_t offset, void *dst, size_t bytes,
                              weir_error *err) {
  held *h = (held *)owners;
  weir_dist_piece to = {.node = h->nodes[i], .dst = dst, .bytes = bytes};
  Weir__V1__CheckpointSend body = WEIR__V1__CHECKPOINT_SEND__INIT;
  weir_dist_ask a = {
      .place = h->places[i], .number = &body.request, .piece = &to};
  body.held = h->numbers[h->places[i]];
  body.node = h->nodes[i];
  body.offset = offset;
  body.bytes = bytes;
  a.message = (Weir__V1__Control)WEIR__V1__CONTROL__INIT;
  a.message.body_case = WEIR__V1__CONTROL__BODY_CHECKPOINT_SEND;
  a.message.checkpoint_send = &body;
  return weir_dist_ask_all(h->session->dist, &a, 1, err);
}

static const weir_checkpoint_owners_vtable kHeld = {owner_of, write_shards,
                                                    read_piece, release_held};

weir_status weir_dist_hold(weir_remote *remote, const weir_node_id *nodes,
                           uint32_t count,
                           struct weir_checkpoint_owners **out_owners,
                           weir_error *err) {
  weir_dist_session *s = (weir_dist_session *)remote;
  held *h = NULL;
  weir_arena arena;
  *out_owners = NULL;
  weir_arena_init(&arena, s->dist->env->alloc);
  weir_status status = make_held(s, nodes, count, &h, err);
  if (status == WEIR_OK)
    status = weir_dist_turn_enter(s, false, NULL, NULL, err);
  if (status == WEIR_OK) {
    pthread_mutex_lock(&s->moment);
    status = hold_all(h, &arena, err);
    pthread_mutex_unlock(&s->moment);
    weir_dist_turn_leave(s, false);
  }
  weir_arena_release(&arena);
  if (h != NULL) h->base.vt = &kHeld;
  if (status == WEIR_OK)
    *out_owners = &h->base;
  else if (h != NULL)
    release_held(&h->base);
  return status;
}
