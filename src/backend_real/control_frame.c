/* Frames, there and back; see control_frame.h. */
#include "backend_real/control_frame.h"

#include <string.h>

#include "backend_real/little_endian.h"

enum { TO_HUB = 1, TO_PEER = 2, TO_BOTH = TO_HUB | TO_PEER };

static const struct {
  const char *name;
  size_t bytes;
  unsigned ways;
} kinds[] = {
#define K(NAME, way, text, bytes) [FRAME_##NAME] = {#NAME, bytes, way},
    FRAME_TABLE(K)
#undef K
};

const char *frame_kind_name(enum frame_kind kind)
{
  return kinds[kind].name;
}

size_t frame_payload_max(enum frame_kind kind)
{
  return kinds[kind].bytes;
}

void frame_header_write(uint8_t *out, enum frame_kind kind, uint32_t read)
{
  put32(out, kind);
  put32(out + 4, read);
}

const char *frame_parse(const uint8_t *data, size_t size, gboolean to_hub, struct frame *frame)
{
  if (size < FRAME_HEADER)
    return "a frame without its header";
  uint32_t kind = get32(data);
  if (kind >= FRAME_KINDS)
    return "a frame of no known kind";
  if (!(kinds[kind].ways & (to_hub ? TO_HUB : TO_PEER)))
    return "a frame of a kind that does not go this way";
  if (size - FRAME_HEADER > kinds[kind].bytes)
    return "a frame larger than its kind may be";
  *frame = (struct frame){.kind = (enum frame_kind)kind,
                          .read = get32(data + 4),
                          .data = data + FRAME_HEADER,
                          .size = size - FRAME_HEADER};
  return NULL;
}

/* --- hello and welcome
 * ----------------------------------------------------------------------------------------------------*/

/* A text after a byte with its length. */
static uint8_t *put_text(uint8_t *at, const char *text)
{
  size_t length = strlen(text);
  *at++ = (uint8_t)length;
  memcpy(at, text, length);
  return at + length;
}

/* NULL: too long for `room` bytes with their end, cut short, or not printable. */
static const uint8_t *get_text(const uint8_t *at, const uint8_t *end, char *out, size_t room)
{
  if (at == end || *at >= room || (size_t)(end - at - 1) < *at)
    return NULL;
  size_t length = *at++;
  for (size_t i = 0; i < length; i++)
    if (!g_ascii_isgraph(at[i]))
      return NULL;
  memcpy(out, at, length);
  out[length] = '\0';
  return at + length;
}

#define HELLO_TEXTS 20 /* where they begin: after version, role, index and epoch */

G_STATIC_ASSERT(HELLO_TEXTS + 1 + sizeof((struct hello){0}.address) + 1 + sizeof((struct hello){0}.version) +
                    1 + sizeof((struct hello){0}.can) <=
                HELLO_BYTES_MAX);

size_t hello_encode(const struct hello *hello, uint8_t out[HELLO_BYTES_MAX])
{
  put32(out, CONTROL_PROTOCOL);
  put32(out + 4, hello->role);
  put32(out + 8, hello->index);
  put64(out + 12, hello->epoch);
  return (
      size_t)(put_text(put_text(put_text(out + HELLO_TEXTS, hello->address), hello->version), hello->can) -
              out);
}

const char *hello_decode(const uint8_t *data, size_t size, struct hello *hello)
{
  *hello = (struct hello){0};
  if (size < 4)
    return "a hello that is cut short";
  if (get32(data) != CONTROL_PROTOCOL)
    return "another version of the control protocol";
  if (size < HELLO_TEXTS)
    return "a hello that is cut short";
  uint32_t role = get32(data + 4);
  if (role > ACTOR_MEMORY_SERVER || role == ACTOR_CONTROLLER)
    return "a hello of no known role";
  hello->role = (enum actor_kind)role;
  hello->index = get32(data + 8);
  hello->epoch = get64(data + 12);
  const uint8_t *end = data + size;
  const uint8_t *at = get_text(data + HELLO_TEXTS, end, hello->address, sizeof hello->address);
  if (!at)
    return "a hello with an address that is none";
  at = get_text(at, end, hello->version, sizeof hello->version);
  if (!at)
    return "a hello with a version that is none";
  at = get_text(at, end, hello->can, sizeof hello->can);
  if (!at)
    return "a hello with transports that are none";
  return at == end ? NULL : "a hello with bytes after its end";
}

