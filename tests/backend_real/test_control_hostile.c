/* The control plane among peers that do not keep to the protocol: each is refused or expelled with a reason
 * and a line in the log, and the others notice nothing. */
#include <errno.h>
#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

#include "backend_real/control_frame.h"
#include "backend_real/outbox.h"
#include "control_lab.h"
#include "core/units.h"

/* --- frames
 * -------------------------------------------------------------------------------------------------------*/

struct bytes {
  uint8_t data[2 * FRAME_HEADER + 66000];
  size_t size;
};

static void put32(struct bytes *b, uint32_t value)
{
  for (int i = 0; i < 4; i++)
    b->data[b->size++] = (uint8_t)(value >> (8 * i));
}

static struct bytes frame_of(uint32_t kind, uint32_t read)
{
  struct bytes b = {.size = 0};
  put32(&b, kind);
  put32(&b, read);
  return b;
}

static struct bytes messages_of(const struct message *message)
{
  struct bytes b = frame_of(FRAME_MESSAGES, 0);
  put32(&b, LAB_RUN);
  b.size += message_encode(message, b.data + b.size);
  return b;
}

struct bad_frame {
  const char *why;
  struct bytes bytes;
};

static struct bytes run_and(struct bytes b, uint32_t value)
{
  put32(&b, LAB_RUN);
  put32(&b, value);
  return b;
}

static struct bytes longer(struct bytes b, int bytes)
{
  b.size = (size_t)((int64_t)b.size + bytes);
  return b;
}

static GArray *bad_frames(void)
{
  const struct message heartbeat = {.type = MESSAGE_HEARTBEAT};
  const struct message value = {.type = MESSAGE_MODEL_STATE, .model_state = {.model = LAB_MODELS}};
  const struct message request = {.type = MESSAGE_REQUEST};
  const struct bytes ready = frame_of(FRAME_READY, 0), messages = frame_of(FRAME_MESSAGES, 0);
  const struct bad_frame bad[] = {
      {"a frame without its header", longer(ready, -1)},
      {"a frame without its header", longer(ready, -FRAME_HEADER)},
      {"a frame of no known kind", frame_of(FRAME_KINDS, 0)},
      {"a frame of a kind that does not go this way", frame_of(FRAME_PREPARE, 0)},
      {"a frame larger than its kind may be", longer(ready, 65537)},
      {"it claims to have read what was not sent", frame_of(FRAME_READY, 2)}, /* only the welcome was */
      {"a second hello", frame_of(FRAME_HELLO, 0)},
      {"messages without their run", longer(messages, 3)},
      {"a message of no known type", run_and(messages, MESSAGE_TYPES)},
      {"a message that is cut short", longer(messages_of(&heartbeat), -1)},
      {"a message with a value out of its bounds", messages_of(&value)},
      {"a message that is not its sender's to send", messages_of(&request)},
  };
  GArray *all = g_array_new(FALSE, FALSE, sizeof(struct bad_frame));
  return g_array_append_vals(all, bad, G_N_ELEMENTS(bad));
}

/* A stranger with a good key: joins, breaks the protocol, and goes on to speak. */
Test(control_hostile, malformed_frames)
{
  struct lab *lab = lab_new(TRUE);
  struct key_pair keys = lab_good_peer(lab);
  void *context = zmq_ctx_new();
  g_autoptr(GArray) bad = bad_frames();
  for (guint i = 0; i < bad->len; i++) {
    const struct bad_frame *frame = &g_array_index(bad, struct bad_frame, i);
    struct bytes later = frame_of(FRAME_READY, 0);
    void *socket = lab_stranger(lab, context, &keys, lab->hub_keys.public_key);
    g_autofree char *lost = g_strdup_printf("lost 2/5 %s; ", frame->why);
    g_autofree char *line = g_strdup_printf("GPU server 5: %s; ", frame->why);
    lab_clear_logged(lab);
    lab_say_hello(socket, 5);
    lab_say(socket, frame->bytes.data, frame->bytes.size);
    lab_say(socket, later.data, later.size);
    lab_await(lab, lab->log, lost);
    lab_await(lab, lab->logged, line);
    lab_await(lab, lab->logged, "frames after it was out are ignored; ");
    lab_check_not(lab->log, "frame 2/5");
    lab_still_good(lab);
    zmq_close(socket);
  }
  zmq_ctx_term(context);
  lab_free(lab);
}

