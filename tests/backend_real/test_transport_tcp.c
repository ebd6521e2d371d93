/* The TCP transport against peers that do not keep to its protocol: each loses its connection (or its read),
 * and the others do not notice. */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "backend_real/transport_tcp.h"
#include "backend_real/transport_tcp_wire.h"
#include "raw_tcp.h"
#include "transport_lab.h"

#define MIB (1U << 20)

enum { MODEL = 1, OTHER_MODEL = 2, IMAGE = 1 << 20 };

static struct ranges serve_two(struct lab *lab)
{
  struct ranges other = lab_serve(lab, OTHER_MODEL, 0, 10000, 4096);
  g_free(other.range);
  return lab_serve(lab, MODEL, 0, IMAGE, 65536);
}

static struct lab *lab_with_models(const struct transport_options *options)
{
  struct lab *lab = transport_lab_new(&transport_tcp, 8 * MIB, MIB, options);
  struct ranges place = serve_two(lab);
  g_free(place.range);
  return lab;
}

static void expect_served(struct lab *lab)
{
  uint32_t ended = lab_ended(lab);
  lab_read(lab, MODEL, 0, 0, IMAGE, ended);
  lab_wait(lab, ended + 1);
  cr_expect_eq(lab_end(lab, ended), LAB_GOOD);
}

/* --- a reader that forges */

static void expect_closed(int fd, const char *what)
{
  cr_expect(raw_closed(fd), "%s", what);
  close(fd);
}

/* A connection with rights to MODEL. */
static int raw_open(const struct lab *lab, uint64_t serial)
{
  int fd = raw_to(lab);
  raw_ticket(fd, &lab->secret, LAB_READER, LAB_SHELF, MODEL, serial);
  return fd;
}

Test(transport_tcp, tickets_count_once)
{
  struct lab *lab = lab_with_models(NULL);
  int first = raw_open(lab, 1000);
  raw_request(first, MODEL, 5, 1000, 1);
  cr_assert(raw_answered(first, MODEL, 5, 1000, 1));
  expect_closed(raw_open(lab, 1000), "a ticket that was used");
  int fd = raw_open(lab, 999);
  raw_ticket(fd, &lab->secret, LAB_READER, LAB_SHELF, OTHER_MODEL, 1000);
  expect_closed(fd, "a second ticket that was used");
  int far = raw_open(lab, 100000);
  raw_request(far, MODEL, 0, 10, 0);
  cr_assert(raw_answered(far, MODEL, 0, 10, 0));
  expect_closed(raw_open(lab, 30000), "a ticket far behind the newest");
  raw_request(far, MODEL, 0, 10, 1);
  cr_expect(raw_answered(far, MODEL, 0, 10, 1));
  raw_request(first, MODEL, 0, 1000, 2);
  cr_expect(raw_answered(first, MODEL, 0, 1000, 2));
  close(first);
  close(far);
  transport_lab_free(lab);
}

Test(transport_tcp, tickets_of_others_are_refused)
{
  struct lab *lab = lab_with_models(NULL);
  struct ticket_secret other = {.key = "another"};
  lab->ops->shelf_admit(lab->shelf, LAB_READER + 1, &other);
  const struct {
    const char *what;
    const struct ticket_secret *secret;
    uint32_t reader, shelf;
  } bad[] = {{"another shelf", &lab->secret, LAB_READER, LAB_SHELF + 1},
             {"an unknown reader", &lab->secret, LAB_READER + 9, LAB_SHELF},
             {"another reader", &lab->secret, LAB_READER + 1, LAB_SHELF},
             {"another secret", &other, LAB_READER, LAB_SHELF}};
  for (uint32_t i = 0; i < G_N_ELEMENTS(bad); i++) {
    int fd = raw_to(lab);
    raw_ticket(fd, bad[i].secret, bad[i].reader, bad[i].shelf, MODEL, 100 + i);
    raw_request(fd, MODEL, 0, 100, 1);
    expect_closed(fd, bad[i].what);
  }
  int fd = raw_open(lab, 200);
  raw_ticket(fd, &other, LAB_READER + 1, LAB_SHELF, OTHER_MODEL, 1);
  expect_closed(fd, "a ticket of another reader, though good, on this reader's connection");
  expect_served(lab);
  transport_lab_free(lab);
}

