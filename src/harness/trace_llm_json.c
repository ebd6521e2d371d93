/* Request traces of LLM services in JSON lines, both with timestamp, input_length, output_length (tokens) and
 * hash_ids (prefix blocks, unused):
 *
 * - Mooncake: timestamp in milliseconds;
 * - Qwen-Bailian: timestamp in seconds; also chat_id, parent_chat_id, type and turn, unused. */
#include "harness/trace_json.h"

#include <string.h>

static int fill(struct trace_json *source, struct trace_row *row, GError **error)
{
  int64_t unit_ns = source->base.format == &trace_mooncake ? NS_PER_MS : NS_PER_S;
  if (!trace_json_time(source, "timestamp", unit_ns, &row->arrival_ns, error) ||
      !trace_json_tokens(source, "input_length", &row->input_tokens, error) ||
      !trace_json_tokens(source, "output_length", &row->output_tokens, error))
    return TRACE_ERROR;
  return TRACE_ROW;
}

/* Only Qwen-Bailian's lines have a chat_id; the registry asks it first. */
static gboolean detect(const struct trace_format *format, const struct trace_probe *probe)
{
  return *probe->text == '{' &&
         strstr(probe->text, format == &trace_mooncake ? "\"input_length\"" : "\"chat_id\"");
}

static struct trace_source *llm_json_open(const struct trace_format *format, const char *path,
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
    .open = llm_json_open,
    TRACE_JSON_SLOTS,
};

const struct trace_format trace_qwen_bailian = {
    .name = "qwen-bailian",
    .title = "Qwen-Bailian JSON lines (seconds)",
    .kind = TRACE_REQUESTS,
    .detect = detect,
    .open = llm_json_open,
    TRACE_JSON_SLOTS,
};
