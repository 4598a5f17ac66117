/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_COMPLETION_H_
#define CLI_COMPLETION_H_

#include "cli/cli.h"

/* What may stand at a place of a command line, read from the tables that the
 * help is made of: a synopsis, the argument of an option. */

typedef enum cli_fill {
  CLI_FILL_NOTHING, /* a number, a text */
  CLI_FILL_WORDS,   /* cli_slot.words */
  CLI_FILL_FILES,   /* with an ending in cli_slot.words, if there are any */
  CLI_FILL_FOLDERS,
  CLI_FILL_OPS,
  CLI_FILL_ERRORS,
  CLI_FILL_COMMANDS,
  CLI_FILL_COUNT
} cli_fill;

typedef struct cli_slot {
  cli_fill fill;
  char words[512]; /* between blanks */
} cli_slot;

/* The value of an option that takes one. */
void cli_slot_of_option(const cli_option *option, cli_slot *out);
/* The words behind a command without subjects. */
void cli_slot_of_rest(const cli_command *command, cli_slot *out);

/* A subject of a command such as `show`: "op" of "ops | op NAME | ...", and
 * what follows it. */
typedef struct cli_subject {
  char name[32];
  cli_slot rest;
} cli_subject;

/* The |i|-th subject; false: there are no more, or none. */
bool cli_subject_at(const cli_command *command, size_t i, cli_subject *out);

/* The first clause of an option's text, without characters that a shell has a
 * use for: [ ] ' : ` and the backslash. */
void cli_clause(const char *doc, char *out, size_t size);

#endif
