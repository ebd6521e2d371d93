/* Files that commands write: whether they may, asked before any work is done.
 *
 * A file appears whole under its name or not at all: it is written beside it and renamed. What is there
 * already is replaced only with --force. */
#ifndef DM_OUTPUT_FILE_H
#define DM_OUTPUT_FILE_H

#include <glib.h>

/* Where results lie that were given no name. */
#define OUTPUT_FOLDER "results"
/* The file there of what has this name, which may be any text: NAME with "_" for what leads into another
 * folder or hides the file, cut where it is too long for one, and then the ending. Free with g_free. */
char *output_file_default(const char *name, const char *ending);

/* Beside a file stand others whose names are its own and an ending. FALSE + DM_ERROR_INPUT: its name is too
 * long for the longest of them. */
gboolean output_name_check(const char *path, const char *longest_ending, GError **error);

/* FALSE + DM_ERROR_INPUT: path exists and force is not given, is no regular file (a folder, a device: the
 * rename would fail after all the work, or take the device's place), lies where nothing can be
 * written, or has a name that leaves no room for the endings of what is written before it. */
gboolean output_file_check(const char *path, gboolean force, GError **error);
/* Two outputs of one command, either may be NULL. FALSE + DM_ERROR_INPUT: they are one file. */
gboolean output_files_differ(const char *a, const char *b, GError **error);

#endif
