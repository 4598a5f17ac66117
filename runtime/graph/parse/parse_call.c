/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/graph/parse/parse_call.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

#include "runtime/graph/parse/ast.h"
#include "runtime/graph/parse/lex.h"
#include "runtime/graph/parse/operators.h"

/* The parser of call strings: operator precedence with an explicit stack, at
 * most 64 brackets deep.
 *
 * The parser is in one of two states: it expects an operand, or an operator or
 * end. |open| holds brackets and operators that were begun, |operands| the
 * roots of finished operands. An operator first ends those on the stack that
 * bind at least as tightly (reduce), so equal ones associate to the left; a
 * bracket stops that, since its strength is 0.
 *
 * A node is emitted when its last operand has been: this is postorder, and a
 * node with all its operands is one run of the array, |span| long. Operands are
 * linked when they become arguments, so emitting a call costs no walk over
 * them. Cost: linear in the text. A mark is kept as an offset and becomes line
 * and column only when an error is reported. */

enum { WEIR_PARSE_DEPTH = 64, WEIR_LITERAL_NODES = 200000 };

typedef enum open_kind {
  OPEN_CALL,
  OPEN_LIST,
  OPEN_PAREN,
  OPEN_SUBSCRIPT,
  OPEN_BINARY,
  OPEN_NEG
} open_kind;

/* Something begun and not ended: a bracket or an operator. */
typedef struct open_part {
  open_kind kind;
  char op;
  bool has_keyword;
  uint32_t offset;      /* where it starts */
  uint32_t first, last; /* operands so far */
  uint32_t count;
  uint32_t keyword_at;
  weir_sv keyword, name;
} open_part;

struct weir_parser {
  const weir_allocator *alloc;
  weir_ast_vec nodes;
  WEIR_VEC(uint32_t) operands;
  WEIR_VEC(open_part) open;
  /* Of the parse under way. */
  const weir_yaml *src;
  weir_sv text;
  uint32_t at, depth, lists, list_start;
  weir_parse_error *error;
  bool memory;
  bool ascii;
  bool reopened; /* the bracket just closed was followed by another */
};

weir_parser *weir_parser_create(const weir_allocator *alloc) {
  weir_parser *p = weir_alloc_array(alloc, 1, sizeof *p);
  if (p != NULL) p->alloc = alloc;
  return p;
}

void weir_parser_release(weir_parser *p) {
  if (p == NULL) return;
  weir_vec_free(p->alloc, &p->nodes);
  weir_vec_free(p->alloc, &p->operands);
  weir_vec_free(p->alloc, &p->open);
  weir_free(p->alloc, p);
}

weir_ast_vec *weir_parser_nodes(weir_parser *p) {
  return &p->nodes;
}

static bool no_memory(weir_parser *p) {
  p->memory = true;
  return false;
}

static bool fail(weir_parser *p, weir_error_id id, uint32_t offset,
                 uint32_t size, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));

static bool fail(weir_parser *p, weir_error_id id, uint32_t offset,
                 uint32_t size, const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  vsnprintf(p->error->message, sizeof p->error->message, fmt, args);
  va_end(args);
  p->error->id = id;
  p->error->offset = offset;
  p->error->size = size > 0 ? size : 1;
  return false;
}

/* The innermost bracket that is open at the end of the text. */
static void note_open(weir_parser *p) {
  for (size_t i = p->open.count; i-- > 0;) {
    const open_part *part = &p->open.items[i];
    if (part->kind == OPEN_BINARY || part->kind == OPEN_NEG) continue;
    p->error->open = part->offset;
    p->error->open_size = (uint32_t)part->name.size + 1;
    return;
  }
}

