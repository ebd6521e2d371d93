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

/* A good peer beside the bad ones. */
static struct key_pair good_peer(struct lab *lab)
{
  struct key_pair keys = lab_keys(lab, "good");
  lab_link(lab, 0, ACTOR_GPU_SERVER, 0, 1, lab->encrypted ? &keys : NULL);
  lab_await(lab, lab->link[0].log, "welcome; ");
  return keys;
}

static void still_good(struct lab *lab)
{
  struct message ping = {.type = MESSAGE_MEMBER, .member = {.alive = 1}}, pong = {.type = MESSAGE_HEARTBEAT};
  g_string_truncate(lab->link[0].log, 0);
  g_string_truncate(lab->log, 0);
  hub_message(lab->hub, ACTOR(ACTOR_GPU_SERVER, 0), LAB_RUN, &ping);
  link_message(lab->link[0].link, LAB_RUN, &pong);
  lab_await(lab, lab->link[0].log, "message member; ");
  lab_await(lab, lab->log, "message 2/0 heartbeat; ");
  lab_check_not(lab->link[0].log, "lost");
  lab_check_not(lab->log, "lost 2/0");
}

/* --- keys
 * ---------------------------------------------------------------------------------------------------------*/

/* Nothing of the hub reaches it. */
static void gets_nothing(void *socket)
{
  char byte;
  cr_assert_eq(zmq_recv(socket, &byte, 1, ZMQ_DONTWAIT), -1);
}

Test(control_hostile, no_key_wrong_key_unlisted_key)
{
  struct lab *lab = lab_new(TRUE);
  void *context = zmq_ctx_new();
  struct key_pair listed = good_peer(lab), unlisted = lab_keys(lab, NULL), wrong = lab_keys(lab, NULL);
  const struct {
    const struct key_pair *keys;
    const char *server_key, *logged;
  } stranger[] = {
      {NULL, NULL, "refused a connection: "}, /* either end may see first that the other is of another kind */
      {&unlisted, lab->hub_keys.public_key,
       "refused a connection from 127.0.0.1: its key is not authorized; "},
      {&listed, wrong.public_key, "refused a connection: a key does not fit; "},
  };
  for (size_t i = 0; i < G_N_ELEMENTS(stranger); i++) {
    void *socket = lab_stranger(lab, context, stranger[i].keys, stranger[i].server_key);
    lab_clear_logged(lab);
    lab_say_hello(socket, 5);
    lab_await(lab, lab->logged, stranger[i].logged);
    still_good(lab);
    gets_nothing(socket);
    zmq_close(socket);
  }
  lab_check_not(lab->log, "joined 2/5");
  zmq_ctx_term(context);
  lab_free(lab);
}

/* The link's side of it: it is told, if not why, what to look at. */
Test(control_hostile, link_with_a_wrong_key)
{
  struct lab *lab = lab_new(TRUE);
  struct key_pair keys = lab_keys(lab, "gpu"), other = lab_keys(lab, NULL);
  memcpy(lab->hub_keys.public_key, other.public_key, KEY_TEXT); /* what links believe the hub's to be */
  lab->patience_ns = 500 * NS_PER_MS;
  lab_link(lab, 0, ACTOR_GPU_SERVER, 0, 1, &keys);
  lab_await(
      lab, lab->link[0].log,
      "lost the hub gave no welcome in time (it broke off before the keys were proven: do they fit?); ");
  lab_link(lab, 1, ACTOR_GPU_SERVER, 0, 1, NULL);
  lab_await(lab, lab->link[1].log, "lost the hub gave no welcome in time (");
  lab_free(lab);
}

/* The folder is read at each connection: who is taken out of it cannot come again, who is put in can. */
Test(control_hostile, keys_come_and_go)
{
  struct lab *lab = lab_new(TRUE);
  struct key_pair keys = good_peer(lab), late = lab_keys(lab, NULL);
  lab_link(lab, 1, ACTOR_GPU_SERVER, 1, 1, &late);
  lab_await(lab, lab->link[1].log, "lost the hub refused: this key is not authorized; ");
  g_autofree char *name = g_build_filename(lab->authorized, "late", NULL);
  cr_assert(key_pair_write(&late, name, NULL));
  lab_link(lab, 2, ACTOR_GPU_SERVER, 1, 1, &late);
  lab_await(lab, lab->link[2].log, "welcome; ");
  g_autofree char *old = g_build_filename(lab->authorized, "good.pub", NULL);
  cr_assert_eq(g_unlink(old), 0);
  lab_link(lab, 3, ACTOR_GPU_SERVER, 2, 1, &keys);
  lab_await(lab, lab->link[3].log, "lost the hub refused: this key is not authorized; ");
  still_good(lab); /* connections that are there stay */
  link_free(lab->link[1].link);
  lab->link[1].link = NULL;
  lab_free(lab);
}

