/* Bells; see bell.h. */
#include "backend_real/bell.h"

#include <errno.h>
#include <glib.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

int bell_new(void)
{
  return eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
}

void bell_ring(int bell)
{
  const uint64_t one = 1;
  if (write(bell, &one, sizeof one) < 0 && errno != EAGAIN) /* rung 2^64 - 2 times, it rings still */
    g_error("eventfd: %m");
}

void bell_silence(int bell)
{
  uint64_t rung;
  if (read(bell, &rung, sizeof rung) < 0 && errno != EAGAIN)
    g_error("eventfd: %m");
}