Test(transport_tcp, malformed_requests_close_their_connection)
{
  struct lab *lab = lab_with_models(NULL);
  int good = raw_open(lab, 200), fd = raw_to(lab);
  raw_request(fd, MODEL, 0, 100, 1);
  expect_closed(fd, "no ticket");
  const struct {
    const char *what;
    uint32_t model, bytes;
    uint64_t offset;
  } bad[] = {{"a model without a ticket", OTHER_MODEL, 10, 0},
             {"no bytes", MODEL, 0, 0},
             {"too many bytes", MODEL, READ_BYTES_MAX + 1, 0},
             {"past the end of numbers", MODEL, 100, UINT64_MAX - 50},
             {"past what was ever served", MODEL, 100, IMAGE - 50}};
  for (uint32_t i = 0; i < G_N_ELEMENTS(bad); i++) {
    fd = raw_open(lab, 201 + i);
    raw_request(fd, bad[i].model, bad[i].offset, bad[i].bytes, 1);
    expect_closed(fd, bad[i].what);
  }
  fd = raw_open(lab, 300);
  raw_send(fd, "GET / HTTP/1.1\r\n\r\n", 18);
  expect_closed(fd, "another protocol");
  raw_request(good, MODEL, 17, 5000, 1);
  cr_expect(raw_answered(good, MODEL, 17, 5000, 1));
  close(good);
  expect_served(lab);
  transport_lab_free(lab);
}

/* Frames that come byte by byte, many at once, and before a half close are all answered, in order. */
Test(transport_tcp, frames_in_any_pieces)
{
  enum { REQUESTS = 200 };
  struct lab *lab = lab_with_models(NULL);
  int fd = raw_to(lab);
  uint8_t wire[WIRE_TICKET_BYTES + REQUESTS * WIRE_REQUEST_BYTES];
  wire_ticket_put(&lab->secret, LAB_READER, LAB_SHELF, MODEL, 1, wire);
  for (uint32_t i = 0; i < REQUESTS; i++)
    wire_request_put(&(struct wire_request){.model = MODEL, .offset = i, .bytes = 1 + i * 50, .id = i * 7},
                     wire + WIRE_TICKET_BYTES + i * WIRE_REQUEST_BYTES);
  for (uint32_t i = 0; i < WIRE_TICKET_BYTES + 3 * WIRE_REQUEST_BYTES; i++)
    raw_send(fd, wire + i, 1);
  uint32_t sent = WIRE_TICKET_BYTES + 3 * WIRE_REQUEST_BYTES;
  raw_send(fd, wire + sent, sizeof wire - sent);
  shutdown(fd, SHUT_WR);
  for (uint32_t i = 0; i < REQUESTS; i++)
    cr_assert(raw_answered(fd, MODEL, i, 1 + i * 50, i * 7), "request %u", i);
  expect_closed(fd, "half closed");
  transport_lab_free(lab);
}

/* Until the shelf has so many connections whose ticket was good. */
static void await_connections(struct lab *lab, uint32_t connections)
{
  gint64 until = g_get_monotonic_time() + 10 * G_USEC_PER_SEC;
  struct transport_state state;
  do {
    g_usleep(1000);
    lab->ops->shelf_state(lab->shelf, &state);
  } while (state.connections != connections && g_get_monotonic_time() < until);
  cr_assert_eq(state.connections, connections, "%u connections", state.connections);
}

