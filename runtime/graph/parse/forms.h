/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_GRAPH_FORMS_H_
#define WEIR_GRAPH_FORMS_H_

#include "runtime/graph/control.h"
#include "runtime/graph/load/loader.h"

/* scan, while and if, while loading.
 *
 * A form has parts of two kinds. Its arguments (first values, scanned values,
 * the condition of an if) are hidden items of |args|, evaluated where the form
 * stands. Its bodies are weir_body like any other; each becomes a
 * scope that sees the scope around it, and whose nodes go to a builder of its
 * own: a *level*. A value of an outer level that a body names is captured: it
 * becomes one more input of the body. Variables always belong to the main
 * graph (the level NULL), wherever they are written. */

/* A form in the text. */
struct weir_form {
  weir_control_kind kind;
  const weir_mark *mark;
  weir_body args;      /* scan: carried, scanned; while: carried; if: cond */
  weir_body bodies[2]; /* as weir_node.bodies; hidden items at the end */
  const weir_yaml *nodes[2];
  const weir_yaml *yaml;  /* behind `scan:` and so on */
  weir_block_port *ports; /* names the bodies take: carried, slices */
  uint32_t body_count, carried, scanned, stacked;
  uint32_t out_count[2];           /* hidden items of each body */
  bool broken;                     /* errors were reported */
  weir_expr axis, reverse, length; /* count 0: not given; length: or limit */
  weir_block results;              /* their names; it is no real block */
  struct weir_form *next;          /* all forms, newest first */
};

/* A value of an outer level in a body. */
typedef struct weir_capture {
  weir_value_id outer, inner; /* inner WEIR_NO_VALUE: not in this body */
} weir_capture;

struct weir_level {
  weir_graph_builder *builder;
  weir_level *outer; /* NULL: the main graph */
  weir_scope *scope; /* where the form stands */
  uint32_t depth;
  weir_map ids; /* bytes of an outer id to an index */
  WEIR_VEC(weir_capture) captures;
  weir_level *next; /* all levels, newest first */
};

/* ---- Reading them. */
/* Reads the form of |y|, which has the key |key|; the `nodes` of its bodies
 * are left to the caller. */
bool weir_item_form(weir_loader *l, weir_module *m, const weir_block *block,
                    const weir_yaml *y, const char *key, weir_item *item);
/* Body |k|: before and after its `nodes`. */
bool weir_form_body_begin(weir_loader *l, weir_module *m,
                          const weir_block *block, weir_form *form, uint32_t k);
bool weir_form_body_end(weir_loader *l, weir_module *m, const weir_block *block,
                        weir_form *form, uint32_t k);
/* "scan", "while", "if" where |y| is one of them, else NULL. */
const char *weir_form_key(const weir_yaml *y);

/* The keys of the maps under `scan`, `while` and `if`; NULL ends each. */
extern const char *const weir_scan_keys[], *const weir_while_keys[];
extern const char *const weir_if_keys[];

#endif
