/* Shelves and readers of SRD on a fake EFA (srd_fake.h), lines between all of them, and reads whose every
 * byte is checked when they end. */
#ifndef DM_TEST_SRD_LAB_H
#define DM_TEST_SRD_LAB_H

#include "backend_real/srd_end.h"
#include "srd_fake.h"

enum {
  IMAGE = 1 << 20, /* a shelf's memory */
  ARENA = 2 << 20, /* a reader's */
  SHELVES = 3,
  READERS = 2,
  READS_MAX = 4000, /* of a lab */
  BLANK = 0xEE,
  WAIT_US = 30000000,
};

struct srd_pair {
  struct verbs_line *reader, *shelf;
  uint32_t under_way;
};

struct srd_wanted {
  uint32_t reader, shelf, at, to, bytes;
  gboolean open, good;
};

/* Shelves have GIDs from 1, readers from 101. */
struct srd_lab {
  GRand *random;
  struct verbs_end *shelf[SHELVES], *reader[READERS];
  struct verbs_exposed exposed[SHELVES];
  uint8_t *image[SHELVES], *arena[READERS];
  uint32_t used[READERS]; /* of the arena */
  struct srd_pair pair[READERS][SHELVES];
  struct srd_wanted wanted[READS_MAX];
  uint32_t asked, ended, good;
};

/* What the devices are like. */
struct srd_devices {
  gboolean reader_reads, shelf_reads;
  uint32_t read_max, mtu;
};

#define SRD_DEVICES 5
extern const struct srd_devices srd_devices_tried[SRD_DEVICES];
gboolean srd_by_datagram(const struct srd_devices *kind);

/* Memories alone, on a fabric; ends and lines; both. FALSE: what could not be made; close gives back what
 * was. */
struct srd_lab *srd_lab_memory(uint32_t seed);
gboolean srd_lab_open(struct srd_lab *lab, const struct srd_devices *kind, GError **error);
struct srd_lab *srd_lab_new(const struct srd_devices *kind, uint32_t seed);
void srd_lab_close_ends(struct srd_lab *lab);
void srd_lab_free(struct srd_lab *lab);
/* New lines between the two, instead of those there were. */
gboolean srd_lab_introduce(struct srd_lab *lab, uint32_t reader, uint32_t shelf, GError **error);
struct nic_gid srd_gid_of(uint8_t last);

/* A read of bytes that begin at `at` of the shelf's image: its tag. */
uint64_t srd_lab_ask(struct srd_lab *lab, uint32_t reader, uint32_t shelf, uint32_t at, uint32_t bytes);
void srd_lab_ask_any(struct srd_lab *lab, uint32_t reader, uint32_t shelf, uint32_t bytes_max);
/* As it would be posted. */
uint64_t srd_lab_ask_as(struct srd_lab *lab, uint32_t reader, uint32_t shelf, uint32_t at, uint32_t bytes,
                        struct verbs_read *read);
void srd_lab_end(struct srd_lab *lab, const struct verbs_done *done);
/* FALSE: nothing has ended. */
gboolean srd_lab_poll(struct srd_lab *lab);
/* Takes in what has ended, or sleeps until something has, or a second is over: the transport does so, and
 * without it no clock ticks. */
void srd_lab_turn(struct srd_lab *lab, gint64 deadline);
/* Until so many have ended in all; sleeps as the transport does. */
void srd_lab_wait(struct srd_lab *lab, uint32_t ended);
/* Nothing is written but where reads land. Last of all: clears the arenas. */
void srd_lab_check_beside(struct srd_lab *lab);
/* Every datagram found a buffer. */
void srd_lab_check_fabric(void);

#endif
