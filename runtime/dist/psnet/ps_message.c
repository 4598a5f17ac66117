/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/dist/psnet/ps_message.h"

#include <inttypes.h>
#include <string.h>

/* Numbers, to and from the wire.
 *
 * What comes is checked for all that memory depends on: numbers of enums, the
 * count of a ledger's members, sizes. Whether ranges and leases fit each other
 * is for the ledger to say, which copies it (weir_ps_ledger_copy). */

/* ---- Out */

static void put_range(const weir_ps_range *r, Weir__V1__PsRange *out) {
  weir__v1__ps_range__init(out);
  out->first = r->first;
  out->end = r->end;
  out->k_first = r->k_first;
  out->k_end = r->k_end;
}

static bool is_empty(const weir_ps_range *r) {
  return r->first == 0 && r->end == 0 && r->k_first == 0 && r->k_end == 0;
}

static weir_status put_members(weir_arena *a, const weir_ps_ledger *l,
                               Weir__V1__PsLedger *out, weir_error *err) {
  size_t n = l->config.workers;
  Weir__V1__PsMember *items = weir_arena_array(a, n, sizeof *items);
  out->members = weir_arena_array(a, n, sizeof *out->members);
  if (items == NULL || out->members == NULL)
    return weir_fail_memory(err, n * sizeof *items);
  for (size_t i = 0; i < n; i++) {
    weir__v1__ps_member__init(&items[i]);
    items[i].state = (uint32_t)l->members[i].state;
    items[i].incarnation = l->members[i].incarnation;
    items[i].runs = l->members[i].runs;
    out->members[i] = &items[i];
  }
  out->n_members = n;
  return WEIR_OK;
}

static weir_status put_pool(weir_arena *a, const weir_ps_ledger *l,
                            Weir__V1__PsLedger *out, weir_error *err) {
  size_t n = l->pool_count;
  Weir__V1__PsRange *items = weir_arena_array(a, n, sizeof *items);
  out->pool = weir_arena_array(a, n, sizeof *out->pool);
  if (items == NULL || out->pool == NULL)
    return weir_fail_memory(err, n * sizeof *items);
  for (size_t i = 0; i < n; i++) {
    put_range(&l->pool[i], &items[i]);
    out->pool[i] = &items[i];
  }
  out->n_pool = n;
  return WEIR_OK;
}

static weir_status put_leases(weir_arena *a, const weir_ps_ledger *l,
                              Weir__V1__PsLedger *out, weir_error *err) {
  size_t n = l->lease_count;
  Weir__V1__PsLease *items = weir_arena_array(a, n, sizeof *items);
  Weir__V1__PsRange *ranges = weir_arena_array(a, n, sizeof *ranges);
  out->leases = weir_arena_array(a, n, sizeof *out->leases);
  if (items == NULL || ranges == NULL || out->leases == NULL)
    return weir_fail_memory(err, n * sizeof *items);
  for (size_t i = 0; i < n; i++) {
    const weir_ps_lease *lease = &l->leases[i];
    weir__v1__ps_lease__init(&items[i]);
    items[i].id = lease->id;
    items[i].worker = lease->worker;
    items[i].incarnation = lease->incarnation;
    put_range(&lease->range, &ranges[i]);
    items[i].range = &ranges[i];
    out->leases[i] = &items[i];
  }
  out->n_leases = n;
  return WEIR_OK;
}

static weir_status put_ledger(const weir_ps_ledger *l, weir_ps_frame *out,
                              weir_error *err) {
  Weir__V1__PsLedger *to = &out->ledger;
  weir__v1__ps_ledger__init(to);
  to->mode = (uint32_t)l->config.mode;
  to->aggregate = l->config.aggregate;
  to->epoch = l->epoch;
  to->life = l->life;
  to->generation = l->generation;
  to->cursor = l->cursor;
  to->limit = l->limit;
  to->committed = l->base;
  to->over = l->over;
  to->failed = l->failed;
  to->next_lease = l->next_lease;
  to->next_incarnation = l->next_incarnation;
  to->partial = l->partial;
  to->earlier = l->earlier;
  WEIR_TRY(put_members(&out->arena, l, to, err));
  WEIR_TRY(put_pool(&out->arena, l, to, err));
  WEIR_TRY(put_leases(&out->arena, l, to, err));
  out->body.ledger = to;
  return WEIR_OK;
}

