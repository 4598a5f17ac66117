/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "cli/table.h"
#include "cli/term/text.h"

/* Columns left of the options' texts; options that -h explains. */
enum { LEFT = 31, BRIEF = 12 };

static const char exit_codes[] =
    "0 ok, 1 the answer is no (--expect, fmt --check), 2 usage or environment, "
    "3 graph invalid, 4 placement impossible, 5 file or data bad, 6 "
    "computation or output failed, 7 memory, disk or device missing, 8 "
    "internal error, 9 authentication, 129, 130 and 143 interrupted, 138 "
    "deadline exceeded, 141 nobody read the output.";

/* ---- Text */

/* "random[:SEED]" in |text|. */
static void row_form(const weir_tools_row *row, char *text, size_t size) {
  snprintf(text, size, row->args == NULL ? "%s" : "%s[:%s]", row->name,
           row->args);
}

/* "  -t, --threads N" */
static int option_left(const cli_option *o, char *left, size_t size) {
  char letter[8] = "    ";
  if (o->letter != 0) snprintf(letter, sizeof letter, "-%c, ", o->letter);
  return snprintf(left, size, "  %s--%s%s%s", letter, o->name,
                  o->arg != NULL ? " " : "", o->arg != NULL ? o->arg : "");
}

static void print_option(const cli_option *o) {
  char left[128], doc[512], form[64];
  int n = option_left(o, left, sizeof left);
  snprintf(doc, sizeof doc, "%s%s%s", o->doc, o->env != NULL ? "; " : "",
           o->env != NULL ? o->env : "");
  if (n < LEFT)
    cli_print("%-*s", LEFT, left);
  else
    cli_print("%s\n%*s", left, LEFT, "");
  cli_wrap(LEFT, LEFT, doc);
  weir_tools_row row;
  for (size_t i = 0; o->row != NULL && o->row(i, &row); i++) {
    row_form(&row, form, sizeof form);
    snprintf(doc, sizeof doc, "%s%s", row.summary, i == 0 ? " (default)" : "");
    cli_print("%*s%-14s ", LEFT + 2, "", form);
    cli_wrap(LEFT + 17, LEFT + 17, doc);
  }
}

static void print_usage(const cli_command *c) {
  int n = snprintf(NULL, 0, "usage: weir %s ", c->name);
  cli_print("usage: weir %s ", c->name);
  cli_wrap((size_t)n, (size_t)n, c->synopsis);
}

void cli_help_command(const cli_command *command) {
  cli_print("weir %s: %s\n\n", command->name, command->summary);
  print_usage(command);
  if (command->text != NULL) {
    cli_print("\n");
    cli_wrap(0, 0, command->text);
  }
  cli_print("\nOptions\n");
  for (const cli_option *o = command->options; o->name != NULL; o++)
    print_option(o);
  cli_print("\nExamples\n%s", command->examples);
}

/* The names of the options from |o| on, as running text. */
static void print_names(const cli_option *o) {
  char names[1024] = "";
  size_t n = 0;
  for (; o->name != NULL && n < sizeof names; o++)
    n += (size_t)snprintf(names + n, sizeof names - n, "%s--%s",
                          n == 0 ? "" : ", ", o->name);
  cli_print("  also: ");
  cli_wrap(8, 8, names);
}

/* The first clause of |doc| behind "with ...: ", cut to |room| columns. */
static void print_short(const char *doc, size_t room) {
  const char *colon = strchr(doc, ':');
  if (strncmp(doc, "with --", 7) == 0 && colon != NULL) doc = colon + 2;
  size_t size = strcspn(doc, ":;");
  bool cut = size > room;
  if (cut) {
    size = room - 3;
    while (size > 0 && doc[size] != ' ') size--;
    if (size > 0 && doc[size - 1] == ',') size--;
  }
  cli_print("%.*s%s\n", (int)size, doc, cut ? "..." : "");
}

void cli_help_brief(const cli_command *command) {
  const cli_option *o = command->options;
  cli_print("weir %s: %s\n", command->name, command->summary);
  print_usage(command);
  for (size_t i = 0; i < BRIEF && o->name != NULL; i++, o++) {
    char left[128];
    int n = option_left(o, left, sizeof left);
    if (n >= LEFT) snprintf(left, sizeof left, "      --%s", o->name);
    cli_print("%-*s", LEFT, left);
    print_short(o->doc, WEIR_TOOLS_COLUMNS - LEFT);
  }
  if (o->name != NULL) print_names(o);
  cli_print("weir %s --help tells all.\n", command->name);
}

void cli_help_list(bool brief) {
  cli_print(
      "weir: runs dataflow graphs written in YAML\n"
      "usage: weir COMMAND [options]\n%s",
      brief ? "" : "\n"); /* the brief one fits a screen of 24 lines */
  for (size_t i = 0; cli_commands[i] != NULL; i++)
    cli_print("  %-10s %s\n", cli_commands[i]->name, cli_commands[i]->summary);
  if (brief) return;
  cli_print(
      "\nweir COMMAND --help tells more, -h less. Data goes to standard "
      "output,\nall else to standard error.\n\nExit codes: ");
  cli_wrap(12, 0, exit_codes);
  cli_print(
      "\nExamples\n  weir run graphs/tiny_matmul.weir.yaml -i "
      "b=f32:2x2=0,1,1,0\n"
      "  weir check graphs/lenet.weir.yaml\n");
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
    cli_help_list(false);
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
