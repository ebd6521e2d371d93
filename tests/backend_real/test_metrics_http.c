/* The metrics server among good, slow and hostile clients. The loop runs on a thread of its own, the clients
 * are this one. */
#include <criterion/criterion.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "backend_real/metrics_http.h"
#include "backend_real/transport_tcp_socket.h"
#include "core/error.h"

#define GET  "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"
#define WAIT 20 /* seconds, for an answer */

struct lab {
  struct note stop; /* first: the note is the lab */
  struct loop *loop;
  struct metrics_http *http;
  GThread *thread;
  struct sockaddr_in address;
  gsize bytes; /* of the text */
  gint renders;
};

static void render(void *context, GString *text)
{
  struct lab *lab = context;
  g_atomic_int_inc(&lab->renders);
  for (gsize i = text->len; i < lab->bytes; i++)
    g_string_append_c(text, (char)('a' + i % 26));
}

static void stop(struct note *note)
{
  struct lab *lab = (struct lab *)note;
  metrics_http_free(lab->http);
  loop_quit(lab->loop);
}

static gpointer run(gpointer data)
{
  loop_run(((struct lab *)data)->loop);
  return NULL;
}

static struct lab *lab_new(gsize bytes)
{
  struct lab *lab = g_new0(struct lab, 1);
  socklen_t length = sizeof lab->address;
  lab->bytes = bytes;
  lab->loop = loop_new();
  lab->stop.read = stop;
  int fd = metrics_listen("0", NULL);
  cr_assert_geq(fd, 0);
  cr_assert_eq(getsockname(fd, (struct sockaddr *)&lab->address, &length), 0);
  cr_assert_eq(ntohl(lab->address.sin_addr.s_addr), INADDR_LOOPBACK);
  lab->http = metrics_http_new(lab->loop, fd, render, lab);
  lab->thread = g_thread_new("loop", run, lab);
  return lab;
}

static void lab_free(struct lab *lab)
{
  note_post(lab->loop, &lab->stop);
  g_thread_join(lab->thread);
  loop_free(lab->loop);
  g_free(lab);
}

/* --- clients
 * ------------------------------------------------------------------------------------------------------------*/

static int client(const struct lab *lab)
{
  struct timeval wait = {.tv_sec = WAIT};
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), small = 4096;
  cr_assert_geq(fd, 0);
  setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
  cr_assert_eq(connect(fd, (const struct sockaddr *)&lab->address, sizeof lab->address), 0);
  return fd;
}