static void put_op(const weir_ps_op *op, weir_ps_frame *out) {
  Weir__V1__PsOp *to = &out->op;
  weir__v1__ps_op__init(to);
  to->kind = (uint32_t)op->kind;
  to->worker = op->worker;
  to->lease = op->lease;
  to->run = op->run;
  to->limit = op->limit;
  to->partial = op->partial;
  to->failed = op->failed;
  put_range(&op->range, &out->op_range);
  to->range = &out->op_range;
  out->body.op = to;
}

static void put_numbers(const weir_ps_message *m, Weir__V1__PsMessage *to) {
  to->kind = (uint32_t)m->kind;
  to->epoch = m->epoch;
  to->life = m->life;
  to->generation = m->generation;
  to->worker = m->worker;
  to->incarnation = m->incarnation;
  to->seq = m->seq;
  to->lease = m->lease;
  to->done = m->done;
  to->run = m->run;
  to->step = m->step;
  to->k = m->k;
  to->version = m->version;
  to->lr_version = m->lr_version;
  to->clock = m->clock;
  to->staleness = m->staleness;
  to->request = m->request;
  to->verdict = (uint32_t)m->verdict;
  to->newer = m->newer;
  to->ok = m->ok;
}

weir_status weir_ps_message_encode(const weir_allocator *alloc,
                                   const weir_ps_message *m, weir_ps_frame *out,
                                   weir_error *err) {
  weir_arena_init(&out->arena, alloc);
  weir__v1__ps_message__init(&out->body);
  put_numbers(m, &out->body);
  if (!is_empty(&m->range)) {
    put_range(&m->range, &out->range);
    out->body.range = &out->range;
  }
  if (m->op != NULL) put_op(m->op, out);
  out->body.note.data = (uint8_t *)(uintptr_t)m->note.data;
  out->body.note.len = m->note.size;
  return m->ledger != NULL ? put_ledger(m->ledger, out, err) : WEIR_OK;
}

void weir_ps_frame_release(weir_ps_frame *frame) {
  weir_arena_release(&frame->arena);
}

/* ---- In */

/* A parcel that is being filled. */
typedef struct reading {
  weir_ps_parcel *p;
  const weir_ps_config *config;
  const char *who;
  weir_error *err;
} reading;

static weir_status unsound(const reading *r, const char *field,
                           uint64_t value) {
  return weir_fail(r->err, WEIR_W7011, NULL,
                   "%s sends a message of the parameter servers whose %s is "
                   "%" PRIu64 ": there is no such thing here",
                   r->who, field, value);
}

static weir_ps_range get_range(const Weir__V1__PsRange *r) {
  if (r == NULL) return (weir_ps_range){0};
  return (weir_ps_range){r->first, r->end, r->k_first, r->k_end};
}

static weir_status get_members(const reading *r, const Weir__V1__PsLedger *from,
                               weir_ps_ledger *l) {
  size_t n = from->n_members;
  if (n != r->config->workers) return unsound(r, "ledger's members", n);
  l->members = weir_arena_array(&r->p->arena, n, sizeof *l->members);
  if (l->members == NULL) return weir_fail_memory(r->err, n);
  for (size_t i = 0; i < n; i++) {
    uint32_t state = from->members[i]->state;
    if (state > WEIR_PS_FENCING) return unsound(r, "ledger's member", state);
    l->members[i] =
        (weir_ps_member){(weir_ps_member_state)state,
                         from->members[i]->incarnation, from->members[i]->runs};
  }
  return WEIR_OK;
}

