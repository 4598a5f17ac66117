/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints of the engine.
 *
 * Hold takes snapshots on the engine's own thread, behind the commit that came
 * before it: variables are copy on write, so nothing is copied, and steps that
 * follow write to other buffers. Write and Read work on the thread for disks,
 * Send hands a piece of a snapshot to the rendezvous. Each has one request, one
 * object with all it needs, and one reply.
 *
 * The driver's names are checked: nodes are variables, held ones for Write
 * and Send, files are shards, and the folder is one that weir_checkpoint_common
 * finds. A session that ends stops a file between two pieces and removes it. */
#include "runtime/dist/run/run_checkpoint.h"

#include <string.h>

#include "runtime/dist/run/run_add.h"
#include "runtime/dist/run/run_held.h"
#include "runtime/exec/session/session_snapshot.h"
#include "runtime/exec/session/session_vars.h"
#include "runtime/io/checkpoint/checkpoint_common.h"
#include "runtime/io/checkpoint/checkpoint_shard.h"
#include "runtime/net/wire.h"
#include "runtime/net/wire_error.h"

enum { WARNINGS = 16 };

/* A request under way. */
typedef struct request {
  run_job job;
  weir_engine_event event;
  run_engine *engine;
  weir_arena arena;
  Weir__V1__CheckpointReply reply;
  Weir__V1__Error words, warnings[WARNINGS], *rows[WARNINGS];
  weir_error error, odd[WARNINGS];
  run_held *held;
  weir_exec_session *session;
  uint32_t program, count;
  uint32_t *nodes;       /* of variables */
  weir_tensor **tensors; /* of |held|, borrowed, or read: its own */
  weir_checkpoint_span *spans;
  weir_checkpoint_common place;
  char *file;
  weir_sv run_id;
  bool reads;
  weir_channel_done sent;
} request;

/* ---- Requests */

static void request_read(weir_engine_event *event) {
  request *r = (request *)((char *)event - offsetof(request, event));
  run_engine *e = r->engine;
  for (uint32_t i = 0; r->reads && r->tensors != NULL && i < r->count; i++)
    weir_tensor_unref(r->tensors[i]);
  weir_arena_release(&r->arena);
  weir_free(e->env.alloc, r);
}

static weir_status make(run_engine *e, uint64_t number, size_t count,
                        request **out, weir_error *err) {
  request *r = weir_alloc_array(e->env.alloc, 1, sizeof *r);
  *out = r;
  if (r == NULL) return weir_fail_memory(err, sizeof *r);
  r->engine = e;
  r->reply = (Weir__V1__CheckpointReply)WEIR__V1__CHECKPOINT_REPLY__INIT;
  r->reply.request = number;
  r->error = (weir_error)WEIR_ERROR_INIT;
  r->event = (weir_engine_event){.kind = WEIR_ENGINE_REPLY,
                                 .release = request_read,
                                 .error = WEIR_ERROR_INIT,
                                 .reply = &r->reply};
  weir_arena_init(&r->arena, e->env.alloc);
  r->nodes = weir_arena_array(&r->arena, count + 1, sizeof *r->nodes);
  r->tensors = weir_arena_array(&r->arena, count + 1, sizeof *r->tensors);
  if (r->nodes == NULL || r->tensors == NULL)
    return weir_fail_memory(err, count * sizeof *r->tensors);
  r->count = (uint32_t)count;
  return WEIR_OK;
}

/* Its answer goes to the driver. */
static void tell(request *r, weir_status s) {
  run_engine *e = r->engine;
  run_held_unref(e, r->held);
  r->held = NULL;
  if (s != WEIR_OK) {
    weir_wire_error_put(&r->error, &r->words);
    r->reply.error = &r->words;
  }
  run_post_event(e, &r->event);
  run_end_work(e);
}

