/* A request's way through the controller: admitted, (proxy), sent or queued centrally, done, answered. */
#include "core/controller_internal.h"

#define ATTEMPTS_MAX 4 /* dispatches of one request before it is given up */

/* Service time of a request, whatever its client says: no sum passes the end of time. */
#define SERVICE_MAX_NS (TIME_NEVER / 4)

/* --- answers
 * --------------------------------------------------------------------------------------------------------*/

static void answer(struct controller *c, uint32_t tag, enum outcome outcome, enum found found,
                   int64_t waited_ns, int64_t executed_ns)
{
  const struct request_slot *r = &c->slot[tag];
  gboolean sent = r->gpu != NO_INDEX;
  controller_count_answer(c, r, outcome, found);
  struct message m = {.type = MESSAGE_ANSWER,
                      .answer = {.id = r->id,
                                 .outcome = outcome,
                                 .found = found,
                                 .gpu = r->gpu,
                                 .queued_ns = sent ? r->dispatched - r->arrived : -1,
                                 .waited_ns = waited_ns,
                                 .executed_ns = executed_ns}};
  world_send(c->world, ACTOR(ACTOR_CLIENT, 0), &m);
  if (c->config->timeout_ns > 0)
    controller_open_remove(c, tag);
}

static void answer_failed(struct controller *c, uint32_t tag, enum outcome outcome)
{
  answer(c, tag, outcome, FOUND_RESIDENT, -1, -1);
  controller_slot_give(c, tag);
}

/* --- dispatch
 * -------------------------------------------------------------------------------------------------------*/

static void record_dispatch(struct controller *c, const struct request_slot *r, const struct choice *choice)
{
  int64_t now = world_now(c->world);
  const struct forecast *f = &choice->forecast;
  controller_record(
      c, (struct record){.kind = RECORD_DISPATCH,
                         .reason = r->attempt > 0 ? REASON_RETRY : choice->reason,
                         .request = r->id,
                         .model = r->model,
                         .server = c->view->gpu[r->gpu].server,
                         .gpu = r->gpu,
                         .group = NO_INDEX,
                         .source = f->source == LOAD_SOURCES ? NO_INDEX : (uint32_t)f->source,
                         .a = f->finish_ns - now,
                         .b = f->wait_ns,
                         .c = f->load_ns,
                         .d = choice->other_ns == TIME_NEVER ? TIME_NEVER : choice->other_ns - now});
}

static void send_to(struct controller *c, uint32_t tag, const struct choice *choice)
{
  struct request_slot *r = &c->slot[tag];
  struct cluster_view *view = c->view;
  struct gpu_view *gpu = &view->gpu[choice->gpu];
  r->state = REQUEST_SENT;
  r->gpu = choice->gpu;
  r->dispatched = world_now(c->world);
  if (world_records(c->world))
    record_dispatch(c, r, choice);
  r->work_ns = cluster_view_service_ns(view, r->gpu, r->model, r->service_ns);
  r->shift = gpu->shift;
  r->predicted = cluster_view_dispatch(view, r->gpu, r->model, &choice->forecast, r->work_ns, r->dispatched);
  c->queued += gpu->outstanding > view->concurrency[gpu->hw];
  gpu->saving |= gpu->training; /* it will stop by itself: inference goes first */
  controller_outstanding_add(c, tag);
  const struct server_config *server = &c->config->server[gpu->server];
  struct message m = {.type = MESSAGE_DISPATCH,
                      .dispatch = {.id = r->id,
                                   .tag = tag,
                                   .attempt = r->attempt,
                                   .model = r->model,
                                   .gpu = r->gpu - server->first_gpu,
                                   .service_ns = r->service_ns}};
  world_send(c->world, ACTOR(ACTOR_GPU_SERVER, gpu->server), &m);
}

