/* The TCP transport over loopback, between two processes, beside a plain copy program: the same bytes from
 * the same memory to the same memory over as many connections, each with a thread at either end that loops
 * over send or recv of 1 MiB. Pairs of runs, one of each, and the median of the pairs' ratios, which must
 * reach 0.9. iperf3 is printed beside it where it is installed. */
#include <arpa/inet.h>
#include <glib.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "backend_real/transport.h"

#define SHELF      1
#define READER     ACTOR(ACTOR_GPU_SERVER, 0)
#define ARENA      (1ULL << 30)
#define PIECE      (1U << 20)
#define PAIRS_MAX  99
#define GOAL_RATIO 0.9

static struct {
  gint connections, threads, gib, pairs, read_kib;
  gdouble pace_gbit_s;
} options = {.connections = 4, .gib = 4, .pairs = 5, .read_kib = 1024};

static const struct ticket_secret secret = {.key = "the benchmark's own"};

static double seconds_now(void)
{
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec + now.tv_nsec * 1e-9;
}

/* CPU time of both processes: what a copy costs, however busy the machine is. */
static double cpu_now(pid_t server)
{
  clockid_t clock;
  struct timespec own, other;
  if (clock_getcpuclockid(server, &clock) != 0)
    return 0;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &own);
  clock_gettime(clock, &other);
  return own.tv_sec + other.tv_sec + (own.tv_nsec + other.tv_nsec) * 1e-9;
}

static void check(gboolean good, const char *what)
{
  if (good)
    return;
  perror(what);
  exit(1);
}

