/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/io/checkpoint/checkpoint_store.h"

#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/json/json.h"
#include "runtime/base/utf8.h"
#include "runtime/io/checkpoint/checkpoint_clean.h"
#include "runtime/io/checkpoint/checkpoint_internal.h"
#include "runtime/io/checkpoint/checkpoint_names.h"
#include "runtime/io/checkpoint/checkpoint_owners.h"
#include "runtime/io/checkpoint/checkpoint_write.h"
#include "runtime/io/names.h"

/* The store: its folder, its lock, and the thread that writes.
 *
 * |job| is the save that is under way or waits; save sets it, the thread clears
 * it. All below |lock| is guarded by it. One job at most: a caller that saves
 * faster than the disk writes waits, and memory holds the tensors of one save.
 * Tensors are retained, not copied, so their data must not change meanwhile. */
struct weir_checkpoint_store {
  weir_checkpoint_place place;
  char *dir;
  void *file_lock;
  bool has_thread;
  pthread_t thread;
  pthread_mutex_t lock;
  pthread_cond_t changed;
  weir_checkpoint_job *job;
  bool stop;
  weir_status failure; /* of a save, not returned to the caller yet */
  weir_error failure_error;
};

enum { kGivenDepth = 24, kTextMost = 1 << 12, kProbeBytes = 4096 };

/* --- jobs --- */

static void free_job(const weir_allocator *alloc, weir_checkpoint_job *job) {
  if (job == NULL) return;
  for (size_t i = 0; job->tensors != NULL && i < job->count; i++)
    weir_tensor_unref(job->tensors[i]);
  if (job->owners != NULL) job->owners->vt->release(job->owners);
  weir_arena_release(&job->arena);
  weir_free(alloc, job);
}

static weir_status copy_text(weir_arena *arena, weir_sv *text,
                             weir_error *err) {
  const char *copy = weir_arena_string(
      arena, text->data != NULL ? text->data : "", text->size);
  if (copy == NULL) return weir_fail_memory(err, text->size);
  text->data = copy;
  return WEIR_OK;
}

/* Refuses a text that could not be read back. */
static weir_status check_given(weir_sv text, const char *what,
                               weir_error *err) {
  weir_json_reader r;
  weir_json_token token = WEIR_JSON_END;
  weir_json_options options = {.depth = kGivenDepth};
  weir_error inner = WEIR_ERROR_INIT;
  if (text.size == 0) return WEIR_OK;
  weir_json_reader_init(&r, text, NULL, &options);
  weir_status s = weir_json_expect(&r, WEIR_JSON_OBJECT_BEGIN, &inner);
  while (s == WEIR_OK && (s = weir_json_next(&r, &token, &inner)) == WEIR_OK &&
         token != WEIR_JSON_END) {
  }
  if (s == WEIR_OK) return WEIR_OK;
  return weir_fail(err, WEIR_W0004, NULL,
                   "a checkpoint's %s is not a JSON object: %s", what,
                   inner.message);
}

static weir_status check_info(const weir_checkpoint_info *info,
                              weir_error *err) {
  if (info->step > INT64_MAX || !isfinite(info->epoch) || info->epoch < 0)
    return weir_fail(err, WEIR_W0004, NULL,
                     "a checkpoint's step or epoch is out of range");
  if (info->run_id.size > kTextMost || !weir_utf8_valid(info->run_id, NULL))
    return weir_fail(err, WEIR_W0004, NULL,
                     "a checkpoint's run id is not a short text");
  WEIR_TRY(check_given(info->data, "data", err));
  return check_given(info->extra, "extra", err);
}

static weir_sv name_at(const void *self, size_t i) {
  return ((const weir_checkpoint_entry *)self)[i].name;
}

/* Takes over entry |from| as the next one. */
static weir_status add_entry(weir_checkpoint_job *job,
                             const weir_checkpoint_entry *entries, size_t from,
                             weir_error *err) {
  size_t i = job->count;
  job->names[i] = entries[from].name;
  job->roles[i] = entries[from].role;
  job->places[i] = (uint32_t)from;
  WEIR_TRY(copy_text(&job->arena, &job->names[i], err));
  job->tensors[i] =
      weir_tensor_ref((weir_tensor *)(uintptr_t)entries[from].tensor);
  job->count = i + 1;
  return WEIR_OK;
}

static uint32_t owner_of(const weir_checkpoint_job *job, size_t i) {
  return job->owners != NULL ? job->owners->vt->owner(job->owners, i) : 0;
}

