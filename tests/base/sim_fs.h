/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_BASE_SIM_FS_H_
#define TESTS_BASE_SIM_FS_H_

#include "runtime/base/env.h"

/* A file system in memory that fails and loses things.
 *
 * Each file has the bytes that a reader sees and the number of them that are on
 * disk; the folder has the names that a reader sees, those on disk, and the
 * changes between the two. Every operation is counted, from 1. The one numbered
 * |fault_at| fails in the way of |fault|; from |crash_at| on nothing happens
 * any more and everything fails, until sim_fs_crash makes the machine start
 * again with the disk as it is then:
 *
 *   names      of the changes since the last sync_folder, any subset
 *   bytes      of those since the last sync, any number; each sector of 512
 *              is as written, or zeros
 *
 * After a failed sync the bytes look fine and never reach the disk, as on Linux
 * (Rebello et al., USENIX ATC 2020). */

typedef enum sim_fault {
  SIM_EIO,      /* nothing is done, and it fails */
  SIM_SHORT,    /* half of an append is done, then the disk is full */
  SIM_DONE,     /* it is done, and said to have failed */
  SIM_FOR_EVER, /* this operation and all after it fail */
  SIM_FAULTS
} sim_fault;

typedef struct sim_inode {
  uint8_t *data;
  size_t size, on_disk;
  bool lost; /* a sync failed: the rest never gets on disk */
} sim_inode;

typedef struct sim_name {
  char path[160];
  int inode;
} sim_name;

/* A change of names: |clear| is no name any more, |set| names |inode|. */
typedef struct sim_change {
  char clear[160], set[160]; /* "": none */
  int inode;
} sim_change;

enum { SIM_FILES = 256, SIM_CHANGES = 512 };

typedef struct sim_fs {
  weir_fs fs;
  const weir_allocator *alloc; /* of bytes read */
  uint64_t ops, fault_at, crash_at;
  sim_fault fault;
  bool folder_sync_lies; /* a planted bug: it does nothing */
  size_t capacity;       /* of all bytes; 0: endless */
  bool is_dead, is_locked;
  uint64_t random;
  sim_inode inodes[SIM_FILES];
  sim_name names[SIM_FILES], disk[SIM_FILES];
  sim_change changes[SIM_CHANGES];
  int inode_count, name_count, disk_count, change_count;
  char folders[8][160]; /* that exist */
  int folder_count;
} sim_fs;

/* An empty disk. Fails the test when there is no memory. */
sim_fs *sim_fs_create(const weir_allocator *alloc);
void sim_fs_destroy(sim_fs *fs);
/* The machine stops and starts; |seed| decides the bytes that the disk kept.
 * Handles must have been closed. Counts from 0 again, without faults. */
void sim_fs_crash(sim_fs *fs, uint64_t seed);
/* A copy of |src|, all that is there on disk, to try one more thing on. */
sim_fs *sim_fs_copy(const sim_fs *src);

/* The file at |path|, or NULL; its bytes may be changed. */
sim_inode *sim_fs_file(sim_fs *fs, const char *path);
/* Gives |path| these bytes, on disk. */
void sim_fs_put(sim_fs *fs, const char *path, const void *data, size_t size);
/* How many names end in |end|. */
int sim_fs_count(const sim_fs *fs, const char *end);

#endif
