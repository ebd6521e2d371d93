/* The reader's half of reads by datagram; see srd_reader.h. */
#include "backend_real/srd_reader.h"

#include "backend_real/srd_credit.h"
#include "backend_real/srd_reassembly.h"

struct peer {
  gboolean here, met;
  gboolean silent, probe; /* since the last tick; it is to be probed */
  uint64_t token;         /* that it shows */
  struct srd_shelf_end end;
  struct credit_grant grant;
  uint32_t asked;        /* reads under way */
  uint32_t out;          /* datagrams on their way to it */
  struct srd_read *wait; /* a ring of those that wait; room is a power of two */
  uint32_t first, count, room;
};

struct srd_reader {
  struct reassembly *reassembly;
  struct peer *peer;
  uint32_t peers, reads, share;
  uint32_t used; /* one more than the highest index that is here */
  uint32_t turn; /* the peer that is asked first */
};

struct srd_reader *srd_reader_new(const struct srd_reader_config *config)
{
  struct srd_reader *reader = g_new0(struct srd_reader, 1);
  reader->peers = config->peers;
  reader->reads = config->reads;
  reader->share = config->receives / config->peers;
  reader->reassembly = reassembly_new(config->peers * config->reads, SRD_SEGMENT_LEAST);
  reader->peer = g_new0(struct peer, config->peers);
  return reader;
}

void srd_reader_free(struct srd_reader *reader)
{
  if (!reader)
    return;
  for (uint32_t i = 0; i < reader->peers; i++)
    g_free(reader->peer[i].wait);
  reassembly_free(reader->reassembly);
  g_free(reader->peer);
  g_free(reader);
}

uint32_t srd_reader_share(const struct srd_reader *reader)
{
  return reader->share;
}

gboolean srd_reader_join(struct srd_reader *reader, uint64_t random, uint32_t *peer, uint64_t *token)
{
  uint32_t i = 0;
  while (i < reader->peers && reader->peer[i].here)
    i++;
  if (i == reader->peers)
    return FALSE;
  struct peer *p = &reader->peer[i];
  *p = (struct peer){
      .here = TRUE,
      .token = SRD_TOKEN(random, i),
      .wait = p->wait,
      .room = p->room,
  };
  credit_grant_init(&p->grant, reader->share);
  reader->used = MAX(reader->used, i + 1);
  *peer = i;
  *token = p->token;
  return TRUE;
}

void srd_reader_meet(struct srd_reader *reader, uint32_t peer, const struct srd_shelf_end *shelf)
{
  struct peer *p = &reader->peer[peer];
  p->met = TRUE;
  p->end = *shelf;
  p->end.requests = MIN(shelf->requests, reader->reads);
}

gboolean srd_reader_leave(struct srd_reader *reader, uint32_t peer, uint64_t *tag)
{
  struct peer *p = &reader->peer[peer];
  if (p->asked > 0 && reassembly_drop(reader->reassembly, peer, tag)) {
    p->asked--;
    return TRUE;
  }
  if (p->count > 0) {
    *tag = p->wait[p->first].tag;
    p->first = (p->first + 1) % p->room;
    p->count--;
    return TRUE;
  }
  p->here = p->met = FALSE;
  while (reader->used > 0 && !reader->peer[reader->used - 1].here)
    reader->used--;
  return FALSE;
}

void srd_reader_read(struct srd_reader *reader, uint32_t peer, const struct srd_read *read)
{
  struct peer *p = &reader->peer[peer];
  if (p->count == p->room) {
    struct srd_read *wait = g_new(struct srd_read, MAX(p->room * 2, 16));
    for (uint32_t i = 0; i < p->count; i++)
      wait[i] = p->wait[(p->first + i) % p->room];
    g_free(p->wait);
    p->wait = wait;
    p->first = 0;
    p->room = MAX(p->room * 2, 16);
  }
  p->wait[(p->first + p->count++) % p->room] = *read;
}

