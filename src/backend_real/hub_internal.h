/* The hub's state, shared by its three files: control_hub.c (life, sending), hub_members.c (who is in, who is
 * lost) and hub_receive.c (what comes). */
#ifndef DM_HUB_INTERNAL_H
#define DM_HUB_INTERNAL_H

#include "backend_real/admission.h"
#include "backend_real/control_frame.h"
#include "backend_real/control_socket.h"
#include "backend_real/hub_peer.h"

#define HUB_KINDS 4 /* of enum actor_kind */

struct hub {
  struct loop *loop;
  const struct hub_ops *ops;
  void *context;
  struct control_socket control;
  struct admission *admission; /* NULL: no keys */
  struct refusals refusals;
  char *endpoint;
  struct watch *socket_watch, *monitor_watch;
  uint64_t probe_timer, sweep_timer, settle_timer; /* 0 = not set */
  GHashTable *peers;
  struct peer **place[HUB_KINDS]; /* [kind][index]: who holds it */
  GPtrArray *dirty;               /* peers with something to send */
  GPtrArray *pending;             /* peers whose loss is to be told, or who are to be forgotten */
  struct message_rules rules;
  struct peer *speaking; /* whose messages are being handed over */
  guint messages;        /* handed over in this round of the loop */
  gboolean touched;      /* used since it was read empty: its descriptor may not tell what came meanwhile */
};

/* --- members ---------------------------------------------------------------------------------------------*/

void hub_members_init(struct hub *hub);
void hub_members_clear(struct hub *hub);
/* NULL: nobody holds it. */
struct peer *hub_place(const struct hub *hub, actor_id id);
void hub_mark_dirty(struct hub *hub, struct peer *peer);
/* Each of these takes the peer out; its loss, if it had joined, is told in a later round. */
void hub_refuse(struct hub *hub, struct peer *peer, const char *why); /* and tells it why */
void hub_leave(struct hub *hub, struct peer *peer);
void hub_lose_connection(struct hub *hub, struct peer *peer, const char *why);
/* The first frame of a connection. */
void hub_hello(struct hub *hub, struct peer *peer, const struct frame *frame);
/* The peer's routing id is another connection's by now. */
void hub_replace(struct hub *hub, struct peer *peer);

/* --- receiving -------------------------------------------------------------------------------------------*/

gboolean hub_ready(void *context);
void hub_readable(void *context);

#endif