/* A link that has keys does not talk to a hub that has other ones, or none. */
Test(control_hostile, link_knows_its_hub)
{
  struct lab *lab = lab_new(TRUE), *plain = lab_new(FALSE);
  struct key_pair keys = lab_keys(lab, "gpu");
  lab_link_to(lab, 0, hub_endpoint(plain->hub), ACTOR_GPU_SERVER, 0, 1, &keys);
  lab_run_ns(lab, 200 * NS_PER_MS);
  lab_run_ns(plain, 200 * NS_PER_MS);
  lab_check_not(plain->log, "joined");
  lab_check_not(lab->link[0].log, "welcome");
  lab_free(lab);
  lab_free(plain);
}

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

enum bad_frame {
  BAD_SHORT,
  BAD_EMPTY,
  BAD_KIND,
  BAD_WAY,
  BAD_SIZE,
  BAD_READ,
  BAD_HELLO_AGAIN,
  BAD_TYPE,
  BAD_CUT,
  BAD_VALUE,
  BAD_SENDER,
  BAD_NO_RUN,
  BAD_FRAMES
};

static struct bytes bad_frame(enum bad_frame kind, const char **why)
{
  const struct message heartbeat = {.type = MESSAGE_HEARTBEAT};
  const struct message value = {.type = MESSAGE_MODEL_STATE, .model_state = {.model = LAB_MODELS}};
  const struct message request = {.type = MESSAGE_REQUEST};
  struct bytes b = {.size = 0};
  switch (kind) {
  case BAD_SHORT:
    *why = "a frame without its header";
    b = frame_of(FRAME_READY, 0);
    b.size--;
    break;
  case BAD_EMPTY:
    *why = "a frame without its header";
    break;
  case BAD_KIND:
    *why = "a frame of no known kind";
    b = frame_of(FRAME_KINDS, 0);
    break;
  case BAD_WAY:
    *why = "a frame of a kind that does not go this way";
    b = frame_of(FRAME_PREPARE, 0);
    break;
  case BAD_SIZE:
    *why = "a frame larger than its kind may be";
    b = frame_of(FRAME_READY, 0);
    b.size += 65537;
    break;
  case BAD_READ:
    *why = "it claims to have read what was not sent";
    b = frame_of(FRAME_READY, 2); /* only the welcome was */
    break;
  case BAD_HELLO_AGAIN:
    *why = "a second hello";
    b = frame_of(FRAME_HELLO, 0);
    break;
  case BAD_TYPE:
    *why = "a message of no known type";
    b = frame_of(FRAME_MESSAGES, 0);
    put32(&b, LAB_RUN);
    put32(&b, MESSAGE_TYPES);
    break;
  case BAD_CUT:
    *why = "a message that is cut short";
    b = messages_of(&heartbeat);
    b.size--;
    break;
  case BAD_VALUE:
    *why = "a message with a value out of its bounds";
    b = messages_of(&value);
    break;
  case BAD_SENDER:
    *why = "a message that is not its sender's to send";
    b = messages_of(&request);
    break;
  case BAD_NO_RUN:
    *why = "messages without their run";
    b = frame_of(FRAME_MESSAGES, 0);
    b.size += 3;
    break;
  case BAD_FRAMES:
    break;
  }
  return b;
}

