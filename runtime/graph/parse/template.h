/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_GRAPH_TEMPLATE_H_
#define WEIR_GRAPH_TEMPLATE_H_

#include "runtime/base/map.h"
#include "runtime/graph/parse/ast.h"

/* A parsed text before anything is evaluated: constants, items, and blocks of
 * them. A template is parsed once and evaluated as often as it is called. */

typedef struct weir_module weir_module; /* loader.h */
typedef struct weir_block weir_block;
typedef struct weir_body weir_body;
typedef struct weir_item weir_item;
typedef struct weir_form weir_form; /* forms.h */

/* ---- Constants: values known while loading. */
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
  union {
    uint32_t count;
    float single; /* FLOAT: the nearest to its text, which |f| may miss */
  };
  union {
    weir_dim dim;
    double f;
    bool b;
    weir_sv s;
    const struct weir_const *items;
    weir_value_id value;
  };
} weir_const;

static inline weir_const weir_const_float(double f, float single) {
  return (weir_const){.kind = WEIR_CONST_FLOAT, .single = single, .f = f};
}

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
  WEIR_ITEM_BROKEN /* errors were reported; its users fail silently */
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
  /* CALL of a large body: |expr| is checked and forgotten, and made again from
   * this when its turn comes; expr.nodes is NULL before and after. */
  const weir_yaml *again;
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
  const struct weir_block_port *ports; /* of INPUT codes; NULL: the block's */
  bool has_repeat;
};

/* The meaning of a name of a body: kind in the top two bits, then an index. */
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

#endif
