/* SPDX-License-Identifier: Apache-2.0 */
/* Pushes, pulls and barriers: checks, and the shares of each server. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "runtime/api/kv/kv_handle.h"
#include "runtime/api/kv/kv_key.h"
#include "runtime/base/size.h"

/* An op that is being begun. */
typedef struct request {
  weir_kv *kv;
  weir_kv_kind kind;
  const char *name, *verb;
  const weir_tensor *values; /* NULL: a pull */
  weir_tensor *out;          /* NULL: a push */
  weir_kv_op_opts opts;
  const weir_kv_known *key;
  weir_kv_handle *handle;
  weir_error *err;
} request;

/* ---- Checks */

static weir_status unfit(const request *r, const char *why) {
  return weir_fail(r->err, WEIR_W7113, NULL, "%s of key `%.64s`: %s", r->verb,
                   r->name, why);
}

/* |t| is of the key's type, and has its shape, or of by rows [n, ...]. */
static weir_status check_tensor(const request *r, const weir_tensor *t) {
  const weir_kv_known *key = r->key;
  bool by_row = r->opts.ids != NULL;
  int64_t rows = by_row ? r->opts.ids->shape.dims[0].value
                        : (key->rank > 0 ? key->dims[0] : 0);
  if (t == NULL) return WEIR_OK;
  if (t->dtype != key->dtype)
    return weir_fail(r->err, WEIR_W7113, NULL,
                     "%s of key `%.64s`: a tensor of %s, the key is of %s",
                     r->verb, r->name, weir_dtype_name(t->dtype),
                     weir_dtype_name(key->dtype));
  bool fits = t->shape.rank == key->rank;
  for (int32_t i = 0; fits && i < key->rank; i++)
    fits = t->shape.dims[i].value == (i == 0 ? rows : key->dims[i]);
  return fits ? WEIR_OK
              : unfit(r, by_row ? "a tensor that is not [ids, ...]"
                                : "a tensor of another shape");
}

static weir_status check_ids(const request *r) {
  const weir_tensor *ids = r->opts.ids;
  if (ids == NULL) return WEIR_OK;
  if (r->key->rank == 0) return unfit(r, "a scalar has no rows");
  if (ids->dtype != WEIR_I64 || ids->shape.rank != 1)
    return unfit(r, "ids are an i64 tensor of rank 1");
  const int64_t *id = ids->data;
  for (int64_t i = 0; i < ids->shape.dims[0].value; i++)
    if (id[i] < 0 || id[i] >= r->key->rows)
      return weir_fail(r->err, WEIR_W7113, NULL,
                       "%s of key `%.64s` names row %" PRId64
                       ", it has rows 0 to %" PRId64,
                       r->verb, r->name, id[i], r->key->rows - 1);
  return WEIR_OK;
}

static weir_status check_sizes(const request *r) {
  const weir_tensor *ids = r->opts.ids;
  uint64_t rows = ids != NULL ? (uint64_t)ids->shape.dims[0].value
                              : (uint64_t)r->key->pieces[0].rows;
  uint64_t each = r->key->row_bytes + (ids != NULL ? 8 : 0);
  return rows <= WEIR_KV_MESSAGE_BYTES / each
             ? WEIR_OK
             : unfit(r, "more than 4 GiB for one server; take fewer rows");
}

static weir_status check(request *r, const weir_kv_op_opts *opts) {
  WEIR_TRY(WEIR_OPTS_READ(weir_kv_op_opts, &r->opts, opts, r->err));
  r->key = weir_kv_find(r->kv, r->name);
  if (r->key == NULL)
    return weir_fail(r->err, WEIR_W7111, NULL,
                     "%s: this process has not declared key `%.64s`", r->verb,
                     r->name);
  if (r->opts.if_newer && r->kind != WEIR_KV_PULL)
    return weir_fail(r->err, WEIR_W0002, NULL,
                     "weir_kv_op_opts: if_newer is for pulls");
  if (r->opts.newer_than != 0 && !r->opts.if_newer)
    return weir_fail(r->err, WEIR_W0002, NULL,
                     "weir_kv_op_opts: newer_than needs if_newer");
  if (r->out != NULL && r->out->read_only)
    return weir_fail(r->err, WEIR_W0004, NULL, "out is read-only");
  WEIR_TRY(weir_check_on_host(r->opts.ids, "ids", r->err));
  WEIR_TRY(weir_check_on_host(r->values, "values", r->err));
  WEIR_TRY(weir_check_on_host(r->out, "out", r->err));
  WEIR_TRY(check_ids(r));
  WEIR_TRY(check_tensor(r, r->values));
  WEIR_TRY(check_tensor(r, r->out));
  return check_sizes(r);
}

