/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include <sys/resource.h>

#include "cli/cli.h"
#include "cli/cluster/choose.h"
#include "runtime/base/quantity.h"

/* Less than this, and a library may step over the end of the stack. */
enum { STACK_BYTES = 256 * 1024 };

static weir_status check_stack(weir_error *err) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
      limit.rlim_cur >= STACK_BYTES)
    return WEIR_OK;
  char is[WEIR_QUANTITY_TEXT], least[WEIR_QUANTITY_TEXT];
  return cli_error(err, "W6003",
                   "the stack limit (RLIMIT_STACK, ulimit -s) is %s, at least "
                   "%s are needed",
                   weir_quantity_print_bytes((int64_t)limit.rlim_cur, is),
                   weir_quantity_print_bytes(STACK_BYTES, least));
}

static weir_status no_such_command(const char *name, weir_error *err) {
  const char *names[32];
  size_t count = cli_command_count();
  for (size_t i = 0; i < count; i++) names[i] = cli_commands[i]->name;
  weir_status s = cli_error(err, "W0001", "unknown command %s", name);
  int64_t nearest = weir_tools_nearest(name, count, names);
  if (nearest >= 0)
    cli_hint(err, "did you mean %s?", names[nearest]);
  else
    cli_hint(err, "`weir help` lists the commands");
  return s;
}

/* --help and --version without a command. */
static const char *spelled_as_option(const char *name) {
  if (strcmp(name, "--help") == 0) return "help";
  if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0)
    return "version";
  return name;
}

static int run_command(const cli_command *command, int argc, char **argv) {
  weir_error err = WEIR_ERROR_INIT;
  cli_args args;
  weir_status s = cli_options_read(command, argc, argv, &args, &err);
  if (s == WEIR_OK && !args.help) s = cli_env_apply(command, &args, &err);
  if (s == WEIR_OK && !args.help) s = cli_cluster_choose(command, &args, &err);
  int code = 0;
  if (s != WEIR_OK)
    code = cli_fail(&err);
  else if (args.help && args.brief)
    cli_help_brief(command);
  else if (args.help)
    cli_help_command(command);
  else
    code = command->run(&args);
  cli_args_release(&args);
  return code;
}

int main(int argc, char **argv) {
  weir_error err = WEIR_ERROR_INIT;
  cli_signals_init();
  weir_status s = check_stack(&err);
  if (s == WEIR_OK && argc < 2)
    s = cli_error(&err, "W0001",
                  "no command was given; `weir help` lists them");
  if (s != WEIR_OK) return cli_fail(&err);
  if (strcmp(argv[1], "-h") == 0) {
    cli_help_list(true);
    return cli_out_close(0);
  }
  const cli_command *command = cli_command_find(spelled_as_option(argv[1]));
  int code = 0;
  if (command == NULL) {
    s = no_such_command(argv[1], &err);
    code = cli_fail(&err);
  } else {
    code = run_command(command, argc - 2, argv + 2);
    cli_signals_end();
  }
  return cli_out_close(code);
}
