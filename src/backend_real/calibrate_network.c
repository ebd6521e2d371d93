/* Calibration of the data plane: loads over the transport, from memory servers that are processes of their
 * own, by this one as a GPU server reads them: group after group, each cut over all memory servers, so many
 * reads under way a stream (as real_fetch.c), and each group that arrived is copied on to the GPU meanwhile,
 * as in a load: both go through the same host memory, and over loopback that is what bounds them
 * (results/real-h200.md has figures). See calibrate.h. */
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "backend_real/calibrate.h"
#include "backend_real/calibrate_gear.h"
#include "backend_real/calibrate_shelf.h"
#include "backend_real/fit.h"
#include "backend_real/loop.h"
#include "backend_real/offspring.h"
#include "backend_real/real_world.h"
#include "core/error.h"

/* A shelf holds SHELF_LOADS times what one load reads of it at most. Loads take turns at its memory, and at
 * the reader's: of a cluster's models, few are in a processor's cache, which holds hundreds of MiB today. */
enum { SHELVES = 2, SHELF_LOADS = 2, STREAM_READS = 16, REPEATS = 9, GROUPS_MAX = 64, POINTS_MAX = 32 };

#define LIMIT_NS (60 * NS_PER_S)

/* --- one load
 * -------------------------------------------------------------------------------------------------------*/

struct lab;

struct lab_read {
  struct note note;
  struct lab *lab;
  uint32_t stream, group, bytes;
  uint64_t to; /* place in the arena */
  gboolean good;
};

struct stream {
  uint32_t group;
  uint64_t at; /* bytes of its part of the group asked for */
  uint32_t under_way;
  struct lab_read read[STREAM_READS];
  uint32_t free[STREAM_READS], frees;
};

struct lab {
  struct calibration *c;
  struct gear gear; /* the arena, the GPU that what arrives is copied to, and the loop */
  struct reader *reader;
  struct offspring shelf[SHELVES];
  struct mailbox {
    struct lab *lab;
    int fd; /* letters from and to a shelf; -1: none */
    struct watch *watch;
  } mailbox[SHELVES];
  uint64_t bytes; /* of the largest load */
  uint64_t from;  /* where in each shelf the next load begins */
  uint64_t into;  /* and where in each stream's half of the arena it goes */

  /* Of the load under way. */
  struct note begun;
  uint32_t streams, groups;
  uint64_t part; /* bytes of a group from one stream */
  struct stream stream[SHELVES];
  uint64_t missing[GROUPS_MAX];
  uint32_t arrived;
  gboolean failed;
};

/* As in real_fetch.c: the stream whose next read the load needs first, of those that may ask; or NULL. */
static struct stream *next_stream(struct lab *lab)
{
  struct stream *best = NULL;
  for (uint32_t s = 0; s < lab->streams; s++) {
    struct stream *stream = &lab->stream[s];
    if (stream->frees > 0 && stream->group < lab->groups &&
        (!best || stream->group < best->group ||
         (stream->group == best->group && stream->frees > best->frees)))
      best = stream;
  }
  return best;
}

static void ask(struct lab *lab, struct stream *stream)
{
  struct lab_read *read = &stream->read[stream->free[--stream->frees]];
  uint64_t offset = stream->group * lab->part + stream->at;
  read->stream = (uint32_t)(stream - lab->stream);
  read->group = stream->group;
  read->bytes = (uint32_t)MIN(lab->part - stream->at, transport_read_bytes(lab->part));
  read->to = read->stream * lab->bytes + lab->into + offset;
  stream->at += read->bytes;
  if (stream->at == lab->part) {
    stream->at = 0;
    stream->group++;
  }
  lab->c->transport->reader_read(lab->reader, &(struct transport_read){.server = read->stream,
                                                                       .offset = lab->from + offset,
                                                                       .gpu = NO_INDEX,
                                                                       .to = read->to,
                                                                       .bytes = read->bytes,
                                                                       .tag = (uint64_t)(uintptr_t)read});
}

static void pump(struct lab *lab)
{
  struct stream *stream;
  while (!lab->failed && (stream = next_stream(lab)))
    ask(lab, stream);
}

static void load_begun(struct note *note)
{
  pump((struct lab *)(void *)((char *)note - offsetof(struct lab, begun)));
}

static void copy_group(struct lab *lab, uint32_t group)
{
  for (uint32_t s = 0; s < lab->streams; s++)
    gear_copy(&lab->gear, s * lab->bytes + lab->into + group * lab->part, lab->part, 0);
}

static void read_noted(struct note *note)
{
  struct lab_read *read = (struct lab_read *)note;
  struct lab *lab = read->lab;
  struct stream *stream = &lab->stream[read->stream];
  lab->failed |= !read->good;
  lab->missing[read->group] -= read->bytes;
  stream->free[stream->frees++] = (uint32_t)(read - stream->read);
  while (lab->arrived < lab->groups && lab->missing[lab->arrived] == 0)
    copy_group(lab, lab->arrived++);
  pump(lab);
  if (lab->failed || lab->arrived == lab->groups)
    loop_quit(lab->gear.loop);
}