static bool fail_found(weir_parser *p, const weir_token *t, const char *want) {
  p->error->hint = weir_operator_hint(p->text, t->offset);
  if (t->kind == WEIR_TOKEN_BAD)
    return fail(p, WEIR_W1101, t->offset, t->size, "%s", t->why);
  if (t->kind == WEIR_TOKEN_END) {
    note_open(p);
    return fail(p, WEIR_W1101, t->offset > 0 ? t->offset - 1 : 0, 1,
                "the text ends here, expected %s", want);
  }
  return fail(p, WEIR_W1101, t->offset, t->size, "found '%.*s', expected %s",
              (int)(t->size < 32 ? t->size : 32), p->text.data + t->offset,
              want);
}

bool weir_parser_emit(weir_parser *p, const weir_ast *node,
                      const uint32_t *roots, uint32_t count) {
  weir_ast n = *node;
  n.first = n.next = n.inject = WEIR_AST_NONE;
  n.count = count;
  n.span = 1;
  for (uint32_t i = 0; i < count; i++) {
    n.span += p->nodes.items[roots[i]].span;
    p->nodes.items[roots[i]].next =
        i + 1 < count ? roots[i + 1] : WEIR_AST_NONE;
  }
  if (count > 0) n.first = roots[0];
  return weir_vec_push(p->alloc, &p->nodes, n);
}

/* Emits a node with the operands first..last, which are linked already. */
static bool emit(weir_parser *p, const weir_ast *node, uint32_t first,
                 uint32_t count) {
  uint32_t index = (uint32_t)p->nodes.count, start = index;
  if (count > 0) start = first + 1 - p->nodes.items[first].span;
  if (p->lists > 0 && index - p->list_start > WEIR_LITERAL_NODES)
    return fail(p, WEIR_W1120, node->offset, node->size,
                "literals hold at most 65536 elements");
  if (!weir_vec_push(p->alloc, &p->nodes, *node) ||
      !weir_vec_push(p->alloc, &p->operands, index))
    return no_memory(p);
  weir_ast *n = &p->nodes.items[index];
  n->src = p->src;
  n->ascii = p->ascii;
  n->first = count > 0 ? first : WEIR_AST_NONE;
  n->next = n->inject = WEIR_AST_NONE;
  n->count = count;
  n->span = index - start + 1;
  return true;
}

static bool push_open(weir_parser *p, open_part part) {
  if (part.kind != OPEN_BINARY && ++p->depth > WEIR_PARSE_DEPTH)
    return fail(p, WEIR_W1003, part.offset, 1,
                "brackets are nested deeper than %d", WEIR_PARSE_DEPTH);
  if (part.kind == OPEN_LIST && p->lists++ == 0)
    p->list_start = (uint32_t)p->nodes.count;
  part.first = part.last = WEIR_AST_NONE;
  return weir_vec_push(p->alloc, &p->open, part) || no_memory(p);
}

/* 0: a bracket; then the operators, and the sign. */
static int strength_of(const open_part *part) {
  if (part->kind == OPEN_NEG) return WEIR_SIGN_STRENGTH;
  return part->kind == OPEN_BINARY ? weir_operator_strength(part->op) : 0;
}

/* Whether the meaning of an operation on |n| depends on names. */
static bool is_named(const weir_ast *n) {
  return n->kind == WEIR_AST_NAME || n->kind == WEIR_AST_CALL || n->named;
}

/* Ends operators that bind at least as tightly as |strength|. */
static bool reduce(weir_parser *p, int strength) {
  while (p->open.count > 0) {
    const open_part *top = &p->open.items[p->open.count - 1];
    if (strength_of(top) < strength) break;
    bool neg = top->kind == OPEN_NEG;
    open_part part = *top;
    p->open.count--;
    if (neg) p->depth--;
    assert(p->operands.count >= (neg ? 1u : 2u));
    uint32_t right = p->operands.items[--p->operands.count];
    const weir_ast *r = &p->nodes.items[right];
    uint32_t end = r->offset + r->size;
    weir_ast n = {.kind = neg ? WEIR_AST_NEG : WEIR_AST_BINARY,
                  .op = part.op,
                  .named = is_named(r),
                  .i = part.offset};
    uint32_t first = right;
    n.offset = part.offset;
    if (!neg) {
      first = p->operands.items[--p->operands.count];
      weir_ast *left = &p->nodes.items[first];
      left->next = right;
      n.offset = left->offset;
      n.named = n.named || is_named(left);
    }
    n.size = end - n.offset;
    if (!emit(p, &n, first, neg ? 1 : 2)) return false;
  }
  return true;
}

