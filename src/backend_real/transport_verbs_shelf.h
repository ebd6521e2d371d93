/* Inside the verbs shelf: what its two files share. All fields below the lock are under it. */
#ifndef DM_TRANSPORT_VERBS_SHELF_H
#define DM_TRANSPORT_VERBS_SHELF_H

#include "backend_real/transport_log.h"
#include "backend_real/transport_verbs.h"
#include "backend_real/transport_verbs_letter.h"
#include "backend_real/transport_verbs_rails.h"
#include "backend_real/transport_verbs_spans.h"

/* For readers to go over from a registration of which only a part is served on. */
#define LEAVE_NS (2 * NS_PER_S)

/* A reader that may come; kept until the end, since its window of tickets must outlive it. */
struct visitor {
  actor_id reader;
  gboolean admitted;
  struct ticket_secret secret;
  struct ticket_window window;
  uint64_t attempt; /* that has the lines; 0: it has none */
  struct verbs_line *line[VERBS_LINES_MAX];
  uint32_t lines;
  uint64_t follows; /* the serial of the last letter of regions that it has gone over to */
  uint64_t bytes;   /* of this attempt, as it told */
};

/* A registered part of an image. */
struct region {
  struct span span; /* must be first */
  uint64_t place;   /* in memory */
  struct verbs_exposed exposed[VERBS_RAILS_MAX];
  gboolean whole; /* registered with every NIC */
  /* Of one that is registered until readers have gone over. */
  uint64_t serial;
  gint64 deadline_ns;
  struct region *next;
};

struct shelf {
  struct transport_log log;
  struct memory memory;
  uint32_t index;
  int address_fd; /* holds the address */
  char *address;
  void (*post)(void *context, actor_id reader, const void *letter, size_t size);
  void *context;
  const struct verbs_queue_ops *ops;
  struct verbs_end *rail[VERBS_RAILS_MAX];
  struct rail place[VERBS_RAILS_MAX]; /* of each; lines: not kept */
  uint32_t rails;
  int bell; /* of the thread */
  GThread *thread;

  GMutex lock;
  gboolean stop;
  GHashTable *visitors;           /* actor_id -> struct visitor; looked up */
  GPtrArray *in_order;            /* the same, in the order in which they came */
  struct spans *regions;          /* of struct region */
  struct region *leaving;         /* registered until readers have gone over; in no order */
  uint64_t serial;                /* of the last letter of regions */
  GArray *untold;                 /* of struct verbs_region: changes that no reader was told of */
  char *failure;                  /* the first thing that could not be served; NULL: none */
  uint64_t refused, bytes_before; /* bytes: of attempts that are over */
};

/* transport_verbs_serve.c; all under the lock */

/* Tells a reader that was just accepted all regions. */
void shelf_tell_all(struct shelf *shelf, struct visitor *visitor);
/* Takes back registrations from which readers have gone over or had time to. Returns when the next one's time
 * is over; 0: there is none. */
gint64 shelf_retire(struct shelf *shelf, gint64 now);
/* All of them. */
void shelf_retire_all(struct shelf *shelf);

#endif
