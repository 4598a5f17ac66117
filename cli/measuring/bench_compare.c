/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/measuring/bench_compare.h"

#include <string.h>
#include <sys/stat.h>

static bool is_for_compare(const char *option) {
  static const char *const names[] = {"compare", "format",       "json",
                                      "color",   "print-config", "help"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (strcmp(names[i], option) == 0) return true;
  return false;
}

static bool same_file(const char *a, const char *b) {
  struct stat x, y;
  if (strcmp(a, b) == 0) return true;
  return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev &&
         x.st_ino == y.st_ino;
}

weir_status cli_bench_compare_check(const cli_args *args, weir_error *err) {
  const cli_command *bench = cli_command_find("bench");
  for (const cli_option *o = bench->options; o->name != NULL; o++)
    if (cli_option_is_given(bench, args, o->name) && !is_for_compare(o->name))
      return cli_error(err, "W0001",
                       "--%s has no effect with --compare, which measures "
                       "nothing",
                       o->name);
  if (args->rest_count != 2)
    return cli_error(err, "W0001",
                     "usage: weir bench --compare A.json B.json: two files of "
                     "weir bench --json");
  if (!cli_is_json(args) && args->format != NULL &&
      strcmp(args->format, "csv") == 0)
    return cli_error(err, "W0002",
                     "--compare is text or --json, not --format csv");
  if (same_file(args->rest[0], args->rest[1]))
    return cli_error(err, "W0002", "--compare: %s and %s are the same file",
                     args->rest[0], args->rest[1]);
  return WEIR_OK;
}

int cli_bench_compare(const cli_args *args) {
  weir_error err = WEIR_ERROR_INIT;
  weir_runtime *runtime = NULL;
  const weir_runtime_opts opts = {.struct_size = sizeof opts, .threads = 1};
  const weir_tools_bench_diff what = {
      .a = args->rest[0], .b = args->rest[1], .json = cli_is_json(args)};
  weir_status s = weir_runtime_create(&opts, &runtime, &err);
  if (s == WEIR_OK)
    s = weir_tools_bench_compare(runtime, &what, cli_out, NULL, &err);
  weir_runtime_release(runtime);
  return s == WEIR_OK ? 0 : cli_fail(&err);
}
