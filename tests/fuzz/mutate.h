/* The inputs of a fuzz run: the corpus read from files, and random mutations of it. Mutations are bytes
 * (flips, insertions, deletions, block copies, splices of two inputs) and, for line formats, lines and the
 * fields between separators (deleted, doubled, swapped, replaced by numbers that parsers fall over or by a
 * field of another input). A mutator's sequence is a function of corpus and seed. Names are sorted; nothing
 * depends on a folder's order. */
#ifndef DM_FUZZ_MUTATE_H
#define DM_FUZZ_MUTATE_H

#include <glib.h>
#include <stdint.h>

typedef struct corpus Corpus; /* for g_autoptr */

struct corpus *corpus_new(void);
void corpus_free(struct corpus *corpus);
/* Adds a file, or every plain file below a folder. Errors: cannot be read, larger than size_max bytes. */
gboolean corpus_add(struct corpus *corpus, const char *path, size_t size_max, GError **error);
size_t corpus_count(const struct corpus *corpus);
const char *corpus_name(const struct corpus *corpus, size_t index);
const uint8_t *corpus_input(const struct corpus *corpus, size_t index, size_t *size);

typedef struct mutator Mutator; /* for g_autoptr */

/* size_max: bytes of an input, 0 = twice the largest of the corpus and at least 256. The corpus is borrowed,
 * not empty. */
struct mutator *mutator_new(const struct corpus *corpus, gint64 seed, size_t size_max);
void mutator_free(struct mutator *mutator);
/* The next input, valid until the next call. */
const uint8_t *mutator_next(struct mutator *mutator, size_t *size);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(Corpus, corpus_free)
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Mutator, mutator_free)

#endif