static void read_ended(void *context, uint64_t tag, gboolean good)
{
  struct lab_read *read = (struct lab_read *)(uintptr_t)tag;
  read->good = good;
  note_post(((struct lab *)context)->gear.loop, &read->note);
}

static void too_late(void *context, uint64_t tag)
{
  struct lab *lab = context;
  (void)tag;
  lab->failed = TRUE;
  loop_quit(lab->gear.loop);
}

/* On by `bytes` in a memory of `size`, and to its beginning where the next so many do not fit. */
static void take_turn(uint64_t *at, uint64_t bytes, uint64_t size)
{
  *at += bytes;
  if (*at + bytes > size)
    *at = 0;
}

static void load_begin(struct lab *lab, uint32_t streams, uint32_t groups, uint64_t bytes)
{
  lab->streams = streams;
  lab->groups = groups;
  lab->part = bytes / streams / groups;
  take_turn(&lab->from, lab->part * groups, lab->bytes * SHELF_LOADS);
  take_turn(&lab->into, lab->part * groups, lab->bytes);
  lab->arrived = 0;
  for (uint32_t g = 0; g < groups; g++)
    lab->missing[g] = lab->part * streams;
  for (uint32_t s = 0; s < streams; s++) {
    struct stream *stream = &lab->stream[s];
    stream->group = stream->frees = 0;
    stream->at = 0;
    for (uint32_t r = 0; r < STREAM_READS; r++) {
      stream->read[r].lab = lab;
      stream->read[r].note.read = read_noted;
      stream->free[stream->frees++] = r;
    }
  }
}

/* Those of one load do not run into the next. */
static gboolean copies_end(struct lab *lab, GError **error)
{
  int64_t unused;
  gear_copy(&lab->gear, 0, 1, gear_begin(&lab->gear));
  return gear_await(&lab->gear, &unused, error);
}

/* Wall time until the loop's thread knows of the last group; ns. */
static gboolean load_run(struct lab *lab, uint32_t streams, uint32_t groups, uint64_t bytes, double *took_ns,
                         GError **error)
{
  load_begin(lab, streams, groups, bytes);
  lab->begun.read = load_begun;
  uint64_t limit = loop_timer(lab->gear.loop, loop_clock() + LIMIT_NS, too_late, lab, 0);
  int64_t begin = loop_clock();
  note_post(lab->gear.loop, &lab->begun);
  loop_run(lab->gear.loop);
  *took_ns = (double)(loop_clock() - begin);
  loop_timer_cancel(lab->gear.loop, limit);
  if (!lab->failed)
    return copies_end(lab, error);
  g_set_error(error, DM_ERROR, DM_ERROR_FAILED, "calibrate: a read over loopback failed or took too long");
  return FALSE;
}

/* --- the curve
 * ------------------------------------------------------------------------------------------------------*/

/* A few loads of one kind, as a point (1, groups, bytes): their median, as figures of runs are: the threads
 * of both ends find their pace anew in each load. */
static gboolean measure_point(struct lab *lab, uint32_t streams, uint32_t groups, uint64_t bytes,
                              struct fit_point *point, GError **error)
{
  double took[REPEATS];
  for (uint32_t i = 0; i < REPEATS; i++)
    if (!load_run(lab, streams, groups, bytes, &took[i], error))
      return FALSE;
  uint64_t moved = bytes / streams / groups * streams * groups;
  *point = (struct fit_point){.x = {1, groups, (double)moved}, .y = fit_spread(took, REPEATS).median};
  return TRUE;
}

/* From the largest profile down to an eighth of it, each cut into groups. */
static gboolean measure_curve(struct lab *lab, uint32_t streams, double from, double to, struct fit *fit,
                              GError **error)
{
  static const uint32_t groups[] = {4, 16, GROUPS_MAX};
  struct fit_point point[POINTS_MAX];
  guint points = 0, all = 4 * G_N_ELEMENTS(groups);
  double unused;
  if (!load_run(lab, streams, 1, lab->bytes, &unused, error)) /* opens connections, touches memory */
    return FALSE;
  for (uint32_t shift = 0; shift <= 3; shift++)
    for (guint g = 0; g < G_N_ELEMENTS(groups); g++, points++)
      if (!calibration_goes_on(lab->c, from + (to - from) * points / all, error) ||
          !measure_point(lab, streams, groups[g], lab->bytes >> shift, &point[points], error))
        return FALSE;
  return fit_points(point, points, 3, fit, error);
}

static double gbit_s(const struct fit *fit)
{
  return fit->c[2] > 0 ? 8 / fit->c[2] : 0;
}

