/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_TRAIN_VOCABULARY_H_
#define WEIR_TRAIN_VOCABULARY_H_

#include "runtime/base/strbuf.h"

/* Vocabularies: texts with an index each.
 *
 * Built by counting: the entry for unknown texts first, if one is asked for,
 * then the most frequent texts, those of equal count in byte order; so the same
 * data give the same vocabulary. A file of one has an entry per line; \n, \r,
 * \t and \\ stand for characters that would break a line. Immutable once made,
 * for any number of threads. */
typedef struct weir_vocabulary weir_vocabulary;
typedef struct weir_vocabulary_builder weir_vocabulary_builder;

/* An empty count of texts. Errors: W6001. */
weir_status weir_vocabulary_builder_create(const weir_allocator *alloc,
                                           weir_vocabulary_builder **out,
                                           weir_error *err);
void weir_vocabulary_builder_release(weir_vocabulary_builder *builder);
/* Counts |text|, which is copied. Errors: W6001; W6003 past 2^32 - 2 texts. */
weir_status weir_vocabulary_builder_add(weir_vocabulary_builder *builder,
                                        weir_sv text, weir_error *err);
/* The vocabulary of the texts counted: at most |size| entries (0: all), the one
 * called |unknown| (empty: none) among them. */
weir_status weir_vocabulary_builder_finish(
    const weir_vocabulary_builder *builder, int64_t size, weir_sv unknown,
    weir_vocabulary **out_vocabulary, weir_error *err);

/* A vocabulary as it is written. */
typedef struct weir_vocabulary_list {
  const weir_sv *texts; /* in their order; they must differ */
  size_t count;
  weir_sv unknown;  /* one of them, or is put first; empty: none */
  const char *file; /* for errors */
} weir_vocabulary_list;

/* Errors: W4032, W6001. */
weir_status weir_vocabulary_from(const weir_allocator *alloc,
                                 const weir_vocabulary_list *list,
                                 weir_vocabulary **out_vocabulary,
                                 weir_error *err);
/* Reads the content of a vocabulary file, which |file| names in messages.
 * Errors: W4032, W6001. */
weir_status weir_vocabulary_parse(const weir_allocator *alloc, weir_sv content,
                                  weir_sv unknown, const char *file,
                                  weir_vocabulary **out_vocabulary,
                                  weir_error *err);
/* Appends the file's content to |out|. Errors: W6001. */
weir_status weir_vocabulary_write(const weir_vocabulary *vocabulary,
                                  weir_strbuf *out, weir_error *err);

weir_vocabulary *weir_vocabulary_ref(weir_vocabulary *vocabulary); /* one more
                                                                    reference */
void weir_vocabulary_release(weir_vocabulary *vocabulary); /* NULL-safe */

/* The index of |text|; that of unknown texts when it has none; else -1. */
int32_t weir_vocabulary_find(const weir_vocabulary *vocabulary, weir_sv text);
/* Entries, and the text of one, which must exist; lent. */
int32_t weir_vocabulary_count(const weir_vocabulary *vocabulary);
weir_sv weir_vocabulary_text(const weir_vocabulary *vocabulary, int32_t index);

#endif