/* Strangers are bounded, and the oldest go; a reader's own connections are bounded too. */
Test(transport_tcp, connections_are_bounded)
{
  struct lab *lab = lab_with_models(&(struct transport_options){.connections = 2});
  int stranger[80], own[70];
  for (uint32_t i = 0; i < G_N_ELEMENTS(stranger); i++)
    stranger[i] = raw_to(lab);
  for (uint32_t i = 0; i < G_N_ELEMENTS(stranger) - 64; i++)
    cr_expect(raw_closed(stranger[i]), "stranger %u", i);
  expect_served(lab);
  await_connections(lab, 2); /* the reader opens both, and needs one to be served */
  for (uint32_t i = 0; i < G_N_ELEMENTS(own); i++)
    own[i] = raw_open(lab, 100 + i);
  uint32_t answered = 0;
  for (uint32_t i = 0; i < G_N_ELEMENTS(own); i++) {
    raw_request(own[i], MODEL, i, 100, i);
    answered += raw_answered(own[i], MODEL, i, 100, i);
  }
  cr_expect_eq(answered, 62, "%u beside the two of the reader itself", answered);
  struct transport_state state;
  lab->ops->shelf_state(lab->shelf, &state);
  /* More strangers go where one of its own came before an earlier one's ticket was read. */
  cr_expect_geq(state.refused, G_N_ELEMENTS(stranger) - 64 + G_N_ELEMENTS(own) - 62);
  cr_expect_leq(state.refused, G_N_ELEMENTS(stranger) + G_N_ELEMENTS(own) - 62);
  for (uint32_t i = 0; i < G_N_ELEMENTS(own); i++)
    close(own[i]);
  for (uint32_t i = 0; i < G_N_ELEMENTS(stranger); i++)
    close(stranger[i]);
  expect_served(lab);
  transport_lab_free(lab);
}

Test(transport_tcp, who_shows_no_ticket_is_closed)
{
  struct lab *lab = lab_with_models(NULL);
  gint64 start = g_get_monotonic_time();
  int silent = raw_to(lab), slow = raw_to(lab), good = raw_open(lab, 50);
  raw_send(slow, "DMt1", 4);
  cr_expect(raw_closed(silent) && raw_closed(slow));
  double seconds = (g_get_monotonic_time() - start) * 1e-6;
  cr_expect(seconds > 4.9 && seconds < 9, "%.3f s", seconds);
  raw_request(good, MODEL, 0, 100, 1);
  cr_expect(raw_answered(good, MODEL, 0, 100, 1));
  close(silent);
  close(slow);
  close(good);
  transport_lab_free(lab);
}

/* One that asks and does not read: the one thread goes on with the others. */
Test(transport_tcp, a_reader_that_stopped_costs_no_thread)
{
  struct lab *lab = lab_with_models(&(struct transport_options){.threads = 1});
  int stopped[8];
  for (uint32_t i = 0; i < G_N_ELEMENTS(stopped); i++) {
    stopped[i] = raw_open(lab, 10 + i);
    for (uint32_t n = 0; n < 300; n++)
      raw_request(stopped[i], MODEL, 0, IMAGE, n);
  }
  for (uint32_t i = 0; i < 20; i++)
    expect_served(lab);
  cr_expect(raw_answered(stopped[3], MODEL, 0, IMAGE, 0));
  for (uint32_t i = 0; i < G_N_ELEMENTS(stopped); i++)
    close(stopped[i]);
  transport_lab_free(lab);
}

/* --- a shelf that forges */

/* What a shelf that forges sends in answer to one request. */
struct forgery {
  const char *what;
  uint32_t bytes; /* in the head */
  uint64_t id;
  uint32_t payload;       /* bytes that follow */
  const char *head, *end; /* in their places, NULL = well formed */
  gboolean dribble;       /* byte by byte */
  enum lab_end expected;
};

#define ASKED 3000

static const struct forgery forgeries[] = {
    {"all well, in dribbles", ASKED, 0, ASKED, .dribble = TRUE, .expected = LAB_GOOD},
    {"not served", 0, 0, 0, .end = "", .expected = LAB_FAILED},
    {"given up", ASKED, 0, ASKED, .end = "DMe1\0\0\0\0", .expected = LAB_FAILED},
    {"another read's answer", ASKED, 1, ASKED, .expected = LAB_FAILED},
    {"a longer answer", ASKED + 1, 0, ASKED + 1, .expected = LAB_FAILED},
    {"a shorter answer", ASKED - 1, 0, ASKED - 1, .expected = LAB_FAILED},
    {"an endless answer", UINT32_MAX, 0, 2 * MIB, .expected = LAB_FAILED},
    {"more payload than it said", ASKED, 0, ASKED + 100, .expected = LAB_FAILED},
    {"less payload than it said", ASKED, 0, ASKED - 100, .expected = LAB_FAILED},
    {"another protocol", ASKED, 0, ASKED, .head = "HTTP/1.1 200 OK\n", .expected = LAB_FAILED},
    {"an end that is none", ASKED, 0, ASKED, .end = "DMe2\1\0\0\0", .expected = LAB_FAILED},
    {"an end neither good nor bad", ASKED, 0, ASKED, .end = "DMe1\2\0\0\0", .expected = LAB_FAILED},
};

