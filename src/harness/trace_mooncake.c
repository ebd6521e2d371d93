/* Mooncake: JSON lines with timestamp (ms), input_length, output_length (tokens), hash_ids (512-token prefix
 * blocks, unused). */
#include "harness/trace_json.h"

#include <string.h>

static int fill(struct trace_json *source, struct trace_row *row, GError **error)
{
  if (!trace_json_time(source, "timestamp", NS_PER_MS, &row->arrival_ns, error) ||
      !trace_json_tokens(source, "input_length", &row->input_tokens, error) ||
      !trace_json_tokens(source, "output_length", &row->output_tokens, error))
    return TRACE_ERROR;
  return TRACE_ROW;
}

static gboolean detect(const struct trace_format *format, const struct trace_probe *probe)
{
  (void)format;
  return *probe->text == '{' && strstr(probe->text, "\"input_length\"");
}

static struct trace_source *mooncake_open(const struct trace_format *format, const char *path,
                                          const struct trace_options *options, GError **error)
{
  (void)options;
  return trace_json_new(format, path, fill, error);
}

const struct trace_format trace_mooncake = {
    .name = "mooncake",
    .title = "Mooncake JSON lines (milliseconds)",
    .kind = TRACE_REQUESTS,
    .detect = detect,
    .open = mooncake_open,
    TRACE_JSON_SLOTS,
};
