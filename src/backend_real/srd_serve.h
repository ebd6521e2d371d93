/* Inside a shelf's SRD end: what its two files share. srd_shelf.c: its lines, their queue pairs, exposed
 * memory; srd_serve.c: a thread that answers those that ask by datagrams.
 *
 * Where both devices have RDMA READ no thread is started, and the shelf's device answers alone. Else segments
 * go out of the exposed memory itself, uncopied; each has a head of its own. Memory is concealed once none of
 * it is on its way: lines that hold one up are broken. */
#ifndef DM_SRD_SERVE_H
#define DM_SRD_SERVE_H

#include "backend_real/srd_answers.h"
#include "backend_real/srd_end.h"

#define SRD_HEAD_STRIDE 64
#define SRD_LINE_HEADS  (SRD_SERVE_RECEIVES + SRD_SERVE_SENDS) /* first those for receives */

/* Exposed memory. */
struct srd_exposure {
  struct srd_memory *memory;
  uint8_t *base;
  uint64_t bytes;
  uint32_t key, local_key;
  uint32_t sending; /* segments of it that are on their way */
};

/* What a line has on its way. */
struct srd_sent {
  gboolean here;
  struct srd_exposure *of; /* NULL: a refusal */
  uint32_t next;           /* of the free ones */
};

struct srd_desk {
  struct srd_line *line; /* NULL: free */
  struct srd_sent sent[SRD_SERVE_SENDS];
  uint32_t free;
};

struct srd_serving {
  struct srd_end *end;
  GMutex lock;
  int callers; /* who wait for the lock; atomic */
  GCond drained;
  GThread *thread; /* NULL: nobody asks by datagrams */
  gboolean stop, armed;
  int wake, news;
  uint32_t generation;
  struct srd_line *visitor[SRD_LINES_MAX]; /* by index in answers */
  struct srd_answers *answers;
  GHashTable *exposures; /* key -> struct srd_exposure; looked up, never walked */
  struct srd_desk desk[SRD_LINES_MAX];
  uint8_t *block; /* [lines][SRD_LINE_HEADS][SRD_HEAD_STRIDE] */
  struct srd_memory *region;
  uint32_t block_key;
};

/* The thread holds the lock nearly always while it is busy, so it makes way for those who say so. */
void srd_serve_enter(struct srd_serving *serving);
void srd_serve_leave(struct srd_serving *serving);

/* Under the lock, all of these. */
void srd_serve_break_line(struct srd_line *line, const char *why);
void srd_serve_break_all(struct srd_serving *serving, const char *why);
/* What the line's index has on its way is so no more. */
void srd_serve_release(struct srd_serving *serving, struct srd_desk *desk, uint32_t index);
/* The memory of a piece; NULL: it is not exposed, or not all of it. */
struct srd_exposure *srd_serve_find(const struct srd_serving *serving, const struct srd_piece *piece);

#endif
