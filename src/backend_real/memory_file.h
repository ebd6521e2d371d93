/* A small file in memory, for this process and for those that it starts: they read it by its path. Once they
 * have ended, however they did, nothing is left of it. */
#ifndef DM_MEMORY_FILE_H
#define DM_MEMORY_FILE_H

#include <glib.h>

struct memory_file {
  int fd;     /* -1: none */
  char *path; /* "/proc/self/fd/7": the same in all of them */
};

/* For its owner's eyes only (mode 0600). name: for people who look at the process. */
gboolean memory_file_make(struct memory_file *file, const char *name, const char *text, GError **error);
/* In a child, before exec: stays open. Elsewhere it ends with exec. */
void memory_file_keep(const struct memory_file *file);
void memory_file_close(struct memory_file *file);

#endif