/* The entries of each owner together, lowest owner first, else as they come. */
static weir_status add_entries(weir_checkpoint_job *job,
                               const weir_checkpoint_entry *entries,
                               size_t count, weir_error *err) {
  uint32_t most = 0;
  for (size_t i = 0; i < count; i++)
    if (owner_of(job, i) > most) most = owner_of(job, i);
  for (uint32_t owner = 0; owner <= most; owner++)
    for (size_t i = 0; i < count; i++)
      if (owner_of(job, i) == owner) WEIR_TRY(add_entry(job, entries, i, err));
  return WEIR_OK;
}

static weir_status fill_job(weir_checkpoint_job *job,
                            const weir_checkpoint_info *info,
                            const weir_checkpoint_entry *entries, size_t count,
                            weir_error *err) {
  job->info = *info;
  WEIR_TRY(copy_text(&job->arena, &job->info.run_id, err));
  WEIR_TRY(copy_text(&job->arena, &job->info.data, err));
  WEIR_TRY(copy_text(&job->arena, &job->info.extra, err));
  job->names = weir_arena_array(&job->arena, count + 1, sizeof *job->names);
  job->roles = weir_arena_array(&job->arena, count + 1, sizeof *job->roles);
  job->tensors = weir_arena_array(&job->arena, count + 1, sizeof(void *));
  job->places = weir_arena_array(&job->arena, count + 1, sizeof *job->places);
  if (job->names == NULL || job->roles == NULL || job->tensors == NULL ||
      job->places == NULL)
    return weir_fail_memory(err, count);
  return add_entries(job, entries, count, err);
}

static weir_status check_given_entries(const weir_allocator *alloc,
                                       const weir_checkpoint_info *info,
                                       const weir_checkpoint_entry *entries,
                                       size_t count, weir_error *err) {
  WEIR_TRY(check_info(info, err));
  /* Over all entries: a shard's writer sees its own only. */
  weir_names names = {.count = count,
                      .self = entries,
                      .name_at = name_at,
                      .is_sound = weir_names_is_sound,
                      .one = "a tensor in a checkpoint",
                      .several = "tensors"};
  return weir_names_check(alloc, &names, err);
}

/* Takes |owners| over once there is a job. */
static weir_status make_job(const weir_allocator *alloc,
                            const weir_checkpoint_info *info,
                            const weir_checkpoint_entry *entries, size_t count,
                            weir_checkpoint_owners *owners,
                            weir_checkpoint_job **out_job, weir_error *err) {
  *out_job = NULL;
  weir_status s = check_given_entries(alloc, info, entries, count, err);
  weir_checkpoint_job *job =
      s == WEIR_OK ? weir_alloc_array(alloc, 1, sizeof *job) : NULL;
  if (s == WEIR_OK && job == NULL) s = weir_fail_memory(err, sizeof *job);
  if (job == NULL) {
    if (owners != NULL) owners->vt->release(owners);
    return s;
  }
  weir_arena_init(&job->arena, alloc);
  job->owners = owners;
  s = fill_job(job, info, entries, count, err);
  if (s == WEIR_OK)
    *out_job = job;
  else
    free_job(alloc, job);
  return s;
}

/* --- the thread --- */

static void *write_jobs(void *self) {
  weir_checkpoint_store *store = self;
  pthread_mutex_lock(&store->lock);
  for (;;) {
    while (store->job == NULL && !store->stop)
      pthread_cond_wait(&store->changed, &store->lock);
    if (store->job == NULL) break;
    weir_checkpoint_job *job = store->job;
    weir_error err = WEIR_ERROR_INIT;
    pthread_mutex_unlock(&store->lock);
    weir_status s = weir_checkpoint_write(&store->place, job, &err);
    free_job(store->place.env->alloc, job);
    pthread_mutex_lock(&store->lock);
    store->job = NULL;
    if (s != WEIR_OK && store->failure == WEIR_OK) {
      store->failure = s;
      store->failure_error = err;
    }
    pthread_cond_broadcast(&store->changed);
  }
  pthread_mutex_unlock(&store->lock);
  return NULL;
}

/* All signals are blocked in it: they are for the program's own threads. */
static weir_status start_thread(weir_checkpoint_store *store, weir_error *err) {
  sigset_t all, before;
  if (store->has_thread) return WEIR_OK;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  store->has_thread =
      pthread_create(&store->thread, NULL, write_jobs, store) == 0;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (store->has_thread) return WEIR_OK;
  return weir_fail(err, WEIR_W6003, NULL,
                   "the system refused a thread that writes checkpoints");
}

/* Waits for the job; the lock is held. Gives the failure, once. */
static weir_status settle(weir_checkpoint_store *store, weir_error *err) {
  while (store->job != NULL) pthread_cond_wait(&store->changed, &store->lock);
  weir_status s = store->failure;
  if (s != WEIR_OK) weir_error_copy(err, &store->failure_error);
  store->failure = WEIR_OK;
  return s;
}

