/* One connection of a TCP reader to a shelf: asks for the reads that it was given, and takes the answers in
 * where they belong. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "backend_real/transport_tcp_reader.h"
#include "backend_real/transport_tcp_socket.h"

#define TURN_BYTES (1U << 20) /* that one line may take in before others have their turn */

/* How a step of a turn ended. */
enum step { STEP_ON, STEP_BLOCKED, STEP_LATER, STEP_OVER };

static enum step step_over(struct line *line, const char *why)
{
  reader_lose(line, why);
  return STEP_OVER;
}

static enum step step_error(struct line *line, int error)
{
  if (error == EINTR)
    return STEP_ON;
  return error == EAGAIN ? STEP_BLOCKED : step_over(line, g_strerror(error));
}

static enum step line_connect(struct line *line)
{
  g_autoptr(GError) error = NULL;
  int fd = socket_connect(line->address, &error);
  if (fd < 0)
    return step_over(line, error->message);
  if (!poller_add(line->poller, &line->pollee, fd))
    return step_over(line, g_strerror(errno));
  return STEP_ON;
}

/* --- asking */

/* FALSE: the line was dropped meanwhile. */
static gboolean put_ticket(struct line *line, uint32_t model)
{
  uint64_t serial = reader_serial(line);
  if (!serial)
    return FALSE;
  wire_ticket_put(&line->secret, line->reader->self, line->server, model, serial,
                  line->output + line->output_end);
  line->output_end += WIRE_TICKET_BYTES;
  wire_rights_add(&line->rights, model);
  return TRUE;
}

static struct wire_request request_of(const struct line *line, uint64_t number)
{
  const struct read *read = &line->read[number % LINE_READS];
  return (struct wire_request){
      .model = read->model, .bytes = read->bytes, .offset = read->offset, .id = number};
}

/* The next request, with its ticket if it needs one. FALSE: there is no room for it, or the line was dropped.
 */
static gboolean put_request(struct line *line)
{
  if (sizeof line->output - line->output_end < WIRE_TICKET_BYTES + WIRE_REQUEST_BYTES)
    return FALSE;
  struct wire_request request = request_of(line, line->asked);
  if (!wire_rights_have(&line->rights, request.model) && !put_ticket(line, request.model))
    return FALSE;
  wire_request_put(&request, line->output + line->output_end);
  line->output_end += WIRE_REQUEST_BYTES;
  line->asked++;
  return TRUE;
}

static enum step flush(struct line *line, gint64 *again_ns)
{
  if (line->send_ns && line->send_ns > poller_clock()) {
    *again_ns = line->send_ns;
    return STEP_LATER;
  }
  ssize_t sent = send(line->pollee.fd, line->output + line->output_begin,
                      line->output_end - line->output_begin, MSG_NOSIGNAL);
  if (sent < 0)
    return step_error(line, errno);
  line->output_begin += sent;
  if (line->output_begin == line->output_end)
    line->output_begin = line->output_end = 0;
  return STEP_ON;
}

/* When the next read may be asked for, if that is later than now; or 0. */
static gint64 waits_until(const struct line *line)
{
  gint64 ask_ns = line->read[line->asked % LINE_READS].ask_ns;
  return ask_ns > poller_clock() ? ask_ns : 0;
}

/* Asks for all that the line was given and may ask for by now. */
static enum step ask(struct line *line, gint64 *again_ns)
{
  uint64_t given = reader_given(line);
  enum step step = STEP_ON;
  while (step == STEP_ON) {
    uint32_t before = line->output_end;
    *again_ns = 0;
    while (line->asked < given && !(*again_ns = waits_until(line)) && put_request(line))
      ;
    if (line->reader->out && line->output_end > before)
      line->send_ns = pace_put(line->reader->out, line->output_end - before, poller_clock()).begin_ns;
    if (line->output_begin == line->output_end)
      return *again_ns ? STEP_LATER : STEP_ON;
    step = flush(line, again_ns);
  }
  return step;
}

/* --- answers */

static void payload_begins(struct line *line)
{
  line->awaits = LINE_PAYLOAD;
  if (line->reader->in)
    line->due_ns[line->answered % LINE_READS] =
        pace_came(line->reader->in, &line->read[line->answered % LINE_READS].slot, poller_clock());
}

static void answered(struct line *line, gboolean good)
{
  line->good[line->answered++ % LINE_READS] = good;
  line->awaits = LINE_HEAD;
}

static void consume(struct line *line, uint32_t bytes)
{
  line->input_bytes -= bytes;
  memmove(line->input, line->input + bytes, line->input_bytes);
}

