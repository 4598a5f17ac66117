/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/train/loop/sample.h"

#include <math.h>
#include <string.h>

#include "runtime/base/map.h"
#include "runtime/base/utf8.h"
#include "runtime/base/vec.h"
#include "runtime/exec/session/session_run.h"
#include "runtime/train/data/data_open.h"
#include "runtime/train/data/data_vocabulary.h"
#include "runtime/train/source/source_text.h"

/* Text from a language model, token by token: the last tokens are fed, the
 * scores at the last place give the next one, so each token costs a run over
 * the whole window. A draw is a function of the seed and the token's number:
 * the same seed gives the same text. */

enum { FREE_STEPS = 256 }; /* fed at most where the graph leaves it open */

typedef struct sampler {
  const weir_env *env;
  const weir_graph *graph;
  weir_exec_session *session;
  const weir_sample_options *o;
  weir_dataset *data;
  const weir_vocabulary *vocabulary;
  bool words;
  weir_sv end_of_line;
  weir_value_id input;
  int64_t rows, steps; /* of the input; |steps| 0: open */
  WEIR_VEC(int32_t) tokens;
  double *shares; /* one for each entry of the vocabulary */
} sampler;

/* ---- Candidates */

static weir_status unfit(const sampler *s, const char *what, weir_error *err) {
  return weir_fail(err, WEIR_W5027, NULL, "data %.*s: %s", WEIR_SV(s->o->data),
                   what);
}

/* The input that a column with a vocabulary feeds. */
static weir_status find_input(sampler *s, weir_error *err) {
  for (uint32_t c = 0; c < weir_dataset_column_count(s->data); c++) {
    weir_sv name = weir_dataset_column(s->data, c)->name;
    const weir_vocabulary *v = weir_dataset_vocabulary(s->data, name);
    for (uint32_t i = 0; v != NULL && i < s->graph->input_count; i++) {
      if (!weir_sv_equal(s->graph->inputs[i].name, name)) continue;
      s->vocabulary = v;
      s->input = s->graph->inputs[i].value;
      const weir_value *value = &s->graph->values[s->input];
      if (value->shape->rank != 2 || value->dtype != WEIR_I32) break;
      const weir_dim *d = value->shape->dims;
      s->rows = weir_dim_known(d[0]) ? d[0].value : 1;
      s->steps = weir_dim_known(d[1]) ? d[1].value : 0;
      return WEIR_OK;
    }
  }
  return unfit(s, "no column with a vocabulary feeds an i32[batch, steps]",
               err);
}

static weir_status open_data(sampler *s, weir_error *err) {
  weir_arena arena;
  weir_data_spec *spec = NULL;
  weir_text_options options;
  weir_arena_init(&arena, s->env->alloc);
  weir_status status =
      weir_data_spec_read(s->graph, s->o->data, &arena, &spec, err);
  if (status == WEIR_OK) {
    if (spec->source != &weir_source_text)
      status = unfit(s, "text is sampled from a source: text", err);
  }
  if (status == WEIR_OK) status = weir_text_options_read(spec, &options, err);
  if (status == WEIR_OK) {
    s->words = options.words;
    s->end_of_line = options.end_of_line; /* lives in the graph */
  }
  weir_arena_release(&arena);
  WEIR_TRY(status);
  WEIR_TRY(weir_dataset_open(s->env, s->graph, s->o->data, &s->o->dataset,
                             &s->data, err));
  WEIR_TRY(find_input(s, err));
  if (s->graph->output_count == 0)
    return unfit(s, "the graph has no output", err);
  size_t n = (size_t)weir_vocabulary_count(s->vocabulary);
  s->shares = weir_alloc_array(s->env->alloc, n, sizeof *s->shares);
  return s->shares != NULL ? WEIR_OK : weir_fail_memory(err, n);
}

/* ---- The prompt */

static weir_status add_token(sampler *s, weir_sv text, weir_error *err) {
  int32_t index = weir_vocabulary_find(s->vocabulary, text);
  if (index < 0)
    return weir_fail(err, WEIR_W4032, NULL,
                     "the prompt's '%.*s' is not in the vocabulary",
                     WEIR_SV(text));
  if (weir_vec_push(s->env->alloc, &s->tokens, index)) return WEIR_OK;
  return weir_fail_memory(err, sizeof index);
}

static bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\n';
}

static weir_status read_words(sampler *s, weir_sv text, weir_error *err) {
  for (size_t at = 0; at < text.size;) {
    if (text.data[at] == '\n' && s->end_of_line.size > 0)
      WEIR_TRY(add_token(s, s->end_of_line, err));
    if (is_blank(text.data[at])) {
      at++;
      continue;
    }
    size_t from = at;
    while (at < text.size && !is_blank(text.data[at])) at++;
    WEIR_TRY(add_token(s, (weir_sv){text.data + from, at - from}, err));
  }
  return WEIR_OK;
}

static weir_status read_prompt(sampler *s, weir_error *err) {
  weir_sv text = s->o->prompt;
  if (!weir_utf8_valid(text, NULL))
    return weir_fail(err, WEIR_W5027, NULL, "the prompt is not UTF-8");
  if (s->words) {
    WEIR_TRY(read_words(s, text, err));
  } else {
    for (size_t at = 0; at < text.size;) {
      size_t from = at++;
      while (at < text.size && ((unsigned char)text.data[at] & 0xC0) == 0x80)
        at++;
      WEIR_TRY(add_token(s, (weir_sv){text.data + from, at - from}, err));
    }
  }
  if (s->tokens.count > 0) return WEIR_OK;
  return weir_fail(err, WEIR_W5027, NULL,
                   "the prompt is empty: one token is needed to begin");
}

