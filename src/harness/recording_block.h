/* Inside of recordings: the layout of files and blocks; see recording.h. */
#ifndef DM_RECORDING_BLOCK_H
#define DM_RECORDING_BLOCK_H

#include "harness/recording.h"

#define FILE_HEADER  16
#define BLOCK_HEADER 16

static inline void put_u32(uint8_t *at, uint32_t value)
{
  for (unsigned i = 0; i < 4; i++)
    at[i] = (uint8_t)(value >> (8 * i));
}

static inline uint32_t get_u32(const uint8_t *at)
{
  return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static inline uint64_t get_u64(const uint8_t *at)
{
  return get_u32(at) | (uint64_t)get_u32(at + 4) << 32;
}

/* As FNV-1a, by words of 8 bytes and then single bytes, turned before each multiplication. Each step is
 * one-to-one, so a change within one word always changes it. */
static inline uint64_t checksum_add(uint64_t sum, const uint8_t *data, size_t size)
{
  for (; size >= 8; data += 8, size -= 8)
    sum = ((sum ^ get_u64(data)) << 23 | (sum ^ get_u64(data)) >> 41) * 0x100000001b3ULL;
  for (; size > 0; data++, size--)
    sum = ((sum ^ *data) << 23 | (sum ^ *data) >> 41) * 0x100000001b3ULL;
  return sum;
}

/* Of a block: the first half of its header, then payload. */
static inline uint64_t block_checksum(const uint8_t *block, size_t payload)
{
  return checksum_add(checksum_add(0xcbf29ce484222325ULL, block, 8), block + BLOCK_HEADER, payload);
}

static inline void block_seal(uint8_t *block, uint32_t payload, uint32_t flags)
{
  put_u32(block, payload);
  put_u32(block + 4, flags);
  uint64_t sum = block_checksum(block, payload);
  put_u32(block + 8, (uint32_t)sum);
  put_u32(block + 12, (uint32_t)(sum >> 32));
}

void file_header_write(uint8_t header[FILE_HEADER], enum recording_kind kind);

/* Reads blocks of a file, checked. */
struct block_reader {
  int fd;
  char *path;
  enum recording_kind kind;
  uint64_t offset; /* of the next block */
  gboolean last;   /* RECORDING_LAST has been read: the file is whole */
  uint8_t block[BLOCK_HEADER + RECORDING_BLOCK];
  uint32_t payload, flags; /* of the block at hand */
};
/* FALSE + DM_ERROR_INPUT. */
gboolean block_reader_open(struct block_reader *reader, const char *path, GError **error);
void block_reader_close(struct block_reader *reader);
/* 1: a block is at hand; 0: the end of the file (of a process's: perhaps cut off); -1: error. */
int block_reader_next(struct block_reader *reader, GError **error);

#endif