/* What has come beside payload. NULL, or what is wrong with it. */
static const char *take_frames(struct line *line)
{
  for (;;) {
    if (line->awaits == LINE_END && line->input_bytes >= WIRE_END_BYTES) {
      gboolean good;
      if (!wire_end_parse(line->input, &good))
        return "sent a malformed end of an answer";
      consume(line, WIRE_END_BYTES);
      answered(line, good);
    } else if (line->awaits == LINE_HEAD && line->input_bytes >= WIRE_REPLY_BYTES) {
      struct wire_reply reply;
      if (line->answered == line->asked)
        return "answered what was not asked";
      struct wire_request request = request_of(line, line->answered);
      if (!wire_reply_parse(line->input, &request, &reply))
        return "sent a malformed answer";
      consume(line, WIRE_REPLY_BYTES);
      line->received = 0;
      line->due_ns[line->answered % LINE_READS] = 0;
      if (!reply.bytes)
        answered(line, FALSE);
      else
        payload_begins(line);
    } else {
      return NULL;
    }
  }
}

/* Where the next bytes belong: the rest of a payload, straight to its place, and a little of what comes after
 * it; never more. */
static uint32_t gather(struct line *line, struct iovec piece[2])
{
  uint32_t pieces = 0;
  if (line->awaits == LINE_PAYLOAD) {
    const struct read *read = &line->read[line->answered % LINE_READS];
    piece[pieces++] = (struct iovec){read->at + line->received, read->bytes - line->received};
  }
  /* What follows a head may be payload, so nothing is taken beyond one. */
  uint64_t frames = line->awaits == LINE_HEAD ? WIRE_REPLY_BYTES : WIRE_END_BYTES + WIRE_REPLY_BYTES;
  uint64_t room = frames - line->input_bytes;
  if (room)
    piece[pieces++] = (struct iovec){line->input + line->input_bytes, room};
  return pieces;
}

static void took(struct line *line, uint64_t bytes)
{
  if (line->awaits == LINE_PAYLOAD) {
    const struct read *read = &line->read[line->answered % LINE_READS];
    uint64_t payload = MIN(read->bytes - line->received, bytes);
    line->received += payload;
    bytes -= payload;
    if (line->received == read->bytes)
      line->awaits = LINE_END;
    __atomic_fetch_add(&line->reader->bytes, payload, __ATOMIC_RELAXED);
  }
  line->input_bytes += bytes;
}

/* Reads once. *drained: the socket had no more. */
static enum step take(struct line *line, uint64_t *budget, gboolean *drained)
{
  if (*drained)
    return STEP_BLOCKED;
  struct iovec piece[2];
  uint32_t pieces = gather(line, piece);
  uint64_t asked = piece[0].iov_len + (pieces > 1 ? piece[1].iov_len : 0);
  ssize_t got = readv(line->pollee.fd, piece, (int)pieces);
  if (got == 0) /* as every shelf does in the end: nothing is lost if nothing was asked for */
    return step_over(line, reader_given(line) == line->answered ? NULL : "closed by the other end");
  if (got < 0)
    return step_error(line, errno);
  took(line, got);
  *budget -= MIN(*budget, (uint64_t)got);
  *drained = (uint64_t)got < asked && !line->pollee.hung_up;
  const char *wrong = take_frames(line);
  return wrong ? step_over(line, wrong) : STEP_ON;
}

/* Takes in what there is, as long as there is room for what was answered and not ended. */
static enum step take_in(struct line *line, uint64_t *budget)
{
  gboolean drained = FALSE;
  enum step step = STEP_ON;
  while (step == STEP_ON && *budget > 0 && line->answered - line->begin < LINE_READS / 2)
    step = take(line, budget, &drained);
  return step;
}

/* Number of the first read that is not to end yet. */
static uint64_t due(const struct line *line)
{
  uint64_t n = line->begin;
  gint64 now = 0;
  for (; n < line->answered; n++) {
    gint64 due_ns = line->due_ns[n % LINE_READS];
    if (due_ns > now && due_ns > (now = poller_clock()))
      break;
  }
  return n;
}

/* Ends what is due, and counts what came. FALSE: neither is. */
static gboolean let_go(struct line *line)
{
  uint64_t until = due(line);
  if (until == line->begin && line->came == line->answered)
    return FALSE;
  reader_ended(line, until);
  return TRUE;
}

static enum step begin(struct line *line)
{
  if (!put_ticket(line, line->first_model))
    return STEP_BLOCKED;
  return line_connect(line);
}

enum turn line_turn(struct line *line, gint64 *again_ns)
{
  uint64_t budget = TURN_BYTES;
  if (g_atomic_int_get(&line->doomed)) {
    reader_lose(line, NULL);
    return TURN_OVER;
  }
  enum step step = line->pollee.fd < 0 ? begin(line) : STEP_ON;
  gboolean more = step == STEP_ON;
  gint64 ask_ns = 0;
  while (more && budget > 0) {
    ask_ns = 0;
    step = ask(line, &ask_ns);
    if (step != STEP_OVER)
      step = take_in(line, &budget);
    if (step == STEP_OVER)
      return TURN_OVER;
    more = let_go(line);
  }
  if (step == STEP_OVER)
    return TURN_OVER;
  if (budget == 0)
    return TURN_AGAIN;
  gint64 due_ns = line->begin < line->answered ? line->due_ns[line->begin % LINE_READS] : 0;
  *again_ns = ask_ns && due_ns ? MIN(ask_ns, due_ns) : MAX(ask_ns, due_ns);
  return *again_ns ? TURN_LATER : TURN_BLOCKED;
}
