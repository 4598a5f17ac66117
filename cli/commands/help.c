/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "cli/table.h"

static const char exit_codes[] =
    "0 ok, 1 the answer is no (--expect), 2 usage or environment, 3 graph "
    "invalid,\n4 placement impossible, 5 file or data bad, 6 computation or "
    "output failed,\n7 memory, disk or device missing, 8 internal error, "
    "129, 130 and 143\ninterrupted, 138 deadline exceeded, 141 nobody read "
    "the output";

/* ---- Text */

/* "random[:SEED]" in |text|. */
static void row_form(const weir_tools_row *row, char *text, size_t size) {
  snprintf(text, size, row->args == NULL ? "%s" : "%s[:%s]", row->name,
           row->args);
}

static void print_option(const cli_option *o) {
  char left[64], letter[8] = "    ";
  if (o->letter != 0) snprintf(letter, sizeof letter, "-%c, ", o->letter);
  int n = snprintf(left, sizeof left, "  %s--%s%s%s", letter, o->name,
                   o->arg != NULL ? " " : "", o->arg != NULL ? o->arg : "");
  if (n <= 30)
    cli_print("%-30s %s", left, o->doc);
  else
    cli_print("%s\n%-30s %s", left, "", o->doc);
  if (o->env != NULL) cli_print("; %s", o->env);
  cli_print("\n");
  weir_tools_row row;
  for (size_t i = 0; o->row != NULL && o->row(i, &row); i++) {
    row_form(&row, left, sizeof left);
    cli_print("%-30s   %-14s %s%s\n", "", left, row.summary,
              i == 0 ? " (default)" : "");
  }
}

void cli_help_command(const cli_command *command) {
  cli_print("weir %s: %s\n\nusage: weir %s %s\n", command->name,
            command->summary, command->name, command->synopsis);
  if (command->text != NULL) cli_print("\n%s\n", command->text);
  cli_print("\nOptions\n");
  for (const cli_option *o = command->options; o->name != NULL; o++)
    print_option(o);
  cli_print("\nExamples\n%s", command->examples);
}

static void print_list(void) {
  cli_print(
      "weir: runs dataflow graphs written in YAML\n\n"
      "usage: weir COMMAND [options]\n\n");
  for (size_t i = 0; cli_commands[i] != NULL; i++)
    cli_print("  %-10s %s\n", cli_commands[i]->name, cli_commands[i]->summary);
  cli_print(
      "\nweir COMMAND --help tells more. Data goes to standard output, all else"
      "\nto standard error.\n\nExit codes: %s.\n\n"
      "Examples\n  weir run graphs/tiny_matmul.weir.yaml -i b=f32:2x2=0,1,1,0\n"
      "  weir check graphs/lenet.weir.yaml\n",
      exit_codes);
}

/* ---- The manual page */

/* Text with roff's own characters made plain. */
static void roff(const char *text) {
  bool line_start = true;
  for (; *text != '\0'; text++) {
    if (line_start && (*text == '.' || *text == '\'')) cli_print("\\&");
    line_start = *text == '\n';
    if (*text == '\\')
      cli_print("\\e");
    else if (*text == '-')
      cli_print("\\-");
    else
      cli_print("%c", *text);
  }
}

static void roff_option(const cli_option *o) {
  cli_print(".TP\n.B ");
  if (o->letter != 0) cli_print("\\-%c, ", o->letter);
  cli_print("\\-\\-");
  roff(o->name);
  if (o->arg != NULL) {
    cli_print(" ");
    roff(o->arg);
  }
  cli_print("\n");
  roff(o->doc);
  if (o->env != NULL) cli_print(" (environment: %s)", o->env);
  cli_print("\n");
  weir_tools_row row;
  for (size_t i = 0; o->row != NULL && o->row(i, &row); i++) {
    char form[64];
    row_form(&row, form, sizeof form);
    cli_print(".br\n");
    roff(form);
    cli_print(": ");
    roff(row.summary);
    cli_print("\n");
  }
}

static void roff_command(const cli_command *c) {
  cli_print(".SS weir %s ", c->name);
  roff(c->synopsis);
  cli_print("\n");
  roff(c->text != NULL ? c->text : c->summary);
  cli_print("\n");
  for (const cli_option *o = c->options; o->name != NULL; o++) roff_option(o);
  cli_print(".PP\nExamples:\n.nf\n");
  roff(c->examples);
  cli_print(".fi\n");
}

static void print_man(void) {
  cli_print(
      ".TH WEIR 1 \"\" \"weir %s\" \"User Commands\"\n.SH NAME\nweir \\- runs "
      "dataflow graphs written in YAML\n.SH SYNOPSIS\n.B weir\n.I COMMAND\n"
      "[options]\n.SH COMMANDS\n",
      weir_version_text());
  for (size_t i = 0; cli_commands[i] != NULL; i++)
    roff_command(cli_commands[i]);
  cli_print(".SH EXIT STATUS\n");
  roff(exit_codes);
  cli_print("\n");
}

static int help_command(const cli_args *args) {
  if (args->man) {
    print_man();
    return 0;
  }
  if (args->rest_count == 0) {
    print_list();
    return 0;
  }
  const cli_command *command = cli_command_find(args->rest[0]);
  if (command != NULL) {
    cli_help_command(command);
    return 0;
  }
  weir_error err = WEIR_ERROR_INIT;
  weir_status s = cli_error(&err, "W0001", "unknown command %s", args->rest[0]);
  return s == WEIR_OK ? 0 : cli_fail(&err);
}

static const cli_option options[] = {
    FLAG("man", 0, man, "print the manual page weir(1) as roff"), HELP, END};

const cli_command cli_command_help = {
    .name = "help",
    .synopsis = "[COMMAND]",
    .summary = "this list, or a command's help",
    .examples = "  weir help run\n  weir help --man > weir.1\n",
    .options = options,
    .min_rest = 0,
    .max_rest = 1,
    .run = help_command,
};
