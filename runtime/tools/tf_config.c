/* SPDX-License-Identifier: Apache-2.0 */
/* TF_CONFIG: the cluster of TensorFlow, as the tasks of weir.
 *
 *   {"cluster": {"chief": ["a:1"], "ps": ["b:1"], "worker": ["c:1", "d:1"]},
 *    "task": {"type": "worker", "index": 1}}
 *
 * Read token by token. Members may come in any order, so the role of a process
 * is compared with the cluster at the end. A role is a row of kRoles. Members
 * that platforms add beside cluster and task are passed over, as TensorFlow
 * does; within them nothing is: a key that is not known there is a mistake. */
#include "runtime/tools/tf_config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/json/json.h"
#include "runtime/base/vec.h"

enum { MOST_BYTES = 1 << 20, MOST_TASKS = 512, ADDRESS_BYTES = 256 };

typedef enum role { CHIEF, EVALUATOR, PS, WORKER, ROLES } role;

static const struct {
  const char *name;
  bool task; /* its processes are tasks; in the order of the cluster's text */
} kRoles[ROLES] = {[CHIEF] = {"chief", false},
                   [EVALUATOR] = {"evaluator", false},
                   [PS] = {"ps", true},
                   [WORKER] = {"worker", true}};

typedef struct address {
  role role;
  const char *text;
} address;

typedef struct config {
  weir_tools_tf_config base; /* first */
  const weir_allocator *alloc;
  weir_arena arena;
  weir_json_reader r;
  WEIR_VEC(address) all;
  WEIR_VEC(const char *) tasks;
  uint32_t counts[ROLES];
  bool seen[ROLES];
  bool has_cluster, has_task, has_index;
  uint32_t sparse_index; /* of the one worker of a sparseCluster */
  role own;
  weir_mark own_at, index_at;
} config;

/* Refuses the current token. */
static weir_status refuse(const config *c, weir_error *err, const char *says) {
  weir_mark at = weir_json_mark(&c->r);
  return weir_fail(err, WEIR_W7081, &at, "%s", says);
}

/* The reader's own mistakes, and the lack of memory, which stays as it is. */
static weir_status next(config *c, weir_json_token *out, weir_error *err) {
  weir_error why = WEIR_ERROR_INIT;
  weir_status s = weir_json_next(&c->r, out, &why);
  if (s == WEIR_OK) return s;
  if (strcmp(why.id, "W4013") != 0) {
    weir_error_copy(err, &why);
    return s;
  }
  return weir_fail(err, WEIR_W7081, NULL, "TF_CONFIG is no JSON: %.400s",
                   why.message);
}

static weir_status want(config *c, weir_json_token kind, const char *what,
                        weir_error *err) {
  weir_json_token token;
  WEIR_TRY(next(c, &token, err));
  if (token == kind) return WEIR_OK;
  weir_mark at = weir_json_mark(&c->r);
  return weir_fail(err, WEIR_W7081, &at, "%s is to be %s; it is %s", what,
                   weir_json_token_name(kind), weir_json_token_name(token));
}

static weir_status skip(config *c, weir_error *err) {
  weir_error why = WEIR_ERROR_INIT;
  weir_status s = weir_json_skip(&c->r, &why);
  if (s == WEIR_OK) return s;
  return weir_fail(err, WEIR_W7081, NULL, "TF_CONFIG is no JSON: %.400s",
                   why.message);
}

/* ---- Roles */

/* The role that the current key or string names. */
static weir_status read_role(config *c, role *out, weir_error *err) {
  for (int i = 0; i < ROLES; i++) {
    *out = (role)i;
    if (weir_json_text_is(&c->r, kRoles[i].name)) return WEIR_OK;
  }
  weir_mark at = weir_json_mark(&c->r);
  weir_sv t = c->r.text;
  weir_status s = weir_fail(
      err, WEIR_W7081, &at,
      "\"%.*s\" is no role; there are chief, worker, ps and evaluator",
      (int)(t.size < 64 ? t.size : 64), t.data);
  if (weir_json_text_is(&c->r, "master"))
    weir_hint(err, "it is called chief since TensorFlow 1.4");
  return s;
}

/* ---- The cluster */

