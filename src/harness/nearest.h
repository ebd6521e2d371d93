/* The known word nearest to a mistyped one, for messages: "unknown key "gpu_server", nearest is
 * "gpu_servers"". */
#ifndef DM_NEAREST_H
#define DM_NEAREST_H

#include <glib.h>

/* Least number of single-character insertions, deletions and replacements that turn a into b (Levenshtein
 * 1966). Words are cut at 64 bytes. */
unsigned edit_distance(const char *a, const char *b);

/* The word of known (NULL-terminated) with the least edit distance, the first of equals; NULL if known is
 * empty. */
const char *nearest_word(const char *word, const char *const *known);

#endif
