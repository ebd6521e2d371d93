/* The control plane under more than it can send or wants to hear: queues are bounded, a peer that does not
 * read is lost, one that is slow is not, and one that floods the hub keeps nobody from it. */
#include <string.h>
#include <unistd.h>

#include "backend_real/control_frame.h"
#include "backend_real/outbox.h"
#include "control_lab.h"
#include "core/units.h"

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
Test(control_queues, peer_that_does_not_read)
{
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

Test(control_queues, slow_peer_gets_all)
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
Test(control_queues, flood)
{
  struct lab *lab = lab_new(FALSE);
  lab_good_peer(lab);
  void *context = zmq_ctx_new(), *socket = lab_stranger(lab, context, NULL, NULL);
  uint8_t hello[FRAME_HEADER], junk[FRAME_HEADER];
  frame_header_write(hello, FRAME_HELLO, 0);
  frame_header_write(junk, FRAME_READY, 0);
  lab_say(socket, hello, sizeof hello); /* cut short: it is out */
  for (int round = 0; round < 20; round++) {
    int sent = 0;
    while (sent < 2000 && zmq_send(socket, junk, sizeof junk, ZMQ_DONTWAIT) >= 0)
      sent++;
    lab_still_good(lab);
  }
  zmq_close(socket);
  zmq_ctx_term(context);
  lab_free(lab);
}
