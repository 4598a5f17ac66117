/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_BASE_MODULE_H_
#define WEIR_BASE_MODULE_H_

#include "runtime/base/env.h"

/* Modules: parts of weir that need a large library of others, in shared
 * libraries of their own, so that a run without them neither loads nor needs
 * that library.
 *
 *   weir_module_handle module = {0};
 *   weir_module_want want = {.name = "grpc", .version = 3, .error =
 * WEIR_W7004}; WEIR_TRY(weir_module_open(&module, &want, err)); const
 * my_functions *f = module.functions; f->create(&module.host, env, ...);
 *
 * A module exports one symbol, the constant `weir_module`, and imports none of
 * weir's: it reaches weir through the vtables that it is given and through
 * weir_module_host. It is never unloaded, for its threads may outlive any use.
 *
 * Where libweir_NAME.so is looked for, and nowhere else: the folder that the
 * caller names; the folder of the file that holds this code (libweir.so or the
 * program); the folder above it (a build tree); the folder of libraries that
 * goes with it (PREFIX/bin and PREFIX/lib, as installed, moved or not). Never
 * the current folder, never LD_LIBRARY_PATH: all paths are absolute. The file
 * must be a plain one, of root's, of this user's or of the owner of the file
 * that holds this code, and not writable by everybody. The libraries that the
 * module needs in turn are found as those of any program are. */

/* Of this header. Raised when a struct in it changes. */
enum { WEIR_MODULE_VERSION = 1 };

/* The functions of weir that a module may call. */
typedef struct weir_module_host {
  uint32_t version; /* WEIR_MODULE_VERSION */
  /* |bytes| uninitialised bytes, 16-byte aligned; NULL when out of memory. Any
   * thread. */
  void *(*alloc)(const weir_env *env, size_t bytes);
  void (*free)(const weir_env *env, void *ptr); /* NULL-safe */
  /* Fills |err| (NULL-safe) for the id "W7002" with |text|, and returns the
   * status of that id. */
  weir_status (*fail)(weir_error *err, const char *id, const char *text);
  int64_t (*now_ns)(const weir_env *env); /* monotonic */
  /* A line for the log of the host program; NULL: it has none. Any thread. */
  void (*log)(void *log_self, const char *text);
  void *log_self;
} weir_module_host;

/* The one symbol of a module: `const weir_module_head weir_module`. */
typedef struct weir_module_head {
  uint32_t version;           /* WEIR_MODULE_VERSION when it was compiled */
  uint32_t functions_version; /* of |functions| */
  const char *name;           /* "grpc" */
  const void *functions;      /* a struct that module and caller know */
} weir_module_head;

typedef struct weir_module_want {
  const char *name;    /* "grpc": libweir_grpc.so */
  uint32_t version;    /* of the functions */
  weir_error_id error; /* for all failures */
  const char *folder;  /* an absolute path, looked in first; NULL: none */
} weir_module_want;

/* A module in use: in the caller's memory, nothing to free. Zero it, set
 * host.log if there is one; weir_module_open fills the rest. It must outlive
 * all that was made by its functions. */
typedef struct weir_module_handle {
  weir_module_host host;
  const void *functions; /* NULL: not open */
  bool absent;           /* the last try found no file of it at all */
} weir_module_handle;

/* Loads the module and fills |module|; does nothing if it is open. One thread
 * at a time for one handle. Errors: |want->error|, with the places looked at,
 * the reason of the system, or the two versions. */
weir_status weir_module_open(weir_module_handle *module,
                             const weir_module_want *want, weir_error *err);

#endif
