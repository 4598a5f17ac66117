/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/train/batch/data_iter.h"

#include <inttypes.h>

#include "runtime/base/json/json.h"
#include "runtime/train/batch/data_maker.h"
#include "runtime/train/batch/data_prefetch.h"
#include "runtime/train/batch/data_slot.h"
#include "runtime/train/data/data_internal.h"
#include "runtime/train/data/data_open.h"

/* An iterator's position is an epoch and a number of examples. Order is a
 * function of (seed, round), so two numbers say all: neither the maker's state
 * nor prefetched batches are saved, and a restored iterator makes them again,
 * bit for bit. The fields that order depends on are saved beside them and must
 * be equal, else the same numbers would mean other examples. */

/* ---- Iterators */

weir_status weir_data_iter_create(weir_dataset *set, weir_data_iter **out_iter,
                                  weir_error *err) {
  const weir_allocator *alloc = set->env->alloc;
  *out_iter = NULL;
  weir_data_iter *it = weir_alloc_array(alloc, 1, sizeof *it);
  if (it == NULL) return weir_fail_memory(err, sizeof *it);
  pthread_mutex_init(&it->lock, NULL);
  pthread_cond_init(&it->changed, NULL);
  it->set = weir_dataset_ref(set);
  it->threaded = set->spec->prefetch > 0;
  uint32_t count = (uint32_t)set->spec->prefetch + 1;
  it->slots = weir_alloc_array(alloc, count, sizeof *it->slots);
  weir_status s = WEIR_OK;
  if (it->slots == NULL)
    s = weir_fail_memory(err, count * sizeof *it->slots);
  else
    it->slot_count = count;
  for (uint32_t i = 0; s == WEIR_OK && i < count; i++)
    s = weir_data_slot_init(set, &it->slots[i], err);
  if (s == WEIR_OK) s = weir_data_maker_init(&it->maker, set, err);
  if (s == WEIR_OK)
    *out_iter = it;
  else
    weir_data_iter_release(it);
  return s;
}

void weir_data_iter_release(weir_data_iter *it) {
  if (it == NULL) return;
  const weir_allocator *alloc = it->set->env->alloc;
  weir_data_prefetch_stop(it);
  weir_data_maker_release(&it->maker);
  for (uint32_t i = 0; i < it->slot_count; i++)
    weir_data_slot_release(it->set, &it->slots[i]);
  weir_free(alloc, it->slots);
  pthread_cond_destroy(&it->changed);
  pthread_mutex_destroy(&it->lock);
  weir_dataset_release(it->set);
  weir_free(alloc, it);
}

weir_status weir_data_iter_next(weir_data_iter *it, weir_batch *out_batch,
                                weir_error *err) {
  const weir_clock *clock = it->set->env->clock;
  const weir_data_slot *slot = &it->slots[0];
  int64_t waited = 0;
  *out_batch = (weir_batch){0};
  if (it->threaded) {
    WEIR_TRY(weir_data_prefetch_start(it, err));
    slot = weir_data_prefetch_take(it, &waited);
  } else {
    int64_t from = clock->now_ns(clock->self);
    if (it->slots[0].status == WEIR_OK)
      (void)weir_data_maker_next(&it->maker, &it->slots[0]);
    waited = clock->now_ns(clock->self) - from;
  }
  it->wait_ns += waited;
  if (slot->status != WEIR_OK) {
    weir_error_copy(err, &slot->error);
    return slot->status;
  }
  it->epoch = slot->epoch;
  it->at = slot->at;
  *out_batch = slot->batch;
  return WEIR_OK;
}

int64_t weir_data_iter_wait_ns(const weir_data_iter *it) {
  return it->wait_ns;
}

/* ---- State */

/* A setting that the meaning of a position depends on. */
typedef struct state_field {
  const char *key;
  int64_t value;
} state_field;

enum { kFields = 11 };

static void list_fields(const weir_dataset *set, state_field out[kFields]) {
  const weir_order_spec *o = &set->order;
  const state_field fields[kFields] = {
      {"examples", o->examples},
      {"skip", o->skip},
      {"take", o->take},
      {"shard", o->shard},
      {"shards", o->shards},
      {"shuffle", o->shuffle},
      {"buffer", o->shuffle ? o->buffer : 0},
      {"seed", o->shuffle ? (int64_t)(o->seed & INT64_MAX) : 0},
      {"batch", set->batch},
      {"repeat", set->repeat},
      {"epoch_examples", set->epoch}};
  for (int i = 0; i < kFields; i++) out[i] = fields[i];
}

