/* Octets: a growing string of bytes and a bounded look at one, in the notation of recordings.
 *
 * A whole number is a LEB128 varint (seven bits a byte, the lowest first, the top bit says that more follow);
 * a signed one is folded first (0, -1, 1, -2, …); a real is its 8 IEEE bytes, little-endian; a text or a
 * string of bytes is its length, then its bytes. */
#ifndef DM_OCTETS_H
#define DM_OCTETS_H

#include <glib.h>
#include <stdint.h>
#include <string.h>

/* Zeroed = empty; free data. */
struct octets {
  uint8_t *data;
  size_t size, room;
};

static inline uint8_t *octets_reserve(struct octets *o, size_t more)
{
  if (o->room - o->size < more) {
    o->room = MAX(o->size + more, 2 * o->room);
    o->data = (uint8_t *)g_realloc(o->data, o->room);
  }
  return o->data + o->size;
}

static inline void octets_bytes(struct octets *o, const void *bytes, size_t size)
{
  if (size > 0)
    memcpy(octets_reserve(o, size), bytes, size);
  o->size += size;
}

static inline void octets_number(struct octets *o, uint64_t value)
{
  uint8_t *at = octets_reserve(o, 10), *from = at;
  for (; value >= 0x80; value >>= 7)
    *at++ = (uint8_t)(value | 0x80);
  *at++ = (uint8_t)value;
  o->size += (size_t)(at - from);
}

static inline void octets_signed(struct octets *o, int64_t value)
{
  octets_number(o, (uint64_t)value << 1 ^ (value < 0 ? UINT64_MAX : 0));
}

static inline void octets_real(struct octets *o, double value)
{
  uint64_t bits;
  uint8_t bytes[8];
  memcpy(&bits, &value, sizeof bits);
  for (unsigned i = 0; i < 8; i++)
    bytes[i] = (uint8_t)(bits >> (8 * i));
  octets_bytes(o, bytes, sizeof bytes);
}

static inline void octets_text(struct octets *o, const char *text)
{
  size_t size = strlen(text);
  octets_number(o, size);
  octets_bytes(o, text, size);
}

/* What is left to read. A read past the end, or of a number over 64 bits, clears `good` and gives 0, as does
 * every read after it. */
struct octets_view {
  const uint8_t *at, *end;
  gboolean good;
};

static inline struct octets_view octets_view_of(const void *data, size_t size)
{
  return (struct octets_view){(const uint8_t *)data, (const uint8_t *)data + size, TRUE};
}

static inline const uint8_t *view_bytes(struct octets_view *v, uint64_t size)
{
  const uint8_t *bytes = v->at;
  if (!v->good || size > (uint64_t)(v->end - v->at)) {
    v->good = FALSE;
    return NULL;
  }
  v->at += size;
  return bytes;
}

static inline uint64_t view_number(struct octets_view *v)
{
  uint64_t value = 0;
  for (unsigned shift = 0; v->good && v->at < v->end && shift < 64; shift += 7) {
    uint8_t byte = *v->at++;
    if (shift == 63 && byte > 1)
      break;
    value |= (uint64_t)(byte & 0x7f) << shift;
    if (!(byte & 0x80))
      return value;
  }
  v->good = FALSE;
  return 0;
}

/* A number of at most 32 bits. */
static inline uint32_t view_small(struct octets_view *v)
{
  uint64_t value = view_number(v);
  if (value > UINT32_MAX)
    v->good = FALSE;
  return v->good ? (uint32_t)value : 0;
}

static inline int64_t view_signed(struct octets_view *v)
{
  uint64_t value = view_number(v);
  return (int64_t)(value >> 1 ^ (0 - (value & 1)));
}

static inline double view_real(struct octets_view *v)
{
  uint64_t bits = 0;
  double value;
  const uint8_t *bytes = view_bytes(v, 8);
  for (unsigned i = 0; bytes && i < 8; i++)
    bits |= (uint64_t)bytes[i] << (8 * i);
  memcpy(&value, &bits, sizeof value);
  return value;
}

/* At most `most` bytes, none of them NUL; NULL if there is no such text. g_free it. */
static inline char *view_text(struct octets_view *v, uint64_t most)
{
  uint64_t size = view_number(v);
  const uint8_t *bytes = size <= most ? view_bytes(v, size) : NULL;
  if (!bytes || memchr(bytes, 0, (size_t)size)) {
    v->good = FALSE;
    return NULL;
  }
  return g_strndup((const char *)bytes, (gsize)size);
}

#endif