static void forge_bytes(int fd, const void *data, size_t size, gboolean dribble)
{
  size_t step = dribble ? 1 : size;
  for (size_t done = 0; done < size; done += step)
    raw_send(fd, (const uint8_t *)data + done, step);
}

/* Takes a ticket and a request on one connection, and answers. */
static void forge(int listener, const struct forgery *forgery)
{
  uint8_t asked[WIRE_TICKET_BYTES + WIRE_REQUEST_BYTES], head[WIRE_REPLY_BYTES], end[WIRE_END_BYTES];
  int fd = accept(listener, NULL, NULL);
  cr_assert_eq(recv(fd, asked, sizeof asked, MSG_WAITALL), sizeof asked);
  wire_reply_put(&(struct wire_reply){forgery->bytes, forgery->id}, head);
  wire_end_put(TRUE, end);
  g_autofree uint8_t *payload = g_malloc(forgery->payload + 1);
  memset(payload, 0x55, forgery->payload);
  forge_bytes(fd, forgery->head ? (const void *)forgery->head : head, sizeof head, forgery->dribble);
  forge_bytes(fd, payload, forgery->payload, forgery->dribble);
  if (!forgery->end || forgery->end[0])
    forge_bytes(fd, forgery->end ? (const void *)forgery->end : end, sizeof end, forgery->dribble);
  shutdown(fd, SHUT_WR);
  uint8_t rest[64];
  while (recv(fd, rest, sizeof rest, 0) > 0)
    ;
  close(fd);
}

Test(transport_tcp, a_forging_shelf_gets_nothing_past_the_read)
{
  struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t length = sizeof name;
  int listener = socket(AF_INET, SOCK_STREAM, 0);
  cr_assert(bind(listener, (struct sockaddr *)&name, length) == 0 && listen(listener, 8) == 0 &&
            getsockname(listener, (struct sockaddr *)&name, &length) == 0);
  g_autofree char *address = g_strdup_printf("127.0.0.1:%u", ntohs(name.sin_port));
  for (uint32_t i = 0; i < G_N_ELEMENTS(forgeries); i++) {
    const struct forgery *f = &forgeries[i];
    struct lab *lab =
        lab_new_reader(&transport_tcp, ARENA_ALIGN, MIB, &(struct transport_options){.connections = 1});
    lab->ops->reader_peer(lab->reader, LAB_SHELF, address, &lab->secret);
    lab_read(lab, MODEL, 0, 5000, ASKED, 0);
    forge(listener, f);
    lab_wait(lab, 1);
    cr_expect_eq(lab->end[0], f->expected, "%s", f->what);
    cr_expect(lab_blank(lab, 0, 5000) && lab_blank(lab, 5000 + ASKED, MIB - 5000 - ASKED), "%s", f->what);
    transport_lab_free(lab);
  }
  close(listener);
}

/* It has no way into memory that the processor does not see, and says so before anything is read. */
Test(transport_tcp, gpu_memory_behind_a_dma_buf_is_refused)
{
  g_autofree uint8_t *seen = g_malloc(4096);
  struct memory gpus[] = {{.base = seen, .bytes = 4096, .dmabuf = -1}, {.bytes = 4096, .dmabuf = 7}};
  g_autoptr(GError) error = NULL;
  struct reader_config config = {.memory = {seen, 4096}, .gpu_memory = gpus, .gpus = 2, .self = LAB_READER};
  cr_assert_null(transport_tcp.reader_new(&config, &error));
  cr_assert(strstr(error->message, "transport tcp cannot write into the memory of GPU 1"), "%s",
            error->message);
  config.gpus = 1;
  struct reader *reader = transport_tcp.reader_new(&config, NULL);
  cr_assert(reader);
  transport_tcp.reader_free(reader);
}
