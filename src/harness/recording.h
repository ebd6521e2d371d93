/* Recordings: what every actor of a run was told and did, in order (seam_form.h), in one file, so that the
 * core can be fed the same again (`distmind-sim rerun`).
 *
 * Format, version 2, all little-endian. A file: 8 bytes "DMRECORD", u32 version, u32 kind (enum
 * recording_kind), then blocks. A block: u32 size of its payload (at most RECORDING_BLOCK), u32 flags, u64
 * checksum (block_checksum), the payload. A part is one actor's life in one run: the
 * payloads of a block with RECORDING_BEGINS and of those after it, laid end to end, are its head and its
 * entries. An entry: its kind (u8), its length (varint), its form. Of inputs, the time since the input before
 * (the first: the actor's clock) stands before the form; of what has an id, the id does. A part
 * that was ended has an entry of kind RECORDING_END: numbers of inputs and outputs. The last block of a file
 * that was closed is empty and has RECORDING_LAST.
 *
 * Each process writes a file of its own; its tail may be missing where the process was killed.
 * `recording_join` makes one file of several, which must be whole. */
#ifndef DM_RECORDING_H
#define DM_RECORDING_H

#include "harness/seam_form.h"
#include "harness/setup.h"

#define RECORDING_VERSION  2
#define RECORDING_BLOCK    (64 * 1024)
#define RECORDING_FLUSH_NS (100 * NS_PER_MS) /* what a killed process may have had in hand */

/* No single bit makes one of the other. */
enum recording_kind { RECORDING_PROCESS = 'P', RECORDING_JOINED = 'J' };
enum recording_flag { RECORDING_BEGINS = 1, RECORDING_LAST = 2 };

/* Beside enum seam_kind. */
#define RECORDING_HEAD 0x40
#define RECORDING_END  0x41

/* What the actor's configuration is made from. */
struct recording_head {
  char *version; /* of the program */
  uint32_t run;  /* number of the run in its cluster */
  actor_id actor;
  char *path, *text; /* of the experiment; path absolute */
  char *system;
  char *overrides; /* --set texts, a line each */
  uint64_t digest; /* setup_digest */
  uint32_t capabilities;
  gboolean heartbeats; /* setup_new's keep_heartbeats */
  gboolean records;    /* world.records */
  uint32_t gpus;       /* limit of messages */
};
void recording_head_clear(struct recording_head *head);
void recording_head_write(struct octets *out, const struct recording_head *head);
/* FALSE: malformed; *head is then empty. */
gboolean recording_head_read(const uint8_t *data, size_t size, struct recording_head *head);

/* --- writing --- */

struct recording;

/* A new file PATH.ROLE[-INDEX] for this process, ".2", ".3", … appended where there is one. NULL +
 * DM_ERROR_FAILED. */
struct recording *recording_create(const char *path, actor_id process, GError **error);
/* Writes what is in hand and the last block. FALSE + DM_ERROR_FAILED: something could not be written; nothing
 * after it was. */
gboolean recording_close(struct recording *recording, GError **error);
/* Begins a part. */
void recording_begin(struct recording *recording, const struct recording_head *head);
void recording_entry(struct recording *recording, uint8_t kind, const void *data, size_t size);
/* Writes what is in hand, if it is older than RECORDING_FLUSH_NS by this clock. */
void recording_tick(struct recording *recording, int64_t now);
void recording_flush(struct recording *recording);
const char *recording_path(const struct recording *recording);

/* --- several files into one --- */

/* Paths of the files that processes have written for PATH, sorted; free with g_ptr_array_unref. */
GPtrArray *recording_files(const char *path);
/* Writes PATH from these files, leaving out what is cut off at their ends, then removes them. FALSE +
 * DM_ERROR: nothing is removed, PATH is not there. */
gboolean recording_join(const char *path, const GPtrArray *files, GError **error);

/* --- reading --- */

struct recording_reader;

struct recorded {
  uint8_t kind; /* enum seam_kind */
  const uint8_t *data;
  size_t size;
};
/* An input, and all that the actor did on it. Valid until the next call. */
struct recorded_step {
  int64_t now;           /* the actor's clock */
  struct recorded input; /* without the time */
  const struct recorded *output;
  uint32_t outputs;
};

/* NULL + DM_ERROR_INPUT, as all errors of reading. */
struct recording_reader *recording_open(const char *path, GError **error);
void recording_reader_free(struct recording_reader *reader);
/* 1: *head is of the next part, and the reader's until the next call; 0: there is none; -1: error. What was
 * not read of the part before is skipped. */
int recording_next_part(struct recording_reader *reader, const struct recording_head **head, GError **error);
/* 1: *step is the next; 0: the part is over; -1: error. */
int recording_next_step(struct recording_reader *reader, struct recorded_step *step, GError **error);
/* After recording_next_step said 0: the actor was not ended but cut off (its process was killed). */
gboolean recording_was_cut(const struct recording_reader *reader);
/* "PATH: part N (gpu-server 0 in run 1): ", for messages; owned by the reader. */
const char *recording_where(const struct recording_reader *reader);

typedef struct recording_reader RecordingReader; /* for g_autoptr */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(RecordingReader, recording_reader_free)

#endif
