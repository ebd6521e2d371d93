/* The recording of a cluster on one machine: the files of its processes before and after (recording.h). */
#ifndef DM_LOCAL_RECORD_H
#define DM_LOCAL_RECORD_H

#include <glib.h>

/* Nothing of an earlier recording is in the way of path. force: what is there is removed. whole: path itself
 * is going to be written. FALSE + DM_ERROR. */
gboolean local_record_clear(const char *path, gboolean whole, gboolean force, GError **error);
/* Makes one file of those that the processes have left. */
gboolean local_record_join(const char *path, GError **error);

#endif
