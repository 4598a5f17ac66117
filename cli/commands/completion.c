/* SPDX-License-Identifier: Apache-2.0 */
/* weir completion: scripts for shells, made from the tables of commands and
 * options, so that they know what this weir knows. Names of ops and ids of
 * errors are asked when they are needed. */
#include <string.h>

#include "cli/completion.h"
#include "cli/table.h"

/* Lists that a shell asks weir for. */
#define ASK_OPS "weir show ops 2>/dev/null | cut -d\" \" -f1"
#define ASK_ERRORS "weir show errors 2>/dev/null | cut -d\" \" -f1"

static void print_commands(const char *between) {
  for (size_t i = 0; cli_commands[i] != NULL; i++)
    cli_print("%s%s", i == 0 ? "" : between, cli_commands[i]->name);
}

static void print_subjects(const cli_command *c) {
  cli_subject subject;
  for (size_t i = 0; cli_subject_at(c, i, &subject); i++)
    cli_print("%s%s", i == 0 ? "" : " ", subject.name);
}

/* ---- bash */

static const char bash_start[] =
    "# Completion of weir for bash; made by `weir completion bash`.\n"
    "_weir_words() {\n"
    "  local IFS=$' \\t\\n'\n"
    "  COMPREPLY=($(compgen -W \"$1\" -- \"$cur\"))\n"
    "}\n"
    "_weir_files() {\n"
    "  local ending IFS=$'\\n'\n"
    "  compopt -o filenames 2>/dev/null\n"
    "  (($# == 0)) && COMPREPLY=($(compgen -f -- \"$cur\")) && return\n"
    "  COMPREPLY=($(compgen -d -- \"$cur\"))\n"
    "  for ending; do\n"
    "    COMPREPLY+=($(compgen -f -X \"!*$ending\" -- \"$cur\"))\n"
    "  done\n"
    "}\n"
    "_weir_folders() {\n"
    "  local IFS=$'\\n'\n"
    "  compopt -o filenames 2>/dev/null\n"
    "  COMPREPLY=($(compgen -d -- \"$cur\"))\n"
    "}\n"
    "_weir() {\n"
    "  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
    "  local at=$COMP_CWORD subject=${COMP_WORDS[2]-}\n"
    "  COMPREPLY=()\n"
    "  if [[ $cur == = ]]; then cur=; "
    "elif [[ $prev == = ]]; then prev=${COMP_WORDS[COMP_CWORD-2]}; fi\n";

static void bash_slot(const cli_slot *s) {
  switch (s->fill) {
    case CLI_FILL_WORDS:
      cli_print("_weir_words '%s'", s->words);
      break;
    case CLI_FILL_FILES:
      cli_print("_weir_files%s%s", s->words[0] != '\0' ? " " : "", s->words);
      break;
    case CLI_FILL_FOLDERS:
      cli_print("_weir_folders");
      break;
    case CLI_FILL_OPS:
      cli_print("_weir_words \"$(" ASK_OPS ")\"");
      break;
    case CLI_FILL_ERRORS:
      cli_print("_weir_words \"$(" ASK_ERRORS ")\"");
      break;
    case CLI_FILL_COMMANDS:
      cli_print("_weir_words '");
      print_commands(" ");
      cli_print("'");
      break;
    default:
      cli_print(":");
  }
}

static void bash_command(const cli_command *c) {
  cli_slot slot;
  cli_subject subject;
  cli_print("  %s)\n    case $prev in\n", c->name);
  for (const cli_option *o = c->options; o->name != NULL; o++) {
    if (o->kind == CLI_FLAG) continue;
    cli_slot_of_option(o, &slot);
    cli_print("    --%s", o->name);
    if (o->letter != 0) cli_print(" | -%c", o->letter);
    cli_print(") ");
    bash_slot(&slot);
    cli_print("; return ;;\n");
  }
  cli_print("    esac\n    if [[ $cur == -* ]]; then\n      _weir_words '");
  for (const cli_option *o = c->options; o->name != NULL; o++)
    cli_print("%s--%s", o == c->options ? "" : " ", o->name);
  cli_print("'\n      return\n    fi\n");
  if (cli_subject_at(c, 0, &subject)) {
    cli_print("    if ((at == 2)); then _weir_words '");
    print_subjects(c);
    cli_print("'; return; fi\n    case $subject in\n");
    for (size_t i = 0; cli_subject_at(c, i, &subject); i++) {
      if (subject.rest.fill == CLI_FILL_NOTHING) continue;
      cli_print("    %s) ", subject.name);
      bash_slot(&subject.rest);
      cli_print(" ;;\n");
    }
    cli_print("    esac ;;\n");
  } else {
    cli_slot_of_rest(c, &slot);
    cli_print("    ");
    bash_slot(&slot);
    cli_print(" ;;\n");
  }
}