/* ---- Shares */

static bool is_in(const weir_kv_piece *piece, int64_t id) {
  return id >= piece->first && id - piece->first < piece->rows;
}

/* The rows of the op that |piece| has: their ids and, of a push, values, in
 * their order. */
static weir_status take_rows(const request *r, const weir_kv_piece *piece,
                             weir_kv_share *share) {
  const weir_allocator *alloc = r->kv->env.alloc;
  const int64_t *ids = r->opts.ids->data;
  int64_t n = r->opts.ids->shape.dims[0].value, at = 0;
  size_t bytes = r->key->row_bytes;
  weir_kv_message *m = &share->op.message;
  for (int64_t i = 0; i < n; i++) m->count += is_in(piece, ids[i]);
  m->by_row = true;
  m->value_bytes = r->values != NULL ? m->count * bytes : 0;
  share->places =
      weir_alloc_array(alloc, (size_t)m->count + 1, sizeof *share->places);
  if (share->places == NULL) return weir_fail_memory(r->err, (size_t)n * 8);
  WEIR_TRY(weir_kv_block_create(alloc, m, true, &share->ids_and_rows, r->err));
  for (int64_t i = 0; i < n; i++) {
    if (!is_in(piece, ids[i])) continue;
    share->places[at] = i;
    share->ids_and_rows->ids[at] = ids[i];
    if (r->values != NULL)
      memcpy((uint8_t *)share->ids_and_rows->values + (size_t)at * bytes,
             (const uint8_t *)r->values->data + (size_t)i * bytes, bytes);
    at++;
  }
  return WEIR_OK;
}

/* All rows of |piece|. An answer goes to the caller's tensor at once, unless
 * another server may say that the whole is not newer. */
static void take_all(const request *r, const weir_kv_piece *piece,
                     weir_kv_share *share) {
  weir_kv_message *m = &share->op.message;
  size_t at = (size_t)piece->first * r->key->row_bytes;
  m->rows = piece->rows;
  m->first = piece->first;
  if (r->values != NULL) {
    m->value_bytes = (uint64_t)piece->rows * r->key->row_bytes;
    share->src = (const uint8_t *)r->values->data + at;
  }
  if (r->out != NULL && !r->opts.if_newer)
    share->dst = (uint8_t *)r->out->data + at;
}

static weir_status fill_share(const request *r, uint32_t i) {
  const weir_kv_piece *piece = &r->key->pieces[i];
  weir_kv_share *share = &r->handle->shares[i];
  weir_kv_message *m = &share->op.message;
  m->kind = r->kind;
  snprintf(m->name, sizeof m->name, "%s", r->name);
  if (r->opts.if_newer && r->opts.newer_than < UINT64_MAX)
    m->version = r->opts.newer_than + 1;
  share->op.server = piece->server;
  share->op.priority = r->opts.priority;
  if (r->opts.ids != NULL)
    WEIR_TRY(take_rows(r, piece, share));
  else
    take_all(r, piece, share);
  share->op.bytes = weir_kv_id_bytes(m) + m->value_bytes;
  return WEIR_OK;
}

static weir_status begin(request *r, const weir_kv_op_opts *opts,
                         weir_kv_handle **out_handle) {
  WEIR_TRY(check(r, opts));
  WEIR_TRY(
      weir_kv_handle_create(r->kv, r->key->piece_count, &r->handle, r->err));
  weir_kv_handle *h = r->handle;
  snprintf(h->what, sizeof h->what, "%s of key `%.64s`", r->verb, r->name);
  h->row_bytes = r->key->row_bytes;
  if (r->values != NULL)
    h->in = weir_tensor_ref((weir_tensor *)(uintptr_t)r->values);
  if (r->out != NULL) h->out = weir_tensor_ref(r->out);
  weir_status s = WEIR_OK;
  for (uint32_t i = 0; s == WEIR_OK && i < h->share_count; i++)
    s = fill_share(r, i);
  if (s == WEIR_OK) s = weir_kv_begin(r->kv, h, r->err);
  if (s == WEIR_OK)
    *out_handle = h;
  else
    weir_kv_handle_release(h);
  return s;
}

/* ---- The calls */

