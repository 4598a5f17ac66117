/* SPDX-License-Identifier: Apache-2.0
 *
 * Errors that travel. The id alone decides the status, by this build's table,
 * so a peer cannot make an error with the status "ok". */
#include "runtime/net/wire_error.h"

#include "runtime/base/utf8.h"

/* protobuf-c has no texts that are const. */
static char *lend(const char *text) {
  return weir_utf8_valid(weir_sv_from(text), NULL) ? (char *)text : (char *)"";
}

void weir_wire_error_put(const weir_error *src, Weir__V1__Error *dst) {
  weir__v1__error__init(dst);
  dst->id = lend(src->id);
  dst->message = lend(src->message);
  dst->hint = lend(src->hint);
  dst->node = lend(src->node);
  dst->file = lend(src->file);
  dst->line = src->line;
  dst->column = src->col;
}

bool weir_wire_error_is(const Weir__V1__Error *src) {
  return src != NULL && src->id[0] != '\0';
}

weir_status weir_wire_error_get(const Weir__V1__Error *src, weir_error *dst) {
  weir_error_id id = WEIR_W_NONE;
  const char *known;
  weir_status s;
  for (int i = 0; (known = weir_error_id_at(i)) != NULL; i++)
    if (strcmp(known, src->id) == 0) id = (weir_error_id)(i + 1);
  weir_mark at = {src->file, src->line, src->column, src->line, src->column};
  const weir_mark *place = src->file[0] != '\0' ? &at : NULL;
  if (id == WEIR_W_NONE)
    s = weir_fail(dst, WEIR_W7010, place,
                  "a peer reports %s, which this build does not know: %s",
                  src->id, src->message);
  else
    s = weir_fail(dst, id, place, "%s", src->message);
  if (src->hint[0] != '\0') weir_hint(dst, "%s", src->hint);
  if (src->node[0] != '\0')
    weir_error_set_node(dst, src->node, strlen(src->node));
  return s;
}
