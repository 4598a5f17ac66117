/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/train/ps/server_generation.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/bytes/crc32c.h"
#include "runtime/io/checkpoint/checkpoint_load.h"
#include "runtime/io/checkpoint/checkpoint_names.h"
#include "runtime/io/checkpoint/checkpoint_store.h"

/* A part is a checkpoint of its own, so it is whole or not there. What makes a
 * generation is |sealed|, which names it once all parts are on disk; parts of
 * one number and different lives do not make one. */

enum { PATH = WEIR_CHECKPOINT_PATH_BYTES, NOTE = 160 };

struct weir_ps_generations {
  const weir_env *env;
  uint32_t server;
  weir_checkpoint_store *store; /* of this server's folder */
  char dir[];
};

static weir_status path_of(const weir_ps_generations *g, const char *name,
                           char out[PATH], weir_error *err) {
  int n = snprintf(out, PATH, "%s/%s", g->dir, name);
  if (n > 0 && n < PATH) return WEIR_OK;
  return weir_fail(err, WEIR_W4042, NULL, "the path '%.100s...' is too long",
                   g->dir);
}

static weir_status part_path(const weir_ps_generations *g, uint32_t server,
                             char out[PATH], weir_error *err) {
  char name[32];
  snprintf(name, sizeof name, "server-%05u", server);
  return path_of(g, name, out, err);
}

/* Without a store; NULL: no memory. */
static weir_ps_generations *make(const weir_env *env, const char *dir,
                                 uint32_t server) {
  size_t size = strlen(dir) + 1;
  weir_ps_generations *g = weir_alloc(env->alloc, sizeof *g + size);
  if (g == NULL) return NULL;
  g->env = env;
  g->server = server;
  g->store = NULL;
  memcpy(g->dir, dir, size);
  return g;
}

weir_status weir_ps_generations_open(const weir_env *env, const char *dir,
                                     uint32_t server,
                                     weir_ps_generations **out_generations,
                                     weir_error *err) {
  char path[PATH];
  *out_generations = NULL;
  weir_ps_generations *g = make(env, dir, server);
  if (g == NULL) return weir_fail_memory(err, strlen(dir));
  weir_status s = part_path(g, server, path, err);
  if (s == WEIR_OK)
    s = weir_checkpoint_store_open(env, path, NULL, &g->store, err);
  if (s == WEIR_OK)
    *out_generations = g;
  else
    weir_ps_generations_release(g);
  return s;
}

void weir_ps_generations_release(weir_ps_generations *g) {
  if (g == NULL) return;
  weir_checkpoint_store_close(g->store);
  weir_free(g->env->alloc, g);
}

/* ---- Notes: two numbers and their CRC */

static uint32_t sum_of(const uint64_t v[2]) {
  char text[48];
  int n = snprintf(text, sizeof text, "%" PRIu64 " %" PRIu64, v[0], v[1]);
  return weir_crc32c(0, text, (size_t)n);
}

static int note_text(const char *const names[2], const uint64_t v[2],
                     char out[NOTE]) {
  return snprintf(out, NOTE,
                  "{\"%s\": %" PRIu64 ", \"%s\": %" PRIu64
                  ", \"crc32c\": \"%08x\"}\n",
                  names[0], v[0], names[1], v[1], sum_of(v));
}

static const char *const kSealed[2] = {"generation", "before"};
static const char *const kEpoch[2] = {"epoch", "chief"};

static weir_status write_note(const weir_ps_generations *g, const char *file,
                              const char *const names[2], const uint64_t v[2],
                              weir_error *err) {
  char path[PATH], text[NOTE];
  WEIR_TRY(path_of(g, file, path, err));
  int n = note_text(names, v, text);
  weir_bytes bytes = {(const uint8_t *)text, (size_t)n};
  return g->env->fs->write(g->env->fs->self, path, bytes, err);
}

typedef struct finder {
  const char *name;
  bool found;
} finder;

static bool see(void *to, const char *name) {
  finder *f = to;
  f->found = f->found || strcmp(name, f->name) == 0;
  return !f->found;
}

/* A note that is not there is zeros; one that cannot be read is an error, since
 * a job that forgets an epoch may have two chiefs. */
static weir_status is_there(const weir_ps_generations *g, const char *file,
                            bool *out, weir_error *err) {
  const weir_fs *fs = g->env->fs;
  finder f = {.name = file};
  void *folder = NULL;
  WEIR_TRY(fs->folders->open(fs->self, NULL, g->dir, true, &folder, err));
  weir_status s = fs->folders->list(fs->self, folder, &f, see, err);
  fs->folders->close(fs->self, folder);
  *out = f.found;
  return s;
}

