/* SPDX-License-Identifier: Apache-2.0 */
/* What may stand at a place of a command line (completion.h). */
#include "cli/completion.h"

#include <string.h>

static void add_word(cli_slot *slot, const char *text, size_t size) {
  size_t used = strlen(slot->words);
  if (used + size + 2 > sizeof slot->words) return;
  snprintf(slot->words + used, sizeof slot->words - used, "%s%.*s",
           used == 0 ? "" : " ", (int)size, text);
}

/* "a|b|c" */
static void add_choices(cli_slot *slot, const char *text) {
  while (*text != '\0') {
    size_t size = strcspn(text, "|");
    add_word(slot, text, size);
    text += size + (text[size] == '|');
  }
}

static bool is_any(const char *text, const char *const *names) {
  for (; *names != NULL; names++)
    if (strcmp(text, *names) == 0) return true;
  return false;
}

void cli_slot_of_option(const cli_option *option, cli_slot *out) {
  static const char *const files[] = {"FILE", "PLAN", NULL};
  weir_tools_row row;
  *out = (cli_slot){CLI_FILL_NOTHING, ""};
  if (option->row != NULL) {
    out->fill = CLI_FILL_WORDS;
    for (size_t i = 0; option->row(i, &row); i++)
      add_word(out, row.name, strlen(row.name));
  } else if (option->kind == CLI_CHOICE) {
    out->fill = CLI_FILL_WORDS;
    add_choices(out, option->arg);
  } else if (option->arg != NULL && is_any(option->arg, files)) {
    out->fill = CLI_FILL_FILES;
  } else if (option->arg != NULL && strcmp(option->arg, "DIR") == 0) {
    out->fill = CLI_FILL_FOLDERS;
  }
}

/* The endings in "GRAPH.weir.yaml|FILE.stg...". */
static void add_endings(cli_slot *slot, const char *text, size_t size) {
  for (size_t i = 0; i < size; i++) {
    if (text[i] != '.' || (i > 0 && text[i - 1] == '.')) continue;
    size_t n = 1;
    while (i + n < size && strchr("| [", text[i + n]) == NULL &&
           strncmp(text + i + n, "...", 3) != 0)
      n++;
    if (n > 1) add_word(slot, text + i, n);
    i += n;
    while (i < size && text[i] != '|' && text[i] != ' ') i++;
  }
}

/* The kind of word that a placeholder of a synopsis asks for. */
static void read_placeholder(const char *text, size_t size, cli_slot *out) {
  static const struct {
    const char *name, *words;
    cli_fill fill;
  } places[] = {{"GRAPH", ".weir.yaml", CLI_FILL_FILES},
                {"FILE", "", CLI_FILL_FILES},
                {"A", "", CLI_FILL_FILES},
                {"SRC", "", CLI_FILL_FILES},
                {"DIR", "", CLI_FILL_FOLDERS},
                {"NAME", "", CLI_FILL_OPS},
                {"ID", "", CLI_FILL_ERRORS},
                {"[COMMAND]", "", CLI_FILL_COMMANDS}};
  *out = (cli_slot){CLI_FILL_NOTHING, ""};
  if (memchr(text, '.', size) != NULL) {
    out->fill = CLI_FILL_FILES;
    add_endings(out, text, size);
    return;
  }
  for (size_t i = 0; i < sizeof places / sizeof places[0]; i++)
    if (strlen(places[i].name) == size &&
        memcmp(places[i].name, text, size) == 0) {
      out->fill = places[i].fill;
      add_word(out, places[i].words, strlen(places[i].words));
    }
}

void cli_slot_of_rest(const cli_command *command, cli_slot *out) {
  read_placeholder(command->synopsis, strcspn(command->synopsis, " "), out);
}

bool cli_subject_at(const cli_command *command, size_t i, cli_subject *out) {
  const char *text = command->synopsis;
  if (strstr(text, " | ") == NULL) return false;
  for (; i > 0; i--) {
    text = strstr(text, " | ");
    if (text == NULL) return false;
    text += 3;
  }
  size_t size = strcspn(text, " ");
  snprintf(out->name, sizeof out->name, "%.*s", (int)size, text);
  out->rest = (cli_slot){CLI_FILL_NOTHING, ""};
  text += size;
  if (*text == ' ' && text[1] != '|' && text[1] != '[')
    read_placeholder(text + 1, strcspn(text + 1, " "), &out->rest);
  return true;
}

void cli_clause(const char *doc, char *out, size_t size) {
  const char *colon = strchr(doc, ':');
  size_t n = 0;
  if (strncmp(doc, "with --", 7) == 0 && colon != NULL) doc = colon + 2;
  for (; *doc != '\0' && n + 1 < size; doc++) {
    bool in_name = doc[0] == ':' && doc[1] == '`'; /* `train:` */
    if (*doc == ';' || (*doc == ':' && !in_name) || strncmp(doc, " (", 2) == 0)
      break;
    if (strchr("[]':`\\", *doc) == NULL) out[n++] = *doc;
  }
  out[n] = '\0';
}
