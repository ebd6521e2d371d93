/* Requests to the metrics server: any bytes get a status that it knows, the same one however they come in
 * pieces, and 200 only for what asks for the metrics. */
#include <stdint.h>
#include <string.h>

#include "backend_real/metrics_request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  gboolean head;
  guint first = 0;
  size = MIN(size, METRICS_REQUEST_MAX);
  for (size_t part = 1; part <= size && first == 0; part++) {
    g_autofree char *bytes = g_memdup2(data, part); /* so that a read past them is seen */
    first = metrics_request_status(bytes, part, &head);
    g_assert(first == 0 || first == 200 || first == 400 || first == 404 || first == 405 || first == 431 ||
             first == 505);
    g_assert(first != 431 || part == METRICS_REQUEST_MAX);
    if (first != 200)
      continue;
    g_assert(g_strstr_len(bytes, (gssize)part, head ? "HEAD /metrics" : "GET /metrics"));
    g_assert(bytes[part - 1] == '\n');
  }
  /* What came after the end of the head changes nothing. */
  if (first != 0)
    g_assert(metrics_request_status((const char *)data, size, &head) == first);
  return 0;
}