static weir_status check_address(const config *c, weir_sv text,
                                 weir_error *err) {
  const char *colon = strrchr(text.data, ':');
  bool ok = text.size < ADDRESS_BYTES && strlen(text.data) == text.size &&
            colon != NULL && colon != text.data && colon[1] != '\0' &&
            strspn(colon + 1, "0123456789") == strlen(colon + 1);
  if (!ok) return refuse(c, err, "an address is to be \"HOST:PORT\"");
  for (size_t i = 0; i < c->all.count; i++)
    if (strcmp(c->all.items[i].text, text.data) == 0) {
      weir_mark at = weir_json_mark(&c->r);
      return weir_fail(err, WEIR_W7081, &at, "two processes are at %s",
                       text.data);
    }
  return WEIR_OK;
}

static weir_status read_address(config *c, role of, weir_error *err) {
  weir_sv text;
  WEIR_TRY(weir_json_text(&c->r, &c->arena, &text, err));
  WEIR_TRY(check_address(c, text, err));
  address it = {of, text.data};
  if (c->all.count == MOST_TASKS)
    return refuse(c, err, "there are more than 512 processes");
  if (!weir_vec_push(c->alloc, &c->all, it))
    return weir_fail_memory(err, sizeof it);
  c->counts[of]++;
  return WEIR_OK;
}

/* ["HOST:PORT", ...]; |what| it is, for messages. */
static weir_status read_list(config *c, role of, const char *what,
                             weir_error *err) {
  weir_json_token token;
  WEIR_TRY(want(c, WEIR_JSON_ARRAY_BEGIN, what, err));
  for (;;) {
    WEIR_TRY(next(c, &token, err));
    if (token == WEIR_JSON_ARRAY_END) return WEIR_OK;
    if (token != WEIR_JSON_STRING)
      return refuse(c, err, "an address is to be a string, \"HOST:PORT\"");
    WEIR_TRY(read_address(c, of, err));
  }
}

static weir_status read_addresses(config *c, role of, weir_error *err) {
  WEIR_TRY(read_list(c, of, "the value of a role", err));
  if (c->counts[of] == 0)
    return refuse(c, err, "a role without processes; leave it out");
  if (of == CHIEF && c->counts[of] > 1)
    return refuse(c, err, "there is one chief at most");
  return WEIR_OK;
}

static weir_status read_cluster(config *c, weir_error *err) {
  weir_json_token token;
  role of;
  if (c->has_cluster) return refuse(c, err, "\"cluster\" stands twice");
  c->has_cluster = true;
  WEIR_TRY(want(c, WEIR_JSON_OBJECT_BEGIN, "\"cluster\"", err));
  for (;;) {
    WEIR_TRY(next(c, &token, err));
    if (token == WEIR_JSON_OBJECT_END) return WEIR_OK;
    WEIR_TRY(read_role(c, &of, err));
    if (c->seen[of]) return refuse(c, err, "the role stands twice");
    c->seen[of] = true;
    WEIR_TRY(read_addresses(c, of, err));
  }
}

/* ---- A sparseCluster */

/* {"1": "HOST:PORT"}: this process, where it is a worker; else empty. */
static weir_status read_sparse_workers(config *c, weir_error *err) {
  weir_json_token token;
  weir_sv key;
  WEIR_TRY(
      want(c, WEIR_JSON_OBJECT_BEGIN, "\"worker\" of a sparseCluster", err));
  for (;;) {
    WEIR_TRY(next(c, &token, err));
    if (token == WEIR_JSON_OBJECT_END) return WEIR_OK;
    if (c->counts[WORKER] > 0)
      return refuse(c, err, "a sparseCluster names one worker, this process");
    WEIR_TRY(weir_json_text(&c->r, &c->arena, &key, err));
    if (key.size == 0 || key.size > 3 ||
        strspn(key.data, "0123456789") != key.size)
      return refuse(c, err, "the key of a worker is to be its index");
    for (size_t i = 0; i < key.size; i++)
      c->sparse_index = 10 * c->sparse_index + (uint32_t)(key.data[i] - '0');
    WEIR_TRY(want(c, WEIR_JSON_STRING, "the address of a worker", err));
    WEIR_TRY(read_address(c, WORKER, err));
  }
}

