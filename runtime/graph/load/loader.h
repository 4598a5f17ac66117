/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_GRAPH_LOADER_H_
#define WEIR_GRAPH_LOADER_H_

#include "runtime/base/map.h"
#include "runtime/graph/parse/ast.h"

/* Inside the loader.
 *
 * Text becomes a graph in four steps. (1) Modules: the main file and what it
 * imports, each a YAML tree. (2) Items: every entry of a `nodes` map is parsed
 * once into a tree and its calls are bound to ops and blocks, without looking
 * at types. (3) Scopes: the main graph and each call of a block is a scope,
 * its items become definitions; `repeat` makes several of one item. (4)
 * Evaluation: definitions are added to the builder in the order of their
 * dependencies, by a stack of frames (evaluate.c), and get types at once.
 *
 * Errors are reported and counted, and work goes on; a definition that failed
 * takes those that need it with it, silently. */

typedef struct weir_module weir_module;
typedef struct weir_block weir_block;
typedef struct weir_body weir_body;
typedef struct weir_item weir_item;
typedef struct weir_scope weir_scope;
typedef struct weir_def weir_def;
typedef struct weir_form weir_form;   /* forms.h */
typedef struct weir_level weir_level; /* forms.h */

/* ---- Constants: what is known while loading. */
typedef enum weir_const_kind {
  WEIR_CONST_NONE,
  WEIR_CONST_INT, /* a number, or a symbol plus a number */
  WEIR_CONST_FLOAT,
  WEIR_CONST_BOOL,
  WEIR_CONST_STRING,
  WEIR_CONST_WORD,   /* a bare name that means nothing else: f32, relu, same */
  WEIR_CONST_LIST,   /* items */
  WEIR_CONST_VALUE,  /* a value of the graph (in dim(x, 0) only) */
  WEIR_CONST_UNKNOWN /* ? */
} weir_const_kind;

typedef struct weir_const {
  weir_const_kind kind;
  uint32_t count;
  union {
    weir_dim dim;
    double f;
    bool b;
    weir_sv s;
    const struct weir_const *items;
    weir_value_id value;
  };
} weir_const;

typedef struct weir_named_const {
  weir_sv name;
  weir_mark mark;
  weir_const value;
} weir_named_const;

/* ---- Templates */

/* One name that an item defines: `h`, or `h[i+1]` in a repeat. */
typedef struct weir_item_name {
  weir_sv name;
  weir_mark mark;
  weir_expr *subscripts; /* the parsed name; NULL: none written */
} weir_item_name;

typedef enum weir_item_kind {
  WEIR_ITEM_CALL,
  WEIR_ITEM_REPEAT,
  WEIR_ITEM_FORM,  /* scan, while, if */
  WEIR_ITEM_INPUT, /* a graph input: a type, maybe a default */
  WEIR_ITEM_BROKEN /* errors were reported; what needs it fails silently */
} weir_item_kind;

/* {repeat: {var: from..to}, nodes: body}. */
typedef struct weir_repeat {
  weir_sv var;
  weir_expr from, to;
  weir_body *body;
} weir_repeat;

struct weir_item {
  uint8_t kind; /* weir_item_kind */
  bool hidden;  /* an output's expression: defines no name */
  bool update;  /* an assignment of every run that reads its variable */
  uint32_t name_count, after_count;
  weir_item_name *names, one; /* |names| may point to |one| */
  const weir_mark *mark;      /* of its key */
  weir_expr expr;             /* the call; an input's default */
  weir_sv device;             /* canonical, or empty */
  weir_form *form;            /* FORM */
  union {
    weir_expr *after;    /* CALL, FORM */
    weir_expr *type;     /* INPUT */
    weir_repeat *repeat; /* REPEAT */
  };
};

/* A name for one of an item's several results. */
typedef struct weir_item_result {
  uint32_t item, port;
} weir_item_result;

/* A map of nodes. */
struct weir_body {
  weir_item *items;
  uint32_t count, capacity;
  /* Names without subscripts to WEIR_BIND_* codes. */
  weir_map names;
  WEIR_VEC(weir_item_result) results;
  const struct weir_block_port *ports; /* what INPUT means; NULL: the block's */
  bool has_repeat;
};

/* What a name of a body means: kind in the top two bits, then an index. */
#define WEIR_BIND_ITEM (UINT32_C(0) << 30)
#define WEIR_BIND_RESULT (UINT32_C(1) << 30) /* into body->results */
#define WEIR_BIND_INPUT (UINT32_C(2) << 30)
#define WEIR_BIND_ATTR (UINT32_C(3) << 30)
#define WEIR_BIND_KIND (UINT32_C(3) << 30)

typedef enum weir_block_attr_kind {
  WEIR_BLOCK_INT,
  WEIR_BLOCK_FLOAT,
  WEIR_BLOCK_BOOL,
  WEIR_BLOCK_STRING,
  WEIR_BLOCK_DTYPE,
  WEIR_BLOCK_INTS,
  WEIR_BLOCK_OP,
  WEIR_BLOCK_ATTR_COUNT
} weir_block_attr_kind;

typedef struct weir_block_attr {
  weir_sv name;
  weir_mark mark;
  weir_block_attr_kind kind;
  bool has_default;
  weir_const fallback;
} weir_block_attr;

typedef struct weir_block_port {
  weir_sv name;
  weir_mark mark;
  weir_expr type; /* count 0: any */
} weir_block_port;

struct weir_block {
  weir_sv name;
  weir_mark mark;
  weir_module *module;
  const weir_yaml *yaml;
  weir_block_port *inputs;
  weir_block_attr *attrs;
  uint32_t input_count, attr_count, out_count;
  weir_sv *out_names; /* empty names: results by position only */
  weir_body body;     /* its last |out_count| items are the results */
  bool broken;
};

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

/* What a definition or a call stands for. */
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
  /* A form's body or arguments: what it sees around itself. */
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

typedef enum weir_found {
  WEIR_FOUND_NOTHING,
  WEIR_FOUND_DEF,
  WEIR_FOUND_RESULT, /* a block's input */
  WEIR_FOUND_CONST
} weir_found;

typedef struct weir_lookup {
  weir_found kind;
  weir_def *def;
  weir_scope *scope; /* of |def| */
  uint32_t port;     /* of the results; UINT32_MAX: the name does not say */
  const weir_result *result;
  weir_const value;
} weir_lookup;

/* True for the outermost call of a definition that names a node. An input's
 * default is no such: the name is the input's. */
static inline bool weir_is_root(const weir_def *def, uint32_t node) {
  return node + 1 == def->item->expr.count &&
         def->item->kind != WEIR_ITEM_INPUT;
}

#endif
