/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cluster/dmlc.h"

#include <stdlib.h>
#include <string.h>

#include "cli/cluster/own_host.h"
#include "cli/system.h"

extern char **environ;

/* ---- Names that nobody reads */

static bool is_known(const char *name, size_t bytes) {
  const char *known = "";
  for (size_t i = 0; i < weir_tools_dmlc_names(i, &known); i++)
    if (strlen(known) == bytes && memcmp(known, name, bytes) == 0) return true;
  return false;
}

/* A misspelt name would have no effect, and ps-lite reads more under other
 * programs' names: so it is a warning. */
static void warn_of_unknown(void) {
  for (char **at = environ; *at != NULL; at++) {
    const char *equals = strchr(*at, '=');
    size_t bytes = equals != NULL ? (size_t)(equals - *at) : 0;
    if (strncmp(*at, "DMLC_", 5) != 0 || is_known(*at, bytes)) continue;
    cli_note("warning: --cluster dmlc: %.*s is not read\n", (int)bytes, *at);
  }
}

weir_status cli_dmlc_apply(const cli_command *command, cli_args *args,
                           weir_error *err) {
  if (args->tasks == NULL || strcmp(args->tasks, "dmlc") != 0) return WEIR_OK;
  if (strcmp(command->name, "train") != 0)
    return cli_error(err, "W7082",
                     "--cluster dmlc is for `weir train`: parameter servers do "
                     "nothing else");
  if (args->job != NULL || args->addresses != NULL)
    return cli_error(err, "W0002",
                     "--%s has no effect with --cluster dmlc: DMLC_* say it",
                     args->job != NULL ? "job" : "addresses");
  args->dmlc = calloc(1, sizeof *args->dmlc);
  if (args->dmlc == NULL) return cli_no_memory(err);
  WEIR_TRY(weir_tools_dmlc_read(cli_look_up_env, NULL, args->dmlc, err));
  if (!args->quiet) warn_of_unknown();
  args->tasks = args->dmlc->cluster;
  args->job = args->dmlc->job;
  args->index = args->dmlc->rank;
  if (args->heartbeat_ns == 0) args->heartbeat_ns = args->dmlc->heartbeat_ns;
  return WEIR_OK;
}

/* ---- Addresses */

static void join(char out[CLI_DMLC_BYTES], const char *host, uint32_t port) {
  bool bare = strchr(host, ':') != NULL; /* of version 6 */
  snprintf(out, CLI_DMLC_BYTES, bare ? "[%s]:%u" : "%s:%u", host, port);
}

weir_status cli_dmlc_addresses(const weir_tools_dmlc *d,
                               char scheduler[CLI_DMLC_BYTES],
                               char own[CLI_DMLC_BYTES], weir_error *err) {
  char host[WEIR_TOOLS_DMLC_BYTES];
  join(scheduler, d->any_host ? "0.0.0.0" : d->root, d->root_port);
  if (d->host[0] != '\0')
    snprintf(host, sizeof host, "%s", d->host);
  else if (d->local)
    snprintf(host, sizeof host, "127.0.0.1");
  else if (d->interface[0] != '\0')
    WEIR_TRY(cli_own_host_of(d->interface, host, sizeof host, err));
  else
    WEIR_TRY(
        cli_own_host_towards(d->root, d->root_port, host, sizeof host, err));
  join(own, host, d->port);
  return WEIR_OK;
}