static gboolean choose(struct controller *c, uint32_t tag, struct choice *choice)
{
  const struct request_slot *r = &c->slot[tag];
  struct balance_request request = {.model = r->model, .slot = r->slot, .service_ns = r->service_ns};
  return c->config->balancer->choose(c->view, &request, world_now(c->world), choice);
}

/* A request that is in no list is sent, queued, or (with no server left to wait for) given up. */
static void place(struct controller *c, uint32_t tag)
{
  struct choice choice;
  if (choose(c, tag, &choice))
    send_to(c, tag, &choice);
  else if (c->view->up_gpus == 0 || !c->config->balancer->waits)
    answer_failed(c, tag, OUTCOME_LOST);
  else
    controller_central_add(c, tag);
}

/* As all have the same time, the first of those not answered is the next to be late: one timer stands for it.
 */
static void late_arm(struct controller *c, int64_t delay_ns)
{
  c->late_armed = TRUE;
  c->world->ops->timer(c->world, delay_ns, TIMER_TAG(TIMER_LATE, 0));
}

void controller_request(struct controller *c, const struct message_request *m)
{
  if (m->model >= catalog_models(c->config->catalog))
    return; /* no model of this run */
  c->usage.admitted++;
  uint32_t tag = controller_slot_take(c);
  struct request_slot *r = &c->slot[tag];
  *r = (struct request_slot){.id = m->id,
                             .service_ns = min_i64(m->service_ns, SERVICE_MAX_NS),
                             .arrived = world_now(c->world),
                             .model = m->model,
                             .slot = m->slot,
                             .gpu = NO_INDEX};
  if (c->config->timeout_ns > 0) {
    controller_open_add(c, tag);
    if (!c->late_armed)
      late_arm(c, c->config->timeout_ns);
  }
  if (c->config->max_queue > 0 && controller_queue(c) >= c->config->max_queue) {
    answer_failed(c, tag, OUTCOME_REJECTED);
    return;
  }
  double proxy_ns = c->config->hardware[0].ray_proxy_ns;
  if (c->config->system->proxy && proxy_ns > 0) {
    r->state = REQUEST_PROXY;
    c->world->ops->timer(c->world, ns_round(proxy_ns), TIMER_TAG(TIMER_PROXY, tag));
  } else {
    place(c, tag);
  }
}

void controller_proxy_passed(struct controller *c, uint32_t tag)
{
  if (c->slot[tag].state == REQUEST_PROXY)
    place(c, tag);
  else if (c->slot[tag].state == REQUEST_ABANDONED)
    controller_slot_give(c, tag);
}

/* --- completion
 * -----------------------------------------------------------------------------------------------------*/

static void unbook(struct controller *c, uint32_t tag)
{
  struct request_slot *r = &c->slot[tag];
  struct gpu_view *gpu = &c->view->gpu[r->gpu];
  c->queued -= gpu->outstanding > c->view->concurrency[gpu->hw];
  controller_outstanding_remove(c, tag);
  cluster_view_done(c->view, r->gpu, r->model, r->work_ns, r->predicted, r->shift, world_now(c->world));
}

void controller_drain_central(struct controller *c, uint32_t model)
{
  struct choice choice;
  uint32_t tag;
  while ((tag = c->central.first) != NO_INDEX && choose(c, tag, &choice)) {
    controller_central_remove(c, tag);
    send_to(c, tag, &choice);
  }
  /* The head waits for a GPU; a process of `model` may have room all the same. */
  tag = model == NO_INDEX ? NO_INDEX : c->central_model[model].first;
  if (tag != NO_INDEX && choose(c, tag, &choice)) {
    controller_central_remove(c, tag);
    send_to(c, tag, &choice);
  }
}

void controller_give_up_central(struct controller *c)
{
  uint32_t tag;
  while (c->view->up_gpus == 0 && (tag = c->central.first) != NO_INDEX) {
    controller_central_remove(c, tag);
    answer_failed(c, tag, OUTCOME_LOST);
  }
}