/* The operand just read becomes an argument of the innermost bracket. Its
 * operators are ended first, so that nothing but the bracket is on top. */
static bool end_argument(weir_parser *p) {
  if (!reduce(p, 1)) return false;
  open_part *top = &p->open.items[p->open.count - 1];
  uint32_t arg = p->operands.items[--p->operands.count];
  if (top->has_keyword) {
    const weir_ast *value = &p->nodes.items[arg];
    weir_ast n = {.kind = WEIR_AST_KEYWORD,
                  .text = top->keyword,
                  .offset = top->keyword_at,
                  .size = value->offset + value->size - top->keyword_at};
    if (!emit(p, &n, arg, 1)) return false;
    arg = p->operands.items[--p->operands.count];
    top->has_keyword = false;
  }
  if (top->count > 0)
    p->nodes.items[top->last].next = arg;
  else
    top->first = arg;
  top->last = arg;
  top->count++;
  return true;
}

/* ":1" behind a name, or ".field" behind brackets: the lexer takes dots within
 * plain names. */
static bool name_suffix(weir_parser *p, weir_ast *n) {
  n->port = -1;
  if (p->at >= p->text.size) return true;
  if (p->text.data[p->at] == ':') {
    weir_token t;
    weir_lex(p->text, p->at + 1, &t);
    if (t.kind != WEIR_TOKEN_INT || t.i < 0 || t.i > 1 << 20)
      return fail_found(p, &t, "the number of an output");
    n->port = (int32_t)t.i;
    p->at = t.offset + t.size;
  } else if (n->bracketed && p->text.data[p->at] == '.') {
    weir_token t;
    weir_lex(p->text, p->at + 1, &t);
    if (t.kind != WEIR_TOKEN_NAME)
      return fail_found(p, &t, "the name of an output");
    n->field = t.text;
    p->at = t.offset + t.size;
  }
  n->size = p->at - n->offset;
  return true;
}

static bool close_bracket(weir_parser *p, const weir_token *t, bool empty) {
  open_part *top = p->open.count > 0 ? &p->open.items[p->open.count - 1] : NULL;
  if (!empty) {
    if (!reduce(p, 1)) return false;
    top = p->open.count > 0 ? &p->open.items[p->open.count - 1] : NULL;
  }
  bool round = t->punct == ')';
  if (top == NULL ||
      round != (top->kind == OPEN_CALL || top->kind == OPEN_PAREN))
    return fail_found(p, t,
                      top == NULL ? "the end of the text"
                      : round     ? "]"
                                  : ")");
  p->at = t->offset + t->size;
  if (top->kind == OPEN_PAREN) { /* its operand stays as it is */
    p->open.count--;
    p->depth--;
    return true;
  }
  if (!empty && !end_argument(p)) return false;
  top = &p->open.items[p->open.count - 1];
  if (!empty && top->kind == OPEN_SUBSCRIPT && p->at < p->text.size &&
      p->text.data[p->at] == '[') {
    p->at++; /* h[i][j]: one list of subscripts */
    p->reopened = true;
    return true;
  }
  open_part part = *top;
  p->open.count--;
  p->depth--;
  if (part.kind == OPEN_LIST) p->lists--;
  weir_ast n = {
      .offset = part.offset, .size = p->at - part.offset, .text = part.name};
  n.kind = part.kind == OPEN_CALL   ? WEIR_AST_CALL
           : part.kind == OPEN_LIST ? WEIR_AST_LIST
                                    : WEIR_AST_NAME;
  if (part.kind == OPEN_SUBSCRIPT) {
    weir_ast_set_name(&n, part.name);
    n.bracketed = true;
    if (!name_suffix(p, &n)) return false;
  }
  return emit(p, &n, part.first, part.count);
}