size_t welcome_encode(uint8_t out[WELCOME_BYTES])
{
  put32(out, CONTROL_PROTOCOL);
  return WELCOME_BYTES;
}

const char *welcome_decode(const uint8_t *data, size_t size)
{
  if (size != WELCOME_BYTES)
    return "a welcome of the wrong size";
  return get32(data) == CONTROL_PROTOCOL ? NULL : "another version of the control protocol";
}

/* --- messages
 * -----------------------------------------------------------------------------------------------------*/

/* Who may send a type to the controller (bits of enum actor_kind), and to whom the controller may send it. */
static const struct {
  uint8_t to_controller, from_controller;
} ways[MESSAGE_TYPES] = {
#define CLIENT  (1 << ACTOR_CLIENT)
#define GPU     (1 << ACTOR_GPU_SERVER)
#define MEMORY  (1 << ACTOR_MEMORY_SERVER)
#define SERVERS (GPU | MEMORY)
    [MESSAGE_REQUEST] = {CLIENT, 0}, [MESSAGE_ANSWER] = {0, CLIENT}, [MESSAGE_DISPATCH] = {0, GPU},
    [MESSAGE_REVOKE] = {0, GPU},     [MESSAGE_DONE] = {GPU, 0},      [MESSAGE_MODEL_STATE] = {GPU, 0},
    [MESSAGE_REPORT] = {GPU, 0},     [MESSAGE_JOIN] = {SERVERS, 0},  [MESSAGE_HEARTBEAT] = {SERVERS, 0},
    [MESSAGE_REMOVE] = {CLIENT, 0},  [MESSAGE_LEAVE] = {0, SERVERS}, [MESSAGE_PLAN] = {GPU, GPU},
    [MESSAGE_MEMBER] = {0, GPU},     [MESSAGE_PLACE] = {0, MEMORY},  [MESSAGE_PLACED] = {MEMORY, 0},
    [MESSAGE_DROP] = {0, MEMORY},    [MESSAGE_TRAIN] = {0, GPU},     [MESSAGE_TRAINED] = {GPU, 0},
    [MESSAGE_CACHE_SIZE] = {0, GPU}, [MESSAGE_JOB] = {CLIENT, 0},
};

static gboolean goes_from_to(uint32_t type, enum actor_kind from, enum actor_kind to)
{
  if (to == ACTOR_CONTROLLER)
    return (ways[type].to_controller >> from & 1) != 0;
  return from == ACTOR_CONTROLLER && (ways[type].from_controller >> to & 1) != 0;
}

const char *messages_decode(const uint8_t *data, size_t size, const struct message_rules *rules,
                            enum actor_kind from, enum actor_kind to,
                            gboolean (*each)(void *context, uint32_t run, const struct message *message),
                            void *context)
{
  if (size < MESSAGES_HEADER)
    return "messages without their run";
  if (!rules->set)
    return "messages before there is a run";
  uint32_t run = get32(data);
  if (run != rules->run)
    return run < rules->run ? NULL : "messages of a run that is not known";
  struct message message;
  for (size_t at = MESSAGES_HEADER, bytes; at < size; at += bytes) {
    bytes = size - at < 4 ? 0 : message_size(get32(data + at));
    if (bytes == 0)
      return "a message of no known type";
    if (bytes > size - at)
      return "a message that is cut short";
    if (!goes_from_to(get32(data + at), from, to))
      return "a message that is not its sender's to send";
    if (!message_decode(data + at, bytes, &rules->limits, &message))
      return "a message with a value out of its bounds";
    if (!each(context, run, &message))
      return NULL;
  }
  return NULL;
}

const char *peer_name(actor_id peer)
{
  switch (ACTOR_KIND(peer)) {
  case ACTOR_CLIENT:
    return "client";
  case ACTOR_CONTROLLER:
    return "controller";
  case ACTOR_GPU_SERVER:
    return "gpu-server";
  case ACTOR_MEMORY_SERVER:
    return "memory-server";
  }
  return "unknown";
}
