/* Key files: `[section]`, `key = value`, `#` starts a comment anywhere. One bounded reader for experiment,
 * hardware, cluster and generator files.
 *
 * It keeps line numbers and the order of the file, and knows no key: what a key may be is its user's table.
 * Owns all of its strings. Errors are DM_ERROR_INPUT with file and line: text outside a section, a line
 * without `=`, an empty name or value, a section or key given twice, text after `]`, a NUL byte, invalid
 * UTF-8, and anything over the limits below. */
#ifndef DM_KEYFILE_H
#define DM_KEYFILE_H

#include <glib.h>

#define KEYFILE_BYTES_MAX    (1024 * 1024)
#define KEYFILE_LINE_MAX     4096
#define KEYFILE_SECTIONS_MAX 256
#define KEYFILE_ENTRIES_MAX  4096 /* in the whole file */

struct keyfile_entry {
  char *key;   /* letters, digits, `_`, `-`, `.` */
  char *value; /* not empty, without surrounding blanks */
  unsigned line;
};

struct keyfile_section {
  char *name; /* `system mps` with one blank between its words */
  unsigned line;
  GArray *entries; /* of struct keyfile_entry, in the order of the file */
};

struct keyfile {
  char *path; /* as given, for messages */
  char *text; /* as read */
  gsize length;
  GPtrArray *sections; /* of struct keyfile_section *, in the order of the file */
};

struct keyfile *keyfile_load(const char *path, GError **error);
/* The same from memory; path is for messages only. text need not end in NUL. */
struct keyfile *keyfile_parse(const char *path, const char *text, gsize length, GError **error);
void keyfile_free(struct keyfile *keyfile);
typedef struct keyfile Keyfile; /* for g_autoptr */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Keyfile, keyfile_free)

/* A key may have this name: letters, digits, `_`, `-`, `.`. */
gboolean keyfile_is_key(const char *text);

/* NULL if there is none. */
const struct keyfile_section *keyfile_section(const struct keyfile *keyfile, const char *name);
const struct keyfile_entry *keyfile_entry(const struct keyfile_section *section, const char *key);

#endif
