/* Reads from the SSD tier: a few threads, so that several are under way at once, which an SSD needs to reach
 * its rate. The counterpart of a transport's reader; ends come on its threads. */
#ifndef DM_SSD_READER_H
#define DM_SSD_READER_H

#include "backend_real/ssd_file.h"

/* Reads at once, 1 MiB each: about what an NVMe SSD wants outstanding. */
#define SSD_READER_THREADS 8
/* Reads that one load has asked for: no thread waits for the loop. */
#define SSD_READS 16

struct ssd_reader;

/* base: of the host arena. ended: a read is over; tag as given. */
struct ssd_reader *ssd_reader_new(uint8_t *base, void (*ended)(void *context, uint64_t tag, gboolean good),
                                  void *context);
/* Those that have not begun end as failed, those that have are waited for. NULL: nothing. */
void ssd_reader_free(struct ssd_reader *reader);
/* ssd_file_read to place `to` of the arena, in order of asking; never ends inside the call. file NULL: what
 * is not here; ends as failed. What fails is logged. */
void ssd_reader_read(struct ssd_reader *reader, const struct ssd_file *file, uint64_t offset, uint64_t to,
                     uint32_t bytes, uint64_t tag);
uint64_t ssd_reader_bytes(struct ssd_reader *reader); /* read so far */

#endif
