/* Numbers as they go over the wire: little-endian, at any alignment. */
#ifndef DM_LITTLE_ENDIAN_H
#define DM_LITTLE_ENDIAN_H

#include <glib.h>
#include <stdint.h>
#include <string.h>

static inline void put32(uint8_t *to, uint32_t value)
{
  value = GUINT32_TO_LE(value);
  memcpy(to, &value, sizeof value);
}

static inline void put64(uint8_t *to, uint64_t value)
{
  value = GUINT64_TO_LE(value);
  memcpy(to, &value, sizeof value);
}

static inline uint32_t get32(const uint8_t *from)
{
  uint32_t value;
  memcpy(&value, from, sizeof value);
  return GUINT32_FROM_LE(value);
}

static inline uint64_t get64(const uint8_t *from)
{
  uint64_t value;
  memcpy(&value, from, sizeof value);
  return GUINT64_FROM_LE(value);
}

#endif