/* A name: a keyword, a call, a subscripted name or a plain one. */
static bool operand_name(weir_parser *p, const weir_token *t, bool *expect) {
  p->at = t->offset + t->size;
  char next = p->at < p->text.size ? p->text.data[p->at] : '\0';
  if (next == '(') {
    p->at++;
    return push_open(
        p,
        (open_part){.kind = OPEN_CALL, .offset = t->offset, .name = t->text});
  }
  if (next == '[') {
    p->at++;
    return push_open(
        p, (open_part){
               .kind = OPEN_SUBSCRIPT, .offset = t->offset, .name = t->text});
  }
  open_part *top = p->open.count > 0 ? &p->open.items[p->open.count - 1] : NULL;
  if (top != NULL && top->kind == OPEN_CALL && !top->has_keyword) {
    uint32_t after = p->at;
    while (after < p->text.size && p->text.data[after] == ' ') after++;
    if (after < p->text.size && p->text.data[after] == '=') {
      top->has_keyword = true;
      top->keyword = t->text;
      top->keyword_at = t->offset;
      p->at = after + 1;
      return true;
    }
  }
  *expect = false;
  weir_ast n = {.kind = WEIR_AST_NAME, .offset = t->offset, .size = t->size};
  weir_ast_set_name(&n, t->text);
  return name_suffix(p, &n) && emit(p, &n, 0, 0);
}

static bool operand_punct(weir_parser *p, const weir_token *t, bool *expect) {
  p->at = t->offset + t->size;
  const open_part *top =
      p->open.count > 0 ? &p->open.items[p->open.count - 1] : NULL;
  /* Nothing in the bracket yet: f() and [] are allowed, () is not. */
  bool fresh = top != NULL && top->count == 0 && !top->has_keyword &&
               top->kind != OPEN_BINARY && top->kind != OPEN_NEG &&
               top->kind != OPEN_PAREN;
  switch (t->punct) {
    case '(':
      return push_open(p, (open_part){.kind = OPEN_PAREN, .offset = t->offset});
    case '[':
      return push_open(p, (open_part){.kind = OPEN_LIST, .offset = t->offset});
    case '-':
      return push_open(p, (open_part){.kind = OPEN_NEG, .offset = t->offset});
    case '?':
      *expect = false;
      return emit(
          p,
          &(weir_ast){.kind = WEIR_AST_UNKNOWN, .offset = t->offset, .size = 1},
          0, 0);
    case ')':
    case ']':
      if (!fresh) break;
      *expect = false;
      return close_bracket(p, t, true);
    default:
      break;
  }
  return fail_found(p, t, "a name, a call or a number");
}

/* The smallest integer, whose digits alone do not fit: takes the minus that is
 * before them. */
static bool smallest_int(weir_parser *p, const weir_token *t, weir_ast *n) {
  weir_sv text = {p->text.data + t->offset, t->size};
  if (t->kind != WEIR_TOKEN_BAD || p->open.count == 0 ||
      p->open.items[p->open.count - 1].kind != OPEN_NEG ||
      !weir_sv_is(text, "9223372036854775808"))
    return false;
  n->kind = WEIR_AST_INT;
  n->i = INT64_MIN;
  n->offset = p->open.items[--p->open.count].offset;
  n->size = t->offset + t->size - n->offset;
  p->depth--;
  return true;
}

