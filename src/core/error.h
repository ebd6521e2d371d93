/* The project's GError domain. The code says how the program ends: bad input 2, a failed run 1, Ctrl-C 130.
 */
#ifndef DM_ERROR_H
#define DM_ERROR_H

#include <glib.h>

#define DM_ERROR (dm_error_quark())

enum dm_error {
  DM_ERROR_INPUT,  /* a file or an argument is wrong: message names file, line, expected, found; exit 2 */
  DM_ERROR_FAILED, /* the run could not be done (disk full, a limit hit); exit 1 */
  DM_ERROR_INTERRUPTED, /* Ctrl-C; what was done is kept; exit 130 */
};

GQuark dm_error_quark(void);

/* "FILE:LINE: message" (line 0: no line) as a DM_ERROR_INPUT. Always returns FALSE, so callers can return it.
 */
gboolean input_error(GError **error, const char *file, unsigned line, const char *format, ...)
    G_GNUC_PRINTF(4, 5);

#endif
