/* Qwen-Bailian: JSON lines with chat_id, parent_chat_id, timestamp (s), input_length, output_length (tokens),
 * type, turn, hash_ids (16-token prefix blocks, unused). */
#include "harness/trace_json.h"

#include <string.h>

static int fill(struct trace_json *source, struct trace_row *row, GError **error)
{
  if (!trace_json_time(source, "timestamp", NS_PER_S, &row->arrival_ns, error) ||
      !trace_json_tokens(source, "input_length", &row->input_tokens, error) ||
      !trace_json_tokens(source, "output_length", &row->output_tokens, error))
    return TRACE_ERROR;
  return TRACE_ROW;
}

static gboolean detect(const struct trace_format *format, const struct trace_probe *probe)
{
  (void)format;
  return *probe->text == '{' && strstr(probe->text, "\"chat_id\"");
}

static struct trace_source *bailian_open(const struct trace_format *format, const char *path,
                                         const struct trace_options *options, GError **error)
{
  (void)options;
  return trace_json_new(format, path, fill, error);
}

const struct trace_format trace_qwen_bailian = {
    .name = "qwen-bailian",
    .title = "Qwen-Bailian JSON lines (seconds)",
    .kind = TRACE_REQUESTS,
    .detect = detect,
    .open = bailian_open,
    TRACE_JSON_SLOTS,
};