static gboolean measure(struct lab *lab, GError **error)
{
  struct calibration *c = lab->c;
  struct fit one, two;
  if (!measure_curve(lab, 1, 0.05, 0.2, &one, error) || !measure_curve(lab, SHELVES, 0.2, 0.4, &two, error))
    return FALSE;
  if (!(gbit_s(&one) > 0 && gbit_s(&two) > 0)) {
    g_set_error(error, DM_ERROR, DM_ERROR_FAILED,
                "calibrate: the time of a load does not grow with its bytes");
    return FALSE;
  }
  g_autofree char *paced =
      c->pace_gbit_s > 0 ? g_strdup_printf(", paced to %g Gbit/s a server", c->pace_gbit_s) : g_strdup("");
  calibration_set(c, KEY_MEMORY_NIC, gbit_s(&one),
                  "measured: loads from one memory server by %s on loopback%s, beside copies to the GPU, "
                  "fitted to %.1f%%",
                  c->transport->name, paced, 100 * one.residual);
  calibration_set(
      c, KEY_NIC, gbit_s(&two),
      "measured: loads from two memory servers at once%s, beside copies to the GPU, fitted to %.1f%%", paced,
      100 * two.residual);
  calibration_set(c, KEY_NET_STREAM, two.c[0] / 1e3,
                  "measured: of the same loads, what neither bytes nor groups explain; standard error %.1f",
                  two.error[0] / 1e3);
  calibration_set(c, KEY_NET_GROUP, two.c[1] / 1e3,
                  "measured: of the same loads, cut into 4, 16 and 64 groups; standard error %.2f",
                  two.error[1] / 1e3);
  return TRUE;
}

/* --- both ends
 * -------------------------------------------------------------------------------------------------------*/

static gboolean open_shelves(struct lab *lab, struct shelf_part *part, char address[SHELVES][128],
                             GError **error)
{
  for (uint32_t s = 0; s < SHELVES; s++) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
      g_set_error(error, DM_ERROR, DM_ERROR_FAILED, "calibrate: no socket: %s", g_strerror(errno));
      return FALSE;
    }
    lab->mailbox[s].fd = ends[0];
    part->index = s;
    part->letters = ends[1];
    gboolean good =
        offspring_start(&lab->shelf[s], calibrate_shelf_main, part, address[s], sizeof address[s], error);
    close(ends[1]);
    if (!good)
      return FALSE;
  }
  return TRUE;
}

static void post_to_shelf(void *context, uint32_t server, const void *letter, size_t size)
{
  struct lab *lab = context;
  if (send(lab->mailbox[server].fd, letter, size, MSG_NOSIGNAL) < 0)
    g_debug("calibrate: memory server %u takes no letters: %s", server, g_strerror(errno));
}

static void letters_came(void *context)
{
  struct mailbox *box = context;
  uint8_t letter[LETTER_BYTES_MAX];
  ssize_t size;
  while ((size = recv(box->fd, letter, sizeof letter, MSG_DONTWAIT)) > 0)
    box->lab->c->transport->reader_letter(box->lab->reader, (uint32_t)(box - box->lab->mailbox), letter,
                                          (size_t)size);
}

static gboolean open_reader(struct lab *lab, const struct shelf_part *part, char address[SHELVES][128],
                            GError **error)
{
  gboolean writes = part->transport->reader_letter != NULL;
  if (!gear_open(&lab->gear, lab->c, lab->bytes * SHELVES, error))
    return FALSE;
  struct reader_config config = {.memory = {lab->gear.memory.base, lab->gear.memory.bytes},
                                 .self = CALIBRATE_READER,
                                 .options = part->options,
                                 .ended = read_ended,
                                 .post = writes ? post_to_shelf : NULL,
                                 .context = lab};
  lab->reader = part->transport->reader_new(&config, error);
  for (uint32_t s = 0; lab->reader && s < SHELVES; s++) {
    if (writes)
      lab->mailbox[s].watch = loop_watch(lab->gear.loop, lab->mailbox[s].fd, letters_came, &lab->mailbox[s]);
    part->transport->reader_peer(lab->reader, s, address[s], &part->secret);
  }
  return lab->reader != NULL;
}

static void mailboxes_close(struct lab *lab)
{
  for (uint32_t s = 0; s < SHELVES; s++) {
    loop_unwatch(lab->mailbox[s].watch);
    if (lab->mailbox[s].fd >= 0)
      close(lab->mailbox[s].fd);
  }
}

gboolean calibrate_network(struct calibration *c, GError **error)
{
  struct lab *lab = g_new0(struct lab, 1);
  struct shelf_part part = {.transport = c->transport,
                            .options = {.pace_bytes_s = gbit_to_bytes_per_s(c->pace_gbit_s)},
                            .bytes = calibration_bytes(c, 4 << 20) * SHELF_LOADS};
  char address[SHELVES][128];
  lab->c = c;
  lab->bytes = part.bytes / SHELF_LOADS;
  for (uint32_t s = 0; s < SHELVES; s++)
    lab->mailbox[s] = (struct mailbox){.lab = lab, .fd = -1};
  gboolean good = ticket_secret_random(&part.secret, error) && open_shelves(lab, &part, address, error);
  good = good && open_reader(lab, &part, address, error) && measure(lab, error);
  if (lab->reader)
    c->transport->reader_free(lab->reader);
  if (lab->gear.loop)
    loop_read_notes(lab->gear.loop);
  for (uint32_t s = 0; s < SHELVES; s++)
    offspring_end(&lab->shelf[s]);
  mailboxes_close(lab);
  if (lab->gear.loop)
    gear_close(&lab->gear);
  g_free(lab);
  return good;
}