static weir_status get_ranges(const reading *r, const Weir__V1__PsLedger *from,
                              weir_ps_ledger *l) {
  weir_arena *a = &r->p->arena;
  size_t pool = from->n_pool, leases = from->n_leases;
  l->pool = weir_arena_array(a, pool, sizeof *l->pool);
  l->leases = weir_arena_array(a, leases, sizeof *l->leases);
  if (l->pool == NULL || l->leases == NULL)
    return weir_fail_memory(r->err, leases * sizeof *l->leases);
  l->pool_count = l->pool_capacity = pool;
  l->lease_count = l->lease_capacity = leases;
  for (size_t i = 0; i < pool; i++) l->pool[i] = get_range(from->pool[i]);
  for (size_t i = 0; i < leases; i++) {
    const Weir__V1__PsLease *lease = from->leases[i];
    l->leases[i] = (weir_ps_lease){lease->id, lease->worker, lease->incarnation,
                                   get_range(lease->range)};
  }
  return WEIR_OK;
}

static weir_status get_ledger(const reading *r,
                              const Weir__V1__PsLedger *from) {
  weir_ps_ledger *l = &r->p->ledger;
  if (from == NULL) return WEIR_OK;
  if (from->mode != (uint32_t)r->config->mode)
    return unsound(r, "ledger's mode", from->mode);
  if (from->aggregate != r->config->aggregate)
    return unsound(r, "ledger's aggregate", from->aggregate);
  *l = (weir_ps_ledger){.alloc = r->p->arena.alloc,
                        .config = *r->config,
                        .epoch = from->epoch,
                        .life = from->life,
                        .generation = from->generation,
                        .cursor = from->cursor,
                        .limit = from->limit,
                        .base = from->committed,
                        .over = from->over,
                        .failed = from->failed,
                        .next_lease = from->next_lease,
                        .next_incarnation = from->next_incarnation,
                        .partial = from->partial,
                        .earlier = from->earlier};
  if (l->config.lease_steps == 0) l->config.lease_steps = 8; /* ledger.c */
  WEIR_TRY(get_members(r, from, l));
  WEIR_TRY(get_ranges(r, from, l));
  r->p->m.ledger = l;
  return WEIR_OK;
}

static weir_status get_op(const reading *r, const Weir__V1__PsOp *from) {
  if (from == NULL) return WEIR_OK;
  if (from->kind > WEIR_PS_OP_OVER) return unsound(r, "op", from->kind);
  r->p->op = (weir_ps_op){.kind = (weir_ps_op_kind)from->kind,
                          .worker = from->worker,
                          .lease = from->lease,
                          .run = from->run,
                          .limit = from->limit,
                          .partial = from->partial,
                          .range = get_range(from->range),
                          .failed = from->failed};
  r->p->m.op = &r->p->op;
  return WEIR_OK;
}

static weir_status get_sizes(const reading *r,
                             const Weir__V1__PsMessage *body) {
  weir_ps_parcel *p = r->p;
  uint64_t left = PTRDIFF_MAX;
  size_t n = body->n_sizes;
  if ((body->transfer == 0 && n > 0) || n > WEIR_PS_PIECES)
    return unsound(r, "number of values", n);
  p->transfer = body->transfer;
  p->sizes = weir_arena_array(&p->arena, n, sizeof *p->sizes);
  if (p->sizes == NULL) return weir_fail_memory(r->err, n * sizeof *p->sizes);
  for (size_t i = 0; i < n; i++) {
    if (body->sizes[i] > left)
      return unsound(r, "value's size", body->sizes[i]);
    left -= body->sizes[i];
    p->sizes[i] = body->sizes[i];
  }
  p->pieces = (uint32_t)n;
  return WEIR_OK;
}