static weir_status write_state(const weir_data_iter *it, uint64_t epoch,
                               int64_t at, weir_strbuf *out_json,
                               weir_error *err) {
  weir_json_writer w;
  state_field fields[kFields];
  list_fields(it->set, fields);
  weir_json_writer_init(&w, weir_strbuf_writer(out_json), 0);
  weir_json_object_begin(&w, true);
  weir_json_key(&w, "version");
  weir_json_int(&w, 1);
  weir_json_key(&w, "epoch");
  weir_json_uint(&w, epoch);
  weir_json_key(&w, "example");
  weir_json_int(&w, at);
  for (int i = 0; i < kFields; i++) {
    weir_json_key(&w, fields[i].key);
    weir_json_int(&w, fields[i].value);
  }
  weir_json_object_end(&w);
  (void)weir_json_finish(&w);
  /* Without the line's end: it becomes part of other JSON. */
  if (!out_json->failed && out_json->size > 0 &&
      out_json->data[out_json->size - 1] == '\n')
    out_json->data[--out_json->size] = '\0';
  return weir_strbuf_status(out_json, err);
}

weir_status weir_data_iter_state(const weir_data_iter *it,
                                 weir_strbuf *out_json, weir_error *err) {
  return write_state(it, it->epoch, it->at, out_json, err);
}

weir_status weir_data_iter_state_at(const weir_data_iter *it, uint64_t epoch,
                                    uint64_t batches, weir_strbuf *out_json,
                                    weir_error *err) {
  const weir_dataset *set = it->set;
  int64_t at = set->epoch;
  if (batches < (uint64_t)(set->epoch / set->batch))
    at = (int64_t)batches * set->batch;
  return write_state(it, epoch, at, out_json, err);
}

typedef struct position {
  int64_t version, epoch, at;
  bool known[kFields];
} position;

static weir_status read_member(weir_json_reader *r, const state_field *fields,
                               position *p, weir_error *err) {
  int64_t *to = NULL, value = 0;
  int field = -1;
  if (weir_json_text_is(r, "version")) to = &p->version;
  if (weir_json_text_is(r, "epoch")) to = &p->epoch;
  if (weir_json_text_is(r, "example")) to = &p->at;
  for (int i = 0; i < kFields; i++)
    if (weir_json_text_is(r, fields[i].key)) field = i;
  if (to == NULL && field < 0) return weir_json_skip(r, err);
  WEIR_TRY(weir_json_expect(r, WEIR_JSON_NUMBER, err));
  if (!weir_json_get_int(r, &value) || value < -1)
    return weir_fail(err, WEIR_W4037, NULL, "a number of it is out of range");
  if (to != NULL) *to = value;
  if (field < 0) return WEIR_OK;
  p->known[field] = true;
  if (value == fields[field].value) return WEIR_OK;
  return weir_fail(err, WEIR_W4037, NULL,
                   "it was saved with %s %" PRId64
                   ", the data set now has %" PRId64,
                   fields[field].key, value, fields[field].value);
}

static weir_status read_position(const weir_dataset *set, weir_sv json,
                                 position *p, weir_error *err) {
  weir_json_reader r;
  weir_json_token token;
  state_field fields[kFields];
  list_fields(set, fields);
  weir_json_reader_init(&r, json, "data position", NULL);
  WEIR_TRY(weir_json_expect(&r, WEIR_JSON_OBJECT_BEGIN, err));
  for (;;) {
    WEIR_TRY(weir_json_next(&r, &token, err));
    if (token == WEIR_JSON_OBJECT_END) break;
    WEIR_TRY(read_member(&r, fields, p, err));
  }
  WEIR_TRY(weir_json_expect(&r, WEIR_JSON_END, err));
  bool whole = p->version == 1 && p->epoch >= 0 && p->at >= 0 &&
               p->at <= set->epoch &&
               (p->at % set->batch == 0 || p->at == set->epoch);
  for (int i = 0; i < kFields; i++) whole = whole && p->known[i];
  if (whole) return WEIR_OK;
  return weir_fail(err, WEIR_W4037, NULL,
                   "it is not a position that was saved here");
}

weir_status weir_data_iter_restore(weir_data_iter *it, weir_sv json,
                                   weir_error *err) {
  position p = {.version = -1, .epoch = -1, .at = -1};
  weir_error inner = WEIR_ERROR_INIT;
  weir_status s = read_position(it->set, json, &p, &inner);
  if (s != WEIR_OK)
    return weir_fail(err, WEIR_W4037, NULL, "data set '%.*s': %s",
                     WEIR_SV(it->set->spec->name), inner.message);
  weir_data_prefetch_stop(it);
  weir_data_maker_seek(&it->maker, (uint64_t)p.epoch, p.at);
  for (uint32_t i = 0; i < it->slot_count; i++) it->slots[i].status = WEIR_OK;
  it->epoch = (uint64_t)p.epoch;
  it->at = p.at;
  return WEIR_OK;
}
