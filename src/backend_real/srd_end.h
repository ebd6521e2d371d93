/* Inside the SRD queues: what their files share. Not run on EFA: tested on a fake device
 * (tests/backend_real).
 *
 *   srd_end.c    ends: a device, the ways to peers, completions, what has ended
 *   srd_line.c   lines: how they are made and meet, and how much they take
 *   srd_pull.c   a reader's reads by RDMA READ
 *   srd_ask.c    a reader's reads by datagrams (srd_reader.h), where one of the two devices has no RDMA READ
 *   srd_shelf.c  a shelf's lines and exposed memory
 *   srd_serve.c  a shelf's thread that answers those who ask by datagrams (srd_answers.h)
 *   verbs_srd.c  what all of them ask of the device (srd_device.h), on EFA; srd_status.c: what its errors
 * mean
 *
 * A reader has one queue pair for all its peers, and its lines are addresses. A shelf has a queue pair for
 * each of its lines, so that a reader is shut out by destroying it. */
#ifndef DM_SRD_END_H
#define DM_SRD_END_H

#include "backend_real/srd_device.h"
#include "backend_real/srd_offer.h"
#include "backend_real/srd_reader.h"
#include "backend_real/verbs_queue.h"

#define SRD_LINES_MAX 256  /* of an end */
#define SRD_PEERS     128  /* lines of a reader: each has a share of the receive buffers */
#define SRD_RECEIVES  8192 /* of EFA's datagrams 73 MB; made when the first line asks by datagrams */
#define SRD_SENDS     512  /* under way from a reader's queue pair */
#define SRD_REQUESTS  16   /* reads that a line has under way by datagrams */

struct srd_line;

/* What a work request is for, in its id: kind 4 bits, generation 28 bits, index 32 bits. */
enum srd_work_kind { SRD_WORK_READ = 1, SRD_WORK_MESSAGE, SRD_WORK_RECEIVE };
#define SRD_WORK_ID(kind, generation, index)                                                                 \
  ((uint64_t)(kind) << 60 | (uint64_t)((generation)&0xfffffff) << 32 | (index))
#define SRD_WORK_KIND(id)       ((enum srd_work_kind)((id) >> 60))
#define SRD_WORK_GENERATION(id) ((uint32_t)((id) >> 32) & 0xfffffff)
#define SRD_WORK_INDEX(id)      ((uint32_t)(id))

/* The way to a device, shared by the lines and messages that go there. */
struct srd_way {
  struct srd_address *address;
  uint8_t gid[16];
  uint32_t uses; /* 0: free */
};

/* Reads that have ended and are to be told: a ring. */
struct srd_news {
  struct verbs_done *done;
  uint32_t first, count, room; /* room: a power of two */
};

struct srd_end {
  struct verbs_end base; /* must be first */
  const struct srd_device_ops *ops;
  struct srd_device *device;
  struct srd_caps caps;
  struct nic_gid gid;
  gboolean serves;
  struct srd_line *line[SRD_LINES_MAX]; /* NULL: free */
  uint32_t lines_max;
  struct srd_way way[2 * SRD_LINES_MAX];
  struct srd_serving *serving; /* a shelf's; the rest are a reader's */

  struct srd_qp *qp;
  uint32_t generation; /* of it */
  uint32_t qkey, sends, sends_max, receives;
  struct memory *memory; /* [memories] */
  struct srd_memory **registered;
  uint32_t memories;
  struct srd_news news;
  struct srd_pulling *pulling;
  struct srd_reader *reader;
  struct srd_asking *asking; /* NULL until a line asks by datagrams */
};

struct srd_line {
  struct verbs_line base; /* must be first */
  uint32_t slot;
  struct srd_offer own, peer;
  gboolean connected, by_datagram;
  const char *broken; /* NULL: it is not; a shelf's: under the lock of its serving */
  struct srd_way *way;

  /* A reader's. */
  uint32_t index;      /* among the peers of its srd_reader */
  uint32_t first_wait; /* of those to be pulled; NO_INDEX: none waits */
  uint32_t last_wait;

  /* A shelf's. */
  struct srd_qp *qp; /* NULL once broken */
  uint32_t generation;
  uint32_t visitor;
};