static weir_status read_sparse(config *c, weir_error *err) {
  weir_json_token token;
  role of;
  if (c->has_cluster)
    return refuse(c, err, "there is a \"cluster\" and a \"sparseCluster\"");
  c->has_cluster = c->base.sparse = true;
  WEIR_TRY(want(c, WEIR_JSON_OBJECT_BEGIN, "\"sparseCluster\"", err));
  for (;;) {
    WEIR_TRY(next(c, &token, err));
    if (token == WEIR_JSON_OBJECT_END) return WEIR_OK;
    WEIR_TRY(read_role(c, &of, err));
    if (c->seen[of]) return refuse(c, err, "the role stands twice");
    c->seen[of] = true;
    if (of == PS)
      WEIR_TRY(read_list(c, PS, "\"ps\" of a sparseCluster", err));
    else if (of == WORKER)
      WEIR_TRY(read_sparse_workers(c, err));
    else
      return refuse(c, err, "a sparseCluster has worker and ps");
  }
}

/* ---- The task of this process */

static weir_status read_index(config *c, weir_error *err) {
  int64_t index = 0;
  if (c->has_index) return refuse(c, err, "\"index\" stands twice");
  WEIR_TRY(want(c, WEIR_JSON_NUMBER, "the index of a task", err));
  if (!weir_json_get_int(&c->r, &index) || index < 0 || index >= MOST_TASKS)
    return refuse(c, err, "an index is to be a whole number from 0 to 511");
  c->has_index = true;
  c->base.index = (uint32_t)index;
  c->index_at = weir_json_mark(&c->r);
  return WEIR_OK;
}

static weir_status read_type(config *c, weir_error *err) {
  if (c->base.role != NULL) return refuse(c, err, "\"type\" stands twice");
  WEIR_TRY(want(c, WEIR_JSON_STRING, "the type of a task", err));
  WEIR_TRY(read_role(c, &c->own, err));
  c->base.role = kRoles[c->own].name;
  c->own_at = weir_json_mark(&c->r);
  return WEIR_OK;
}

/* Cloud platforms write {} for a program that is of no cluster. */
static weir_status read_task(config *c, weir_error *err) {
  weir_json_token token;
  if (c->has_task) return refuse(c, err, "\"task\" stands twice");
  c->has_task = true;
  WEIR_TRY(want(c, WEIR_JSON_OBJECT_BEGIN, "\"task\"", err));
  for (;;) {
    WEIR_TRY(next(c, &token, err));
    if (token == WEIR_JSON_OBJECT_END) break;
    if (weir_json_text_is(&c->r, "type"))
      WEIR_TRY(read_type(c, err));
    else if (weir_json_text_is(&c->r, "index"))
      WEIR_TRY(read_index(c, err));
    else
      WEIR_TRY(skip(c, err)); /* "trial", "cloud" of platforms */
  }
  if (c->base.role == NULL && c->has_index)
    return refuse(c, err, "\"task\" has an index and no type");
  return WEIR_OK;
}

static weir_status read_all(config *c, weir_error *err) {
  weir_json_token token;
  WEIR_TRY(want(c, WEIR_JSON_OBJECT_BEGIN, "TF_CONFIG", err));
  for (;;) {
    WEIR_TRY(next(c, &token, err));
    if (token == WEIR_JSON_OBJECT_END) break;
    if (weir_json_text_is(&c->r, "cluster")) {
      WEIR_TRY(read_cluster(c, err));
    } else if (weir_json_text_is(&c->r, "task")) {
      WEIR_TRY(read_task(c, err));
    } else if (weir_json_text_is(&c->r, "sparseCluster")) {
      WEIR_TRY(read_sparse(c, err));
    } else {
      WEIR_TRY(skip(c, err));
    }
  }
  return want(c, WEIR_JSON_END, "what follows TF_CONFIG", err);
}

/* ---- Both together */

static weir_status check_own(const config *c, weir_error *err) {
  if (c->base.role == NULL) return WEIR_OK;
  /* An evaluator is of no cluster; often it is not listed. */
  if (c->own == EVALUATOR && c->counts[EVALUATOR] == 0) return WEIR_OK;
  if (c->counts[c->own] == 0)
    return weir_fail(err, WEIR_W7081, &c->own_at,
                     "this process is a %s, and \"cluster\" has none",
                     c->base.role);
  if (c->base.index >= c->counts[c->own])
    return weir_fail(err, WEIR_W7081, c->has_index ? &c->index_at : &c->own_at,
                     "this process is %s %" PRIu32
                     ", and \"cluster\" has %" PRIu32 ", from 0",
                     c->base.role, c->base.index, c->counts[c->own]);
  return WEIR_OK;
}