static void refused_hello(struct lab *lab, const struct key_pair *keys, const struct bytes *frame,
                          const char *why)
{
  void *context = zmq_ctx_new();
  void *socket = lab_stranger(lab, context, keys, lab->hub_keys.public_key);
  g_autofree char *line = g_strdup_printf("refused a connection from 127.0.0.1: %s; ", why);
  char answer[FRAME_HEADER + 200] = "";
  lab_clear_logged(lab);
  lab_say(socket, frame->data, frame->size);
  lab_await(lab, lab->logged, line);
  int size = zmq_recv(socket, answer, sizeof answer - 1, 0);
  cr_assert_geq(size, FRAME_HEADER);
  cr_assert_eq(answer[0], FRAME_REFUSED);
  cr_assert_str_eq(answer + FRAME_HEADER, why);
  zmq_close(socket);
  zmq_ctx_term(context);
}

static struct bytes hello_frame(const struct hello *hello)
{
  struct bytes b = frame_of(FRAME_HELLO, 0);
  b.size += hello_encode(hello, b.data + b.size);
  return b;
}

Test(control_hostile, malformed_hellos)
{
  struct lab *lab = lab_new(TRUE);
  struct key_pair keys = lab_good_peer(lab);
  struct hello hello = {.role = ACTOR_GPU_SERVER, .index = 5, .epoch = 1, .address = "10.0.0.1:80"};
  const size_t address_at = FRAME_HEADER + 20;

  struct bytes b = hello_frame(&hello);
  b.data[address_at] = 200; /* longer than the frame */
  refused_hello(lab, &keys, &b, "a hello with an address that is none");

  b = hello_frame(&hello); /* longer than an address may be, and all there */
  b.data[address_at] = sizeof hello.address;
  memset(b.data + address_at + 1, 'a', sizeof hello.address);
  b.size = address_at + 1 + sizeof hello.address;
  b.data[b.size++] = 0;
  refused_hello(lab, &keys, &b, "a hello with an address that is none");

  b = hello_frame(&hello);
  b.data[address_at + 1] = '\n'; /* would forge a line of the log */
  refused_hello(lab, &keys, &b, "a hello with an address that is none");

  b = hello_frame(&hello);
  b.size--;
  refused_hello(lab, &keys, &b, "a hello with transports that are none");

  b = hello_frame(&hello);
  b.size -= 2;
  refused_hello(lab, &keys, &b, "a hello with a version that is none");

  b = hello_frame(&hello);
  b.size++;
  refused_hello(lab, &keys, &b, "a hello with bytes after its end");

  b = hello_frame(&hello);
  b.data[FRAME_HEADER]++;
  refused_hello(lab, &keys, &b, "another version of the control protocol");

  hello.role = ACTOR_CONTROLLER;
  b = hello_frame(&hello);
  refused_hello(lab, &keys, &b, "a hello of no known role");

  hello.role = ACTOR_MEMORY_SERVER;
  hello.index = 64;
  b = hello_frame(&hello);
  refused_hello(lab, &keys, &b, "a hello with a place that there is not");

  b = frame_of(FRAME_READY, 0);
  refused_hello(lab, &keys, &b, "its first frame is no hello");
  lab_still_good(lab);
  lab_free(lab);
}

