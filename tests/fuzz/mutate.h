/* Random mutations of a corpus. Bytes: flips, insertions, deletions, block copies, splices of two inputs.
 * Line formats: lines, and the fields between separators, deleted, doubled, moved, swapped, or replaced by
 * numbers that parsers fall over or by a field of another input. The sequence is a function of corpus and
 * seed. */
#ifndef DM_FUZZ_MUTATE_H
#define DM_FUZZ_MUTATE_H

#include "corpus.h"

struct mutator;
typedef struct mutator Mutator; /* for g_autoptr */

/* size_max: bytes of an input, 0 = twice the largest of the corpus and at least 256. The corpus is borrowed,
 * not empty. */
struct mutator *mutator_new(const struct corpus *corpus, gint64 seed, size_t size_max);
void mutator_free(struct mutator *mutator);
/* The next input, valid until the next call. */
const uint8_t *mutator_next(struct mutator *mutator, size_t *size);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(Mutator, mutator_free)

#endif
