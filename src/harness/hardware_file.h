/* Hardware files: experiments/hardware/NAME.ini, one section [hardware]; the table of their keys.
 *
 * hardware_load is declared in experiment.h. Keys, units, bounds, defaults and meanings are
 * hardware_settings; the same rows serve [cluster] of an experiment, where any of these keys may be set for
 * one experiment. */
#ifndef DM_HARDWARE_FILE_H
#define DM_HARDWARE_FILE_H

#include "core/hardware.h"
#include "harness/keyfile.h"
#include "harness/setting.h"

/* Flag of a row: set in [cluster] it also acts on the memory servers. */
#define HARDWARE_NETWORK 1u

extern const struct setting hardware_settings[]; /* ends in a row with key NULL */

/* Path of a hardware file: name is a bare name or a path. NULL + DM_ERROR_INPUT without file and line. */
char *hardware_find(const char *name, const char *near_file, GError **error);
/* Reads the file at path; hardware->name becomes the file's name without ".ini". */
gboolean hardware_read(const char *path, struct hardware *hardware, GError **error);
/* The same from memory; path is for the name and for messages. */
gboolean hardware_parse(const char *path, const char *text, gsize length, struct hardware *hardware,
                        GError **error);
/* Appends "# key = value   # source" for every key of the file at path, as comments of --print-config; keys
 * in overridden (NULL-terminated) are said to be so. */
gboolean hardware_print(GString *out, const char *path, const char *const *overridden, GError **error);

#endif