static size_t put_request(struct srd_reader *reader, uint32_t peer, uint8_t *wire)
{
  struct peer *p = &reader->peer[peer];
  const struct srd_read *read = &p->wait[p->first];
  struct reassembly_read asked = {
      .peer = peer,
      .segment = p->end.segment,
      .bytes = read->bytes,
      .place = read->place,
      .tag = read->tag,
  };
  struct srd_message m = {
      .kind = SRD_REQUEST,
      .token = p->end.token,
      .id = reassembly_open(reader->reassembly, &asked),
      .key = read->key,
      .address = read->address,
      .bytes = read->bytes,
  };
  p->first = (p->first + 1) % p->room;
  p->count--;
  p->asked++;
  return srd_message_put(&m, wire);
}

void srd_reader_tick(struct srd_reader *reader)
{
  for (uint32_t i = 0; i < reader->used; i++) {
    struct peer *p = &reader->peer[i];
    p->probe = p->silent && p->asked > 0 && p->out == 0;
    p->silent = TRUE;
  }
}

/* Credit first: without it, what was asked may wait. */
static size_t peer_next(struct srd_reader *reader, uint32_t peer, uint8_t *wire)
{
  struct peer *p = &reader->peer[peer];
  if (!p->here || !p->met)
    return 0;
  if (credit_grant_due(&p->grant)) {
    struct srd_message m = {.kind = SRD_CREDIT, .token = p->end.token, .limit = credit_grant_send(&p->grant)};
    return srd_message_put(&m, wire);
  }
  if (p->count > 0 && p->asked < p->end.requests)
    return put_request(reader, peer, wire);
  if (p->probe) {
    p->probe = FALSE;
    return srd_message_put(&(struct srd_message){.kind = SRD_PROBE, .token = p->end.token}, wire);
  }
  return 0;
}

size_t srd_reader_next(struct srd_reader *reader, uint8_t wire[SRD_HEAD_BYTES], uint32_t *peer)
{
  for (uint32_t i = 0; i < reader->used; i++) {
    uint32_t candidate = (reader->turn + i) % reader->used;
    size_t size = peer_next(reader, candidate, wire);
    if (size > 0) {
      *peer = candidate;
      reader->peer[candidate].out++;
      reader->turn = candidate + 1;
      return size;
    }
  }
  return 0;
}

void srd_reader_sent(struct srd_reader *reader, uint32_t peer)
{
  reader->peer[peer].out--;
}

static enum srd_outcome take_segment(struct srd_reader *reader, uint32_t peer, const struct srd_message *m,
                                     uint64_t *tag)
{
  enum segment_fate fate = reassembly_take(reader->reassembly, peer, m->id, m->at, m->payload, m->bytes, tag);
  if (fate == SEGMENT_TWICE || fate == SEGMENT_WRONG)
    return SRD_FAULT;
  if (fate == SEGMENT_UNKNOWN)
    return SRD_LATE;
  if (fate == SEGMENT_STORED)
    return SRD_STORED;
  reader->peer[peer].asked--;
  return SRD_DONE;
}

static enum srd_outcome take_refusal(struct srd_reader *reader, uint32_t peer, const struct srd_message *m,
                                     uint64_t *tag)
{
  if (!reassembly_refuse(reader->reassembly, peer, m->id, tag))
    return SRD_FAULT;
  reader->peer[peer].asked--;
  return SRD_FAILED;
}

enum srd_outcome srd_reader_take(struct srd_reader *reader, const uint8_t *data, size_t size, uint32_t *peer,
                                 uint64_t *tag)
{
  struct srd_message m;
  if (!srd_message_parse(data, size, &m) || (m.kind != SRD_SEGMENT && m.kind != SRD_REFUSAL))
    return SRD_NONSENSE;
  *peer = SRD_TOKEN_PEER(m.token);
  if (*peer >= reader->peers || !reader->peer[*peer].here || reader->peer[*peer].token != m.token)
    return SRD_FOREIGN;
  if (!credit_grant_arrived(&reader->peer[*peer].grant, m.taken))
    return SRD_FAULT;
  reader->peer[*peer].silent = FALSE;
  return m.kind == SRD_SEGMENT ? take_segment(reader, *peer, &m, tag) : take_refusal(reader, *peer, &m, tag);
}
