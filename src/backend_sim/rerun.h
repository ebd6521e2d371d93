/* Feeds a recording of a run (harness/recording.h) to the core again: every actor of it, one after another,
 * from the configuration that it had. */
#ifndef DM_RERUN_H
#define DM_RERUN_H

#include <glib.h>
#include <stdint.h>

struct rerun_totals {
  uint32_t actors, cut; /* cut: of those, recorded up to a point only */
  uint64_t inputs, outputs;
};

/* Adds to *totals. told: called with a line about each actor, may be NULL. FALSE + DM_ERROR_FAILED: an actor
 * did otherwise, or its configuration is not what it was; DM_ERROR_INPUT: the file is none of a recording. */
gboolean rerun_file(const char *path, struct rerun_totals *totals, void (*told)(const char *line),
                    GError **error);

#endif
