/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/train/ps/server_part.h"

#include <string.h>

#include "runtime/base/json/json.h"
#include "runtime/base/vec.h"

/* Each list is the numbers of a struct after one another: one writer, one
 * reader, and places by name. Numbers have 64 bits, which JSON's own reader
 * does not give, so digits are read here. */

typedef WEIR_VEC(uint64_t) numbers;

enum {
  LIST_ABOUT,
  LIST_MARKS,
  LIST_CONFIG,
  LIST_LEDGER,
  LIST_MEMBERS,
  LIST_POOL,
  LIST_LEASES,
  LISTS
};
static const char *const kNames[LISTS] = {
    "about", "marks", "config", "ledger", "members", "pool", "leases"};
enum {
  ABOUT = 6,
  MARK = 4,
  CONFIG = 12,
  LEDGER = 12,
  MEMBER = 3,
  RANGE = 4,
  LEASE = 7
};

/* ---- Writing */

static void put(weir_json_writer *w, const uint64_t *values, size_t count) {
  for (size_t i = 0; i < count; i++) weir_json_uint(w, values[i]);
}

static void begin(weir_json_writer *w, int list) {
  weir_json_key(w, kNames[list]);
  weir_json_array_begin(w, true);
}

static void put_marks(weir_json_writer *w, const weir_ps_mark *marks,
                      uint32_t workers) {
  begin(w, LIST_MARKS);
  for (uint32_t i = 0; i < workers; i++) {
    weir_ps_mark m = {0};
    if (marks != NULL) m = marks[i];
    const uint64_t v[MARK] = {m.incarnation, m.seq, m.lease, m.run};
    put(w, v, MARK);
  }
  weir_json_array_end(w);
}

static void put_lists(weir_json_writer *w, const weir_ps_ledger *l) {
  begin(w, LIST_MEMBERS);
  for (uint32_t i = 0; i < l->config.workers; i++) {
    const weir_ps_member *m = &l->members[i];
    const uint64_t v[MEMBER] = {m->state, m->incarnation, m->runs};
    put(w, v, MEMBER);
  }
  weir_json_array_end(w);
  begin(w, LIST_POOL);
  for (size_t i = 0; i < l->pool_count; i++) {
    const weir_ps_range *r = &l->pool[i];
    const uint64_t v[RANGE] = {r->first, r->end, r->k_first, r->k_end};
    put(w, v, RANGE);
  }
  weir_json_array_end(w);
  begin(w, LIST_LEASES);
  for (size_t i = 0; i < l->lease_count; i++) {
    const weir_ps_lease *e = &l->leases[i];
    const uint64_t v[LEASE] = {e->id,          e->worker,    e->incarnation,
                               e->range.first, e->range.end, e->range.k_first,
                               e->range.k_end};
    put(w, v, LEASE);
  }
  weir_json_array_end(w);
}

static void put_ledger(weir_json_writer *w, const weir_ps_ledger *l) {
  const weir_ps_config *c = &l->config;
  const uint64_t config[CONFIG] = {c->mode,          c->servers, c->workers,
                                   c->aggregate,     c->backup,  c->staleness,
                                   c->max_staleness, c->window,  c->lease_steps,
                                   c->norm,          c->limited, c->shares};
  const uint64_t numbers_[LEDGER] = {
      l->epoch,   l->life,   l->generation, l->cursor,     l->limit,
      l->base,    l->over,   l->failed,     l->next_lease, l->next_incarnation,
      l->partial, l->earlier};
  begin(w, LIST_CONFIG);
  put(w, config, CONFIG);
  weir_json_array_end(w);
  begin(w, LIST_LEDGER);
  put(w, numbers_, LEDGER);
  weir_json_array_end(w);
  put_lists(w, l);
}

weir_status weir_ps_part_write(const weir_ps_part *part,
                               const weir_ps_state *state, weir_strbuf *out,
                               weir_error *err) {
  weir_json_writer w;
  const uint64_t about[ABOUT] = {state->generation, part->life,
                                 part->server,      part->servers,
                                 part->workers,     state->version};
  weir_json_writer_init(&w, weir_strbuf_writer(out), 0);
  weir_json_object_begin(&w, true);
  begin(&w, LIST_ABOUT);
  put(&w, about, ABOUT);
  weir_json_array_end(&w);
  put_marks(&w, state->marks, part->workers);
  if (state->ledger != NULL) put_ledger(&w, state->ledger);
  weir_json_object_end(&w);
  if (!weir_json_finish(&w)) out->failed = true;
  return weir_strbuf_status(out, err);
}