void controller_done(struct controller *c, uint32_t server, const struct message_done *m)
{
  if (m->tag >= c->slots || m->outcome >= OUTCOME_COUNT || m->found >= FOUND_COUNT)
    return;
  struct request_slot *r = &c->slot[m->tag];
  gboolean current = (r->state == REQUEST_SENT || (r->state == REQUEST_ABANDONED && r->gpu != NO_INDEX)) &&
                     r->id == m->id && r->attempt == m->attempt && c->view->gpu[r->gpu].server == server;
  if (!current) /* a late answer of a server that was thought dead */
    return;
  uint32_t model = r->model, gpu = r->gpu;
  unbook(c, m->tag);
  if (r->state == REQUEST_ABANDONED) {
    controller_slot_give(c, m->tag);
  } else if (m->outcome == OUTCOME_LOST && r->attempt + 1 < ATTEMPTS_MAX) {
    r->attempt++;
    c->usage.retries++;
    place(c, m->tag);
  } else {
    answer(c, m->tag, (enum outcome)m->outcome, (enum found)m->found, m->waited_ns, m->executed_ns);
    controller_slot_give(c, m->tag);
  }
  if (c->central_length > 0)
    controller_drain_central(c, model);
  if (c->view->gpu[gpu].outstanding == 0) {
    controller_leave_if_idle(c, server);
    controller_gpu_idle(c, gpu);
  }
}

static void give_up(struct controller *c, uint32_t tag)
{
  struct request_slot *r = &c->slot[tag];
  answer(c, tag, OUTCOME_TIMED_OUT, FOUND_RESIDENT, -1, -1);
  switch (r->state) {
  case REQUEST_CENTRAL:
    controller_central_remove(c, tag);
    controller_slot_give(c, tag);
    break;
  case REQUEST_SENT: {
    const struct gpu_view *gpu = &c->view->gpu[r->gpu];
    struct message m = {.type = MESSAGE_REVOKE,
                        .revoke = {.id = r->id,
                                   .attempt = r->attempt,
                                   .gpu = r->gpu - c->config->server[gpu->server].first_gpu}};
    world_send(c->world, ACTOR(ACTOR_GPU_SERVER, gpu->server), &m);
    r->state = REQUEST_ABANDONED;
    break;
  }
  default:
    r->state = REQUEST_ABANDONED;
  }
}

void controller_late(struct controller *c)
{
  int64_t now = world_now(c->world);
  uint32_t tag;
  c->late_armed = FALSE;
  while ((tag = c->open.first) != NO_INDEX) {
    int64_t left = c->slot[tag].arrived + c->config->timeout_ns - now;
    if (left > 0) {
      late_arm(c, left);
      return;
    }
    give_up(c, tag);
  }
}

void controller_retry_server(struct controller *c, uint32_t server)
{
  const struct server_config *sc = &c->config->server[server];
  struct tag_list again = {NO_INDEX, NO_INDEX};
  for (uint32_t g = sc->first_gpu; g < sc->first_gpu + sc->gpus; g++) {
    struct gpu_view *gpu = &c->view->gpu[g];
    while (gpu->first != NO_INDEX) {
      uint32_t tag = gpu->first;
      unbook(c, tag);
      c->slot[tag].next = NO_INDEX;
      if (again.last == NO_INDEX)
        again.first = tag;
      else
        c->slot[again.last].next = tag;
      again.last = tag;
    }
  }
  for (uint32_t tag = again.first, next; tag != NO_INDEX; tag = next) {
    struct request_slot *r = &c->slot[tag];
    next = r->next;
    if (r->state == REQUEST_ABANDONED) {
      controller_slot_give(c, tag);
    } else if (++r->attempt >= ATTEMPTS_MAX) {
      answer_failed(c, tag, OUTCOME_LOST);
    } else {
      c->usage.retries++;
      place(c, tag);
    }
  }
}
