/* Where names and relative paths of an experiment are looked for: the folder of the file that names them, the
 * working directory, the source tree (DM_SOURCE_DIR, if built in), the installed data (DM_DATA_DIR, if built
 * in).
 *
 * resolve_path itself is declared in experiment.h. */
#ifndef DM_RESOLVE_H
#define DM_RESOLVE_H

#include <glib.h>

/* A file or folder that ships under experiments/KIND ("hardware", "profiles"): KIND/LEAF, ../KIND/LEAF (for a
 * file in experiments/scenarios) or experiments/KIND/LEAF in any of the places above. NULL if there is none.
 */
char *resolve_shipped(const char *kind, const char *leaf, const char *near_file);

#endif
