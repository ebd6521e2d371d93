/* A GPU server's real world between an actor that loads one drawn model and computes it, and its parts: the
 * host device, and a transport that the test drives read by read, in any order and with failures, or TCP. */
#ifndef DM_WORLD_LAB_H
#define DM_WORLD_LAB_H

#include "backend_real/real_world.h"

#define SERVERS 4
#define ROUNDS  60

/* The transport by hand. */
struct asked {
  uint32_t server, bytes, gpu;
  uint64_t offset, to, tag;
};

struct reader {
  struct reader_config config;
  GArray *asked; /* of struct asked, not yet answered */
  GArray *first; /* of struct asked: all before the first answer, in order */
  guint answers;
  uint64_t received;
  uint64_t dropped; /* bits of servers */
};

extern struct reader *the_reader; /* one test a process */

struct world_lab_options {
  gboolean direct;                 /* loads land in GPU memory */
  gboolean tcp;                    /* over TCP, from SERVERS shelves in this process */
  const struct device_ops *device; /* NULL: the host */
};

enum { TAG_FETCH = 1, TAG_COPY = 1000, TAG_COMPUTE = 2000 };

struct world_lab {
  struct world_lab_options is;
  struct loop *loop;
  struct real_world *rw;
  struct config config;
  struct server_config server;
  struct catalog *catalog;
  struct images *images;
  struct host_memory memory;
  struct grouping *grouping;
  struct placement *placement;
  struct fetch_plan *plan;
  GRand *rand;
  struct ssd_store *store; /* NULL: the model is read from memory servers; else freed with the lab */
  uint64_t ring;
  struct range host_range, gpu_range;
  op_id fetch;
  uint64_t window; /* of the fetch, 0: none */
  guint wait, ended[3000];
  enum op_status status[3000];
  uint32_t landed; /* what the fetch's end told */
  int64_t deadline;
  gboolean fails;    /* some reads do; each has a second try */
  GHashTable *tried; /* set of offsets of the image: the first read of each fails; NULL: does not */
  gboolean
      copies_nothing; /* world_lab_load queues the fetch alone, and ends too when no read comes any more */
  guint idle;         /* ticks without a read */
  guint lost;
  struct shelf *shelf[SERVERS]; /* tcp */
  uint8_t *pool;                /* their memory */
};

/* options are copied. */
void world_lab_open(struct world_lab *lab, uint32_t seed, const struct world_lab_options *options);
void world_lab_close(struct world_lab *lab);
/* Queues the whole load ahead, as the core does, and runs until everything has ended. */
void world_lab_load(struct world_lab *lab);
/* A timer that cancels the fetch. */
void world_lab_cancel(void *lab, uint64_t tag);

#endif