static weir_status begin(request *r, weir_status s,
                         void (*run)(run_engine *, run_job *), bool disk,
                         weir_error *err) {
  if (s == WEIR_OK && disk) s = run_start_disk(r->engine, err);
  if (s != WEIR_OK) {
    if (r != NULL) {
      run_held_unref(r->engine, r->held);
      request_read(&r->event);
    }
    return s;
  }
  r->job.run = run;
  run_begin_work(r->engine);
  if (disk)
    run_post_disk(r->engine, &r->job);
  else
    run_post_job(r->engine, &r->job);
  return WEIR_OK;
}

/* The session goes on: no error. */
static weir_status goes_on(void *self, weir_error *err) {
  run_engine *e = self;
  pthread_mutex_lock(&e->lock);
  bool live = e->live;
  pthread_mutex_unlock(&e->lock);
  if (live) return WEIR_OK;
  return weir_fail(err, WEIR_W7027, NULL, "the session is over");
}

static weir_status take_session(request *r) {
  weir_error *err = &r->error;
  run_program *p = run_program_get(r->engine, r->program);
  r->session = p != NULL ? p->bundle->session : NULL;
  run_program_unref(p);
  if (r->session == NULL)
    return weir_fail(err, WEIR_W7011, NULL,
                     "variables of program %u, which is not here", r->program);
  const weir_graph *g = weir_session_graph(r->session);
  for (uint32_t i = 0; i < r->count; i++)
    if (r->nodes[i] >= g->node_count ||
        g->nodes[r->nodes[i]].op->instr != WEIR_INSTR_VAR_READ)
      return weir_fail(err, WEIR_W7011, NULL, "node %u is no variable",
                       r->nodes[i]);
  return WEIR_OK;
}

static weir_status take_place(request *r,
                              const Weir__V1__CheckpointFolder *folder,
                              weir_error *err) {
  if (folder == NULL || folder->nonce.len != WEIR_CHECKPOINT_NONCE_BYTES ||
      folder->path[0] != '/')
    return weir_fail(err, WEIR_W7011, NULL, "a folder without path or nonce");
  memcpy(r->place.nonce, folder->nonce.data, sizeof r->place.nonce);
  r->place.path =
      weir_arena_string(&r->arena, folder->path, strlen(folder->path));
  if (r->place.path == NULL) return weir_fail_memory(err, 1);
  if (folder->manifest[0] == '\0') return WEIR_OK;
  r->place.manifest =
      weir_arena_string(&r->arena, folder->manifest, strlen(folder->manifest));
  return r->place.manifest != NULL ? WEIR_OK : weir_fail_memory(err, 1);
}

static weir_status open_place(request *r, weir_checkpoint_folder *out) {
  run_engine *e = r->engine;
  out->path = r->place.path;
  WEIR_TRY(weir_checkpoint_common_open(e->given, e->checkpoint_root, &r->place,
                                       &out->folder, &r->error));
  r->reply.apart = out->folder == NULL;
  return WEIR_OK;
}

static void close_place(const request *r, weir_checkpoint_folder *dir) {
  const weir_fs *fs = r->engine->given->fs;
  if (dir->folder != NULL) fs->folders->close(fs->self, dir->folder);
}

/* ---- Hold */

static weir_status make_held(request *r) {
  const weir_allocator *a = r->engine->env.alloc;
  run_held *h = weir_alloc_array(a, 1, sizeof *h);
  if (h == NULL) return weir_fail_memory(&r->error, sizeof *h);
  r->held = h;
  h->refs = 1;
  h->number = r->reply.request;
  h->graph = weir_session_graph(r->session);
  h->nodes = weir_alloc_array(a, r->count + 1u, sizeof *h->nodes);
  h->tensors = weir_alloc_array(a, r->count + 1u, sizeof *h->tensors);
  if (h->nodes == NULL || h->tensors == NULL)
    return weir_fail_memory(&r->error, r->count * sizeof *h->tensors);
  for (uint32_t i = 0; i < r->count; i++) {
    h->nodes[i] = r->nodes[i];
    WEIR_TRY(weir_session_snapshot(r->session, r->nodes[i], &h->tensors[i],
                                   &r->error));
    h->count = i + 1;
  }
  return WEIR_OK;
}

