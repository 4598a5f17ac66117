/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/config.h"

#include <string.h>

static void print_value(const cli_option *o, const cli_args *args) {
  const void *field = (const char *)args + o->offset;
  switch (o->kind) {
    case CLI_FLAG:
      cli_print("%s", *(const bool *)field ? "true" : "false");
      break;
    case CLI_LIST:
      for (size_t i = 0; i < ((const cli_list *)field)->count; i++)
        cli_print("%s%s", i != 0 ? " " : "",
                  ((const cli_list *)field)->items[i]);
      break;
    case CLI_INT:
      cli_print("%lld", (long long)*(const int64_t *)field);
      break;
    case CLI_FLOAT:
      cli_print("%g", *(const double *)field);
      break;
    case CLI_TIME:
      cli_print("%lldns", (long long)*(const int64_t *)field);
      break;
    default:
      if (*(const char *const *)field != NULL)
        cli_print("%s", *(const char *const *)field);
  }
}

int cli_config_print(const char *command, const cli_args *args) {
  static const char *const froms[] = {[CLI_DEFAULT] = "default",
                                      [CLI_ENV] = "environment",
                                      [CLI_ARG] = "command line"};
  CLI_TABLE_OF(froms, CLI_ARG + 1);
  const cli_command *c = cli_command_find(command);
  for (const cli_option *o = c->options; o->name != NULL; o++) {
    if (strcmp(o->name, "help") == 0 || strcmp(o->name, "print-config") == 0)
      continue;
    cli_print("%s: ", o->name);
    print_value(o, args);
    cli_print("  # %s\n", froms[args->from[o - c->options]]);
  }
  return 0;
}
