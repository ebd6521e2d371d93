/* Streams against a plain reference on random networks: starts, pauses, resumes, cancels and changed
 * capacities at random times. The reference goes from event to event in long double, fills all links from
 * zero each time and moves the bytes of every stream at every step. */
#include <criterion/criterion.h>
#include <math.h>

#include "backend_sim/stream.h"
#include "core/units.h"
#include "plain_fill.h"

#define LINKS      8
#define STREAMS    20
#define MILESTONES 5
#define ACTIONS    60

enum action_kind { ACTION_START, ACTION_PAUSE, ACTION_RESUME, ACTION_CANCEL, ACTION_CAPACITY };

struct action {
  int64_t time;
  enum action_kind kind;
  uint32_t which; /* stream or link */
  double capacity;
};

struct scenario {
  double capacity[LINKS];
  struct plain_flow routes[STREAMS]; /* links and cap */
  uint64_t ends[STREAMS][MILESTONES];
  uint32_t milestones[STREAMS];
  struct action actions[ACTIONS];
};

/* What a run of either kind comes to. */
struct outcome {
  double times[STREAMS][MILESTONES]; /* NAN: never passed */
  double moved[STREAMS];             /* by streams that were cancelled, at the latest at the end */
};

static int action_compare(const void *a, const void *b)
{
  const struct action *x = a, *y = b;
  if (x->time != y->time)
    return x->time < y->time ? -1 : 1;
  return (x->which > y->which) - (x->which < y->which);
}

static double random_capacity(GRand *random)
{
  return g_rand_int_range(random, 0, 6) ? g_rand_double_range(random, 1e6, 1e9) : 0;
}

static void scenario_draw(struct scenario *scenario, GRand *random)
{
  *scenario = (struct scenario){0};
  for (link_id l = 0; l < LINKS; l++)
    scenario->capacity[l] = random_capacity(random);
  for (uint32_t s = 0; s < STREAMS; s++) {
    struct plain_flow *route = &scenario->routes[s];
    uint32_t count = (uint32_t)g_rand_int_range(random, 1, FLOW_LINKS_MAX + 1);
    for (uint32_t i = 0; i < count; i++) {
      link_id l = (link_id)g_rand_int_range(random, 0, LINKS);
      if (!plain_crosses(route, l))
        route->links[route->count++] = l;
    }
    route->cap = g_rand_int_range(random, 0, 4) ? 0 : g_rand_double_range(random, 1e6, 1e9);
    scenario->milestones[s] = (uint32_t)g_rand_int_range(random, 1, MILESTONES + 1);
    uint64_t end = 0;
    for (uint32_t m = 0; m < scenario->milestones[s]; m++)
      scenario->ends[s][m] = end +=
          (uint64_t)(g_rand_int_range(random, 0, 8) ? g_rand_int_range(random, 1, 90000000) : 0);
    scenario->actions[s] = (struct action){g_rand_int_range(random, 1, 400000000), ACTION_START, s, 0};
  }
  for (uint32_t i = STREAMS; i < ACTIONS; i++) {
    enum action_kind kind = (enum action_kind)g_rand_int_range(random, ACTION_PAUSE, ACTION_CAPACITY + 1);
    if (kind == ACTION_CANCEL && g_rand_int_range(random, 0, 3))
      kind = ACTION_RESUME;
    scenario->actions[i] = (struct action){
        .time = g_rand_int_range(random, 1, 900000000),
        .kind = kind,
        .which = (uint32_t)g_rand_int_range(random, 0, kind == ACTION_CAPACITY ? LINKS : STREAMS),
        .capacity = random_capacity(random),
    };
  }
  qsort(scenario->actions, ACTIONS, sizeof scenario->actions[0], action_compare);
}

static void outcome_clear(struct outcome *outcome)
{
  *outcome = (struct outcome){0};
  for (uint32_t s = 0; s < STREAMS; s++)
    for (uint32_t m = 0; m < MILESTONES; m++)
      outcome->times[s][m] = NAN;
}

