/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/net/grpc/log.h"

#include <grpc/support/log.h>
#include <stdio.h>

/* gRPC's log function has no argument of ours. It is called on the thread that
 * failed, so a variable of that thread tells it where its line goes. */
static _Thread_local char *kept;
static _Thread_local size_t kept_room;

static void on_line(gpr_log_func_args *args) {
  if (kept != NULL && args->severity == GPR_LOG_SEVERITY_ERROR)
    snprintf(kept, kept_room, "%s", args->message);
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