weir_status weir_kv_push(weir_kv *kv, const char *name,
                         const weir_tensor *values, const weir_kv_op_opts *opts,
                         weir_kv_handle **out_handle, weir_error *err) {
  if (out_handle == NULL) return weir_fail_null(err, "out_handle");
  *out_handle = NULL;
  if (kv == NULL) return weir_fail_null(err, "kv");
  if (name == NULL) return weir_fail_null(err, "name");
  if (values == NULL) return weir_fail_null(err, "values");
  request r = {.kv = kv,
               .kind = WEIR_KV_PUSH,
               .name = name,
               .verb = "push",
               .values = values,
               .err = err};
  return begin(&r, opts, out_handle);
}

weir_status weir_kv_pull(weir_kv *kv, const char *name, weir_tensor *out,
                         const weir_kv_op_opts *opts,
                         weir_kv_handle **out_handle, weir_error *err) {
  if (out_handle == NULL) return weir_fail_null(err, "out_handle");
  *out_handle = NULL;
  if (kv == NULL) return weir_fail_null(err, "kv");
  if (name == NULL) return weir_fail_null(err, "name");
  if (out == NULL) return weir_fail_null(err, "out");
  request r = {.kv = kv,
               .kind = WEIR_KV_PULL,
               .name = name,
               .verb = "pull",
               .out = out,
               .err = err};
  return begin(&r, opts, out_handle);
}

weir_status weir_kv_push_pull(weir_kv *kv, const char *name,
                              const weir_tensor *values, weir_tensor *out,
                              const weir_kv_op_opts *opts,
                              weir_kv_handle **out_handle, weir_error *err) {
  if (out_handle == NULL) return weir_fail_null(err, "out_handle");
  *out_handle = NULL;
  if (kv == NULL) return weir_fail_null(err, "kv");
  if (name == NULL) return weir_fail_null(err, "name");
  if (values == NULL) return weir_fail_null(err, "values");
  if (out == NULL) return weir_fail_null(err, "out");
  request r = {.kv = kv,
               .kind = WEIR_KV_PUSH_PULL,
               .name = name,
               .verb = "push_pull",
               .values = values,
               .out = out,
               .err = err};
  return begin(&r, opts, out_handle);
}

/* ---- Barriers */

static weir_status read_group(const weir_kv *kv, const weir_kv_group *opts,
                              weir_kv_set *set, weir_error *err) {
  weir_kv_group o;
  uint32_t workers = kv->part.member_count;
  WEIR_TRY(WEIR_OPTS_READ(weir_kv_group, &o, opts, err));
  for (uint32_t i = 0; o.member_count == 0 && i < workers; i++)
    weir_kv_set_put(set, i, true);
  if (o.member_count > 0 && o.members == NULL)
    return weir_fail_null(err, "weir_kv_group: members");
  for (size_t i = 0; i < o.member_count; i++) {
    if (o.members[i] >= workers)
      return weir_fail(err, WEIR_W0002, NULL,
                       "weir_kv_group: worker:%" PRIu32
                       " is none of the cluster",
                       o.members[i]);
    weir_kv_set_put(set, o.members[i], true);
  }
  if (weir_kv_set_has(set, kv->part.index)) return WEIR_OK;
  return weir_fail(err, WEIR_W0002, NULL,
                   "weir_kv_group: worker:%" PRIu32
                   ", which enters, is none of the members",
                   kv->part.index);
}

weir_status weir_kv_barrier(weir_kv *kv, const char *name,
                            const weir_kv_group *opts,
                            weir_kv_handle **out_handle, weir_error *err) {
  weir_kv_set set = {0};
  weir_kv_handle *h = NULL;
  if (out_handle == NULL) return weir_fail_null(err, "out_handle");
  *out_handle = NULL;
  if (kv == NULL) return weir_fail_null(err, "kv");
  if (name == NULL) return weir_fail_null(err, "name");
  if (name[0] == '\0' || strlen(name) >= WEIR_KV_NAME_BYTES)
    return weir_fail(err, WEIR_W0002, NULL,
                     "the name of a barrier has 1 to %d bytes",
                     WEIR_KV_NAME_BYTES - 1);
  WEIR_TRY(read_group(kv, opts, &set, err));
  WEIR_TRY(weir_kv_handle_create(kv, 1, &h, err));
  weir_kv_message *m = &h->shares[0].op.message;
  snprintf(h->what, sizeof h->what, "barrier `%.64s`", name);
  m->kind = WEIR_KV_ENTER;
  m->set = set;
  snprintf(m->name, sizeof m->name, "%s", name);
  weir_status s = weir_kv_begin(kv, h, err);
  if (s == WEIR_OK)
    *out_handle = h;
  else
    weir_kv_handle_release(h);
  return s;
}