/* An end on some device. config as in verbs_queue.h. */
struct verbs_end *srd_end_open(const struct srd_device_ops *ops, const struct verbs_end_config *config,
                               GError **error);
/* On EFA: verbs_srd.c. */
struct verbs_end *verbs_srd_open(const struct verbs_end_config *config, GError **error);

/* Unpredictable. */
gboolean srd_random(void *to, size_t size, GError **error);
struct srd_way *srd_way_get(struct srd_end *end, const uint8_t gid[16], GError **error);
struct srd_way *srd_way_use(struct srd_way *way);
void srd_way_drop(struct srd_end *end, struct srd_way *way); /* NULL: none */

/* A reader's read has ended. */
void srd_tell(struct srd_line *line, uint64_t tag, gboolean good);
/* A reader's line is lost: its reads fail, those on their way once they are back. */
void srd_line_lose(struct srd_line *line, const char *why);
/* A reader's queue pair: made, anew if it was lost; it is lost, and all its lines with it. */
gboolean srd_end_revive(struct srd_end *end, GError **error);
void srd_end_die(struct srd_end *end, const char *why);

/* As in verbs_queue.h. */
struct verbs_line *srd_line_new(struct verbs_end *end, void *context, GError **error);
void srd_line_free(struct verbs_line *line);
size_t srd_line_offer(struct verbs_line *line, uint8_t offer[VERBS_OFFER_BYTES]);
gboolean srd_line_origin(const uint8_t *offer, size_t size, uint8_t gid[16]);
gboolean srd_line_connect(struct verbs_line *line, const uint8_t *offer, size_t size, GError **error);
void srd_line_window(const struct verbs_line *line, struct verbs_window *window);
void srd_line_post(struct verbs_line *line, const struct verbs_read *read, uint32_t reads);
const char *srd_line_broken(const struct verbs_line *line);
void srd_line_break(struct verbs_line *line);

struct srd_pulling *srd_pulling_new(void);
void srd_pulling_free(struct srd_pulling *pulling);
void srd_pull(struct srd_line *line, const struct verbs_read *read);
void srd_pull_pump(struct srd_end *end); /* posts what there is room for */
void srd_pull_done(struct srd_end *end, uint32_t index, enum srd_status status, const char *why);
void srd_pull_lose(struct srd_line *line); /* what waits fails */
void srd_pull_die(struct srd_end *end);    /* all fails, nothing is under way */

gboolean srd_asking_open(struct srd_end *end, GError **error);
void srd_asking_close(struct srd_end *end);
gboolean srd_ask_ready(struct srd_end *end); /* a new queue pair: posts receive buffers */
void srd_ask(struct srd_line *line, const struct verbs_read *read);
void srd_ask_pump(struct srd_end *end);
int srd_ask_clock(const struct srd_end *end); /* readable when srd_ask_tick is due */
void srd_ask_tick(struct srd_end *end);
void srd_ask_sent(struct srd_end *end, uint32_t index, enum srd_status status, const char *why);
void srd_ask_received(struct srd_end *end, uint32_t index, uint32_t bytes);
void srd_ask_lose(struct srd_line *line);
void srd_ask_forget(struct srd_line *line); /* it is being freed */
void srd_ask_die(struct srd_end *end);      /* no message is under way */

struct srd_serving *srd_serving_new(struct srd_end *end, GError **error);
void srd_serving_free(struct srd_serving *serving);
/* A shelf's line: made, with its queue pair and token; met; broken or freed; why it is broken. */
gboolean srd_serve_line(struct srd_line *line, GError **error);
gboolean srd_serve_meet(struct srd_line *line, GError **error);
void srd_serve_break(struct srd_line *line, const char *why);
const char *srd_serve_broken(const struct srd_line *line);
/* As in verbs_queue.h. */
gboolean srd_serve_expose(struct verbs_end *end, uint8_t *base, uint64_t bytes, struct verbs_exposed *exposed,
                          GError **error);
void srd_serve_conceal(struct verbs_end *end, struct verbs_exposed *exposed);
int srd_serve_news_fd(const struct srd_serving *serving);
void srd_serve_news_taken(struct srd_serving *serving);
#define SRD_SERVE_SENDS    64 /* datagrams of a shelf's line under way */
#define SRD_SERVE_RECEIVES 21 /* as srd_answers_receives() of SRD_REQUESTS */

#endif