static void say(int fd, const char *text)
{
  cr_assert_eq(send(fd, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
}

/* All that comes until the end. NULL: cut off, or none within the wait. */
static char *answer(int fd)
{
  GString *text = g_string_new(NULL);
  char part[65536];
  ssize_t got;
  while ((got = recv(fd, part, sizeof part, 0)) > 0)
    g_string_append_len(text, part, got);
  close(fd);
  return g_string_free(text, got < 0);
}

static void expect_whole(const struct lab *lab, const char *text)
{
  cr_assert(text && g_str_has_prefix(text, "HTTP/1.1 200 OK\r\n"), "%.200s", text ? text : "(cut off)");
  cr_assert(strstr(text, "\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"));
  g_autofree char *length = g_strdup_printf("\r\nContent-Length: %" G_GSIZE_FORMAT "\r\n", lab->bytes);
  cr_assert(strstr(text, length), "%.200s", text);
  const char *body = strstr(text, "\r\n\r\n");
  cr_assert(body && strlen(body + 4) == lab->bytes);
  for (gsize i = 0; i < lab->bytes; i++)
    cr_assert(body[4 + i] == (char)('a' + i % 26), "byte %" G_GSIZE_FORMAT, i);
}

static void expect_served(const struct lab *lab)
{
  int fd = client(lab);
  say(fd, GET);
  g_autofree char *text = answer(fd);
  expect_whole(lab, text);
}

/* --- tests
 * ------------------------------------------------------------------------------------------------------------*/

Test(metrics_http, answers)
{
  static const struct {
    const char *request, *begins, *has;
  } ask[] = {
      {"GET / HTTP/1.1\r\n\r\n", "HTTP/1.1 404 Not Found\r\n",
       "\r\n\r\n404 Not Found: the metrics are at /metrics\n"},
      {"PUT /metrics HTTP/1.1\r\n\r\n", "HTTP/1.1 405 Method Not Allowed\r\n", "\r\nAllow: GET, HEAD\r\n"},
      {"junk\n\n", "HTTP/1.1 400 Bad Request\r\n", "\r\nConnection: close\r\n"},
      {"GET /metrics HTTP/3.0\r\n\r\n", "HTTP/1.1 505 ", "505"},
  };
  struct lab *lab = lab_new(500);
  expect_served(lab);
  for (size_t i = 0; i < G_N_ELEMENTS(ask); i++) {
    int fd = client(lab);
    say(fd, ask[i].request);
    g_autofree char *text = answer(fd);
    cr_assert(text && g_str_has_prefix(text, ask[i].begins) && strstr(text, ask[i].has), "%s", text);
  }
  int fd = client(lab);
  say(fd, "HEAD /metrics HTTP/1.1\r\n\r\n");
  g_autofree char *head = answer(fd);
  cr_assert(head && strstr(head, "\r\nContent-Length: 500\r\n") && g_str_has_suffix(head, "\r\n\r\n"), "%s",
            head);
  lab_free(lab);
}

Test(metrics_http, request_in_pieces_and_a_second_one)
{
  struct lab *lab = lab_new(10);
  int fd = client(lab);
  for (const char *at = GET; *at; at++) {
    cr_assert_eq(send(fd, at, 1, MSG_NOSIGNAL), 1);
    g_usleep(500);
  }
  say(fd, GET); /* one request a connection: not answered, and no harm to the answer */
  g_autofree char *text = answer(fd);
  expect_whole(lab, text);
  lab_free(lab);
}

/* Larger than any socket's buffers, to one that reads in small pieces, and to one that has closed its side.
 */
Test(metrics_http, large_text)
{
  struct lab *lab = lab_new(8 << 20);
  expect_served(lab);
  int fd = client(lab);
  say(fd, GET);
  shutdown(fd, SHUT_WR);
  g_autofree char *text = answer(fd);
  expect_whole(lab, text);
  lab_free(lab);
}

/* Idle ones, and ones that ask for much and read none of it, keep nobody out: the oldest goes. */
Test(metrics_http, clients_that_do_nothing)
{
  enum { CLIENTS = 60 };
  struct lab *lab = lab_new(4 << 20);
  int fd[CLIENTS];
  char byte;
  for (int i = 0; i < CLIENTS; i++) {
    fd[i] = client(lab);
    if (i % 2)
      say(fd[i], GET);
    if (i % 10 == 9)
      expect_served(lab);
  }
  cr_assert_leq(recv(fd[0], &byte, 1, 0), 0); /* it is gone */
  for (int i = 0; i < CLIENTS; i++)
    close(fd[i]);
  expect_served(lab);
  lab_free(lab);
}

Test(metrics_http, deadline)
{
  struct lab *lab = lab_new(10);
  int silent = client(lab), slow = client(lab);
  char byte;
  gint64 began = g_get_monotonic_time();
  say(slow, "GET /metrics HT");
  cr_assert_leq(recv(silent, &byte, 1, 0), 0);
  cr_assert_leq(recv(slow, &byte, 1, 0), 0);
  double seconds = (double)(g_get_monotonic_time() - began) / G_USEC_PER_SEC;
  cr_assert(seconds > 3 && seconds < WAIT, "%.2f s", seconds);
  close(silent);
  close(slow);
  expect_served(lab);
  lab_free(lab);
}

/* More than a head may have, and more than may follow an answer. */
Test(metrics_http, too_much)
{
  struct lab *lab = lab_new(10);
  char junk[1000];
  memset(junk, 'A', sizeof junk);
  int fd = client(lab);
  for (int i = 0; i < 5; i++)
    cr_assert_gt(send(fd, junk, sizeof junk, MSG_NOSIGNAL), 0);
  g_autofree char *text = answer(fd);
  cr_assert(text && g_str_has_prefix(text, "HTTP/1.1 431 "), "%s", text ? text : "(cut off)");
  fd = client(lab);
  say(fd, GET);
  int sent = 0;
  while (sent < 1000000 && send(fd, junk, sizeof junk, MSG_NOSIGNAL) > 0)
    sent++;
  cr_assert_lt(sent, 1000000, "a client may send for ever");
  close(fd);
  expect_served(lab);
  lab_free(lab);
}

/* However often it is asked, the text is made ten times a second at most. */
Test(metrics_http, asked_often)
{
  struct lab *lab = lab_new(100);
  gint64 began = g_get_monotonic_time();
  for (int i = 0; i < 200; i++)
    expect_served(lab);
  double seconds = (double)(g_get_monotonic_time() - began) / G_USEC_PER_SEC;
  cr_assert_leq(g_atomic_int_get(&lab->renders), 2 + (gint)(seconds * 10), "in %.3f s", seconds);
  lab_free(lab);
}

Test(metrics_http, addresses)
{
  static const char *const wrong[] = {"", "x", "70000", "127.0.0.1", "127.0.0.1:x", "-1", "1:2:3"};
  g_autoptr(GError) taken = NULL;
  for (size_t i = 0; i < G_N_ELEMENTS(wrong); i++) {
    g_autoptr(GError) error = NULL;
    cr_expect_eq(metrics_listen(wrong[i], &error), -1, "%s", wrong[i]);
    cr_expect(g_error_matches(error, DM_ERROR, DM_ERROR_INPUT), "%s", wrong[i]);
    cr_expect(g_str_has_prefix(error->message, "--metrics: "), "%s", error->message);
  }
  int fd = metrics_listen("127.0.0.1:0", NULL);
  g_autofree char *address = socket_address(fd);
  cr_expect_eq(metrics_listen(address, &taken), -1);
  cr_expect(g_error_matches(taken, DM_ERROR, DM_ERROR_FAILED));
  close(fd);
}