void weir_checkpoint_idle(weir_checkpoint_store *store) {
  pthread_mutex_lock(&store->lock);
  while (store->job != NULL) pthread_cond_wait(&store->changed, &store->lock);
  pthread_mutex_unlock(&store->lock);
}

weir_status weir_checkpoint_wait(weir_checkpoint_store *store,
                                 weir_error *err) {
  pthread_mutex_lock(&store->lock);
  weir_status s = settle(store, err);
  pthread_mutex_unlock(&store->lock);
  return s;
}

weir_status weir_checkpoint_save(weir_checkpoint_store *store,
                                 const weir_checkpoint_info *info,
                                 const weir_checkpoint_entry *entries,
                                 size_t count, weir_error *err) {
  return weir_checkpoint_save_owned(store, info, entries, count, NULL, err);
}

weir_status weir_checkpoint_save_owned(weir_checkpoint_store *store,
                                       const weir_checkpoint_info *info,
                                       const weir_checkpoint_entry *entries,
                                       size_t count,
                                       weir_checkpoint_owners *owners,
                                       weir_error *err) {
  const weir_allocator *alloc = store->place.env->alloc;
  weir_checkpoint_job *job = NULL;
  WEIR_TRY(make_job(alloc, info, entries, count, owners, &job, err));
  if (!store->place.options.async) {
    weir_status s = weir_checkpoint_write(&store->place, job, err);
    free_job(alloc, job);
    return s;
  }
  weir_status s = start_thread(store, err);
  if (s != WEIR_OK) {
    free_job(alloc, job);
    return s;
  }
  pthread_mutex_lock(&store->lock);
  s = settle(store, err);
  store->job = job;
  pthread_cond_broadcast(&store->changed);
  pthread_mutex_unlock(&store->lock);
  return s;
}

weir_status weir_checkpoint_store_prune(weir_checkpoint_store *store,
                                        const weir_checkpoint_wish *wish,
                                        weir_error *err) {
  weir_checkpoint_idle(store);
  return weir_checkpoint_remove(&store->place, wish, err);
}

/* --- the folder --- */

/* Writes and removes a file, so that a folder that forbids it is found before
 * there is anything to lose. */
static weir_status probe(const weir_checkpoint_place *p, weir_error *err) {
  const weir_fs_folders *f = p->env->fs->folders;
  void *self = p->env->fs->self, *file = NULL;
  uint8_t bytes[kProbeBytes] = {0};
  WEIR_TRY(f->create(self, p->folder, WEIR_CHECKPOINT_PROBE, &file, err));
  if (file == NULL) { /* left by a run that is gone */
    WEIR_TRY(f->unlink(self, p->folder, WEIR_CHECKPOINT_PROBE, err));
    WEIR_TRY(f->create(self, p->folder, WEIR_CHECKPOINT_PROBE, &file, err));
    if (file == NULL)
      return weir_fail(err, WEIR_W4043, NULL,
                       "another program writes to '%.200s'", p->dir);
  }
  weir_bytes page = {bytes, sizeof bytes};
  weir_status s = f->append(self, file, page, err);
  if (s == WEIR_OK) s = f->sync(self, file, err);
  weir_status ended = f->end(self, file, s == WEIR_OK ? err : NULL);
  weir_status gone = f->unlink(self, p->folder, WEIR_CHECKPOINT_PROBE,
                               s == WEIR_OK && ended == WEIR_OK ? err : NULL);
  return s != WEIR_OK ? s : ended != WEIR_OK ? ended : gone;
}

static weir_status check_room(const weir_checkpoint_place *p, weir_error *err) {
  uint64_t need = p->options.expected_bytes;
  if (need == 0) return WEIR_OK;
  uint64_t have = p->env->fs->folders->free_bytes(p->env->fs->self, p->folder);
  if (have >= need) return WEIR_OK;
  return weir_fail(err, WEIR_W6005, NULL,
                   "a checkpoint needs about %llu bytes, '%.200s' has room for "
                   "%llu",
                   (unsigned long long)need, p->dir, (unsigned long long)have);
}

/* A folder that cannot be used is W4042, for all of the system's reasons. */
static weir_status folder_error(weir_status s, const char *dir,
                                const weir_error *inner, weir_error *err) {
  static const char *const kOurs[] = {"W4001", "W4002", "W5009"};
  for (size_t i = 0; i < sizeof kOurs / sizeof kOurs[0]; i++)
    if (strcmp(inner->id, kOurs[i]) == 0)
      return weir_fail(err, WEIR_W4042, NULL,
                       "checkpoints cannot be written to '%.100s': %s", dir,
                       inner->message);
  weir_error_copy(err, inner);
  return s;
}