static void hold_job(run_engine *e, run_job *job) {
  request *r = (request *)job;
  weir_status s = take_session(r);
  if (s == WEIR_OK) s = make_held(r);
  if (s == WEIR_OK) {
    run_held_add(e, r->held);
    r->held = NULL; /* the list's */
  }
  tell(r, s);
}

static weir_status hold(run_engine *e, const Weir__V1__CheckpointHold *m,
                        weir_error *err) {
  request *r = NULL;
  if (m->drop != 0) {
    run_held_drop(e, m->drop);
    return WEIR_OK;
  }
  weir_status s = make(e, m->request, m->n_nodes, &r, err);
  if (s == WEIR_OK && m->n_nodes > 0)
    memcpy(r->nodes, m->nodes, m->n_nodes * sizeof *r->nodes);
  if (s == WEIR_OK) r->program = m->program;
  return begin(r, s, hold_job, false, err);
}

/* ---- Write */

static weir_status give_piece(void *self, size_t i, uint64_t offset,
                              weir_bytes *out, weir_error *err) {
  const request *r = self;
  const weir_tensor *t = r->tensors[i];
  size_t n = t->bytes - (size_t)offset;
  if (n > WEIR_CHECKPOINT_PIECE_BYTES) n = WEIR_CHECKPOINT_PIECE_BYTES;
  *out = (weir_bytes){(const uint8_t *)t->data + offset, n};
  return goes_on(r->engine, err);
}

static weir_status write_shard(request *r, const weir_checkpoint_folder *dir) {
  const weir_env *env = r->engine->given;
  weir_sv *names = weir_arena_array(&r->arena, r->count + 1u, sizeof *names);
  weir_checkpoint_shard shard = {
      .env = env,
      .folder = dir->folder,
      .dir = dir->path,
      .name = r->file,
      .run_id = r->run_id,
      .names = names,
      .tensors = r->tensors,
      .count = r->count,
      .piece = give_piece,
      .self = r,
      .offsets = weir_arena_array(&r->arena, r->count + 1u, sizeof(uint64_t)),
      .crcs = weir_arena_array(&r->arena, r->count + 1u, sizeof(uint32_t))};
  if (names == NULL || shard.offsets == NULL || shard.crcs == NULL)
    return weir_fail_memory(&r->error, r->count);
  for (uint32_t i = 0; i < r->count; i++)
    names[i] = r->held->graph->nodes[r->nodes[i]].name;
  weir_status s = weir_checkpoint_shard_write(&shard, &r->error);
  if (s == WEIR_OK)
    s = env->fs->folders->sync_folder(env->fs->self, dir->folder, &r->error);
  if (s != WEIR_OK && shard.made)
    (void)env->fs->folders->unlink(env->fs->self, dir->folder, r->file, NULL);
  r->reply.bytes = shard.bytes;
  r->reply.crc32c = shard.crc;
  r->reply.n_crcs = r->count;
  r->reply.crcs = shard.crcs;
  return s;
}

static void write_job(run_engine *e, run_job *job) {
  request *r = (request *)job;
  weir_checkpoint_folder dir = {NULL, NULL};
  weir_status s = goes_on(e, &r->error);
  if (s == WEIR_OK) s = open_place(r, &dir);
  if (s == WEIR_OK && dir.folder != NULL) s = write_shard(r, &dir);
  close_place(r, &dir);
  tell(r, s);
}

/* Its tensors are those of what is held. */
static weir_status take_held(request *r, uint64_t held, const uint32_t *nodes,
                             weir_error *err) {
  r->held = run_held_get(r->engine, held);
  if (r->held == NULL)
    return weir_fail(err, WEIR_W7011, NULL,
                     "nothing is held under that number");
  for (uint32_t i = 0, at = 0; i < r->count; i++) {
    at = run_held_find(r->held, nodes[i], at);
    if (at == UINT32_MAX)
      return weir_fail(err, WEIR_W7011, NULL, "node %u is not held", nodes[i]);
    r->nodes[i] = nodes[i];
    r->tensors[i] = r->held->tensors[at];
  }
  return WEIR_OK;
}

