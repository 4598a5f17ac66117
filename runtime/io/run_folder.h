/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_IO_RUN_FOLDER_H_
#define WEIR_IO_RUN_FOLDER_H_

#include "runtime/base/env.h"
#include "runtime/base/sv.h"

/* Files that a graph names and weir writes: the rule, in one place.
 *
 * A graph is data from anywhere, so the names in it choose nothing beyond the
 * run folder. Four keys name files: `checkpoint: {dir:}`, `summary: {dir:,
 * csv:, jsonl:}` of `train:`, and `vocabulary: {save:}` of `data:`.
 *
 * 1. Only a training writes them. All other commands read.
 * 2. The run folder is `--out DIR`, else `--checkpoint DIR`, else the folder
 *    that `checkpoint: {dir:}` names, beneath the working directory. Without
 *    one nothing that a graph names is written (W1151). Options may name any
 *    place, a link or a device too: the user typed them.
 * 3. A name is a relative path whose parts are plain: no "..", none that
 *    begins with a dot (so no hidden file, and no lock of ours), no control
 *    characters and no NUL (weir_run_name_check, when a graph is checked).
 * 4. Folders on the way are opened without following links, whoever put them
 *    there and whenever (weir_fs_folders.open with a root).
 * 5. No file is replaced. Each is made anew, by O_EXCL or by a renaming to a
 *    free name; event files and tables take another number, a vocabulary that
 *    is there already must be the same. So nothing is lost, and neither link,
 *    pipe nor device is opened. Checkpoints remove those files alone that
 *    their manifests list.
 * 6. A folder of checkpoints that only the graph names is new, empty, or marked
 *    by the lock that weir leaves there (checkpoint_store.h).
 *
 * All of it is borrowed; any number of threads. */

/* A name in a graph, and its place there. */
typedef struct weir_run_name {
  weir_sv text;
  const char *key;       /* "save", for messages */
  bool plain;            /* without quotes: `true` and `null` are no names */
  bool is_single;        /* one part only: a file in a folder named elsewhere */
  const weir_mark *mark; /* may be NULL */
} weir_run_name;

/* Refuses a name that rule 3 does not allow. Errors: W1150. */
weir_status weir_run_name_check(const weir_run_name *name, weir_error *err);

/* Where a run writes. Both paths outlive it. */
typedef struct weir_run_folder {
  const char *root;  /* opened as it is: the user's word; NULL: there is none */
  const char *inner; /* beneath |root|, a sound name of the graph; NULL: root */
} weir_run_folder;

/* A folder of a run: the arguments of weir_fs_folders.open. */
typedef struct weir_run_place {
  const char *root; /* NULL: |path| is the user's word */
  const char *path;
} weir_run_place;

/* Folder |name| (empty: the run folder itself) of run folder |run|; in |arena|.
 * |key| is the one in the graph that needs it. Errors: W1151 (there is no run
 * folder), W6001. */
weir_status weir_run_place_of(const weir_run_folder *run, weir_sv name,
                              const char *key, weir_arena *arena,
                              weir_run_place *out_place, weir_error *err);

/* Writes |content| as file |name| of the run folder, which is made if need be.
 * A file that holds the same is left as it is. Errors: W1151, W4002, W5009
 * (another file of that name is there; or for the system's reasons), W6001,
 * W6005. */
weir_status weir_run_save(const weir_env *env, const weir_run_folder *run,
                          const weir_run_name *name, weir_bytes content,
                          weir_error *err);

#endif
