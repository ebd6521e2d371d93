/* A memory server's process while the network is calibrated; see calibrate_shelf.h. */
#include "backend_real/calibrate_shelf.h"

#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "backend_real/host_memory.h"
#include "backend_real/transport.h"

static void post_to_reader(void *context, actor_id reader, const void *letter, size_t size)
{
  const struct shelf_part *part = context;
  (void)reader;
  if (send(part->letters, letter, size, MSG_NOSIGNAL) < 0)
    _exit(1);
}

/* Until the reader's process ends. */
static void answer_letters(const struct shelf_part *part, struct shelf *shelf)
{
  uint8_t letter[LETTER_BYTES_MAX];
  ssize_t size;
  while ((size = recv(part->letters, letter, sizeof letter, 0)) > 0)
    part->transport->shelf_letter(shelf, CALIBRATE_READER, letter, (size_t)size);
}

void calibrate_shelf_main(void *context, int out)
{
  struct shelf_part *part = context;
  struct host_memory memory = {NULL};
  if (!host_memory_map(&memory, part->bytes, TRUE, NULL))
    return;
  struct shelf_config config = {.memory = {memory.base, memory.bytes},
                                .address = "127.0.0.1:0",
                                .index = part->index,
                                .options = part->options,
                                .post = part->transport->shelf_letter ? post_to_reader : NULL,
                                .context = part};
  struct shelf *shelf = part->transport->shelf_new(&config, NULL);
  struct range whole = {0, part->bytes};
  const struct ranges place = {.range = &whole, .count = 1};
  if (!shelf)
    return;
  part->transport->shelf_admit(shelf, CALIBRATE_READER, &part->secret);
  part->transport->shelf_serve(shelf, 0, 0, part->bytes, &place);
  if (dprintf(out, "%s\n", part->transport->shelf_address(shelf)) <= 0)
    return;
  if (part->transport->shelf_letter)
    answer_letters(part, shelf);
  for (;;)
    pause();
}