/* The text of the tasks, and their addresses in its order. */
static weir_status list_tasks(config *c, weir_error *err) {
  char text[64];
  size_t at = 0;
  for (int i = 0; i < ROLES; i++) {
    if (!kRoles[i].task || c->counts[i] == 0) continue;
    at += (size_t)snprintf(text + at, sizeof text - at, "%s%s=%" PRIu32,
                           at > 0 ? "," : "", kRoles[i].name, c->counts[i]);
    for (size_t k = 0; k < c->all.count; k++)
      if (c->all.items[k].role == (role)i &&
          !weir_vec_push(c->alloc, &c->tasks, c->all.items[k].text))
        return weir_fail_memory(err, sizeof c->all.items[k].text);
  }
  if (at == 0)
    return weir_fail(err, WEIR_W7081, NULL,
                     "TF_CONFIG has no ps and no worker: nobody computes");
  c->base.cluster = weir_arena_string(&c->arena, text, at);
  if (c->base.cluster == NULL) return weir_fail_memory(err, at);
  c->base.addresses = c->tasks.items;
  c->base.address_count = c->tasks.count;
  c->base.has_chief = c->counts[CHIEF] > 0;
  return WEIR_OK;
}

/* Whether a sparseCluster tells this process what it tells one of its role. */
static weir_status check_sparse(const config *c, weir_error *err) {
  const char *says = NULL;
  if (c->base.role == NULL)
    says = "a sparseCluster is of no use without \"task\"";
  else if (c->own == CHIEF)
    says =
        "a sparseCluster tells a chief of nobody; without one worker 0 leads";
  else if (c->own == WORKER &&
           (c->counts[WORKER] != 1 || c->sparse_index != c->base.index))
    says = "its sparseCluster does not name this worker";
  else if (c->own == WORKER && c->counts[PS] == 0)
    says = "its sparseCluster names no ps";
  else if (c->own == PS && c->counts[PS] != 1)
    says = "its sparseCluster is to name this ps alone";
  if (says == NULL) return WEIR_OK;
  return weir_fail(err, WEIR_W7081, c->base.role != NULL ? &c->own_at : NULL,
                   "%s", says);
}

/* ---- The rest of a sparse cluster, from the names that Kubeflow gives */

/* |own| with "-FROM-INDEX" as "-to-at"; false: it has no such part. */
static bool rename_task(const char *own, const char *from, const char *to,
                        char out[ADDRESS_BYTES]) {
  const char *at = NULL, *next = own;
  size_t bytes = strlen(from);
  while ((next = strstr(next, from)) != NULL) { /* the last one */
    bool ends = next[bytes] == '.' || next[bytes] == ':';
    if (ends) at = next;
    next++;
  }
  if (at == NULL) return false;
  int n = snprintf(out, ADDRESS_BYTES, "%.*s%s%s", (int)(at - own), own, to,
                   at + bytes);
  return n < ADDRESS_BYTES;
}

/* Adds the address of a task that nobody has told of. */
static weir_status derive(config *c, role of, uint32_t index, weir_error *err) {
  char from[32], to[32], out[ADDRESS_BYTES];
  const char *own = NULL;
  for (size_t i = 0; i < c->all.count; i++)
    if (c->all.items[i].role == c->own) own = c->all.items[i].text;
  snprintf(from, sizeof from, "-%s-%" PRIu32, c->base.role, c->base.index);
  snprintf(to, sizeof to, "-%s-%" PRIu32, kRoles[of].name, index);
  if (own == NULL || !rename_task(own, from, to, out))
    return weir_fail(err, WEIR_W7081, &c->own_at,
                     "this process is at %s, which has no %s: the address of "
                     "%s %" PRIu32 " does not follow from it",
                     own != NULL ? own : "no address", from, kRoles[of].name,
                     index);
  const char *kept = weir_arena_string(&c->arena, out, strlen(out));
  if (kept == NULL || !weir_vec_push(c->alloc, &c->tasks, kept))
    return weir_fail_memory(err, sizeof kept);
  return WEIR_OK;
}

