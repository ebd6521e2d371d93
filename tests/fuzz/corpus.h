/* The inputs that a fuzz run starts from, read from files. Sorted by name: nothing depends on a folder's
 * order. */
#ifndef DM_FUZZ_CORPUS_H
#define DM_FUZZ_CORPUS_H

#include <glib.h>
#include <stdint.h>

struct corpus;
typedef struct corpus Corpus; /* for g_autoptr */

struct corpus *corpus_new(void);
void corpus_free(struct corpus *corpus);
/* Adds a file, or every file below a folder. Errors: cannot be read, larger than size_max bytes. */
gboolean corpus_add(struct corpus *corpus, const char *path, size_t size_max, GError **error);
size_t corpus_count(const struct corpus *corpus);
const char *corpus_name(const struct corpus *corpus, size_t index);
const uint8_t *corpus_input(const struct corpus *corpus, size_t index, size_t *size);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(Corpus, corpus_free)

#endif