static bool operand(weir_parser *p, bool *expect) {
  weir_token t;
  weir_lex(p->text, p->at, &t);
  weir_ast n = {.offset = t.offset, .size = t.size};
  switch (t.kind) {
    case WEIR_TOKEN_NAME:
      return operand_name(p, &t, expect);
    case WEIR_TOKEN_PUNCT:
      return operand_punct(p, &t, expect);
    case WEIR_TOKEN_INT:
      n.kind = WEIR_AST_INT;
      n.i = t.i;
      break;
    case WEIR_TOKEN_FLOAT:
      n.kind = WEIR_AST_FLOAT;
      n.f = t.f;
      n.single = t.single;
      break;
    case WEIR_TOKEN_STRING:
      n.kind = WEIR_AST_STRING;
      n.text = t.text;
      break;
    default:
      if (smallest_int(p, &t, &n)) break;
      return fail_found(p, &t, "a name, a call or a number");
  }
  *expect = false;
  p->at = t.offset + t.size;
  return emit(p, &n, 0, 0);
}

static bool binary(weir_parser *p, const weir_token *t) {
  p->at = t->offset + t->size;
  open_part part = {.kind = OPEN_BINARY, .op = t->punct, .offset = t->offset};
  return reduce(p, weir_operator_strength(t->punct)) && push_open(p, part);
}

/* After an operand. Sets |*done| where the expression ends. */
static bool operation(weir_parser *p, bool *expect, bool *done) {
  weir_token t;
  weir_lex(p->text, p->at, &t);
  if (t.kind == WEIR_TOKEN_PUNCT) {
    if (weir_operator_strength(t.punct) > 0) {
      *expect = true;
      return binary(p, &t);
    }
    switch (t.punct) {
      case ')':
      case ']':
        p->reopened = false;
        if (!close_bracket(p, &t, false)) return false;
        *expect = p->reopened;
        return true;
      case ',':
        if (!reduce(p, 1)) return false;
        if (p->open.count == 0 ||
            p->open.items[p->open.count - 1].kind == OPEN_PAREN)
          break;
        p->at = t.offset + 1;
        *expect = true;
        return end_argument(p);
      case '@':
      case '=':
        *done = true;
        break;
      default:
        break;
    }
  }
  if (t.kind == WEIR_TOKEN_END) *done = true;
  if (!*done) return fail_found(p, &t, p->depth > 0 ? ", or )" : "an operator");
  if (!reduce(p, 1)) return false;
  if (p->open.count > 0) return fail_found(p, &t, ", or a closing bracket");
  p->at = t.offset;
  return true;
}

weir_parse_result weir_parse_expr(weir_parser *p, const weir_yaml *src,
                                  uint32_t *offset, weir_parse_error *error) {
  p->src = src;
  p->ascii = weir_ast_is_ascii(src);
  p->text = src->text;
  p->at = *offset;
  p->depth = p->lists = 0;
  p->error = error;
  error->open_size = 0;
  error->hint = NULL;
  p->memory = false;
  p->open.count = p->operands.count = 0; /* nodes stay: callers join trees */
  bool expect = true, done = false, ok = src->text.size < UINT32_MAX / 2;
  if (!ok) fail(p, WEIR_W1013, 0, 1, "the text is too long");
  while (ok && !done)
    ok = expect ? operand(p, &expect) : operation(p, &expect, &done);
  if (p->memory) return WEIR_PARSE_MEMORY;
  assert(!ok || (p->operands.count == 1 && p->open.count == 0));
  *offset = p->at;
  return ok ? WEIR_PARSE_OK : WEIR_PARSE_FAILED;
}

bool weir_parser_take(weir_parser *p, weir_arena *arena, weir_expr *out) {
  out->count = (uint32_t)p->nodes.count;
  out->nodes = weir_arena_alloc(arena, p->nodes.count * sizeof *out->nodes);
  if (out->nodes == NULL) return false;
  memcpy(out->nodes, p->nodes.items, p->nodes.count * sizeof *out->nodes);
  p->nodes.count = 0;
  return true;
}
