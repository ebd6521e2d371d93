/* Slots of requests, and the lists that they are in: of a GPU's outstanding ones, of the central queue
 * (whole, and by model), and of those not answered yet. */
#include "core/controller_internal.h"

static void slots_grow(struct controller *c)
{
  uint32_t more = c->slots ? c->slots : 256;
  c->slot = g_renew(struct request_slot, c->slot, c->slots + more);
  for (uint32_t tag = c->slots + more; tag-- > c->slots;) {
    c->slot[tag] = (struct request_slot){.state = REQUEST_FREE, .next = c->free_slot};
    c->free_slot = tag;
  }
  c->slots += more;
}

uint32_t controller_slot_take(struct controller *c)
{
  if (c->free_slot == NO_INDEX)
    slots_grow(c);
  uint32_t tag = c->free_slot;
  c->free_slot = c->slot[tag].next;
  return tag;
}

void controller_slot_give(struct controller *c, uint32_t tag)
{
  struct request_slot *r = &c->slot[tag];
  r->state = REQUEST_FREE;
  r->next = c->free_slot;
  c->free_slot = tag;
}

void controller_outstanding_add(struct controller *c, uint32_t tag)
{
  struct request_slot *r = &c->slot[tag];
  struct gpu_view *gpu = &c->view->gpu[r->gpu];
  r->next = NO_INDEX;
  r->previous = gpu->last;
  if (gpu->last == NO_INDEX)
    gpu->first = tag;
  else
    c->slot[gpu->last].next = tag;
  gpu->last = tag;
}

void controller_outstanding_remove(struct controller *c, uint32_t tag)
{
  struct request_slot *r = &c->slot[tag];
  struct gpu_view *gpu = &c->view->gpu[r->gpu];
  if (r->previous == NO_INDEX)
    gpu->first = r->next;
  else
    c->slot[r->previous].next = r->next;
  if (r->next == NO_INDEX)
    gpu->last = r->previous;
  else
    c->slot[r->next].previous = r->previous;
}

void controller_central_add(struct controller *c, uint32_t tag)
{
  struct request_slot *r = &c->slot[tag];
  struct tag_list *model = &c->central_model[r->model];
  r->state = REQUEST_CENTRAL;
  r->next = r->model_next = NO_INDEX;
  r->previous = c->central.last;
  r->model_previous = model->last;
  if (c->central.last == NO_INDEX)
    c->central.first = tag;
  else
    c->slot[c->central.last].next = tag;
  if (model->last == NO_INDEX)
    model->first = tag;
  else
    c->slot[model->last].model_next = tag;
  c->central.last = model->last = tag;
  c->central_length++;
}

void controller_central_remove(struct controller *c, uint32_t tag)
{
  struct request_slot *r = &c->slot[tag];
  struct tag_list *model = &c->central_model[r->model];
  if (r->previous == NO_INDEX)
    c->central.first = r->next;
  else
    c->slot[r->previous].next = r->next;
  if (r->next == NO_INDEX)
    c->central.last = r->previous;
  else
    c->slot[r->next].previous = r->previous;
  if (r->model_previous == NO_INDEX)
    model->first = r->model_next;
  else
    c->slot[r->model_previous].model_next = r->model_next;
  if (r->model_next == NO_INDEX)
    model->last = r->model_previous;
  else
    c->slot[r->model_next].model_previous = r->model_previous;
  c->central_length--;
}

void controller_open_add(struct controller *c, uint32_t tag)
{
  struct request_slot *r = &c->slot[tag];
  r->open_next = NO_INDEX;
  r->open_previous = c->open.last;
  if (c->open.last == NO_INDEX)
    c->open.first = tag;
  else
    c->slot[c->open.last].open_next = tag;
  c->open.last = tag;
}

void controller_open_remove(struct controller *c, uint32_t tag)
{
  const struct request_slot *r = &c->slot[tag];
  if (r->open_previous == NO_INDEX)
    c->open.first = r->open_next;
  else
    c->slot[r->open_previous].open_next = r->open_next;
  if (r->open_next == NO_INDEX)
    c->open.last = r->open_previous;
  else
    c->slot[r->open_next].open_previous = r->open_previous;
}
