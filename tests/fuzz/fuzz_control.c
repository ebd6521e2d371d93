/* Frames of the control plane as a stranger may send them: what is taken encodes to the bytes that it came
 * from, lies within its bounds, and is such as its sender may send.
 *
 * Byte 0: 0 hello, 1 welcome, 2 a frame to the hub, 3 a frame to a peer; byte 1: the peer's role. The rest is
 * the payload, or the frame. */
#include <stdint.h>
#include <string.h>

#include "backend_real/control_frame.h"

enum { MODELS = 6, GPUS = 4, MEMORY_SERVERS = 3, RUN = 2 };

static void check_text(const char *text, size_t room)
{
  g_assert(memchr(text, '\0', room));
  for (; *text; text++)
    g_assert(g_ascii_isgraph(*text));
}

static void fuzz_hello(const uint8_t *data, size_t size)
{
  struct hello hello;
  uint8_t again[HELLO_BYTES_MAX];
  if (hello_decode(data, size, &hello))
    return;
  check_text(hello.address, sizeof hello.address);
  check_text(hello.version, sizeof hello.version);
  check_text(hello.can, sizeof hello.can);
  g_assert(hello.role == ACTOR_CLIENT || hello.role == ACTOR_GPU_SERVER || hello.role == ACTOR_MEMORY_SERVER);
  g_assert(hello_encode(&hello, again) == size && memcmp(again, data, size) == 0);
}

struct reader {
  const uint8_t *at, *end;
  gboolean to_hub;
  enum actor_kind peer;
};

/* Independent of the table of who may send what: the rules that matter most. */
static void check_sender(const struct reader *r, enum message_type type)
{
  if (type == MESSAGE_REQUEST || type == MESSAGE_REMOVE || type == MESSAGE_JOB)
    g_assert(r->to_hub && r->peer == ACTOR_CLIENT);
  if (type == MESSAGE_DONE || type == MESSAGE_TRAINED || type == MESSAGE_MODEL_STATE)
    g_assert(r->to_hub && r->peer == ACTOR_GPU_SERVER);
  if (type == MESSAGE_DISPATCH || type == MESSAGE_TRAIN || type == MESSAGE_CACHE_SIZE)
    g_assert(!r->to_hub && r->peer == ACTOR_GPU_SERVER);
  if (type == MESSAGE_ANSWER)
    g_assert(!r->to_hub && r->peer == ACTOR_CLIENT);
}

static gboolean check_message(void *context, uint32_t run, const struct message *message)
{
  struct reader *r = context;
  uint8_t again[MESSAGE_BYTES_MAX];
  size_t size = message_encode(message, again);
  g_assert(run == RUN);
  g_assert(size == message_size(message->type) && size <= (size_t)(r->end - r->at));
  g_assert(memcmp(again, r->at, size) == 0);
  check_sender(r, message->type);
  r->at += size;
  return TRUE;
}

static void fuzz_frame(const uint8_t *data, size_t size, gboolean to_hub, enum actor_kind peer)
{
  struct frame frame;
  if (frame_parse(data, size, to_hub, &frame))
    return;
  g_assert(frame.kind < FRAME_KINDS && frame.size <= frame_payload_max(frame.kind));
  g_assert(frame.data == data + FRAME_HEADER && frame.size == size - FRAME_HEADER);
  if (frame.kind != FRAME_MESSAGES)
    return;
  struct message_rules rules = {.set = TRUE, .run = RUN};
  message_limits_init(&rules.limits, MODELS, GPUS, MEMORY_SERVERS);
  struct reader r = {.to_hub = to_hub, .peer = peer};
  if (frame.size >= MESSAGES_HEADER)
    r.at = frame.data + MESSAGES_HEADER;
  r.end = frame.data + frame.size;
  const char *why = messages_decode(frame.data, frame.size, &rules, to_hub ? peer : ACTOR_CONTROLLER,
                                    to_hub ? ACTOR_CONTROLLER : peer, check_message, &r);
  /* Good means all of them, or none of an older run. */
  g_assert(why || r.at == r.end || r.at == frame.data + MESSAGES_HEADER);
  rules.set = FALSE;
  why = messages_decode(frame.data, frame.size, &rules, ACTOR_CLIENT, ACTOR_CONTROLLER, check_message, &r);
  g_assert(why);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  if (size < 2)
    return 0;
  const enum actor_kind role[] = {ACTOR_CLIENT, ACTOR_GPU_SERVER, ACTOR_MEMORY_SERVER};
  switch (data[0] & 3) {
  case 0:
    fuzz_hello(data + 2, size - 2);
    break;
  case 1:
    g_assert(welcome_decode(data + 2, size - 2) || size - 2 == WELCOME_BYTES);
    break;
  default:
    fuzz_frame(data + 2, size - 2, (data[0] & 3) == 2, role[data[1] % 3]);
  }
  return 0;
}
