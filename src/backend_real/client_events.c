/* [events] of an experiment: servers that come, leave or fail. */
#include "backend_real/client_internal.h"

#include "core/error.h"

static void remove_server(struct client *c, const struct experiment_event *event)
{
  struct message m = {
      .type = MESSAGE_REMOVE,
      .remove = {.kind = event->member == MEMBER_GPU_SERVER ? ACTOR_GPU_SERVER : ACTOR_MEMORY_SERVER,
                 .index = event->number}};
  link_message(c->link, c->run->number, &m);
}

void run_event(struct client *c, const struct experiment_event *event)
{
  struct client_run *run = c->run;
  GError *error = NULL;
  if (event->kind == EVENT_REMOVE)
    remove_server(c, event);
  else if (!run->options->event(run->options->context, event, &error))
    run_fail(c, error);
}

/* Those that may be refused. */
static const char *kind_text(enum event_kind kind)
{
  return kind == EVENT_SET ? "set" : kind == EVENT_ADD ? "add" : "fail";
}

gboolean run_events_can_be(const struct client_run *run, GError **error)
{
  for (uint32_t i = 0; i < run->experiment->events; i++) {
    const struct experiment_event *event = &run->experiment->event[i];
    if (event->kind == EVENT_SET || (event->kind != EVENT_REMOVE && !run->options->event))
      return input_error(error, run->experiment->path, 0,
                         "event %s: expected one that can be had here (%s), found %s", event->name,
                         run->options->event ? "add, remove, fail" : "remove; add and fail need --local",
                         kind_text(event->kind));
  }
  return TRUE;
}