typedef struct listing {
  bool marked, strange;
  char first[200]; /* a name that is not ours */
} listing;

static bool see_name(void *to, const char *name) {
  listing *seen = to;
  bool ours = weir_checkpoint_file_of(name).kind != WEIR_CHECKPOINT_OTHER ||
              strcmp(name, WEIR_CHECKPOINT_PROBE) == 0 ||
              strcmp(name, WEIR_CHECKPOINT_NONCE) == 0;
  if (strcmp(name, WEIR_CHECKPOINT_LOCK) == 0) {
    seen->marked = true;
  } else if (!ours && !seen->strange) {
    seen->strange = true;
    snprintf(seen->first, sizeof seen->first, "%s", name);
  }
  return !seen->marked;
}

/* A graph may name a folder of checkpoints, a new or an empty one: the lock,
 * which stays, marks those that weir made. */
static weir_status check_ours(const weir_checkpoint_place *p, weir_error *err) {
  const weir_fs *fs = p->env->fs;
  listing seen = {.marked = false};
  if (p->options.root == NULL) return WEIR_OK;
  WEIR_TRY(fs->folders->list(fs->self, p->folder, &seen, see_name, err));
  if (seen.marked || !seen.strange) return WEIR_OK;
  weir_status s =
      weir_fail(err, WEIR_W4042, NULL,
                "checkpoints cannot be written to '%.100s', which the graph "
                "names: it holds '%.100s', and weir did not make it",
                p->dir, seen.first);
  weir_hint(err, "`--checkpoint DIR` takes any folder");
  return s;
}

static weir_status take_folder(weir_checkpoint_store *store, weir_error *err) {
  weir_checkpoint_place *p = &store->place;
  const weir_fs_folders *f = p->env->fs->folders;
  void *self = p->env->fs->self;
  WEIR_TRY(f->open(self, p->options.root, p->dir, true, &p->folder, err));
  WEIR_TRY(check_ours(p, err));
  WEIR_TRY(
      f->lock(self, p->folder, WEIR_CHECKPOINT_LOCK, &store->file_lock, err));
  if (store->file_lock == NULL)
    return weir_fail(err, WEIR_W4043, NULL,
                     "another run saves checkpoints to '%.200s'", p->dir);
  WEIR_TRY(probe(p, err));
  (void)f->unlink(self, p->folder, WEIR_CHECKPOINT_NONCE, NULL);
  WEIR_TRY(weir_checkpoint_tidy(p, err));
  return check_room(p, err);
}

weir_status weir_checkpoint_store_open(const weir_env *env, const char *dir,
                                       const weir_checkpoint_options *options,
                                       weir_checkpoint_store **out_store,
                                       weir_error *err) {
  static const weir_checkpoint_options kDefaults = {0};
  weir_error inner = WEIR_ERROR_INIT;
  *out_store = NULL;
  if (env->fs->folders == NULL)
    return weir_fail(err, WEIR_W0004, NULL,
                     "this file system cannot be written to");
  weir_checkpoint_store *store = weir_alloc_array(env->alloc, 1, sizeof *store);
  if (store == NULL) return weir_fail_memory(err, sizeof *store);
  size_t size = strlen(dir) + 1;
  store->place.env = env;
  store->place.options = options != NULL ? *options : kDefaults;
  store->dir = weir_alloc(env->alloc, size);
  store->place.dir = store->dir;
  pthread_mutex_init(&store->lock, NULL);
  pthread_cond_init(&store->changed, NULL);
  weir_status s = WEIR_OK;
  if (store->dir != NULL)
    memcpy(store->dir, dir, size);
  else
    s = weir_fail_memory(&inner, size);
  if (s == WEIR_OK) s = take_folder(store, &inner);
  if (s == WEIR_OK) {
    *out_store = store;
    return WEIR_OK;
  }
  weir_checkpoint_store_close(store);
  return folder_error(s, dir, &inner, err);
}

void weir_checkpoint_store_close(weir_checkpoint_store *store) {
  if (store == NULL) return;
  const weir_env *env = store->place.env;
  if (store->has_thread) {
    pthread_mutex_lock(&store->lock);
    store->stop = true;
    pthread_cond_broadcast(&store->changed);
    pthread_mutex_unlock(&store->lock);
    pthread_join(store->thread, NULL);
  }
  pthread_cond_destroy(&store->changed);
  pthread_mutex_destroy(&store->lock);
  env->fs->folders->unlock(env->fs->self, store->file_lock);
  env->fs->folders->close(env->fs->self, store->place.folder);
  weir_free(env->alloc, store->dir);
  weir_free(env->alloc, store);
}
