/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/train/ended.h"

#include <string.h>

bool weir_train_is_over(weir_train_end end) {
  return end != WEIR_TRAIN_END_GOING && end != WEIR_TRAIN_END_STOPPED &&
         end != WEIR_TRAIN_END_FAILED;
}

void weir_train_ended_write(weir_json_writer *w,
                            const weir_train_ended *ended) {
  weir_json_key(w, "saves");
  weir_json_uint(w, ended->saves);
  if (ended->end == WEIR_TRAIN_END_GOING) return;
  weir_json_key(w, "ended");
  weir_json_string(w, weir_sv_from(weir_train_end_name(ended->end)));
}

/* The end of that name; GOING for one of a newer version. */
static weir_train_end end_of(const weir_json_reader *r) {
  for (int i = 0; i <= (int)WEIR_TRAIN_END_FAILED; i++)
    if (weir_json_text_is(r, weir_train_end_name((weir_train_end)i)))
      return (weir_train_end)i;
  return WEIR_TRAIN_END_GOING;
}

weir_status weir_train_ended_read(weir_sv extra, weir_train_ended *out_ended,
                                  weir_error *err) {
  weir_json_reader r;
  weir_json_token token;
  *out_ended = (weir_train_ended){WEIR_TRAIN_END_GOING, 0};
  if (extra.size == 0) return WEIR_OK;
  weir_json_reader_init(&r, extra, "checkpoint", NULL);
  WEIR_TRY(weir_json_expect(&r, WEIR_JSON_OBJECT_BEGIN, err));
  for (;;) {
    WEIR_TRY(weir_json_next(&r, &token, err));
    if (token == WEIR_JSON_OBJECT_END) return WEIR_OK;
    bool end = weir_json_text_is(&r, "ended");
    bool saves = weir_json_text_is(&r, "saves");
    if (!end && !saves) {
      WEIR_TRY(weir_json_skip(&r, err));
      continue;
    }
    int64_t n = 0;
    WEIR_TRY(weir_json_next(&r, &token, err));
    if (token == WEIR_JSON_OBJECT_BEGIN || token == WEIR_JSON_ARRAY_BEGIN)
      return WEIR_OK; /* of a newer version */
    if (end && token == WEIR_JSON_STRING) out_ended->end = end_of(&r);
    if (saves && token == WEIR_JSON_NUMBER && weir_json_get_int(&r, &n) &&
        n > 0)
      out_ended->saves = (uint64_t)n;
  }
}