/* A stranger with a good key: joins, breaks the protocol, and goes on to speak. */
Test(control_hostile, malformed_frames)
{
  struct lab *lab = lab_new(TRUE);
  struct key_pair keys = good_peer(lab);
  void *context = zmq_ctx_new();
  for (int kind = 0; kind < BAD_FRAMES; kind++) {
    const char *why = NULL;
    struct bytes bad = bad_frame(kind, &why), later = frame_of(FRAME_READY, 0);
    void *socket = lab_stranger(lab, context, &keys, lab->hub_keys.public_key);
    g_autofree char *lost = g_strdup_printf("lost 2/5 %s; ", why);
    g_autofree char *line = g_strdup_printf("GPU server 5: %s; ", why);
    lab_clear_logged(lab);
    lab_say_hello(socket, 5);
    lab_say(socket, bad.data, bad.size);
    lab_say(socket, later.data, later.size);
    lab_await(lab, lab->log, lost);
    lab_await(lab, lab->logged, line);
    lab_await(lab, lab->logged, "frames after it was out are ignored; ");
    lab_check_not(lab->log, "frame 2/5");
    still_good(lab);
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
  struct key_pair keys = good_peer(lab);
  struct hello hello = {.role = ACTOR_GPU_SERVER, .index = 5, .epoch = 1, .address = "10.0.0.1:80"};
  const size_t address_at = FRAME_HEADER + 16;

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
  still_good(lab);
  lab_free(lab);
}

Test(control_hostile, several_parts)
{
  struct lab *lab = lab_new(FALSE);
  good_peer(lab);
  void *context = zmq_ctx_new(), *socket = lab_stranger(lab, context, NULL, NULL);
  lab_say_hello(socket, 5);
  struct bytes b = frame_of(FRAME_READY, 0);
  cr_assert_eq(zmq_send(socket, b.data, b.size, ZMQ_SNDMORE), (int)b.size);
  cr_assert_eq(zmq_send(socket, b.data, b.size, ZMQ_SNDMORE), (int)b.size);
  cr_assert_eq(zmq_send(socket, b.data, b.size, 0), (int)b.size);
  lab_await(lab, lab->log, "lost 2/5 a frame of several parts; ");
  still_good(lab);
  zmq_close(socket);
  zmq_ctx_term(context);
  lab_free(lab);
}

/* One frame of more than any kind may have ends the connection before it is held whole. */
Test(control_hostile, huge_frame)
{
  struct lab *lab = lab_new(FALSE);
  good_peer(lab);
  void *context = zmq_ctx_new(), *socket = lab_stranger(lab, context, NULL, NULL);
  g_autofree char *huge = g_malloc0(64 << 20);
  lab_say_hello(socket, 5);
  lab_await(lab, lab->log, "joined 2/5 ");
  lab_say(socket, huge, 64 << 20);
  lab_await(lab, lab->log, "lost 2/5 the connection broke off; ");
  still_good(lab);
  zmq_close(socket);
  zmq_ctx_term(context);
  lab_free(lab);
}

/* A routing id that a peer chose itself, and that another used before it, gives nothing of the other's. */
Test(control_hostile, chosen_routing_id)
{
  struct lab *lab = lab_new(TRUE);
  struct key_pair keys = good_peer(lab), other = lab_keys(lab, "other");
  void *context = zmq_ctx_new();
  const struct key_pair *pairs[2] = {&keys, &other};
  for (int i = 0; i < 2; i++) {
    void *socket = zmq_socket(context, ZMQ_DEALER);
    const int none = 0;
    zmq_setsockopt(socket, ZMQ_LINGER, &none, sizeof none);
    zmq_setsockopt(socket, ZMQ_ROUTING_ID, "me", 2);
    zmq_setsockopt(socket, ZMQ_CURVE_SERVERKEY, lab->hub_keys.public_key, KEY_TEXT);
    zmq_setsockopt(socket, ZMQ_CURVE_PUBLICKEY, pairs[i]->public_key, KEY_TEXT);
    zmq_setsockopt(socket, ZMQ_CURVE_SECRETKEY, pairs[i]->secret_key, KEY_TEXT);
    cr_assert_eq(zmq_connect(socket, hub_endpoint(lab->hub)), 0);
    struct bytes ready = frame_of(FRAME_READY, 0);
    if (i == 0)
      lab_say_hello(socket, 5);
    lab_say(socket, ready.data, ready.size);
    if (i == 0)
      lab_await(lab, lab->log, "frame 2/5 READY 0; ");
    else
      lab_await(lab, lab->logged, "its first frame is no hello; ");
    zmq_close(socket); /* the second comes before the hub has looked for the first */
  }
  still_good(lab);
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
  if (hub_has(t->lab->hub, ACTOR(ACTOR_GPU_SERVER, 5)))
    loop_timer(t->lab->loop, loop_now(t->lab->loop), pour, t, tag);
}

/* A peer that reads nothing is lost once its share is full, and what it had is freed. */
Test(control_hostile, peer_that_does_not_read)
{
  struct lab *lab = lab_new(TRUE);
  struct key_pair keys = good_peer(lab);
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
  still_good(lab);
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
  good_peer(lab);
  for (uint64_t id = 0; id < 300000; id++) {
    struct message m = {.type = MESSAGE_DISPATCH, .dispatch = {.id = id, .model = 1}};
    hub_message(lab->hub, ACTOR(ACTOR_GPU_SERVER, 0), LAB_RUN, &m);
  }
  lab_await_that(lab, all_came);
  still_good(lab);
  lab_free(lab);
}

/* A peer that floods the hub with frames that nobody asked for does not keep it from others. */
Test(control_hostile, flood)
{
  struct lab *lab = lab_new(FALSE);
  good_peer(lab);
  void *context = zmq_ctx_new(), *socket = lab_stranger(lab, context, NULL, NULL);
  struct bytes hello = frame_of(FRAME_HELLO, 0), junk = frame_of(FRAME_READY, 0);
  lab_say(socket, hello.data, hello.size); /* cut short: it is out */
  for (int round = 0; round < 20; round++) {
    int sent = 0;
    while (sent < 2000 && zmq_send(socket, junk.data, junk.size, ZMQ_DONTWAIT) >= 0)
      sent++;
    still_good(lab);
  }
  zmq_close(socket);
  zmq_ctx_term(context);
  lab_free(lab);
}
