/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/train/kv/store.h"

#include "runtime/base/map.h"
#include "runtime/base/vec.h"
#include "runtime/train/kv/key.h"

/* Keys by name, and rules, which keys of one text and type share. */

struct weir_kv_store {
  const weir_env *env;
  weir_pool *pool;
  weir_map names;
  weir_kv_key **keys;
  size_t count, capacity;
  weir_kv_rule *rules;
};

weir_status weir_kv_store_create(const weir_env *env, weir_pool *pool,
                                 weir_kv_store **out_store, weir_error *err) {
  weir_kv_store *s = weir_alloc_array(env->alloc, 1, sizeof *s);
  *out_store = s;
  if (s == NULL) return weir_fail_memory(err, sizeof *s);
  s->env = env;
  s->pool = pool;
  weir_map_init(&s->names, env->alloc);
  return WEIR_OK;
}

void weir_kv_store_release(weir_kv_store *s) {
  if (s == NULL) return;
  for (size_t i = 0; i < s->count; i++) weir_kv_key_release(s->keys[i]);
  for (weir_kv_rule *next; s->rules != NULL; s->rules = next) {
    next = s->rules->next;
    weir_kv_rule_release(s->rules);
  }
  weir_free(s->env->alloc, s->keys);
  weir_map_release(&s->names);
  weir_free(s->env->alloc, s);
}

/* ---- Declarations */

static weir_status find_rule(weir_kv_store *s, const weir_kv_message *m,
                             weir_kv_rule **out_rule, weir_error *err) {
  weir_kv_rule *rule = s->rules;
  while (rule != NULL &&
         (rule->dtype != m->dtype || strcmp(rule->text, m->text) != 0))
    rule = rule->next;
  *out_rule = rule;
  if (rule != NULL) return WEIR_OK;
  WEIR_TRY(weir_kv_rule_create(s->env, s->pool, m->text, m->dtype, &rule, err));
  rule->next = s->rules;
  s->rules = *out_rule = rule;
  return WEIR_OK;
}

static weir_kv_key *find_key(const weir_kv_store *s, const char *name) {
  uint32_t i = weir_map_get(&s->names, weir_sv_from(name));
  return i == WEIR_MAP_NONE ? NULL : s->keys[i];
}

/* Room for one key more, so that adding it cannot fail. */
static weir_status make_room(weir_kv_store *s, weir_error *err) {
  if (!weir_map_reserve(&s->names, s->count + 1))
    return weir_fail_memory(err, (s->count + 1) * sizeof(weir_map_slot));
  if (s->count < s->capacity) return WEIR_OK;
  size_t capacity = s->capacity > 0 ? 2 * s->capacity : 16;
  weir_kv_key **keys = weir_alloc_array(s->env->alloc, capacity, sizeof *keys);
  if (keys == NULL) return weir_fail_memory(err, capacity * sizeof *keys);
  if (s->count > 0) memcpy(keys, s->keys, s->count * sizeof *keys);
  weir_free(s->env->alloc, s->keys);
  s->keys = keys;
  s->capacity = capacity;
  return WEIR_OK;
}

static weir_status declare(weir_kv_store *s, const weir_kv_message *m,
                           weir_kv_message *reply, weir_error *err) {
  weir_kv_rule *rule;
  weir_kv_key *key = find_key(s, m->name);
  if (key != NULL) {
    reply->version = key->version;
    return weir_kv_key_same(key, m, err);
  }
  WEIR_TRY(make_room(s, err));
  WEIR_TRY(find_rule(s, m, &rule, err));
  WEIR_TRY(weir_kv_key_create(s->env->alloc, m, rule, &key, err));
  bool put = weir_map_put(&s->names, weir_sv_from(key->name),
                          (uint32_t)s->count, NULL);
  if (!put) { /* room was made */
    weir_kv_key_release(key);
    return weir_fail_memory(err, sizeof *key);
  }
  s->keys[s->count++] = key;
  return WEIR_OK;
}

/* ---- Pushes and pulls */

/* Memory for the answer is there before anything changes. */
static weir_status make_answer(const weir_kv_store *s, const weir_kv_key *key,
                               const weir_kv_message *m, weir_kv_message *reply,
                               weir_error *err) {
  weir_kv_block *block;
  reply->value_bytes = weir_kv_key_read_bytes(key, m);
  if (reply->value_bytes > WEIR_KV_MESSAGE_BYTES)
    return weir_fail(err, WEIR_W7113, NULL,
                     "%s of key `%.64s`: one message would have more than 4 "
                     "GiB; take it by rows",
                     weir_kv_kind_name(m->kind), m->name);
  WEIR_TRY(weir_kv_block_create(s->env->alloc, reply, false, &block, err));
  reply->data = block;
  reply->newer = true;
  return WEIR_OK;
}

static weir_status pull(const weir_kv_store *s, const weir_kv_key *key,
                        const weir_kv_message *m, weir_kv_message *reply,
                        weir_error *err) {
  WEIR_TRY(weir_kv_key_check(key, m, false, err));
  reply->version = key->version;
  if (key->version < m->version) return WEIR_OK;
  WEIR_TRY(make_answer(s, key, m, reply, err));
  weir_kv_block *block = reply->data;
  if (block != NULL) weir_kv_key_read(key, m, block->values);
  return WEIR_OK;
}

static weir_status push(const weir_kv_store *s, weir_kv_key *key,
                        const weir_kv_message *m, weir_kv_message *reply,
                        weir_error *err) {
  WEIR_TRY(weir_kv_key_check(key, m, true, err));
  if (m->kind == WEIR_KV_PUSH_PULL)
    WEIR_TRY(make_answer(s, key, m, reply, err));
  WEIR_TRY(weir_kv_key_push(key, m, err));
  if (key->broken.id[0] != '\0') {
    weir_error_copy(err, &key->broken);
    return key->broken.code;
  }
  reply->version = key->version;
  weir_kv_block *block = reply->data;
  if (block != NULL) weir_kv_key_read(key, m, block->values);
  return WEIR_OK;
}

static weir_status use(const weir_kv_store *s, const weir_kv_message *m,
                       weir_kv_message *reply, weir_error *err) {
  weir_kv_key *key = find_key(s, m->name);
  if (key == NULL)
    return weir_fail(err, WEIR_W7111, NULL,
                     "%s: no process has declared key `%.64s` here",
                     weir_kv_kind_name(m->kind), m->name);
  if (key->broken.id[0] != '\0') {
    weir_error_copy(err, &key->broken);
    return key->broken.code;
  }
  return m->kind == WEIR_KV_PULL ? pull(s, key, m, reply, err)
                                 : push(s, key, m, reply, err);
}

void weir_kv_store_do(weir_kv_store *s, const weir_kv_message *m,
                      weir_kv_message *reply) {
  weir_error err = WEIR_ERROR_INIT;
  *reply = (weir_kv_message){.kind = WEIR_KV_DONE};
  weir_status status = m->kind == WEIR_KV_DECLARE ? declare(s, m, reply, &err)
                                                  : use(s, m, reply, &err);
  if (status == WEIR_OK) return;
  weir_kv_block_release(reply->data);
  *reply = (weir_kv_message){.kind = WEIR_KV_DONE};
  weir_kv_set_error(reply, status, &err);
}