/* ---- Reading */

typedef struct reader {
  const weir_allocator *alloc;
  const char *file;
  numbers lists[LISTS];
  weir_error *err;
} reader;

static weir_status bad(const reader *r, const char *what) {
  return weir_fail(r->err, WEIR_W7091, NULL,
                   "the state of a server in '%.300s' is damaged: %s", r->file,
                   what);
}

static bool read_number(weir_sv text, uint64_t *out) {
  uint64_t value = 0;
  for (size_t i = 0; i < text.size; i++) {
    uint64_t digit = (uint64_t)(unsigned char)text.data[i] - '0';
    if (digit > 9 || value > (UINT64_MAX - digit) / 10) return false;
    value = value * 10 + digit;
  }
  *out = value;
  return text.size > 0;
}

static weir_status read_list(reader *r, weir_json_reader *json, numbers *to) {
  weir_json_token token;
  WEIR_TRY(weir_json_expect(json, WEIR_JSON_ARRAY_BEGIN, r->err));
  for (;;) {
    uint64_t value = 0;
    WEIR_TRY(weir_json_next(json, &token, r->err));
    if (token == WEIR_JSON_ARRAY_END) return WEIR_OK;
    if (token != WEIR_JSON_NUMBER || !read_number(json->text, &value))
      return bad(r, "a number is none");
    if (!weir_vec_push(r->alloc, to, value))
      return weir_fail_memory(r->err, to->count * sizeof value);
  }
}

static weir_status read_lists(reader *r, weir_sv text) {
  weir_json_reader json;
  weir_json_token token;
  weir_json_reader_init(&json, text, r->file, NULL);
  WEIR_TRY(weir_json_expect(&json, WEIR_JSON_OBJECT_BEGIN, r->err));
  for (;;) {
    int i = 0;
    WEIR_TRY(weir_json_next(&json, &token, r->err));
    if (token == WEIR_JSON_OBJECT_END) break;
    while (i < LISTS && !weir_json_text_is(&json, kNames[i])) i++;
    if (i == LISTS || r->lists[i].count > 0) return bad(r, "a key is strange");
    WEIR_TRY(read_list(r, &json, &r->lists[i]));
  }
  return weir_json_expect(&json, WEIR_JSON_END, r->err);
}

static weir_status take_about(const reader *r, weir_ps_part *out) {
  if (r->lists[LIST_ABOUT].count != ABOUT) return bad(r, "its numbers");
  const uint64_t *v = r->lists[LIST_ABOUT].items;
  if (v[3] == 0 || v[3] > WEIR_PS_SERVERS || v[2] >= v[3] || v[4] == 0 ||
      v[4] > WEIR_PS_WORKERS)
    return bad(r, "numbers of tasks");
  out->state.generation = v[0];
  out->life = v[1];
  out->server = (uint32_t)v[2];
  out->servers = (uint32_t)v[3];
  out->workers = (uint32_t)v[4];
  out->state.version = v[5];
  return WEIR_OK;
}

static weir_status take_marks(const reader *r, weir_ps_part *out) {
  const numbers *list = &r->lists[LIST_MARKS];
  if (list->count != (size_t)out->workers * MARK) return bad(r, "marks");
  out->marks = weir_alloc_array(r->alloc, out->workers, sizeof *out->marks);
  if (out->marks == NULL) return weir_fail_memory(r->err, list->count);
  for (uint32_t i = 0; i < out->workers; i++) {
    const uint64_t *v = list->items + (size_t)i * MARK;
    out->marks[i] = (weir_ps_mark){v[0], v[1], v[2], v[3]};
  }
  out->state.marks = out->marks;
  return WEIR_OK;
}

static weir_status take_config(const reader *r, weir_ps_config *out) {
  if (r->lists[LIST_CONFIG].count != CONFIG) return bad(r, "configuration");
  const uint64_t *v = r->lists[LIST_CONFIG].items;
  for (int i = 0; i < CONFIG; i++)
    if (i != 8 && v[i] > UINT32_MAX) return bad(r, "configuration");
  *out = (weir_ps_config){.mode = (weir_ps_mode)v[0],
                          .servers = (uint32_t)v[1],
                          .workers = (uint32_t)v[2],
                          .aggregate = (uint32_t)v[3],
                          .backup = (uint32_t)v[4],
                          .staleness = (uint32_t)v[5],
                          .max_staleness = (uint32_t)v[6],
                          .window = (uint32_t)v[7],
                          .lease_steps = v[8],
                          .norm = v[9] != 0,
                          .limited = v[10] != 0,
                          .shares = (weir_ps_shares)v[11]};
  return weir_ps_config_check(out, r->err);
}