static weir_status get_values(const reading *r,
                              const Weir__V1__PsMessage *body) {
  weir_ps_parcel *p = r->p;
  size_t n = body->n_values;
  if (body->transfer != 0 || body->n_sizes > 0 || n > WEIR_PS_PIECES)
    return unsound(r, "number of values", n);
  p->sizes = weir_arena_array(&p->arena, n, sizeof *p->sizes);
  p->values = weir_arena_array(&p->arena, n, sizeof *p->values);
  if (p->sizes == NULL || p->values == NULL)
    return weir_fail_memory(r->err, n * sizeof *p->sizes);
  for (size_t i = 0; i < n; i++) {
    p->sizes[i] = body->values[i].len;
    p->values[i] = body->values[i].data;
  }
  p->pieces = (uint32_t)n;
  return WEIR_OK;
}

weir_status weir_ps_parcel_keep(weir_ps_parcel *p, weir_error *err) {
  for (uint32_t i = 0; p->values != NULL && i < p->pieces; i++) {
    uint8_t *copy = weir_arena_alloc(&p->arena, (size_t)p->sizes[i]);
    if (copy == NULL) return weir_fail_memory(err, (size_t)p->sizes[i]);
    if (p->sizes[i] > 0) memcpy(copy, p->values[i], (size_t)p->sizes[i]);
    p->values[i] = copy;
  }
  return WEIR_OK;
}

static weir_status get_note(const reading *r, const Weir__V1__PsMessage *body) {
  size_t size = body->note.len;
  if (size == 0) return WEIR_OK;
  if (body->kind != WEIR_PS_KV) return unsound(r, "note's size", size);
  const char *text =
      weir_arena_string(&r->p->arena, (const char *)body->note.data, size);
  if (text == NULL) return weir_fail_memory(r->err, size);
  r->p->m.note = (weir_sv){text, size};
  return WEIR_OK;
}

static weir_status get_numbers(const reading *r,
                               const Weir__V1__PsMessage *body) {
  if (body->kind >= WEIR_PS_KIND_COUNT) return unsound(r, "kind", body->kind);
  if (body->verdict > WEIR_PS_AGAIN)
    return unsound(r, "verdict", body->verdict);
  r->p->m = (weir_ps_message){.kind = (weir_ps_kind)body->kind,
                              .epoch = body->epoch,
                              .life = body->life,
                              .generation = body->generation,
                              .worker = body->worker,
                              .incarnation = body->incarnation,
                              .seq = body->seq,
                              .lease = body->lease,
                              .done = body->done,
                              .run = body->run,
                              .step = body->step,
                              .k = body->k,
                              .version = body->version,
                              .lr_version = body->lr_version,
                              .clock = body->clock,
                              .staleness = body->staleness,
                              .request = body->request,
                              .verdict = (weir_ps_verdict)body->verdict,
                              .newer = body->newer,
                              .ok = body->ok,
                              .range = get_range(body->range)};
  return WEIR_OK;
}

weir_status weir_ps_message_decode(const weir_allocator *alloc,
                                   const Weir__V1__PsMessage *body,
                                   const weir_ps_config *config,
                                   const char *who, weir_ps_parcel **out_parcel,
                                   weir_error *err) {
  weir_ps_parcel *p = weir_alloc_array(alloc, 1, sizeof *p);
  const reading r = {p, config, who, err};
  *out_parcel = NULL;
  if (p == NULL) return weir_fail_memory(err, sizeof *p);
  weir_arena_init(&p->arena, alloc);
  weir_status s = get_numbers(&r, body);
  if (s == WEIR_OK) s = get_ledger(&r, body->ledger);
  if (s == WEIR_OK) s = get_op(&r, body->op);
  if (s == WEIR_OK) s = get_note(&r, body);
  if (s == WEIR_OK && (body->transfer > 0 || body->n_sizes > 0))
    s = get_sizes(&r, body);
  if (s == WEIR_OK && body->n_values > 0) s = get_values(&r, body);
  if (s != WEIR_OK)
    weir_ps_parcel_release(p);
  else
    *out_parcel = p;
  return s;
}

void weir_ps_parcel_release(weir_ps_parcel *p) {
  if (p == NULL) return;
  const weir_allocator *alloc = p->arena.alloc;
  weir_arena_release(&p->arena);
  weir_free(alloc, p);
}