/* --- the reference --- */

struct plain_net {
  const struct scenario *scenario;
  struct outcome *outcome;
  double capacity[LINKS];
  struct plain_flow flows[STREAMS]; /* active: running */
  gboolean begun[STREAMS], ended[STREAMS];
  long double moved[STREAMS];
  uint32_t next[STREAMS];
  long double now;
};

static void plain_end(struct plain_net *net, uint32_t s)
{
  net->flows[s].active = FALSE;
  net->ended[s] = TRUE;
}

/* Time of the stream's next milestone at the present rates. */
static long double plain_due(const struct plain_net *net, uint32_t s)
{
  if (!net->flows[s].active)
    return INFINITY;
  long double left = net->scenario->ends[s][net->next[s]] - net->moved[s];
  return isinf(net->flows[s].rate) || left <= 0 ? net->now : net->now + left * 1e9L / net->flows[s].rate;
}

static void plain_advance(struct plain_net *net, long double time)
{
  for (uint32_t s = 0; s < STREAMS; s++)
    if (net->flows[s].active && !isinf(net->flows[s].rate))
      net->moved[s] += net->flows[s].rate * (time - net->now) / 1e9L;
  net->now = time;
}

static void plain_act(struct plain_net *net, const struct action *action)
{
  uint32_t s = action->which;
  switch (action->kind) {
  case ACTION_START:
    net->begun[s] = net->flows[s].active = TRUE;
    break;
  case ACTION_PAUSE:
  case ACTION_RESUME:
    if (net->begun[s] && !net->ended[s])
      net->flows[s].active = action->kind == ACTION_RESUME;
    break;
  case ACTION_CANCEL:
    if (net->begun[s] && !net->ended[s]) {
      net->outcome->moved[s] = (double)net->moved[s];
      plain_end(net, s);
    }
    break;
  case ACTION_CAPACITY:
    net->capacity[action->which] = action->capacity;
  }
}

static void plain_run(const struct scenario *scenario, struct outcome *outcome)
{
  struct plain_net net = {.scenario = scenario, .outcome = outcome};
  memcpy(net.capacity, scenario->capacity, sizeof net.capacity);
  memcpy(net.flows, scenario->routes, sizeof net.flows);
  for (uint32_t a = 0;;) {
    plain_fill(net.capacity, LINKS, net.flows, STREAMS);
    uint32_t first = 0;
    for (uint32_t s = 1; s < STREAMS; s++)
      first = plain_due(&net, s) < plain_due(&net, first) ? s : first;
    long double due = plain_due(&net, first);
    if (isinf(due) && a == ACTIONS)
      break;
    if (a < ACTIONS && (long double)scenario->actions[a].time <= due) {
      plain_advance(&net, scenario->actions[a].time);
      plain_act(&net, &scenario->actions[a++]);
      continue;
    }
    plain_advance(&net, due);
    outcome->times[first][net.next[first]] = (double)due;
    net.moved[first] = scenario->ends[first][net.next[first]];
    if (++net.next[first] == scenario->milestones[first])
      plain_end(&net, first);
  }
  for (uint32_t s = 0; s < STREAMS; s++)
    plain_act(&net, &(struct action){.kind = ACTION_CANCEL, .which = s});
}

/* --- ours --- */

struct ours {
  const struct scenario *scenario;
  struct outcome *outcome;
  struct stream_net *net;
  struct event_queue *queue;
  stream_id ids[STREAMS];
  gboolean begun[STREAMS], ended[STREAMS];
};

static void on_milestone(void *context, stream_id stream, uint64_t user, uint32_t milestone, double exact_ns,
                         gboolean last)
{
  struct ours *ours = context;
  cr_assert_eq(stream, ours->ids[user]);
  cr_assert(isnan(ours->outcome->times[user][milestone]) && !ours->ended[user]);
  cr_assert(!milestone || ours->outcome->times[user][milestone - 1] <= exact_ns);
  cr_assert_eq(last, milestone + 1 == ours->scenario->milestones[user]);
  ours->outcome->times[user][milestone] = exact_ns;
  ours->ended[user] = last;
}

