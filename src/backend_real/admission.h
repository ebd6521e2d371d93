/* Who may connect to a hub: ZeroMQ's authentication protocol (ZAP, its RFC 27), answered by a thread.
 *
 * A peer may if a .pub file of the folder holds its key; the folder is read anew for each connection. One
 * public key's file does for a folder. The user id that a connection gets is its public key. */
#ifndef DM_ADMISSION_H
#define DM_ADMISSION_H

#include "backend_real/control_log.h"

struct admission;

/* Before the hub binds; in its context. refusals must outlive it. NULL + DM_ERROR_INPUT: the folder cannot be
 * read. */
struct admission *admission_new(void *zmq_context, const char *authorized, struct refusals *refusals,
                                GError **error);
/* After the context was shut down: that is what ends the thread. */
void admission_free(struct admission *admission);

#define ADMISSION_DOMAIN "distmind"

#endif
