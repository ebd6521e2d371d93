/* What a process says of itself: GLib's structured log, from a level on, to standard error as text or as
 * JSON, one object a line, or to the journal under systemd. Every line carries, as fields, ROLE and INDEX of
 * the process and the RUN that is on; messages of the control plane add EVENT, PEER, REASON and the like.
 *
 * Domains: none (the roles' own lines), "control", "transport", "metrics", and GLib's. */
#ifndef DM_LOG_H
#define DM_LOG_H

#include <glib.h>
#include "core/world.h"

/* levels: LEVEL[,DOMAIN=LEVEL]…, each of error, warning, info or debug (messages, g_message, count as info);
 * "roles" names lines without a domain. format: "text", "json" or NULL = text. Once, before threads begin.
 * DM_ERROR_INPUT: neither. */
gboolean log_setup(const char *levels, const char *format, GError **error);
/* Which role's process this is. */
void log_process(actor_id self);
/* The run that is on, 0 = none. */
void log_run(uint32_t run);

#endif