static weir_ps_range range_of(const uint64_t *v) {
  return (weir_ps_range){v[0], v[1], (uint32_t)v[2], (uint32_t)v[3]};
}

/* A view on lists of the reader; weir_ps_ledger_copy looks whether all of it
 * is sound. */
static weir_status fill_view(const reader *r, weir_ps_ledger *view,
                             weir_arena *arena) {
  const numbers *pool = &r->lists[LIST_POOL], *leases = &r->lists[LIST_LEASES];
  const numbers *members = &r->lists[LIST_MEMBERS];
  const uint64_t *v = r->lists[LIST_LEDGER].items;
  uint32_t workers = view->config.workers;
  if (r->lists[LIST_LEDGER].count != LEDGER || pool->count % RANGE != 0 ||
      leases->count % LEASE != 0 || members->count != (size_t)workers * MEMBER)
    return bad(r, "the ledger");
  view->epoch = v[0];
  view->life = v[1];
  view->generation = v[2];
  view->cursor = v[3];
  view->limit = v[4];
  view->base = v[5];
  view->over = v[6] != 0;
  view->failed = v[7] != 0;
  view->next_lease = v[8];
  view->next_incarnation = v[9];
  view->partial = v[10];
  view->earlier = v[11];
  view->pool_count = pool->count / RANGE;
  view->lease_count = leases->count / LEASE;
  view->members = weir_arena_array(arena, workers, sizeof *view->members);
  view->pool =
      weir_arena_array(arena, view->pool_count + 1, sizeof *view->pool);
  view->leases =
      weir_arena_array(arena, view->lease_count + 1, sizeof *view->leases);
  if (view->members == NULL || view->pool == NULL || view->leases == NULL)
    return weir_fail_memory(r->err, leases->count);
  for (uint32_t i = 0; i < workers; i++) {
    const uint64_t *m = members->items + (size_t)i * MEMBER;
    view->members[i] = (weir_ps_member){
        (weir_ps_member_state)(m[0] <= 2 ? m[0] : 3), m[1], m[2]};
  }
  for (size_t i = 0; i < view->pool_count; i++)
    view->pool[i] = range_of(pool->items + i * RANGE);
  for (size_t i = 0; i < view->lease_count; i++) {
    const uint64_t *e = leases->items + i * LEASE;
    view->leases[i] =
        (weir_ps_lease){e[0], (uint32_t)e[1], e[2], range_of(e + 3)};
  }
  return WEIR_OK;
}

static weir_status take_ledger(const reader *r, weir_ps_part *out) {
  weir_arena arena;
  weir_ps_ledger view = {.alloc = r->alloc};
  if (r->lists[LIST_LEDGER].count == 0)
    return out->server == 0 ? bad(r, "server 0 has no ledger") : WEIR_OK;
  WEIR_TRY(take_config(r, &view.config));
  if (view.config.workers != out->workers ||
      view.config.servers != out->servers)
    return bad(r, "its ledger is of another job");
  weir_arena_init(&arena, r->alloc);
  weir_status s = fill_view(r, &view, &arena);
  if (s == WEIR_OK)
    s = weir_ps_ledger_create(r->alloc, &view.config, view.limit, &out->ledger,
                              r->err);
  if (s == WEIR_OK) s = weir_ps_ledger_copy(out->ledger, &view, r->err);
  out->state.ledger = out->ledger;
  weir_arena_release(&arena);
  return s;
}

weir_status weir_ps_part_read(const weir_allocator *alloc, weir_sv text,
                              const char *file, weir_ps_part *out,
                              weir_error *err) {
  weir_error mine = WEIR_ERROR_INIT;
  reader r = {.alloc = alloc, .file = file, .err = err != NULL ? err : &mine};
  *out = (weir_ps_part){.alloc = alloc};
  weir_status s = read_lists(&r, text);
  if (s == WEIR_OK) s = take_about(&r, out);
  if (s == WEIR_OK) s = take_marks(&r, out);
  if (s == WEIR_OK) s = take_ledger(&r, out);
  for (int i = 0; i < LISTS; i++) weir_vec_free(alloc, &r.lists[i]);
  return s;
}

void weir_ps_part_release(weir_ps_part *part) {
  weir_ps_ledger_release(part->ledger);
  weir_free(part->alloc, part->marks);
  *part = (weir_ps_part){.alloc = part->alloc};
}