static void print_bash(void) {
  cli_print("%s  if ((at == 1)); then _weir_words '", bash_start);
  print_commands(" ");
  cli_print("'; return; fi\n  case ${COMP_WORDS[1]} in\n");
  for (size_t i = 0; cli_commands[i] != NULL; i++)
    bash_command(cli_commands[i]);
  cli_print("  esac\n}\ncomplete -F _weir weir\n");
}

/* ---- zsh */

/* "*.weir.yaml", or "(*.weir.yaml|*.stg)": in brackets at the end only a bar
 * tells a group from qualifiers. */
static void zsh_pattern(const char *words) {
  bool several = strchr(words, ' ') != NULL;
  cli_print(" -g \"%s*", several ? "(" : "");
  for (; *words != '\0'; words++)
    if (*words == ' ')
      cli_print("|*");
    else
      cli_print("%c", *words);
  cli_print("%s\"", several ? ")" : "");
}

static void zsh_slot(const cli_slot *s) {
  switch (s->fill) {
    case CLI_FILL_WORDS:
      cli_print("(%s)", s->words);
      break;
    case CLI_FILL_FILES:
      cli_print("_files");
      if (s->words[0] == '\0') break;
      zsh_pattern(s->words);
      break;
    case CLI_FILL_FOLDERS:
      cli_print("_files -/");
      break;
    case CLI_FILL_OPS:
      cli_print("{compadd - $(" ASK_OPS ")}");
      break;
    case CLI_FILL_ERRORS:
      cli_print("{compadd - $(" ASK_ERRORS ")}");
      break;
    case CLI_FILL_COMMANDS:
      cli_print("(");
      print_commands(" ");
      cli_print(")");
      break;
    default:
      cli_print(" ");
  }
}

static void zsh_option(const cli_option *o) {
  char doc[128];
  cli_slot slot;
  cli_clause(o->doc, doc, sizeof doc);
  bool flag = o->kind == CLI_FLAG;
  const char *star = o->kind == CLI_LIST ? "*" : "";
  for (int letter = 0; letter <= (o->letter != 0); letter++) {
    if (letter)
      cli_print(" \\\n      '%s-%c%s[%s]", star, o->letter, flag ? "" : "+",
                doc);
    else
      cli_print(" \\\n      '%s--%s%s[%s]", star, o->name, flag ? "" : "=",
                doc);
    if (!flag) {
      cli_slot_of_option(o, &slot);
      cli_print(":%s:", "value");
      zsh_slot(&slot);
    }
    cli_print("'");
  }
}

static void zsh_command(const cli_command *c) {
  cli_slot slot;
  cli_subject subject;
  cli_print("  %s)\n    local -a rest=(", c->name);
  if (cli_subject_at(c, 0, &subject)) {
    cli_print("'1:subject:(");
    print_subjects(c);
    cli_print(")')\n    case ${words[2]-} in\n");
    for (size_t i = 0; cli_subject_at(c, i, &subject); i++) {
      if (subject.rest.fill == CLI_FILL_NOTHING) continue;
      cli_print("    %s) rest+=('*:name:", subject.name);
      zsh_slot(&subject.rest);
      cli_print("') ;;\n");
    }
    cli_print("    esac\n");
  } else {
    cli_slot_of_rest(c, &slot);
    cli_print("'*:argument:");
    zsh_slot(&slot);
    cli_print("')\n");
  }
  cli_print("    _arguments -s");
  for (const cli_option *o = c->options; o->name != NULL; o++) zsh_option(o);
  cli_print(" \\\n      $rest ;;\n");
}

static void print_zsh(void) {
  char doc[128];
  cli_print(
      "#compdef weir\n"
      "# Completion of weir for zsh; made by `weir completion zsh`.\n"
      "_weir() {\n  local -a commands=(\n");
  for (size_t i = 0; cli_commands[i] != NULL; i++) {
    cli_clause(cli_commands[i]->summary, doc, sizeof doc);
    cli_print("    '%s:%s'\n", cli_commands[i]->name, doc);
  }
  cli_print(
      "  )\n"
      "  if ((CURRENT == 2)); then _describe command commands; return; fi\n"
      "  shift words\n  ((CURRENT--))\n  case $words[1] in\n");
  for (size_t i = 0; cli_commands[i] != NULL; i++) zsh_command(cli_commands[i]);
  cli_print(
      "  esac\n}\n"
      "if [[ $funcstack[1] == _weir ]]; then _weir \"$@\"; "
      "else compdef _weir weir; fi\n");
}

/* ---- fish */

/* __weir_is run: of the words before the cursor the second is "run";
 * __weir_is show op: and the third is "op". __weir_has 2: there are two. Files
 * are those of the named endings, and folders. */
