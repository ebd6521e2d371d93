/* Writes small safetensors files for tests, and packs them. */
#ifndef SAFETENSORS_FILE_H
#define SAFETENSORS_FILE_H

#include <glib.h>
#include <stdint.h>

/* FOLDER/NAME: the header's length, the header, the data. Free the path. */
char *safetensors_write(const char *folder, const char *name, const char *json, const uint8_t *data,
                        size_t bytes);

/* A folder of the test's own under $TMPDIR, and its end. */
char *scratch_new(void);
void scratch_remove(char *folder);
typedef char Scratch; /* for g_autoptr */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Scratch, scratch_remove)
/* How many files are in it. */
unsigned scratch_files(const char *folder);

#endif
