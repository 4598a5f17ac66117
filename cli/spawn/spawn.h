/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_SPAWN_SPAWN_H_
#define CLI_SPAWN_SPAWN_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/weir.h"

/* Processes that this one starts and that end with it.
 *
 *   cli_spawn_open(tmp, 4, &spawn, err);           a private folder
 *   cli_spawn_start(spawn, "worker:1", argv, err); before any other thread
 *   cli_spawn_watch(spawn, err);                   its thread prints lines
 *   ...
 *   cli_spawn_end(spawn, 5000);                    SIGTERM, then SIGKILL
 *   cli_spawn_release(spawn);
 *
 * Each child has a process group of its own, /dev/null as its input, no
 * descriptor but 0 to 2, and dies with the thread that started it (SIGKILL, by
 * the kernel): start children on the main thread. Their lines, of both outputs,
 * go to standard error with the child's name in front: "[worker:1] ...", where
 * it is not there already. */

typedef struct cli_spawn cli_spawn;

/* State of a child; its code is the exit status, or the signal. */
typedef enum cli_child_state {
  CLI_CHILD_RUNS,
  CLI_CHILD_EXITED,
  CLI_CHILD_KILLED
} cli_child_state;

/* Room for |children| children, and a folder beneath |tmp| that no other user
 * can enter, for their sockets (folder.h). Errors: W4002 (folder), W6001. */
weir_status cli_spawn_open(const char *tmp, size_t children,
                           cli_spawn **out_spawn, weir_error *err);
/* The folder's path. */
const char *cli_spawn_folder(const cli_spawn *spawn);
/* Starts the program argv[0], a path. |name| is copied, up to 63 bytes.
 * Errors: W6003. */
weir_status cli_spawn_start(cli_spawn *spawn, const char *name,
                            char *const argv[], weir_error *err);
/* Whether the child that is started next has this process's outputs, instead of
 * lines with its name. */
void cli_spawn_plain(cli_spawn *spawn, bool plain);

/* ---- An owner without the thread, which starts children again */

/* Waits, 50 ms at most, for outputs and ends of children, and sees to them. */
void cli_spawn_turn(cli_spawn *spawn);
/* Starts child |i|, which has ended, again. Errors: W6003. */
weir_status cli_spawn_restart(cli_spawn *spawn, size_t i, char *const argv[],
                              weir_error *err);
/* Sends child |i| a signal, if it runs. */
void cli_spawn_signal(cli_spawn *spawn, size_t i, int number);

/* ---- */

/* Starts the thread that reads the children's outputs and collects their exit
 * statuses. Errors: W6003. */
weir_status cli_spawn_watch(cli_spawn *spawn, weir_error *err);
/* The state of child |i|, by order of starts. Any thread. */
cli_child_state cli_spawn_state(cli_spawn *spawn, size_t i, int *out_code);
/* Fails when a child has ended: its name, and how. Before cli_spawn_end. Any
 * thread. Errors: W7022. */
weir_status cli_spawn_check(cli_spawn *spawn, weir_error *err);
/* Waits until a child has ended beyond those |seen| before; returns how many
 * have. All: returns at once. */
size_t cli_spawn_wait(cli_spawn *spawn, size_t seen);
/* Ends all children: SIGTERM to their groups, after |grace_ms| SIGKILL. Returns
 * when all have been collected and their last lines were printed. */
void cli_spawn_end(cli_spawn *spawn, int64_t grace_ms);
/* Removes the folder and the files in it; the process ends at once. */
void cli_spawn_forget(const cli_spawn *spawn);
/* Kills children that still run, removes the folder and the files in it.
 * NULL-safe. */
void cli_spawn_release(cli_spawn *spawn);

#endif