static const char fish_start[] =
    "# Completion of weir for fish; made by `weir completion fish`.\n"
    "function __weir_is\n"
    "  set -l words (commandline -opc)\n"
    "  test \"$words[2]\" = $argv[1] || return 1\n"
    "  test (count $argv) = 1 || test \"$words[3]\" = $argv[2]\n"
    "end\n"
    "function __weir_has\n"
    "  test (count (commandline -opc)) = $argv[1]\n"
    "end\n"
    "function __weir_files\n"
    "  set -l endings (string join '|' / (string escape --style=regex $argv))\n"
    "  __fish_complete_path (commandline -ct) |\n"
    "    string match -r \"^[^\\t]*(?:$endings)(?:\\t.*|)\\$\"\n"
    "end\n"
    "complete -c weir -f\n";

static void fish_slot(const cli_slot *s) {
  switch (s->fill) {
    case CLI_FILL_WORDS:
      cli_print(" -x -a '%s'", s->words);
      break;
    case CLI_FILL_FILES:
      if (s->words[0] == '\0')
        cli_print(" -r -F");
      else
        cli_print(" -x -a '(__weir_files %s)'", s->words);
      break;
    case CLI_FILL_FOLDERS:
      cli_print(" -x -a '(__fish_complete_directories)'");
      break;
    case CLI_FILL_OPS:
      cli_print(" -x -a '(" ASK_OPS ")'");
      break;
    case CLI_FILL_ERRORS:
      cli_print(" -x -a '(" ASK_ERRORS ")'");
      break;
    case CLI_FILL_COMMANDS:
      cli_print(" -x -a '");
      print_commands(" ");
      cli_print("'");
      break;
    default:
      cli_print(" -x");
  }
}

static void fish_options(const cli_command *c) {
  char doc[128];
  cli_slot slot;
  for (const cli_option *o = c->options; o->name != NULL; o++) {
    cli_clause(o->doc, doc, sizeof doc);
    cli_print("complete -c weir -n '__weir_is %s'", c->name);
    if (o->letter != 0) cli_print(" -s %c", o->letter);
    cli_print(" -l %s", o->name);
    if (o->kind != CLI_FLAG) {
      cli_slot_of_option(o, &slot);
      fish_slot(&slot);
    }
    cli_print(" -d '%s'\n", doc);
  }
}

static void fish_words(const cli_command *c) {
  cli_slot slot;
  cli_subject subject;
  cli_print("complete -c weir -n '__weir_is %s", c->name);
  if (!cli_subject_at(c, 0, &subject)) {
    cli_slot_of_rest(c, &slot);
    cli_print("'");
    fish_slot(&slot);
    cli_print("\n");
    return;
  }
  cli_print("; and __weir_has 2' -x -a '");
  print_subjects(c);
  cli_print("'\n");
  for (size_t i = 0; cli_subject_at(c, i, &subject); i++) {
    if (subject.rest.fill == CLI_FILL_NOTHING) continue;
    cli_print("complete -c weir -n '__weir_is %s %s'", c->name, subject.name);
    fish_slot(&subject.rest);
    cli_print("\n");
  }
}

static void print_fish(void) {
  char doc[128];
  cli_print("%s", fish_start);
  for (size_t i = 0; cli_commands[i] != NULL; i++) {
    cli_clause(cli_commands[i]->summary, doc, sizeof doc);
    cli_print("complete -c weir -n '__weir_has 1' -x -a %s -d '%s'\n",
              cli_commands[i]->name, doc);
  }
  for (size_t i = 0; cli_commands[i] != NULL; i++) {
    fish_options(cli_commands[i]);
    fish_words(cli_commands[i]);
  }
}

static int completion_command(const cli_args *args) {
  static const struct {
    const char *name;
    void (*print)(void);
  } shells[] = {{"bash", print_bash}, {"zsh", print_zsh}, {"fish", print_fish}};
  for (size_t i = 0; i < sizeof shells / sizeof shells[0]; i++)
    if (strcmp(args->rest[0], shells[i].name) == 0) {
      shells[i].print();
      return 0;
    }
  weir_error err = WEIR_ERROR_INIT;
  weir_status s = cli_error(&err, "W0001", "weir completion %s: unknown shell",
                            args->rest[0]);
  cli_hint(&err, "bash, zsh and fish are known");
  return s == WEIR_OK ? 0 : cli_fail(&err);
}

static const cli_option options[] = {HELP, END};

const cli_command cli_command_completion = {
    .name = "completion",
    .synopsis = "bash | zsh | fish",
    .summary = "a script that completes weir's command line",
    .text =
        "`meson install` puts the scripts where the shells look for them. "
        "Without it, source them: see the examples.",
    .examples =
        "  source <(weir completion bash)\n"
        "  weir completion zsh > ~/.zfunc/_weir\n"
        "  weir completion fish > ~/.config/fish/completions/weir.fish\n",
    .options = options,
    .min_rest = 1,
    .max_rest = 1,
    .run = completion_command,
};