/* Written again, the numbers must give the same text. */
static bool parse_note(const char *const names[2], weir_bytes bytes,
                       uint64_t v[2]) {
  char text[NOTE], again[NOTE], format[NOTE];
  if (bytes.size == 0 || bytes.size >= sizeof text) return false;
  memcpy(text, bytes.data, bytes.size);
  text[bytes.size] = '\0';
  snprintf(format, sizeof format, "{\"%s\": ", names[0]);
  const char *at = text + strlen(format);
  if (strncmp(text, format, strlen(format)) != 0) return false;
  if (sscanf(at, "%" SCNu64, &v[0]) != 1) return false;
  snprintf(format, sizeof format, ", \"%s\": ", names[1]);
  at = strstr(at, format);
  if (at == NULL || sscanf(at + strlen(format), "%" SCNu64, &v[1]) != 1)
    return false;
  note_text(names, v, again);
  return strcmp(text, again) == 0;
}

static weir_status read_note(const weir_ps_generations *g, const char *file,
                             const char *const names[2], uint64_t v[2],
                             weir_error *err) {
  char path[PATH];
  bool there = false;
  weir_file content = {0};
  const weir_fs *fs = g->env->fs;
  v[0] = v[1] = 0;
  WEIR_TRY(path_of(g, file, path, err));
  WEIR_TRY(is_there(g, file, &there, err));
  if (!there) return WEIR_OK;
  WEIR_TRY(fs->read(fs->self, NULL, path, NOTE * 4, false, &content, err));
  bool sound = parse_note(names, content.bytes, v);
  fs->close(fs->self, &content);
  if (sound) return WEIR_OK;
  return weir_fail(err, WEIR_W7091, NULL, "'%.300s' is damaged", path);
}

weir_status weir_ps_generations_kept(const weir_ps_generations *g,
                                     weir_ps_kept *out, weir_error *err) {
  uint64_t v[2];
  WEIR_TRY(read_note(g, "epoch", kEpoch, v, err));
  out->epoch = v[0];
  out->chief = v[1];
  WEIR_TRY(read_note(g, "sealed", kSealed, v, err));
  out->generation = v[0];
  out->before = v[1];
  return WEIR_OK;
}

weir_status weir_ps_generations_keep(const weir_ps_generations *g,
                                     uint64_t epoch, uint64_t chief,
                                     weir_error *err) {
  const uint64_t v[2] = {epoch, chief};
  return write_note(g, "epoch", kEpoch, v, err);
}

/* ---- Saving */

typedef struct wish {
  uint64_t sealed, before, saved;
} wish;

static bool keeps(void *self, uint64_t step) {
  const wish *w = self;
  return step == w->sealed || step == w->before || step == w->saved;
}

static weir_status prune(const weir_ps_generations *g, uint64_t saved,
                         weir_error *err) {
  uint64_t v[2];
  WEIR_TRY(read_note(g, "sealed", kSealed, v, err));
  wish w = {v[0], v[1], saved};
  weir_checkpoint_wish keep = {keeps, &w};
  return weir_checkpoint_store_prune(g->store, &keep, err);
}

weir_status weir_ps_generations_seal(const weir_ps_generations *g,
                                     uint64_t generation, weir_error *err) {
  uint64_t v[2];
  WEIR_TRY(read_note(g, "sealed", kSealed, v, err));
  v[1] = v[0];
  v[0] = generation;
  WEIR_TRY(write_note(g, "sealed", kSealed, v, err));
  (void)prune(g, generation, NULL); /* it counts, whatever is left over */
  return WEIR_OK;
}

weir_status weir_ps_generations_save(weir_ps_generations *g,
                                     const weir_checkpoint_info *info,
                                     const weir_checkpoint_entry *entries,
                                     size_t count, weir_error *err) {
  (void)prune(g, info->step, NULL); /* first: it makes room */
  return weir_checkpoint_save(g->store, info, entries, count, err);
}

/* ---- Going on */

typedef struct weir_ps_saved_part {
  weir_checkpoint_folder dir; /* lent to |checkpoint| */
  weir_checkpoint *checkpoint;
  weir_ps_part part;
  char path[PATH];
} weir_ps_saved_part;

static weir_status missing(const weir_ps_saved_part *p, uint64_t generation,
                           weir_error *err) {
  return weir_fail(err, WEIR_W4048, NULL,
                   "'%.300s' has no generation %" PRIu64
                   " of this server's variables",
                   p->path, generation);
}

/* The newest manifest of that number. */
static weir_status load_part(const weir_env *env, weir_ps_saved_part *p,
                             uint64_t generation, weir_error *err) {
  const weir_fs *fs = env->fs;
  weir_checkpoint_files files = {0};
  const char *name = NULL;
  p->dir.path = p->path;
  WEIR_TRY(
      fs->folders->open(fs->self, NULL, p->path, false, &p->dir.folder, err));
  weir_status s = weir_checkpoint_list(env, p->dir.folder, &files, err);
  for (size_t i = 0; s == WEIR_OK && name == NULL && i < files.count; i++) {
    const weir_checkpoint_file *f = &files.items[i];
    if (f->kind == WEIR_CHECKPOINT_MANIFEST && !f->temporary &&
        f->stem.step == generation)
      name = f->name;
  }
  if (s == WEIR_OK)
    s = name == NULL ? missing(p, generation, err)
                     : weir_checkpoint_load_bare(env, &p->dir, name,
                                                 &p->checkpoint, err);
  weir_vec_free(env->alloc, &files);
  return s;
}