static void ours_act(struct ours *ours, const struct action *action)
{
  uint32_t s = action->which;
  const struct scenario *scenario = ours->scenario;
  const struct plain_flow *route = &scenario->routes[s];
  double at = (double)action->time;
  if (action->kind == ACTION_CAPACITY) {
    stream_net_set_capacity(ours->net, action->which, action->capacity, action->time);
  } else if (action->kind == ACTION_START) {
    ours->ids[s] = stream_start(ours->net, at, route->links, route->count, route->cap, scenario->ends[s],
                                scenario->milestones[s], s);
    ours->begun[s] = TRUE;
  } else if (!ours->begun[s] || ours->ended[s]) {
    return;
  } else if (action->kind == ACTION_PAUSE) {
    stream_pause(ours->net, ours->ids[s], at);
  } else if (action->kind == ACTION_RESUME) {
    stream_resume(ours->net, ours->ids[s], at);
  } else {
    ours->outcome->moved[s] = (double)stream_cancel(ours->net, ours->ids[s], action->time);
    ours->ended[s] = TRUE;
  }
}

static void ours_run(const struct scenario *scenario, struct outcome *outcome)
{
  struct ours ours = {.scenario = scenario, .outcome = outcome, .queue = event_queue_new()};
  ours.net = stream_net_new(ours.queue, 0, on_milestone, &ours);
  for (link_id l = 0; l < LINKS; l++)
    cr_assert_eq(stream_net_add_link(ours.net, scenario->capacity[l]), l);
  int64_t now = 0;
  for (uint32_t a = 0; a < ACTIONS || event_queue_next(ours.queue) != TIME_NEVER;) {
    int64_t next = event_queue_next(ours.queue), action = a < ACTIONS ? scenario->actions[a].time : INT64_MAX;
    if (MIN(next, action) > now && stream_net_settle(ours.net, now))
      continue;
    now = MIN(next, action);
    if (next <= action) {
      uint32_t kind;
      uint64_t payload;
      event_queue_pop(ours.queue, &now, &kind, &payload);
      stream_net_event(ours.net, now, payload);
    } else {
      ours_act(&ours, &scenario->actions[a++]);
    }
    if (a == ACTIONS && event_queue_next(ours.queue) == TIME_NEVER)
      stream_net_settle(ours.net, now);
  }
  for (uint32_t s = 0; s < STREAMS; s++)
    ours_act(&ours, &(struct action){.time = now, .kind = ACTION_CANCEL, .which = s});
  stream_net_free(ours.net);
  event_queue_free(ours.queue);
}

static gboolean near(double a, double b, double slack)
{
  return (isnan(a) && isnan(b)) || fabs(a - b) <= slack + 1e-9 * fabs(b);
}

Test(stream_random, equals_the_plain_reference, .timeout = 60)
{
  g_autoptr(GRand) random = g_rand_new_with_seed(99);
  for (int round = 0; round < 1500; round++) {
    struct scenario scenario;
    struct outcome ours, plain;
    scenario_draw(&scenario, random);
    outcome_clear(&ours);
    outcome_clear(&plain);
    ours_run(&scenario, &ours);
    plain_run(&scenario, &plain);
    for (uint32_t s = 0; s < STREAMS; s++) {
      for (uint32_t m = 0; m < scenario.milestones[s]; m++)
        cr_assert(near(ours.times[s][m], plain.times[s][m], 1e-3),
                  "round %d, stream %u, milestone %u: %.12g, %.12g", round, s, m, ours.times[s][m],
                  plain.times[s][m]);
      cr_assert(near(ours.moved[s], plain.moved[s], 1), "round %d, stream %u", round, s);
    }
  }
}
