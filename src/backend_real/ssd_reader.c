/* Threads that read files; see ssd_reader.h. */
#include "backend_real/ssd_reader.h"

#include <sys/mman.h>

struct ssd_read {
  const struct ssd_file *file;
  uint64_t offset, to, tag;
  uint32_t bytes;
};

struct ssd_reader {
  uint8_t *base;
  void (*ended)(void *context, uint64_t tag, gboolean good);
  void *context;
  GMutex lock; /* over all that follows */
  GCond more;
  struct ssd_read *queue; /* a ring of `room` */
  uint32_t room, first, count;
  uint64_t bytes;
  gboolean closed;
  GThread *thread[SSD_READER_THREADS];
};

/* FALSE: closed, and nothing is left. */
static gboolean take(struct ssd_reader *reader, struct ssd_read *read)
{
  g_mutex_lock(&reader->lock);
  while (reader->count == 0 && !reader->closed)
    g_cond_wait(&reader->more, &reader->lock);
  gboolean some = reader->count > 0;
  if (some) {
    *read = reader->queue[reader->first];
    reader->first = (reader->first + 1) % reader->room;
    reader->count--;
    if (reader->closed)
      read->file = NULL;
  }
  g_mutex_unlock(&reader->lock);
  return some;
}

static gboolean perform(struct ssd_reader *reader, const struct ssd_read *read, uint8_t *bounce)
{
  g_autoptr(GError) error = NULL;
  if (!read->file)
    return FALSE;
  if (!ssd_file_read(read->file, read->offset, read->bytes, reader->base + read->to, bounce, &error)) {
    g_warning("%s", error->message);
    return FALSE;
  }
  g_mutex_lock(&reader->lock);
  reader->bytes += read->bytes;
  g_mutex_unlock(&reader->lock);
  return TRUE;
}

static gpointer work(gpointer data)
{
  struct ssd_reader *reader = data;
  struct ssd_read read;
  uint8_t *bounce = mmap(NULL, SSD_BOUNCE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (bounce == MAP_FAILED)
    g_error("no memory for a buffer of %u bytes", SSD_BOUNCE_BYTES);
  while (take(reader, &read)) {
    gboolean good = perform(reader, &read, bounce);
    reader->ended(reader->context, read.tag, good);
  }
  munmap(bounce, SSD_BOUNCE_BYTES);
  return NULL;
}

struct ssd_reader *ssd_reader_new(uint8_t *base, void (*ended)(void *context, uint64_t tag, gboolean good),
                                  void *context)
{
  struct ssd_reader *reader = g_new0(struct ssd_reader, 1);
  *reader = (struct ssd_reader){.base = base, .ended = ended, .context = context, .room = 64};
  reader->queue = g_new(struct ssd_read, reader->room);
  g_mutex_init(&reader->lock);
  g_cond_init(&reader->more);
  for (guint i = 0; i < SSD_READER_THREADS; i++)
    reader->thread[i] = g_thread_new("ssd", work, reader);
  return reader;
}

void ssd_reader_free(struct ssd_reader *reader)
{
  if (!reader)
    return;
  g_mutex_lock(&reader->lock);
  reader->closed = TRUE;
  g_cond_broadcast(&reader->more);
  g_mutex_unlock(&reader->lock);
  for (guint i = 0; i < SSD_READER_THREADS; i++)
    g_thread_join(reader->thread[i]);
  g_mutex_clear(&reader->lock);
  g_cond_clear(&reader->more);
  g_free(reader->queue);
  g_free(reader);
}

static void grow(struct ssd_reader *reader)
{
  struct ssd_read *larger = g_new(struct ssd_read, 2 * reader->room);
  for (uint32_t i = 0; i < reader->count; i++)
    larger[i] = reader->queue[(reader->first + i) % reader->room];
  g_free(reader->queue);
  reader->queue = larger;
  reader->room *= 2;
  reader->first = 0;
}

void ssd_reader_read(struct ssd_reader *reader, const struct ssd_file *file, uint64_t offset, uint64_t to,
                     uint32_t bytes, uint64_t tag)
{
  g_mutex_lock(&reader->lock);
  if (reader->count == reader->room)
    grow(reader);
  reader->queue[(reader->first + reader->count++) % reader->room] =
      (struct ssd_read){.file = file, .offset = offset, .to = to, .tag = tag, .bytes = bytes};
  g_cond_signal(&reader->more);
  g_mutex_unlock(&reader->lock);
}

uint64_t ssd_reader_bytes(struct ssd_reader *reader)
{
  g_mutex_lock(&reader->lock);
  uint64_t bytes = reader->bytes;
  g_mutex_unlock(&reader->lock);
  return bytes;
}