static weir_status open_part(const weir_ps_generations *g, uint32_t server,
                             uint64_t generation, weir_ps_saved_part *p,
                             weir_error *err) {
  WEIR_TRY(part_path(g, server, p->path, err));
  WEIR_TRY(load_part(g->env, p, generation, err));
  const char *file = weir_checkpoint_path_of(p->checkpoint);
  WEIR_TRY(weir_ps_part_read(g->env->alloc,
                             weir_checkpoint_about(p->checkpoint)->extra, file,
                             &p->part, err));
  if (p->part.server == server && p->part.state.generation == generation)
    return WEIR_OK;
  return weir_fail(err, WEIR_W7091, NULL, "'%.300s' is of another server",
                   file);
}

/* One life, one number of servers and of workers. */
static weir_status check_part(const weir_ps_saved_part *first,
                              const weir_ps_saved_part *p, weir_error *err) {
  if (p->part.life == first->part.life &&
      p->part.servers == first->part.servers &&
      p->part.workers == first->part.workers)
    return WEIR_OK;
  return weir_fail(err, WEIR_W7091, NULL,
                   "'%.300s' was saved at another time than server 0's part",
                   weir_checkpoint_path_of(p->checkpoint));
}

static weir_status open_parts(const weir_ps_generations *g, uint64_t generation,
                              weir_ps_saved *out, uint32_t from,
                              weir_error *err) {
  for (uint32_t i = from; i < out->count; i++) {
    WEIR_TRY(open_part(g, i, generation, &out->parts[i], err));
    WEIR_TRY(check_part(&out->parts[0], &out->parts[i], err));
  }
  return WEIR_OK;
}

weir_status weir_ps_saved_open(const weir_ps_generations *g,
                               uint64_t generation, weir_ps_saved *out,
                               weir_error *err) {
  const weir_allocator *alloc = g->env->alloc;
  *out = (weir_ps_saved){.env = g->env, .count = 1};
  out->parts = weir_alloc_array(alloc, WEIR_PS_SERVERS, sizeof *out->parts);
  weir_ps_state *states =
      weir_alloc_array(alloc, WEIR_PS_SERVERS, sizeof *states);
  out->states = states;
  if (out->parts == NULL || states == NULL)
    return weir_fail_memory(err, WEIR_PS_SERVERS * sizeof *out->parts);
  for (uint32_t i = 0; i < WEIR_PS_SERVERS; i++)
    out->parts[i].part.alloc = alloc;
  WEIR_TRY(open_parts(g, generation, out, 0, err));
  out->count = out->parts[0].part.servers;
  WEIR_TRY(open_parts(g, generation, out, 1, err));
  for (uint32_t i = 0; i < out->count; i++)
    states[i] = out->parts[i].part.state;
  return WEIR_OK;
}

void weir_ps_saved_release(weir_ps_saved *saved) {
  if (saved->env == NULL) return;
  const weir_fs *fs = saved->env->fs;
  for (uint32_t i = 0; saved->parts != NULL && i < WEIR_PS_SERVERS; i++) {
    weir_ps_saved_part *p = &saved->parts[i];
    weir_checkpoint_release(p->checkpoint);
    fs->folders->close(fs->self, p->dir.folder);
    weir_ps_part_release(&p->part);
  }
  weir_free(saved->env->alloc, saved->parts);
  weir_free(saved->env->alloc, (void *)(uintptr_t)saved->states);
  *saved = (weir_ps_saved){0};
}

const weir_checkpoint *weir_ps_saved_part_of(const weir_ps_saved *saved,
                                             uint32_t server) {
  return saved->parts[server].checkpoint;
}

/* ---- For those that come after the end */

bool weir_ps_generations_over(const weir_env *env, const char *dir,
                              uint64_t *out_limit) {
  weir_error ignored = WEIR_ERROR_INIT;
  const weir_fs *fs = env->fs;
  weir_ps_saved_part p = {.part.alloc = env->alloc};
  weir_ps_kept kept = {0};
  void *folder = NULL;
  *out_limit = 0;
  if (fs->folders->open(fs->self, NULL, dir, false, &folder, &ignored) !=
      WEIR_OK)
    return false;
  fs->folders->close(fs->self, folder);
  weir_ps_generations *g = make(env, dir, 0);
  bool over = g != NULL &&
              weir_ps_generations_kept(g, &kept, &ignored) == WEIR_OK &&
              kept.generation > 0 &&
              open_part(g, 0, kept.generation, &p, &ignored) == WEIR_OK &&
              p.part.ledger != NULL;
  if (over) {
    const weir_ps_ledger *l = p.part.ledger;
    bool sync = l->config.mode == WEIR_PS_SYNC;
    bool done =
        sync ? p.part.state.version >= l->limit : weir_ps_ledger_done(l);
    over = l->over && !l->failed;
    if (over && done) *out_limit = l->limit;
  }
  weir_checkpoint_release(p.checkpoint);
  if (p.dir.folder != NULL) fs->folders->close(fs->self, p.dir.folder);
  weir_ps_part_release(&p.part);
  weir_ps_generations_release(g);
  return over;
}
