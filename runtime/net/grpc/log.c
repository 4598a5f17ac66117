/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/net/grpc/log.h"

#include <grpc/support/log.h>
#include <stdio.h>
#include <string.h>

/* gRPC's log function has no argument of ours. It is called on the thread that
 * failed, so a variable of that thread tells it where its line goes. */
static _Thread_local char *kept;
static _Thread_local size_t kept_room;
static _Thread_local bool *watched;

static _Thread_local weir_grpc_log_fn watcher;
static _Thread_local void *watcher_self;

static void on_line(gpr_log_func_args *args) {
  if (watcher != NULL) watcher(watcher_self, args->file, args->message);
  if (kept != NULL && args->severity == GPR_LOG_SEVERITY_ERROR)
    snprintf(kept, kept_room, "%s", args->message);
  if (watched != NULL && args->severity == GPR_LOG_SEVERITY_ERROR &&
      strstr(args->message, "Failed accept") != NULL)
    *watched = true;
}

void weir_grpc_log_take(void) {
  gpr_set_log_function(on_line);
}

void weir_grpc_log_begin(char *text, size_t room) {
  text[0] = '\0';
  kept = text;
  kept_room = room;
}

void weir_grpc_log_end(void) {
  kept = NULL;
}

void weir_grpc_log_accepts(bool *deaf) {
  watched = deaf;
}

void weir_grpc_log_watch(weir_grpc_log_fn line, void *self) {
  gpr_set_log_verbosity(GPR_LOG_SEVERITY_DEBUG);
  watcher = line;
  watcher_self = self;
}

void weir_grpc_log_unwatch(void) {
  watcher = NULL;
}
