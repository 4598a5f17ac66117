/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/base/sim_fs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/check.h"

typedef struct sim_handle {
  sim_fs *fs;
  char path[160]; /* of a folder */
  int inode;      /* of a file */
} sim_handle;

enum { kSector = 512 };

/* --- faults --- */

typedef enum outcome { GOOD, FAILS, DIES, HALF, DONE_AND_FAILS } outcome;

/* Counts an operation and says how it goes. */
static outcome count(sim_fs *fs) {
  fs->ops++;
  if (fs->is_dead) return FAILS;
  if (fs->crash_at != 0 && fs->ops >= fs->crash_at) {
    fs->is_dead = true;
    return DIES;
  }
  if (fs->fault_at == 0 || fs->ops < fs->fault_at) return GOOD;
  if (fs->fault == SIM_FOR_EVER) return FAILS;
  if (fs->ops > fs->fault_at) return GOOD;
  return fs->fault == SIM_SHORT  ? HALF
         : fs->fault == SIM_DONE ? DONE_AND_FAILS
                                 : FAILS;
}

static weir_status io_error(weir_error *err, const char *what) {
  return weir_fail(err, WEIR_W6005, NULL, "cannot %s: Input/output error",
                   what);
}

static uint64_t draw(sim_fs *fs) {
  uint64_t z = fs->random += 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

/* --- names --- */

static int find(const sim_name *names, int n, const char *path) {
  for (int i = 0; i < n; i++)
    if (strcmp(names[i].path, path) == 0) return i;
  return -1;
}

static void apply(sim_name *names, int *n, const sim_change *c) {
  int i = c->clear[0] != '\0' ? find(names, *n, c->clear) : -1;
  if (i >= 0) names[i] = names[--*n];
  if (c->set[0] == '\0') return;
  i = find(names, *n, c->set);
  if (i < 0) i = (*n)++;
  assert_true(*n < SIM_FILES);
  snprintf(names[i].path, sizeof names[i].path, "%s", c->set);
  names[i].inode = c->inode;
}

static void change(sim_fs *fs, const char *clear, const char *set, int inode) {
  assert_true(fs->change_count < SIM_CHANGES);
  sim_change *c = &fs->changes[fs->change_count++];
  snprintf(c->clear, sizeof c->clear, "%s", clear);
  snprintf(c->set, sizeof c->set, "%s", set);
  c->inode = inode;
  apply(fs->names, &fs->name_count, c);
}

static void join(const sim_handle *folder, const char *name, char out[160]) {
  snprintf(out, 160, "%.80s/%.78s", folder->path, name);
}

static sim_handle *make_handle(sim_fs *fs, const char *path, int inode) {
  sim_handle *h = calloc(1, sizeof *h);
  assert_non_null(h);
  h->fs = fs;
  h->inode = inode;
  snprintf(h->path, sizeof h->path, "%s", path);
  return h;
}

/* --- folders --- */

static bool has_folder(const sim_fs *fs, const char *path) {
  for (int i = 0; i < fs->folder_count; i++)
    if (strcmp(fs->folders[i], path) == 0) return true;
  return false;
}

static weir_status sim_open(void *self, const char *root, const char *path,
                            bool make, void **out_folder, weir_error *err) {
  sim_fs *fs = self;
  (void)root;
  *out_folder = NULL;
  if (count(fs) != GOOD) return io_error(err, "open");
  if (!has_folder(fs, path)) {
    if (!make) return weir_fail(err, WEIR_W4001, NULL, "no folder '%s'", path);
    assert_true(fs->folder_count < 8);
    snprintf(fs->folders[fs->folder_count++], 160, "%s", path);
  }
  *out_folder = make_handle(fs, path, -1);
  return WEIR_OK;
}

static bool sim_path(void *self, void *folder, char *out, size_t bytes) {
  sim_handle *h = folder;
  (void)self;
  return snprintf(out, bytes, "/%s", h->path) < (int)bytes;
}

static void sim_close(void *self, void *folder) {
  (void)self;
  free(folder);
}

static weir_status sim_list(void *self, void *folder, void *to,
                            bool (*name)(void *to, const char *name),
                            weir_error *err) {
  sim_fs *fs = self;
  sim_handle *h = folder;
  size_t n = strlen(h->path);
  if (count(fs) != GOOD) return io_error(err, "list");
  for (int i = 0; i < fs->name_count; i++)
    if (strncmp(fs->names[i].path, h->path, n) == 0 &&
        fs->names[i].path[n] == '/' && !name(to, fs->names[i].path + n + 1))
      break;
  return WEIR_OK;
}

static weir_status sim_sync_folder(void *self, void *folder, weir_error *err) {
  sim_fs *fs = self;
  (void)folder;
  outcome o = count(fs);
  if ((o == GOOD || o == DONE_AND_FAILS) && !fs->folder_sync_lies) {
    for (int i = 0; i < fs->change_count; i++)
      apply(fs->disk, &fs->disk_count, &fs->changes[i]);
    fs->change_count = 0;
  }
  return o == GOOD ? WEIR_OK : io_error(err, "sync the folder");
}

/* --- files --- */

static weir_status sim_create(void *self, void *folder, const char *name,
                              void **out_file, weir_error *err) {
  sim_fs *fs = self;
  char path[160];
  outcome o = count(fs);
  *out_file = NULL;
  join(folder, name, path);
  if (o == FAILS || o == HALF) return io_error(err, "create");
  if (find(fs->names, fs->name_count, path) >= 0)
    return o == GOOD ? WEIR_OK : io_error(err, "create");
  assert_true(fs->inode_count < SIM_FILES);
  int inode = fs->inode_count++;
  fs->inodes[inode] = (sim_inode){0};
  change(fs, "", path, inode);
  if (o != GOOD) return io_error(err, "create");
  *out_file = make_handle(fs, path, inode);
  return WEIR_OK;
}

static size_t used(const sim_fs *fs) {
  size_t n = 0;
  for (int i = 0; i < fs->name_count; i++)
    n += fs->inodes[fs->names[i].inode].size;
  return n;
}

static weir_status sim_append(void *self, void *file, weir_bytes bytes,
                              weir_error *err) {
  sim_fs *fs = self;
  sim_inode *f = &fs->inodes[((sim_handle *)file)->inode];
  outcome o = count(fs);
  if (o == FAILS) return io_error(err, "write");
  size_t n = o == HALF ? bytes.size / 2 : bytes.size;
  size_t room = fs->capacity != 0 ? fs->capacity - used(fs) : SIZE_MAX;
  if (n > room) n = room;
  if (n > 0) {
    f->data = realloc(f->data, f->size + n);
    assert_non_null(f->data);
    memcpy(f->data + f->size, bytes.data, n);
    f->size += n;
  }
  if (o == GOOD && n == bytes.size) return WEIR_OK;
  return weir_fail(err, WEIR_W6005, NULL, "cannot write: No space left");
}

static weir_status sim_sync(void *self, void *file, weir_error *err) {
  sim_fs *fs = self;
  sim_inode *f = &fs->inodes[((sim_handle *)file)->inode];
  outcome o = count(fs);
  if ((o == GOOD || o == DONE_AND_FAILS) && !f->lost) f->on_disk = f->size;
  if (o == GOOD) return WEIR_OK;
  f->lost = true;
  return io_error(err, "sync");
}

static weir_status sim_end(void *self, void *file, weir_error *err) {
  sim_fs *fs = self;
  if (file == NULL) return WEIR_OK;
  free(file);
  return count(fs) == GOOD ? WEIR_OK : io_error(err, "close");
}

static weir_status sim_rename(void *self, void *folder, const char *src,
                              const char *dst, weir_error *err) {
  sim_fs *fs = self;
  char from[160], to[160];
  join(folder, src, from);
  join(folder, dst, to);
  outcome o = count(fs);
  int i = find(fs->names, fs->name_count, from);
  if (o == FAILS || o == HALF || i < 0) return io_error(err, "rename");
  assert_int_equal(find(fs->names, fs->name_count, to), -1);
  change(fs, from, to, fs->names[i].inode);
  return o == GOOD ? WEIR_OK : io_error(err, "rename");
}

static weir_status sim_unlink(void *self, void *folder, const char *name,
                              weir_error *err) {
  sim_fs *fs = self;
  char path[160];
  join(folder, name, path);
  outcome o = count(fs);
  int i = find(fs->names, fs->name_count, path);
  if (o == FAILS || o == HALF || i < 0) return io_error(err, "remove");
  change(fs, path, "", -1);
  return o == GOOD ? WEIR_OK : io_error(err, "remove");
}

/* --- locks --- */

static weir_status sim_lock(void *self, void *folder, const char *name,
                            void **out_lock, weir_error *err) {
  sim_fs *fs = self;
  (void)name;
  *out_lock = NULL;
  if (count(fs) != GOOD) return io_error(err, "lock");
  if (fs->is_locked) return WEIR_OK;
  fs->is_locked = true;
  *out_lock = make_handle(fs, ((sim_handle *)folder)->path, -1);
  return WEIR_OK;
}

static void sim_unlock(void *self, void *lock) {
  if (lock != NULL) ((sim_fs *)self)->is_locked = false;
  free(lock);
}

static uint64_t sim_free_bytes(void *self, void *folder) {
  sim_fs *fs = self;
  (void)folder;
  return fs->capacity != 0 ? fs->capacity - used(fs) : UINT64_MAX;
}

/* --- reading --- */

static weir_status sim_read(void *self, const char *root, const char *path,
                            size_t limit, bool map, weir_file *out_file,
                            weir_error *err) {
  sim_fs *fs = self;
  (void)root;
  (void)map;
  *out_file = (weir_file){0};
  int i = find(fs->names, fs->name_count, path);
  if (count(fs) != GOOD || i < 0)
    return weir_fail(err, WEIR_W4001, NULL, "cannot open '%s'", path);
  const sim_inode *f = &fs->inodes[fs->names[i].inode];
  if (f->size > limit)
    return weir_fail(err, WEIR_W4015, NULL, "'%s' has %zu bytes", path,
                     f->size);
  uint8_t *data = weir_alloc_aligned(fs->alloc, f->size + 1, 64);
  if (data == NULL) return weir_fail_memory(err, f->size);
  if (f->size > 0) memcpy(data, f->data, f->size);
  *out_file = (weir_file){{data, f->size}, data};
  return WEIR_OK;
}

static weir_status sim_read_in(void *self, void *folder, const char *name,
                               size_t limit, weir_file *out_file,
                               weir_error *err) {
  char path[160];
  join(folder, name, path);
  return sim_read(self, NULL, path, limit, false, out_file, err);
}

static void sim_close_file(void *self, weir_file *file) {
  sim_fs *fs = self;
  if (file == NULL) return;
  weir_free(fs->alloc, file->self);
  *file = (weir_file){0};
}

/* --- files in pieces --- */

static weir_status sim_pieces(void *self, void *folder, const char *name,
                              weir_piece_file *out_file, weir_error *err) {
  sim_fs *fs = self;
  char path[160];
  *out_file = (weir_piece_file){0};
  join(folder, name, path);
  if (count(fs) != GOOD) return io_error(err, "open");
  int i = find(fs->names, fs->name_count, path);
  if (i < 0) return weir_fail(err, WEIR_W4001, NULL, "no file '%s'", path);
  sim_inode *f = &fs->inodes[fs->names[i].inode];
  *out_file = (weir_piece_file){f->size, f};
  return WEIR_OK;
}

static weir_status sim_piece_read(void *self, const weir_piece_file *file,
                                  const char *path, void *dst, size_t bytes,
                                  uint64_t offset, weir_error *err) {
  sim_fs *fs = self;
  const sim_inode *f = file->self;
  if (count(fs) != GOOD) return io_error(err, "read");
  if (offset > f->size || bytes > f->size - offset)
    return weir_fail(err, WEIR_W4020, NULL, "'%s' has become shorter", path);
  if (bytes > 0) memcpy(dst, f->data + offset, bytes);
  return WEIR_OK;
}

static void sim_piece_close(void *self, weir_piece_file *file) {
  (void)self;
  *file = (weir_piece_file){0};
}

static const weir_fs_pieces kPieces = {.close = sim_piece_close,
                                       .read = sim_piece_read};

/* --- the whole --- */

static const weir_fs_folders kFolders = {
    .open = sim_open,
    .close = sim_close,
    .list = sim_list,
    .read = sim_read_in,
    .create = sim_create,
    .append = sim_append,
    .sync = sim_sync,
    .end = sim_end,
    .rename = sim_rename,
    .unlink = sim_unlink,
    .sync_folder = sim_sync_folder,
    .lock = sim_lock,
    .unlock = sim_unlock,
    .free_bytes = sim_free_bytes,
    .path = sim_path,
    .pieces = sim_pieces,
};

sim_fs *sim_fs_create(const weir_allocator *alloc) {
  sim_fs *fs = calloc(1, sizeof *fs);
  assert_non_null(fs);
  fs->alloc = alloc;
  fs->fs.self = fs;
  fs->fs.read = sim_read;
  fs->fs.close = sim_close_file;
  fs->fs.folders = &kFolders;
  fs->fs.pieces = &kPieces;
  return fs;
}

void sim_fs_destroy(sim_fs *fs) {
  if (fs == NULL) return;
  for (int i = 0; i < fs->inode_count; i++) free(fs->inodes[i].data);
  free(fs);
}

sim_fs *sim_fs_copy(const sim_fs *src) {
  sim_fs *fs = calloc(1, sizeof *fs);
  assert_non_null(fs);
  *fs = *src;
  fs->fs.self = fs;
  for (int i = 0; i < fs->inode_count; i++) {
    fs->inodes[i].data = malloc(src->inodes[i].size + 1);
    assert_non_null(fs->inodes[i].data);
    if (src->inodes[i].size > 0)
      memcpy(fs->inodes[i].data, src->inodes[i].data, src->inodes[i].size);
  }
  return fs;
}

/* Cuts a file to the bytes that survive: its synced ones, and the others that
 * |mode| keeps. */
static void tear(sim_fs *fs, sim_inode *f, unsigned mode) {
  size_t loose = f->size - f->on_disk, kept = loose;
  if (mode == 0) kept = 0;
  if (mode > 1) kept = (size_t)(draw(fs) % (loose + 1));
  f->size = f->on_disk + kept;
  for (size_t at = f->on_disk; mode > 1 && at < f->size;) {
    size_t end = (at / kSector + 1) * kSector;
    if (end > f->size) end = f->size;
    if (draw(fs) % 4 == 0) memset(f->data + at, 0, end - at);
    at = end;
  }
  f->on_disk = f->size;
  f->lost = false;
}

void sim_fs_crash(sim_fs *fs, uint64_t seed) {
  unsigned mode = (unsigned)(seed % 5); /* 0: nothing is kept, 1: all */
  fs->random = seed;
  for (int i = 0; i < fs->inode_count; i++)
    if (fs->inodes[i].size > fs->inodes[i].on_disk)
      tear(fs, &fs->inodes[i], mode);
  /* 2: changes are kept in their order up to one; 3, 4: any of them are. */
  uint64_t first = mode == 0 ? 0
                   : mode == 2 && fs->change_count > 0
                       ? draw(fs) % (uint64_t)(fs->change_count + 1)
                       : (uint64_t)fs->change_count;
  for (uint64_t i = 0; i < first; i++)
    if (mode < 3 || draw(fs) % 2 == 0)
      apply(fs->disk, &fs->disk_count, &fs->changes[i]);
  memcpy(fs->names, fs->disk, sizeof fs->names);
  fs->name_count = fs->disk_count;
  fs->change_count = 0;
  fs->ops = fs->fault_at = fs->crash_at = 0;
  fs->is_dead = fs->is_locked = false;
}

sim_inode *sim_fs_file(sim_fs *fs, const char *path) {
  int i = find(fs->names, fs->name_count, path);
  return i >= 0 ? &fs->inodes[fs->names[i].inode] : NULL;
}

void sim_fs_put(sim_fs *fs, const char *path, const void *data, size_t size) {
  sim_inode *f = sim_fs_file(fs, path);
  if (f == NULL) {
    assert_true(fs->inode_count < SIM_FILES);
    f = &fs->inodes[fs->inode_count];
    *f = (sim_inode){0};
    sim_change c = {.inode = fs->inode_count++};
    snprintf(c.set, sizeof c.set, "%s", path);
    apply(fs->names, &fs->name_count, &c);
    apply(fs->disk, &fs->disk_count, &c);
  }
  f->data = realloc(f->data, size + 1);
  assert_non_null(f->data);
  if (size > 0) memcpy(f->data, data, size);
  f->size = f->on_disk = size;
}

int sim_fs_count(const sim_fs *fs, const char *end) {
  int found = 0;
  for (int i = 0; i < fs->name_count; i++) {
    size_t size = strlen(fs->names[i].path), n = strlen(end);
    found += size >= n && strcmp(fs->names[i].path + size - n, end) == 0;
  }
  return found;
}
