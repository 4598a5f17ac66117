/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_GRAPH_LOADER_H_
#define WEIR_GRAPH_LOADER_H_

#include "runtime/base/map.h"
#include "runtime/graph/parse/template.h"

/* Inside the loader.
 *
 * Text becomes a graph in four steps. (1) Modules: the main file and its
 * imports, each a YAML tree. (2) Items: every entry of a `nodes` map is parsed
 * once into a tree and its calls are bound to ops and blocks, without looking
 * at types. (3) Scopes: the main graph and each call of a block is a scope,
 * its items become definitions; `repeat` makes several of one item. (4)
 * Evaluation: definitions are added to the builder in the order of their
 * dependencies, by a stack of frames (evaluate.c), and get types at once.
 *
 * Errors are reported and counted, and work goes on; a definition that failed
 * takes those that need it with it, silently. */

typedef struct weir_scope weir_scope;
typedef struct weir_def weir_def;
typedef struct weir_level weir_level; /* forms.h */

/* ---- Modules */

typedef struct weir_import {
  weir_sv alias;
  weir_mark mark;
  weir_module *module;
} weir_import;

struct weir_module {
  weir_sv path; /* as opened, relative to the root; "std/nn" */
  weir_sv text;
  const weir_yaml *root;
  weir_module *parent; /* that imported it first */
  uint32_t depth;
  bool loading;
  WEIR_VEC(weir_named_const) consts; /* params, then dims */
  size_t param_count;
  weir_map const_names;
  weir_block *blocks;
  uint32_t block_count;
  weir_map block_names;
  weir_import *imports;
  uint32_t import_count;
  size_t next_import; /* while loading */
  weir_module *next;  /* all modules, newest first */
};

/* ---- Instances */

/* A round of a repeat. */
typedef struct weir_loop {
  const struct weir_loop *outer;
  weir_sv var;
  int64_t value;
  weir_sv suffix; /* "[2][0]": all rounds from outside in */
} weir_loop;

/* The values of a definition or a call. */
typedef struct weir_result {
  weir_value_id first; /* of |count| consecutive ones */
  uint32_t count;
  const weir_value_id *list; /* unless this lists them */
  const weir_block *block;   /* names of results */
  weir_node_id node;         /* for control edges; UINT32_MAX: none */
  weir_level *level;         /* whose values these are; NULL: main graph */
  uint32_t hidden;           /* results at the end that have to be named */
} weir_result;

typedef enum weir_def_state {
  WEIR_DEF_NEW,
  WEIR_DEF_OPEN,
  WEIR_DEF_DONE,
  WEIR_DEF_FAILED
} weir_def_state;

struct weir_def {
  const weir_item *item;
  const weir_loop *loop;
  weir_sv name; /* without the scope's prefix */
  weir_def_state state;
  weir_result result;
};

/* A name with subscripts, such as h[0]. */
typedef struct weir_round_name {
  uint32_t def, port;
} weir_round_name;

struct weir_scope {
  const weir_body *body;
  weir_module *module;
  const weir_block *block; /* NULL: the main graph */
  weir_scope *caller;
  /* A form's body or arguments: the scope it stands in. */
  weir_scope *around;
  const weir_loop *around_loop;
  weir_level *level;         /* where its nodes go; NULL: the main graph */
  const weir_node_id *after; /* its nodes wait for these */
  uint32_t after_count;
  weir_mark call_mark;
  weir_sv prefix, device;
  WEIR_VEC(weir_def) defs; /* one per item, then those of rounds */
  weir_map names;          /* "h[0]" to an index into rounds */
  WEIR_VEC(weir_round_name) rounds;
  weir_result *inputs;
  weir_const *attrs;
  uint32_t depth;
  weir_scope *next; /* all scopes, newest first */
};

/* ---- The loader */
typedef struct weir_op_names {
  weir_sv name;
  const weir_op_info *info;
  uint32_t next; /* another op of the same name, or WEIR_MAP_NONE */
} weir_op_names;

typedef struct weir_loader {
  const weir_env *env;
  const weir_load_options *options;
  weir_graph_builder *builder, *main_builder; /* the present level's */
  weir_level *level, *levels;                 /* present; all, newest first */
  weir_form *forms;
  bool in_init; /* nodes belong to a variable's first value */
  const weir_allocator *alloc;
  weir_arena *arena; /* the graph's */
  weir_arena work;   /* until loading ends */
  weir_arena trees;  /* of modules; the graph's in the end if it has sections */
  weir_parser *parser;
  weir_map op_names;
  WEIR_VEC(weir_op_names) ops;
  weir_module *modules, *main;
  weir_sv root; /* folder that imports cannot leave; "" for none */
  weir_scope *scopes;
  const weir_scope *scope_now; /* being evaluated; NULL before and after */
  weir_body main_body;
  uint32_t output_count; /* the last items of main_body */
  weir_map assigned;     /* variables that an assign names */
  WEIR_VEC(weir_const) stack;
  uint64_t max_nodes;
  /* Work done for the file's text, bounded so that a small file cannot cost
   * much: scopes, definitions and rounds; elements of literals. */
  uint64_t expanded, literal_elements;
  uint32_t errors, max_errors;
  weir_status status; /* of the first error */
  bool fatal;         /* no memory, or a limit: stop at once */
  weir_error *err;
  weir_diag diag; /* scratch for reports */
} weir_loader;

/* True for the outermost call of a definition that names a node. An input's
 * default is no such: the name is the input's. */
static inline bool weir_is_root(const weir_def *def, uint32_t node) {
  return node + 1 == def->item->expr.count &&
         def->item->kind != WEIR_ITEM_INPUT;
}

#endif