/* ---- Drawing */

/* Uniform in [0, 1), of the seed and the token's number. */
static double uniform(const sampler *s) {
  uint64_t key[2] = {s->o->seed, s->tokens.count};
  return (double)(weir_hash_bytes(key, sizeof key, 0x5a) >> 11) * 0x1p-53;
}

/* A token with the probability of softmax(scores / temperature), by going along
 * the cumulative sum. The largest score is taken off first, so that exp does
 * not overflow. */
static int32_t draw(sampler *s, const float *scores) {
  int32_t n = weir_vocabulary_count(s->vocabulary), best = 0;
  double sum = 0;
  for (int32_t i = 1; i < n; i++)
    if (scores[i] > scores[best]) best = i;
  if (s->o->temperature <= 0) return best;
  for (int32_t i = 0; i < n; i++) {
    double x = ((double)scores[i] - (double)scores[best]) / s->o->temperature;
    sum += s->shares[i] = exp(x);
  }
  double left = uniform(s) * sum;
  for (int32_t i = 0; i < n; i++) {
    left -= s->shares[i];
    if (left < 0) return i;
  }
  return best; /* rounding, or scores that are no numbers */
}

/* Feeds the text so far; |*out_at| is its last place. */
static weir_status run(sampler *s, weir_exec_fetch *fetch, size_t *out_at,
                       weir_error *err) {
  size_t count = s->tokens.count;
  size_t most = s->steps > 0 ? (size_t)s->steps : FREE_STEPS;
  size_t used = count < most ? count : most;
  int64_t dims[2] = {s->rows, s->steps > 0 ? s->steps : (int64_t)used};
  weir_shape shape = weir_shape_of(2, dims);
  weir_exec_feed feed = {.value = s->input};
  WEIR_TRY(weir_tensor_create_shaped(s->env->alloc, WEIR_I32, &shape,
                                     &feed.tensor, err));
  memset(feed.tensor->data, 0, feed.tensor->bytes);
  memcpy(feed.tensor->data, s->tokens.items + (count - used),
         used * sizeof *s->tokens.items);
  weir_exec_request request = {
      .feeds = &feed, .feed_count = 1, .fetches = fetch, .fetch_count = 1};
  weir_status status = weir_exec_run(s->session, &request, err);
  weir_tensor_unref(feed.tensor);
  *out_at = used - 1;
  return status;
}

static weir_status next(sampler *s, int32_t *out_token, weir_error *err) {
  weir_exec_fetch fetch = {.value = s->graph->outputs[0].value};
  size_t at = 0;
  weir_status status = run(s, &fetch, &at, err);
  int64_t n = weir_vocabulary_count(s->vocabulary);
  const weir_tensor *t = fetch.tensor;
  if (status == WEIR_OK) {
    const weir_shape *shape = &t->shape;
    int64_t last = shape->rank > 1 ? shape->dims[shape->rank - 1].value : 0;
    int64_t places = last > 0 ? weir_shape_elements(shape) / last : 0;
    if (t->dtype != WEIR_F32 || last < n || places <= (int64_t)at)
      status = unfit(s, "the output is no f32[batch, steps, vocabulary]", err);
    else
      *out_token = draw(s, (const float *)t->data + at * (size_t)last);
  }
  weir_tensor_unref(fetch.tensor);
  return status;
}

/* ---- Writing */

static weir_status put(const sampler *s, weir_sv text, weir_error *err) {
  if (s->o->out.write(s->o->out.self, text.data, text.size)) return WEIR_OK;
  return weir_fail(err, WEIR_W5009, NULL, "the text cannot be written");
}

static weir_status put_token(const sampler *s, size_t i, weir_error *err) {
  weir_sv text = weir_vocabulary_text(s->vocabulary, s->tokens.items[i]);
  if (!s->words) return put(s, text, err);
  if (s->end_of_line.size > 0 && weir_sv_equal(text, s->end_of_line))
    return put(s, WEIR_SV_LIT("\n"), err);
  WEIR_TRY(put(s, text, err));
  return put(s, WEIR_SV_LIT(" "), err);
}

static weir_status sample(sampler *s, weir_error *err) {
  WEIR_TRY(open_data(s, err));
  WEIR_TRY(read_prompt(s, err));
  for (size_t i = 0; i < s->tokens.count; i++) WEIR_TRY(put_token(s, i, err));
  for (uint64_t i = 0; i < s->o->count; i++) {
    int32_t token = 0;
    WEIR_TRY(next(s, &token, err));
    if (!weir_vec_push(s->env->alloc, &s->tokens, token))
      return weir_fail_memory(err, sizeof token);
    WEIR_TRY(put_token(s, s->tokens.count - 1, err));
  }
  return put(s, WEIR_SV_LIT("\n"), err);
}

weir_status weir_sample(const weir_env *env, const weir_graph *graph,
                        weir_exec_session *session,
                        const weir_sample_options *options, weir_error *err) {
  sampler s = {.env = env, .graph = graph, .session = session, .o = options};
  weir_status status = sample(&s, err);
  weir_dataset_release(s.data);
  weir_free(env->alloc, s.shares);
  weir_vec_free(env->alloc, &s.tokens);
  return status;
}
