/* The shelf's half of reads by datagram; see srd_answers.h. */
#include "backend_real/srd_answers.h"

#include "backend_real/srd_credit.h"

struct request {
  uint64_t id, address;
  uint32_t key, bytes;
  uint32_t sent; /* bytes of it */
};

struct visitor {
  gboolean here, met, held;
  uint64_t token; /* that it shows */
  struct srd_visitor end;
  struct credit_line line;
  uint32_t first, count; /* its requests: a ring */
};

struct srd_answers {
  struct visitor *visitor;
  struct request *request; /* [readers][requests] */
  uint32_t readers, requests;
  uint32_t used; /* one more than the highest index that is here */
  uint32_t turn;
};

struct srd_answers *srd_answers_new(uint32_t readers, uint32_t requests)
{
  struct srd_answers *answers = g_new0(struct srd_answers, 1);
  answers->readers = readers;
  answers->requests = requests;
  answers->visitor = g_new0(struct visitor, readers);
  answers->request = g_new0(struct request, (size_t)readers * requests);
  return answers;
}

void srd_answers_free(struct srd_answers *answers)
{
  if (!answers)
    return;
  g_free(answers->visitor);
  g_free(answers->request);
  g_free(answers);
}

uint32_t srd_answers_receives(const struct srd_answers *answers)
{
  return answers->requests + CREDITS_UNDER_WAY + 1;
}

gboolean srd_answers_admit(struct srd_answers *answers, uint64_t random, uint32_t *reader, uint64_t *token)
{
  uint32_t i = 0;
  while (i < answers->readers && answers->visitor[i].here)
    i++;
  if (i == answers->readers)
    return FALSE;
  answers->visitor[i] = (struct visitor){.here = TRUE, .token = SRD_TOKEN(random, i)};
  answers->used = MAX(answers->used, i + 1);
  *reader = i;
  *token = answers->visitor[i].token;
  return TRUE;
}

void srd_answers_meet(struct srd_answers *answers, uint32_t reader, const struct srd_visitor *visitor)
{
  struct visitor *v = &answers->visitor[reader];
  v->met = TRUE;
  v->end = *visitor;
  credit_line_init(&v->line, visitor->share);
}

void srd_answers_expel(struct srd_answers *answers, uint32_t reader)
{
  answers->visitor[reader] = (struct visitor){0};
  while (answers->used > 0 && !answers->visitor[answers->used - 1].here)
    answers->used--;
}

void srd_answers_hold(struct srd_answers *answers, uint32_t reader, gboolean held)
{
  answers->visitor[reader].held = held;
}

static struct request *request_at(const struct srd_answers *answers, uint32_t reader, uint32_t number)
{
  const struct visitor *v = &answers->visitor[reader];
  return &answers->request[(size_t)reader * answers->requests + (v->first + number) % answers->requests];
}

static gboolean take_request(struct srd_answers *answers, uint32_t reader, const struct srd_message *m)
{
  struct visitor *v = &answers->visitor[reader];
  if (v->count == answers->requests)
    return FALSE;
  *request_at(answers, reader, v->count++) =
      (struct request){.id = m->id, .address = m->address, .key = m->key, .bytes = m->bytes};
  return TRUE;
}

enum srd_taken srd_answers_take(struct srd_answers *answers, const uint8_t *data, size_t size,
                                uint32_t *reader)
{
  struct srd_message m;
  if (!srd_message_parse(data, size, &m) ||
      (m.kind != SRD_REQUEST && m.kind != SRD_CREDIT && m.kind != SRD_PROBE))
    return SRD_MALFORMED;
  uint32_t i = SRD_TOKEN_PEER(m.token);
  if (i >= answers->readers || !answers->visitor[i].met || answers->visitor[i].token != m.token)
    return SRD_STRANGER;
  *reader = i;
  gboolean good = TRUE;
  if (m.kind == SRD_REQUEST)
    good = take_request(answers, i, &m);
  else if (m.kind == SRD_CREDIT)
    good = credit_line_take(&answers->visitor[i].line, m.limit);
  return good ? SRD_TAKEN : SRD_EXCESS;
}

gboolean srd_answers_next(struct srd_answers *answers, struct srd_piece *piece)
{
  for (uint32_t i = 0; i < answers->used; i++) {
    uint32_t reader = (answers->turn + i) % answers->used;
    const struct visitor *v = &answers->visitor[reader];
    if (!v->met || v->held || v->count == 0 || credit_line_left(&v->line) == 0)
      continue;
    const struct request *request = request_at(answers, reader, 0);
    *piece = (struct srd_piece){
        .reader = reader,
        .key = request->key,
        .bytes = MIN(v->end.segment, request->bytes - request->sent),
        .address = request->address + request->sent,
    };
    return TRUE;
  }
  return FALSE;
}

static void end_request(struct srd_answers *answers, struct visitor *v)
{
  v->first = (v->first + 1) % answers->requests;
  v->count--;
}

size_t srd_answers_send(struct srd_answers *answers, const struct srd_piece *piece,
                        uint8_t wire[SRD_HEAD_BYTES])
{
  struct visitor *v = &answers->visitor[piece->reader];
  struct request *request = request_at(answers, piece->reader, 0);
  struct srd_message m = {
      .kind = SRD_SEGMENT,
      .token = v->end.token,
      .id = request->id,
      .at = request->sent,
      .bytes = piece->bytes,
      .taken = v->line.taken,
  };
  credit_line_use(&v->line);
  request->sent += piece->bytes;
  if (request->sent == request->bytes)
    end_request(answers, v);
  answers->turn = piece->reader + 1;
  return srd_message_put(&m, wire);
}

size_t srd_answers_refuse(struct srd_answers *answers, const struct srd_piece *piece,
                          uint8_t wire[SRD_HEAD_BYTES])
{
  struct visitor *v = &answers->visitor[piece->reader];
  struct srd_message m = {
      .kind = SRD_REFUSAL,
      .token = v->end.token,
      .id = request_at(answers, piece->reader, 0)->id,
      .taken = v->line.taken,
  };
  credit_line_use(&v->line);
  end_request(answers, v);
  answers->turn = piece->reader + 1;
  return srd_message_put(&m, wire);
}