static weir_status fill_write(request *r, const Weir__V1__CheckpointWrite *m,
                              weir_error *err) {
  if (!weir_checkpoint_is_new_shard(m->file))
    return weir_fail(err, WEIR_W7011, NULL,
                     "'%.100s' is not the name of a new shard", m->file);
  WEIR_TRY(take_held(r, m->held, m->nodes, err));
  WEIR_TRY(take_place(r, m->folder, err));
  r->file = weir_arena_string(&r->arena, m->file, strlen(m->file));
  r->run_id.size = strlen(m->run_id);
  r->run_id.data = weir_arena_string(&r->arena, m->run_id, r->run_id.size);
  return r->file != NULL && r->run_id.data != NULL ? WEIR_OK
                                                   : weir_fail_memory(err, 1);
}

static weir_status write_held(run_engine *e, const Weir__V1__CheckpointWrite *m,
                              weir_error *err) {
  request *r = NULL;
  weir_status s = make(e, m->request, m->n_nodes, &r, err);
  if (s == WEIR_OK) s = fill_write(r, m, err);
  return begin(r, s, write_job, true, err);
}

/* ---- Send */

static void piece_sent(void *self, weir_status status, const weir_error *err) {
  request *r = self;
  if (status != WEIR_OK) weir_error_copy(&r->error, err);
  tell(r, status);
}

static weir_status send_piece(run_engine *e, const Weir__V1__CheckpointSend *m,
                              weir_error *err) {
  request *r = NULL;
  weir_status s = make(e, m->request, 1, &r, err);
  if (s == WEIR_OK) s = take_held(r, m->held, &m->node, err);
  if (s == WEIR_OK && (m->bytes > r->tensors[0]->bytes ||
                       m->offset > r->tensors[0]->bytes - m->bytes))
    s = weir_fail(err, WEIR_W7011, NULL, "a piece beyond its tensor");
  if (s != WEIR_OK) {
    if (r != NULL) run_held_unref(e, r->held);
    if (r != NULL) request_read(&r->event);
    return s;
  }
  weir_slot slot = {WEIR__V1__VALUE_KIND__VARIABLE, m->node, m->request};
  weir_bytes bytes = {(const uint8_t *)r->tensors[0]->data + m->offset,
                      (size_t)m->bytes};
  r->sent = (weir_channel_done){.fn = piece_sent, .self = r};
  run_begin_work(e);
  weir_exchange_send(e->exchange, WEIR_PEER_DRIVER, &slot, bytes, &r->sent);
  return WEIR_OK;
}

/* ---- Read */

static void note_odd(request *r, uint32_t i, weir_sv name) {
  size_t n = r->reply.n_warnings;
  if (n == WARNINGS || !weir_checkpoint_odd_values(
                           r->tensors[i], name, r->spans[i].file, &r->odd[n]))
    return;
  weir_wire_error_put(&r->odd[n], &r->warnings[n]);
  r->rows[n] = &r->warnings[n];
  r->reply.warnings = r->rows;
  r->reply.n_warnings = n + 1;
}

static weir_status read_all(request *r, const weir_checkpoint_folder *dir) {
  run_engine *e = r->engine;
  WEIR_TRY(take_session(r));
  const weir_graph *g = weir_session_graph(r->session);
  if (e->given->fs->folders->pieces == NULL || e->given->fs->pieces == NULL) {
    r->reply.apart = true;
    return WEIR_OK;
  }
  for (uint32_t i = 0; i < r->count; i++) {
    const weir_node *node = &g->nodes[r->nodes[i]];
    const weir_value *v = &g->values[node->first_output];
    WEIR_TRY(weir_tensor_create_shaped(e->env.alloc, v->dtype, v->shape,
                                       &r->tensors[i], &r->error));
    WEIR_TRY(weir_checkpoint_span_read(e->given, dir, &r->spans[i], node->name,
                                       r->tensors[i], &r->error));
    note_odd(r, i, node->name);
  }
  return WEIR_OK;
}

