/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_GRAPH_AST_H_
#define WEIR_GRAPH_AST_H_

#include "runtime/base/vec.h"
#include "runtime/graph/builder.h"

/* Call strings as trees.
 *
 * `relu(matmul(x, w1)) @ gpu:0` becomes an array of nodes in postorder: a
 * node's operands stand before it and |span| nodes end with it, so that
 * evaluation is a loop with a stack and nothing recurses. Operands are also
 * linked by |first| and |next|. Every node knows the text it came from. */

typedef enum weir_ast_kind {
  WEIR_AST_INT,
  WEIR_AST_FLOAT,
  WEIR_AST_STRING,
  WEIR_AST_NAME,    /* text[.field][:port], operands: subscripts */
  WEIR_AST_CALL,    /* text(operands) */
  WEIR_AST_LIST,    /* [operands] */
  WEIR_AST_KEYWORD, /* text = operand */
  WEIR_AST_BINARY,  /* a op b; |op| as in operators.h, |i| its place */
  WEIR_AST_NEG,
  WEIR_AST_UNKNOWN /* ? in a type */
} weir_ast_kind;

/* The use of a node; set when the call is bound to its op. */
typedef enum weir_ast_mode {
  WEIR_MODE_SKIP,  /* part of another node's meaning */
  WEIR_MODE_VALUE, /* a value of the graph, or a literal that becomes one */
  WEIR_MODE_CONST, /* an attribute: known while loading */
  WEIR_MODE_REF    /* the name inside dim(x, 0): its type is wanted */
} weir_ast_mode;

#define WEIR_AST_NONE UINT32_MAX

struct weir_block;

typedef struct weir_ast {
  uint8_t kind, mode;
  char op;
  bool bracketed : 1; /* NAME: subscripts were written, maybe none: f32[] */
  bool ascii : 1;     /* all of src stands in the file as it is, in ASCII */
  bool named : 1;     /* BINARY, NEG: a name or a call is below */
  bool constant : 1;  /* CALL as an operand of these: dim(x, 0), size(x) */
  bool init : 1;      /* part of a variable's first value */
  uint32_t slot;      /* of an operand: input number, or attribute number */
  uint32_t first, next, count, span;
  uint32_t offset, size; /* in src's text */
  int32_t port;          /* NAME: after ':', or -1; CALL: see below */
  uint32_t inject;       /* CALL: the var call whose shape it takes, or NONE */
  uint32_t found;        /* NAME: 1 + the definition it means, once known */
  float single;          /* FLOAT: the nearest to its text */
  union {
    int64_t i;
    double f;
    weir_sv field; /* NAME */
  };
  weir_sv text;
  const weir_yaml *src;
  /* CALL: the op or block. At most one is set; both NULL: attribute |port| of
   * the block names the op, or dim and size in constants. BINARY and NEG with a
   * name below: the op, which makes a node if an operand is a value. */
  const weir_op_info *op_info;
  const struct weir_block *block;
} weir_ast;

/* Whether the node is a call that makes values, or an operation that may. */
static inline bool weir_ast_is_active(const weir_ast *n) {
  if (n->mode != WEIR_MODE_VALUE) return false;
  return n->kind == WEIR_AST_CALL ? !n->constant : n->named;
}

typedef struct weir_expr {
  weir_ast *nodes;
  uint32_t count; /* 0: absent; the root is the last node */
  uint32_t calls; /* that make values, or may; set by binding */
} weir_expr;

typedef WEIR_VEC(weir_ast) weir_ast_vec;

/* Where parsing failed; the caller reports it. */
typedef struct weir_parse_error {
  weir_error_id id;
  uint32_t offset, size;
  uint32_t open, open_size; /* a call or bracket that is not closed; size 0 */
  const char *hint;         /* NULL: none */
  char message[160];
} weir_parse_error;

typedef struct weir_parser weir_parser;

typedef enum weir_parse_result {
  WEIR_PARSE_OK,
  WEIR_PARSE_FAILED,
  WEIR_PARSE_MEMORY
} weir_parse_result;

/* ---- Tokens */

typedef enum weir_token_kind {
  WEIR_TOKEN_END,
  WEIR_TOKEN_NAME, /* letters, digits, _, and dots between */
  WEIR_TOKEN_INT,
  WEIR_TOKEN_FLOAT,
  WEIR_TOKEN_STRING,
  WEIR_TOKEN_PUNCT, /* one of ( ) [ ] , = @ + - * / ? : . or
                       WEIR_FLOOR_DIV */
  WEIR_TOKEN_BAD
} weir_token_kind;

typedef struct weir_token {
  weir_token_kind kind;
  char punct;
  uint32_t offset, size;
  float single; /* FLOAT: the nearest to its text */
  union {
    int64_t i;
    double f;
    const char *why; /* BAD */
  };
  weir_sv text; /* NAME; STRING without its quotes, escapes not resolved */
} weir_token;

/* The place of a node in the source; of an operation, its operator. Cheap for
 * text in ASCII. */
weir_mark weir_ast_mark(const weir_ast *node);

/* Whether a `/` without blanks stands before, within or behind |node|: so it
 * may have been meant as a part of a name that weir made, such as c1/conv2d. */
bool weir_ast_is_path(const weir_ast *node);

/* Splits "run.h" into name and field. */
void weir_ast_set_name(weir_ast *node, weir_sv text);

/* Whether column = start + offset for all of |src|: columns count characters.
 */
bool weir_ast_is_ascii(const weir_yaml *src);

#endif
