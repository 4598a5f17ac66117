/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_SPAWN_FOLDER_H_
#define CLI_SPAWN_FOLDER_H_

#include "runtime/weir.h"

/* Private folders for the sockets of one process, removed with it. One that was
 * killed leaves its folder behind: the next to be made removes it. */

/* A socket's path has 107 bytes: so many are the folder's. */
enum { CLI_FOLDER_BYTES = 80 };

typedef struct cli_folder {
  char path[CLI_FOLDER_BYTES + 1]; /* "": there is none */
  int lock;                        /* held for the folder's life; -1: none */
} cli_folder;

/* Makes a folder beneath |tmp| that no other user can enter, after those of
 * dead processes of this user were removed there. Errors: W4002. */
weir_status cli_folder_make(const char *tmp, cli_folder *out, weir_error *err);
/* Removes the files in it, which are no folders, and the folder. */
void cli_folder_remove(const cli_folder *folder);
/* The same, and lets the lock go. Zeros with |lock| -1 are fine. */
void cli_folder_release(cli_folder *folder);

#endif