Test(control_hostile, several_parts)
{
  struct lab *lab = lab_new(FALSE);
  lab_good_peer(lab);
  void *context = zmq_ctx_new(), *socket = lab_stranger(lab, context, NULL, NULL);
  lab_say_hello(socket, 5);
  struct bytes b = frame_of(FRAME_READY, 0);
  cr_assert_eq(zmq_send(socket, b.data, b.size, ZMQ_SNDMORE), (int)b.size);
  cr_assert_eq(zmq_send(socket, b.data, b.size, ZMQ_SNDMORE), (int)b.size);
  cr_assert_eq(zmq_send(socket, b.data, b.size, 0), (int)b.size);
  lab_await(lab, lab->log, "lost 2/5 a frame of several parts; ");
  lab_still_good(lab);
  zmq_close(socket);
  zmq_ctx_term(context);
  lab_free(lab);
}

/* One frame of more than any kind may have ends the connection before it is held whole. */
Test(control_hostile, huge_frame)
{
  struct lab *lab = lab_new(FALSE);
  lab_good_peer(lab);
  void *context = zmq_ctx_new(), *socket = lab_stranger(lab, context, NULL, NULL);
  g_autofree char *huge = g_malloc0(64 << 20);
  lab_say_hello(socket, 5);
  lab_await(lab, lab->log, "joined 2/5 ");
  lab_say(socket, huge, 64 << 20);
  lab_await(lab, lab->log, "lost 2/5 the connection broke off; ");
  lab_still_good(lab);
  zmq_close(socket);
  zmq_ctx_term(context);
  lab_free(lab);
}

/* A routing id that a peer chose itself, and that another used before it, gives nothing of the other's. */
static void *name_itself(struct lab *lab, void *context, const struct key_pair *keys)
{
  void *socket = zmq_socket(context, ZMQ_DEALER);
  const int none = 0;
  zmq_setsockopt(socket, ZMQ_LINGER, &none, sizeof none);
  zmq_setsockopt(socket, ZMQ_ROUTING_ID, "me", 2);
  zmq_setsockopt(socket, ZMQ_CURVE_SERVERKEY, lab->hub_keys.public_key, KEY_TEXT);
  zmq_setsockopt(socket, ZMQ_CURVE_PUBLICKEY, keys->public_key, KEY_TEXT);
  zmq_setsockopt(socket, ZMQ_CURVE_SECRETKEY, keys->secret_key, KEY_TEXT);
  cr_assert_eq(zmq_connect(socket, hub_endpoint(lab->hub)), 0);
  return socket;
}

/* The second may come before the hub has looked for the first; it is tried again, as libzmq ignores one with
 * a name that its own thread has not yet seen the end of. */
Test(control_hostile, chosen_routing_id)
{
  struct lab *lab = lab_new(TRUE);
  struct key_pair keys = lab_good_peer(lab), other = lab_keys(lab, "other");
  struct bytes ready = frame_of(FRAME_READY, 0);
  void *context = zmq_ctx_new();
  void *first = name_itself(lab, context, &keys);
  lab_say_hello(first, 5);
  lab_say(first, ready.data, ready.size);
  lab_await(lab, lab->log, "frame 2/5 READY 0; ");
  zmq_close(first);
  for (int64_t end = loop_clock() + 20 * NS_PER_S; !lab_has_logged(lab, "its first frame is no hello; ");) {
    cr_assert_lt(loop_clock(), end, "the second was never heard");
    void *second = name_itself(lab, context, &other);
    lab_say(second, ready.data, ready.size);
    lab_run_ns(lab, 200 * NS_PER_MS);
    zmq_close(second);
  }
  lab_still_good(lab);
  lab_await(lab, lab->logged, "GPU server 5: the connection broke off; ");
  zmq_ctx_term(context);
  lab_free(lab);
}

/* --- queues
 * -------------------------------------------------------------------------------------------------------*/