static struct memory arena_memory(void)
{
  struct memory memory = {mmap(NULL, ARENA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
                          ARENA};
  check(memory.base != MAP_FAILED, "mmap");
  madvise(memory.base, ARENA, MADV_HUGEPAGE);
  return memory;
}

static uint64_t word(uint64_t index)
{
  return index * 0x9e3779b97f4a7c15;
}

static struct transport_options transport_options(void)
{
  return (struct transport_options){.connections = options.connections,
                                    .threads = options.threads,
                                    .pace_bytes_s = options.pace_gbit_s * 1e9 / 8};
}

/* --- the plain program */

struct plain {
  int fd;
  struct memory memory;
  struct plain_share {
    uint64_t from, bytes; /* first byte of the arena, bytes in all: on and on, and round */
  } share;
};

static void *plain_send(void *data)
{
  g_autofree struct plain *plain = data;
  for (uint64_t done = 0; done < plain->share.bytes;) {
    uint64_t at = (plain->share.from + done) % ARENA,
             want = MIN(PIECE - at % PIECE, plain->share.bytes - done);
    ssize_t sent = send(plain->fd, plain->memory.base + at, want, MSG_NOSIGNAL);
    check(sent > 0, "send");
    done += sent;
  }
  close(plain->fd);
  return NULL;
}

static void *plain_receive(void *data)
{
  g_autofree struct plain *plain = data;
  for (uint64_t done = 0; done < plain->share.bytes;) {
    uint64_t at = (plain->share.from + done) % ARENA,
             want = MIN(PIECE - at % PIECE, plain->share.bytes - done);
    ssize_t got = recv(plain->fd, plain->memory.base + at, want, 0);
    check(got > 0, "recv");
    done += got;
  }
  close(plain->fd);
  return NULL;
}

static int plain_listen(uint16_t *port)
{
  struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t length = sizeof name;
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  check(fd >= 0 && bind(fd, (struct sockaddr *)&name, length) == 0 && listen(fd, 64) == 0 &&
            getsockname(fd, (struct sockaddr *)&name, &length) == 0,
        "listen");
  *port = ntohs(name.sin_port);
  return fd;
}

static double plain_run(struct memory to, uint16_t port, uint64_t bytes)
{
  struct sockaddr_in name = {
      .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(port)};
  GThread *thread[64];
  int n = options.connections;
  double start = seconds_now();
  for (int i = 0; i < n; i++) {
    struct plain *plain = g_new0(struct plain, 1);
    /* Each its own part of the arena: the same bytes sent twice would come from the cache. */
    *plain = (struct plain){
        .fd = socket(AF_INET, SOCK_STREAM, 0), .memory = to, .share = {ARENA / n * i, bytes / n}};
    check(connect(plain->fd, (struct sockaddr *)&name, sizeof name) == 0, "connect");
    check(send(plain->fd, &plain->share, sizeof plain->share, MSG_NOSIGNAL) == sizeof plain->share, "send");
    thread[i] = g_thread_new("plain", plain_receive, plain);
  }
  for (int i = 0; i < n; i++)
    g_thread_join(thread[i]);
  return seconds_now() - start;
}

/* --- the serving process */

struct ports {
  pid_t server;
  uint16_t plain;
  char shelf[64];
};

static void serve(const struct transport_ops *ops, int tell)
{
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  struct memory from = arena_memory();
  for (uint64_t i = 0; i < ARENA / 8; i++)
    ((uint64_t *)from.base)[i] = word(i);
  struct shelf_config config = {
      .memory = from, .address = "127.0.0.1:0", .index = SHELF, .options = transport_options()};
  struct shelf *shelf = ops->shelf_new(&config, NULL);
  check(shelf != NULL, "shelf");
  struct range range = {0, ARENA};
  ops->shelf_serve(shelf, 0, 0, ARENA, &(struct ranges){.range = &range, .count = 1});
  ops->shelf_admit(shelf, READER, &secret);
  struct ports ports = {.server = getpid()};
  int listener = plain_listen(&ports.plain);
  g_strlcpy(ports.shelf, ops->shelf_address(shelf), sizeof ports.shelf);
  check(write(tell, &ports, sizeof ports) == sizeof ports, "write");
  for (;;) {
    struct plain *plain = g_new0(struct plain, 1);
    *plain = (struct plain){.fd = accept(listener, NULL, NULL), .memory = from};
    check(plain->fd >= 0, "accept");
    check(recv(plain->fd, &plain->share, sizeof plain->share, MSG_WAITALL) == sizeof plain->share, "recv");
    g_thread_unref(g_thread_new("plain", plain_send, plain));
  }
}

/* --- the transport */

struct count {
  GMutex lock;
  GCond changed;
  uint64_t ended, failed;
};

static void read_ended(void *context, uint64_t tag, gboolean good)
{
  struct count *count = context;
  (void)tag;
  g_mutex_lock(&count->lock);
  count->ended++;
  count->failed += !good;
  g_cond_signal(&count->changed);
  g_mutex_unlock(&count->lock);
}

/* Asks for all at once: keeping enough under way is the transport's business. */
static double transport_run(const struct transport_ops *ops, struct reader *reader, struct count *count,
                            uint64_t bytes)
{
  uint64_t piece = (uint64_t)options.read_kib << 10, reads = bytes / piece;
  double start = seconds_now();
  count->ended = 0;
  for (uint64_t i = 0; i < reads; i++)
    ops->reader_read(reader, &(struct transport_read){.server = SHELF,
                                                      .offset = i * piece % ARENA,
                                                      .gpu = NO_INDEX,
                                                      .to = i * piece % ARENA,
                                                      .bytes = (uint32_t)piece,
                                                      .tag = i});
  g_mutex_lock(&count->lock);
  while (count->ended < reads)
    g_cond_wait(&count->changed, &count->lock);
  g_mutex_unlock(&count->lock);
  return seconds_now() - start;
}

static int compare_doubles(const void *a, const void *b)
{
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double median(double *values, int count)
{
  qsort(values, count, sizeof *values, compare_doubles);
  return values[count / 2];
}

static void check_bytes(struct memory to)
{
  for (uint64_t i = 0; i < ARENA / 8; i++)
    if (((uint64_t *)to.base)[i] != word(i)) {
      fprintf(stderr, "wrong bytes at %" G_GUINT64_FORMAT "\n", i * 8);
      exit(1);
    }
  memset(to.base, 0, ARENA);
}

/* --- iperf3 */

/* The port was free a moment ago. One client, then it ends. */
static GPid iperf3_serve(const char *program, char *port)
{
  char *words[] = {(char *)program, (char *)"-s", (char *)"-1", (char *)"-p", port, NULL};
  GPid pid = 0;
  g_spawn_async(NULL, words, NULL, G_SPAWN_DO_NOT_REAP_CHILD | G_SPAWN_STDOUT_TO_DEV_NULL, NULL, NULL, &pid,
                NULL);
  return pid;
}

/* GB/s that the server received, by its last line; 0: it is not there yet, or failed. */
static double iperf3_run(const char *program, const char *port, uint64_t bytes)
{
  g_autofree char *command =
      g_strdup_printf("%s -c 127.0.0.1 -p %s -P %d -l %u -n %" G_GUINT64_FORMAT " -f k", program, port,
                      options.connections, PIECE, bytes);
  g_autofree char *output = NULL, *complaint = NULL;
  if (!g_spawn_command_line_sync(command, &output, &complaint, NULL, NULL))
    return 0;
  const char *end = g_strrstr(output, "Kbits/sec"), *begin = end;
  if (!end || !strstr(end, "receiver"))
    return 0;
  while (begin > output && (g_ascii_isspace(begin[-1]) || g_ascii_isdigit(begin[-1]) || begin[-1] == '.'))
    begin--;
  const char *number = g_strrstr_len(begin, end - begin - 1, " ");
  return g_ascii_strtod(number ? number : begin, NULL) * 1e3 / 8 / 1e9;
}

/* As many connections, bytes and bytes a send as the others; but each connection sends one buffer again and
 * again, which stays in the cache. */
static void print_iperf3(uint64_t bytes)
{
  g_autofree char *program = g_find_program_in_path("iperf3");
  uint16_t free_port;
  if (!program) {
    printf("iperf3: not installed (`scripts/deps.sh bench`)\n");
    return;
  }
  close(plain_listen(&free_port));
  g_autofree char *port = g_strdup_printf("%u", free_port);
  GPid server = iperf3_serve(program, port);
  double rate = 0;
  for (int tries = 0; server != 0 && rate <= 0 && tries < 100; tries++) {
    rate = iperf3_run(program, port, bytes);
    if (rate <= 0)
      g_usleep(20000);
  }
  if (rate > 0)
    printf("iperf3, %d connections, %d GiB from one buffer each: %.2f GB/s\n", options.connections,
           options.gib, rate);
  else
    printf("iperf3: failed\n");
  if (server != 0) {
    kill(server, SIGKILL);
    waitpid(server, NULL, 0);
  }
}

static int compare_runs(const struct transport_ops *ops, const struct ports *ports)
{
  struct memory to = arena_memory();
  memset(to.base, 0, ARENA);
  struct count count = {0};
  struct reader_config config = {
      .memory = to, .self = READER, .options = transport_options(), .ended = read_ended, .context = &count};
  struct reader *reader = ops->reader_new(&config, NULL);
  check(reader != NULL, "reader");
  ops->reader_peer(reader, SHELF, ports->shelf, &secret);
  uint64_t bytes = (uint64_t)options.gib << 30;
  double ratio[PAIRS_MAX] = {0}, ours[PAIRS_MAX] = {0}, plain[PAIRS_MAX] = {0};
  for (int i = 0; i < options.pairs; i++) {
    double cpu[3] = {cpu_now(ports->server)};
    plain[i] = bytes / plain_run(to, ports->plain, bytes) / 1e9;
    cpu[1] = cpu_now(ports->server) - cpu[0];
    memset(to.base, 0, ARENA);
    cpu[0] = cpu_now(ports->server);
    ours[i] = bytes / transport_run(ops, reader, &count, bytes) / 1e9;
    cpu[2] = cpu_now(ports->server) - cpu[0];
    check_bytes(to);
    ratio[i] = ours[i] / plain[i];
    printf("%4d %10.2f %10.2f %8.3f %14.3f %12.3f\n", i, plain[i], ours[i], ratio[i], cpu[1] * 1e9 / bytes,
           cpu[2] * 1e9 / bytes);
    fflush(stdout);
  }
  ops->reader_free(reader);
  double middle = median(ratio, options.pairs);
  printf("median of %d: plain %.2f GB/s, transport %.2f GB/s, ratio %.3f (goal %.2f)\n", options.pairs,
         median(plain, options.pairs), median(ours, options.pairs), middle, GOAL_RATIO);
  if (count.failed)
    printf("%" G_GUINT64_FORMAT " reads failed\n", count.failed);
  return count.failed || (middle < GOAL_RATIO && options.pace_gbit_s <= 0);
}

int main(int argc, char **argv)
{
  static const GOptionEntry entries[] = {
      {"connections", 'c', 0, G_OPTION_ARG_INT, &options.connections, "connections (4)", "N"},
      {"threads", 't', 0, G_OPTION_ARG_INT, &options.threads, "threads of either end (its own choice)", "N"},
      {"gib", 'g', 0, G_OPTION_ARG_INT, &options.gib, "GiB a run (4)", "N"},
      {"pairs", 'p', 0, G_OPTION_ARG_INT, &options.pairs, "pairs of runs (5)", "N"},
      {"read", 'r', 0, G_OPTION_ARG_INT, &options.read_kib, "KiB a read (1024)", "N"},
      {"pace", 0, 0, G_OPTION_ARG_DOUBLE, &options.pace_gbit_s, "limit of the transport (none)", "GBIT_S"},
      {0}};
  g_autoptr(GOptionContext) context = g_option_context_new(NULL);
  g_autoptr(GError) error = NULL;
  g_option_context_add_main_entries(context, entries, NULL);
  if (!g_option_context_parse(context, &argc, &argv, &error) || options.connections < 1 ||
      options.connections > 64 || options.threads < 0 || options.threads > 64 || options.gib < 1 ||
      options.pairs < 1 || options.pairs > PAIRS_MAX || options.read_kib < 4 || options.read_kib > 1024 ||
      ARENA % ((uint64_t)options.read_kib << 10) != 0) {
    fprintf(stderr, "%s\n", error ? error->message : "an option is out of bounds");
    return 2;
  }
  const struct transport_ops *ops = transport_by_name("tcp", NULL);
  int tell[2];
  check(pipe(tell) == 0, "pipe");
  pid_t server = fork();
  check(server >= 0, "fork");
  if (server == 0)
    serve(ops, tell[1]);
  struct ports ports;
  close(tell[1]);
  check(read(tell[0], &ports, sizeof ports) == sizeof ports, "the serving process");
  printf("tcp over loopback, %d connections, %d GiB in reads of %d KiB; GB/s\n", options.connections,
         options.gib, options.read_kib);
  printf("%4s %10s %10s %8s %14s %12s\n", "pair", "plain", "transport", "ratio", "plain CPU s/GB",
         "transport");
  int status = compare_runs(ops, &ports);
  kill(server, SIGKILL);
  waitpid(server, NULL, 0);
  print_iperf3((uint64_t)options.gib << 30);
  return status;
}
