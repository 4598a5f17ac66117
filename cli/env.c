/* SPDX-License-Identifier: Apache-2.0 */
/* WEIR_* variables. They stand between a command's defaults and its line: an
 * option that the line gives is not touched. One of another command is passed
 * over, so that an environment may serve all. One that no command knows is
 * warned about, as a typing mistake would else go unnoticed, and does not end
 * the command: others may set it. Kubernetes does, for each service whose name
 * begins with weir; their endings show them, and they are passed over. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "cli/cli.h"

extern char **environ;

enum { NAMES = 32 };

/* All variables that some command takes, each once. */
static size_t known_names(const char *names[NAMES]) {
  size_t count = 0;
  for (size_t c = 0; cli_commands[c] != NULL; c++)
    for (const cli_option *o = cli_commands[c]->options; o->name != NULL; o++) {
      bool seen = o->env == NULL;
      for (size_t i = 0; i < count && !seen; i++)
        seen = strcmp(names[i], o->env) == 0;
      if (!seen && count < NAMES) names[count++] = o->env;
    }
  return count;
}

/* Whether |name| is one that Kubernetes makes for a service: NAME_SERVICE_HOST,
 * NAME_SERVICE_PORT, NAME_PORT, and those that begin with them. */
static bool is_of_service(const char *name) {
  const char *port = strstr(name, "_PORT");
  return strstr(name, "_SERVICE_HOST") != NULL ||
         strstr(name, "_SERVICE_PORT") != NULL ||
         (port != NULL && (port[5] == '\0' || port[5] == '_'));
}

static void warn_unknown(const char *name, size_t count,
                         const char *const *names) {
  int64_t nearest = weir_tools_nearest(name, count, names);
  cli_note("warning[W0003]: the environment variable %s has no meaning", name);
  if (nearest >= 0)
    cli_note("; did you mean %s?\n", names[nearest]);
  else
    cli_note(" to weir\n");
}

/* Applies |name|=|value| to the option that takes it, unless the line said it
 * already. */
static weir_status apply(const cli_command *command, const char *name,
                         const char *value, cli_args *args, weir_error *err) {
  for (const cli_option *o = command->options; o->name != NULL; o++) {
    size_t i = (size_t)(o - command->options);
    if (o->env == NULL || strcmp(o->env, name) != 0) continue;
    if (args->from[i] != CLI_DEFAULT) return WEIR_OK;
    args->from[i] = CLI_ENV;
    if (o->offset == offsetof(cli_args, threads)) args->threads_from = CLI_ENV;
    weir_status s = cli_option_set(o, value, args, name, err);
    if (s != WEIR_OK) memcpy(err->id, "W0003", sizeof "W0003");
    if (o->offset == offsetof(cli_args, format))
      args->json |= strcmp(value, "json") == 0;
    return s;
  }
  return WEIR_OK;
}

/* The set to which the environment limits oneDNN; NULL: to none that matters.
 * Its values grow by words, "AVX512_CORE_VNNI". */
static const char *onednn_set(void) {
#if defined(__x86_64__)
  static const struct {
    const char *begins, *set;
  } kSets[] = {{"AVX512", NULL},
               {"AVX2", "avx2"},
               {"AVX1", NULL}, /* AVX10 */
               {"AVX", "generic"},
               {"SSE", "generic"}};
  const char *value = getenv("ONEDNN_MAX_CPU_ISA");
  if (value == NULL) value = getenv("DNNL_MAX_CPU_ISA");
  for (size_t i = 0; value != NULL && i < sizeof kSets / sizeof *kSets; i++)
    if (strncasecmp(value, kSets[i].begins, strlen(kSets[i].begins)) == 0)
      return kSets[i].set;
#endif
  return NULL;
}

weir_status cli_env_apply(const cli_command *command, cli_args *args,
                          weir_error *err) {
  const char *names[NAMES];
  size_t count = known_names(names);
  for (char **e = environ; *e != NULL; e++) {
    char name[64];
    const char *equals = strchr(*e, '=');
    if (strncmp(*e, "WEIR_", 5) != 0 || equals == NULL) continue;
    snprintf(name, sizeof name, "%.*s",
             (int)(equals - *e < 60 ? equals - *e : 60), *e);
    size_t i = 0;
    while (i < count && strcmp(names[i], name) != 0) i++;
    if (i == count && !args->quiet && !is_of_service(name))
      warn_unknown(name, count, names);
    if (i < count) WEIR_TRY(apply(command, name, equals + 1, args, err));
  }
  /* oneDNN has reference code alone for blocks of a wider set than its own. */
  const char *set = onednn_set();
  return set != NULL ? apply(command, "WEIR_ISA", set, args, err) : WEIR_OK;
}