/* What is told of a task, or what follows. */
static weir_status add_task(config *c, role of, uint32_t index,
                            weir_error *err) {
  bool all_servers = c->own == WORKER && of == PS;
  uint32_t at = all_servers ? index : 0;
  bool told = all_servers || (of == c->own && index == c->base.index);
  if (!told) return derive(c, of, index, err);
  for (size_t i = 0; i < c->all.count; i++) {
    if (c->all.items[i].role != of || at-- > 0) continue;
    if (weir_vec_push(c->alloc, &c->tasks, c->all.items[i].text))
      return WEIR_OK;
    break;
  }
  return weir_fail_memory(err, sizeof(char *));
}

static weir_status count_servers(const config *c, uint32_t *servers,
                                 weir_error *err) {
  if (c->own == WORKER) {
    if (*servers == 0) *servers = c->counts[PS];
    if (*servers == c->counts[PS]) return WEIR_OK;
    return weir_fail(err, WEIR_W7081, NULL,
                     "--servers %" PRIu32 ", and the sparseCluster has %" PRIu32
                     " ps",
                     *servers, c->counts[PS]);
  }
  if (*servers == 0 && c->base.index == 0) *servers = 1;
  if (c->base.index < *servers) return WEIR_OK;
  weir_status s = weir_fail(err, WEIR_W7081, &c->own_at,
                            "this process is ps %" PRIu32
                            ", and its sparseCluster does not say how many "
                            "there are",
                            c->base.index);
  weir_hint(err, "--servers N does, above %" PRIu32, c->base.index);
  return s;
}

weir_status weir_tools_tf_config_fill(weir_tools_tf_config *it,
                                      uint32_t servers, weir_error *err) {
  config *c = (config *)it;
  char text[64];
  WEIR_TRY(count_servers(c, &servers, err));
  for (uint32_t i = 0; i < servers; i++) WEIR_TRY(add_task(c, PS, i, err));
  WEIR_TRY(add_task(c, WORKER, 0, err));
  int n = snprintf(text, sizeof text, "ps=%" PRIu32 ",worker=1", servers);
  it->cluster = weir_arena_string(&c->arena, text, (size_t)n);
  if (it->cluster == NULL) return weir_fail_memory(err, sizeof text);
  it->addresses = c->tasks.items;
  it->address_count = c->tasks.count;
  return WEIR_OK;
}

static weir_status read_text(config *c, const char *text, weir_error *err) {
  weir_sv sv = {text, strlen(text)};
  if (sv.size > MOST_BYTES)
    return weir_fail(err, WEIR_W7081, NULL, "TF_CONFIG has %zu bytes", sv.size);
  weir_json_reader_init(&c->r, sv, "TF_CONFIG", NULL);
  WEIR_TRY(read_all(c, err));
  if (!c->has_cluster)
    return weir_fail(err, WEIR_W7081, NULL, "TF_CONFIG has no \"cluster\"");
  if (c->base.sparse) return check_sparse(c, err);
  WEIR_TRY(check_own(c, err));
  return list_tasks(c, err);
}

weir_status weir_tf_config_read(const weir_allocator *alloc, const char *text,
                                weir_tools_tf_config **out, weir_error *err) {
  *out = NULL;
  config *c = weir_alloc_array(alloc, 1, sizeof *c);
  if (c == NULL) return weir_fail_memory(err, sizeof *c);
  c->alloc = alloc;
  weir_arena_init(&c->arena, alloc);
  weir_status s = read_text(c, text, err);
  if (s == WEIR_OK)
    *out = &c->base;
  else
    weir_tools_tf_config_release(&c->base);
  return s;
}

weir_status weir_tools_tf_config_read(const char *text,
                                      weir_tools_tf_config **out,
                                      weir_error *err) {
  return weir_tf_config_read(weir_allocator_system(), text, out, err);
}

const char *weir_tools_tf_config_address(const weir_tools_tf_config *it,
                                         const char *job, uint32_t index) {
  const config *c = (const config *)it;
  uint32_t at = 0;
  for (size_t i = 0; i < c->all.count; i++)
    if (strcmp(kRoles[c->all.items[i].role].name, job) == 0 && at++ == index)
      return c->all.items[i].text;
  return NULL;
}

void weir_tools_tf_config_release(weir_tools_tf_config *it) {
  config *c = (config *)it;
  if (c == NULL) return;
  weir_vec_free(c->alloc, &c->all);
  weir_vec_free(c->alloc, &c->tasks);
  weir_arena_release(&c->arena);
  weir_free(c->alloc, c);
}