static size_t resident_bytes(void)
{
  g_autofree char *text = NULL;
  size_t pages = 0, resident = 0;
  cr_assert(g_file_get_contents("/proc/self/statm", &text, NULL, NULL));
  cr_assert_eq(sscanf(text, "%zu %zu", &pages, &resident), 2);
  return resident * (size_t)sysconf(_SC_PAGESIZE);
}

struct torrent {
  struct lab *lab;
  uint64_t sent;
};

static void pour(void *context, uint64_t tag)
{
  struct torrent *t = context;
  struct message m = {.type = MESSAGE_DISPATCH, .dispatch = {.model = 1}};
  for (int i = 0; i < 20000; i++, t->sent++)
    hub_message(t->lab->hub, ACTOR(ACTOR_GPU_SERVER, 5), LAB_RUN, &m);
  if (lab_joined(t->lab, ACTOR_GPU_SERVER) > 1) /* the good peer is one */
    loop_timer(t->lab->loop, loop_now(t->lab->loop), pour, t, tag);
}

/* A peer that reads nothing is lost once its share is full, and what it had is freed. */
Test(control_hostile, peer_that_does_not_read)
{
#ifdef __SANITIZE_THREAD__
  cr_skip_test("ThreadSanitizer keeps memory of its own for every byte");
#endif
  struct lab *lab = lab_new(TRUE);
  struct key_pair keys = lab_good_peer(lab);
  void *context = zmq_ctx_new(), *socket = lab_stranger(lab, context, &keys, lab->hub_keys.public_key);
  lab_say_hello(socket, 5);
  lab_await(lab, lab->log, "joined 2/5 ");
  size_t before = resident_bytes();
  struct torrent t = {.lab = lab};
  pour(&t, 0);
  lab_await(lab, lab->log, "lost 2/5 " PEER_STUCK "; ");
  const size_t share = OUTBOX_BYTES_MAX + WINDOW_FRAMES * 65536;
  const size_t bytes = t.sent * message_size(MESSAGE_DISPATCH);
  cr_assert_gt(bytes, OUTBOX_BYTES_MAX);
  cr_assert_lt(bytes, share + 20000 * message_size(MESSAGE_DISPATCH));
  cr_assert_lt(resident_bytes() - before, 4 * (size_t)share);
  lab_still_good(lab);
  zmq_close(socket);
  zmq_ctx_term(context);
  lab_free(lab);
}

/* A slow peer is not lost: what waits grows into fewer, larger frames, and all of it comes, in order. */
static gboolean all_came(struct lab *lab)
{
  return lab->link[0].messages == 300000;
}

Test(control_hostile, slow_peer_gets_all)
{
  struct lab *lab = lab_new(FALSE);
  lab_good_peer(lab);
  for (uint64_t id = 0; id < 300000; id++) {
    struct message m = {.type = MESSAGE_DISPATCH, .dispatch = {.id = id, .model = 1}};
    hub_message(lab->hub, ACTOR(ACTOR_GPU_SERVER, 0), LAB_RUN, &m);
  }
  lab_await_that(lab, all_came);
  lab_still_good(lab);
  lab_free(lab);
}

/* A peer that floods the hub with frames that nobody asked for does not keep it from others. */
Test(control_hostile, flood)
{
  struct lab *lab = lab_new(FALSE);
  lab_good_peer(lab);
  void *context = zmq_ctx_new(), *socket = lab_stranger(lab, context, NULL, NULL);
  struct bytes hello = frame_of(FRAME_HELLO, 0), junk = frame_of(FRAME_READY, 0);
  lab_say(socket, hello.data, hello.size); /* cut short: it is out */
  for (int round = 0; round < 20; round++) {
    int sent = 0;
    while (sent < 2000 && zmq_send(socket, junk.data, junk.size, ZMQ_DONTWAIT) >= 0)
      sent++;
    lab_still_good(lab);
  }
  zmq_close(socket);
  zmq_ctx_term(context);
  lab_free(lab);
}