static void set_job(run_engine *e, run_job *job) {
  (void)e;
  request *r = (request *)job;
  weir_status s = take_session(r); /* still there */
  for (uint32_t i = 0; s == WEIR_OK && i < r->count; i++)
    s = weir_session_set(r->session, r->nodes[i], r->tensors[i], &r->error);
  tell(r, s);
}

static void read_job(run_engine *e, run_job *job) {
  request *r = (request *)job;
  weir_checkpoint_folder dir = {NULL, NULL};
  weir_status s = goes_on(e, &r->error);
  if (s == WEIR_OK) s = open_place(r, &dir);
  if (s == WEIR_OK && dir.folder != NULL) s = read_all(r, &dir);
  close_place(r, &dir);
  if (s != WEIR_OK || r->reply.apart) {
    tell(r, s);
    return;
  }
  r->job.run = set_job;
  run_post_job(e, &r->job);
}

static weir_status fill_read(request *r, const Weir__V1__CheckpointRead *m,
                             weir_error *err) {
  char **files = weir_arena_array(&r->arena, m->n_files + 1, sizeof *files);
  r->spans = weir_arena_array(&r->arena, m->n_rows + 1, sizeof *r->spans);
  if (files == NULL || r->spans == NULL)
    return weir_fail_memory(err, m->n_rows * sizeof *r->spans);
  r->program = m->program;
  WEIR_TRY(take_place(r, m->folder, err));
  for (size_t i = 0; i < m->n_files; i++) {
    if (!weir_checkpoint_is_shard(m->files[i]))
      return weir_fail(err, WEIR_W7011, NULL,
                       "'%.100s' is not the name of a shard", m->files[i]);
    files[i] = weir_arena_string(&r->arena, m->files[i], strlen(m->files[i]));
    if (files[i] == NULL) return weir_fail_memory(err, 1);
  }
  for (size_t i = 0; i < m->n_rows; i++) {
    if (m->rows[i]->file >= m->n_files)
      return weir_fail(err, WEIR_W7011, NULL, "a row of no file");
    r->nodes[i] = m->rows[i]->node;
    r->spans[i] = (weir_checkpoint_span){.file = files[m->rows[i]->file],
                                         .offset = m->rows[i]->offset,
                                         .crc = m->rows[i]->crc32c,
                                         .stop = goes_on,
                                         .stop_self = r->engine};
  }
  return WEIR_OK;
}

static weir_status read_vars(run_engine *e, const Weir__V1__CheckpointRead *m,
                             weir_error *err) {
  request *r = NULL;
  weir_status s = make(e, m->request, m->n_rows, &r, err);
  if (s == WEIR_OK) {
    r->reads = true;
    s = fill_read(r, m, err);
  }
  return begin(r, s, read_job, true, err);
}

weir_status run_checkpoint(weir_engine *engine, const Weir__V1__Control *m,
                           weir_error *err) {
  run_engine *e = (run_engine *)engine;
  switch (m->body_case) {
    case WEIR__V1__CONTROL__BODY_CHECKPOINT_HOLD:
      return hold(e, m->checkpoint_hold, err);
    case WEIR__V1__CONTROL__BODY_CHECKPOINT_WRITE:
      return write_held(e, m->checkpoint_write, err);
    case WEIR__V1__CONTROL__BODY_CHECKPOINT_SEND:
      return send_piece(e, m->checkpoint_send, err);
    case WEIR__V1__CONTROL__BODY_CHECKPOINT_READ:
      return read_vars(e, m->checkpoint_read, err);
    default:
      return weir_fail(err, WEIR_W7011, NULL, "no message about checkpoints");
  }
}
