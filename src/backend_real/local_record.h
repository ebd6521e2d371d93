/* The recording of a cluster on one machine: the files of its processes before and after (recording.h). */
#ifndef DM_LOCAL_RECORD_H
#define DM_LOCAL_RECORD_H

#include <glib.h>

/* No process's file of an earlier recording, which was killed, is in the way of path's. force: what is there
 * is removed. FALSE + DM_ERROR. */
gboolean local_record_clear(const char *path, gboolean force, GError **error);
/* Makes one file, path, of those that the processes have left; what stood there before is replaced now. */
gboolean local_record_join(const char *path, GError **error);

#endif
