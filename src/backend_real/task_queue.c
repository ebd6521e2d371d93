/* A ring that doubles; see task_queue.h. */
#include "backend_real/task_queue.h"

#include <string.h>

#define ROOM_FIRST 16u

void task_queue_clear(struct task_queue *queue)
{
  g_free(queue->task);
  memset(queue, 0, sizeof *queue);
}

static void grow(struct task_queue *queue)
{
  uint32_t room = queue->room ? 2 * queue->room : ROOM_FIRST;
  struct task *task = g_new(struct task, room);
  uint32_t head = MIN(queue->count, queue->room - queue->first);
  if (queue->count) {
    memcpy(task, queue->task + queue->first, head * sizeof *task);
    memcpy(task + head, queue->task, (queue->count - head) * sizeof *task);
  }
  g_free(queue->task);
  queue->task = task;
  queue->room = room;
  queue->first = 0;
}

struct task *task_queue_push(struct task_queue *queue)
{
  if (queue->count == queue->room)
    grow(queue);
  return &queue->task[(queue->first + queue->count++) % queue->room];
}

gboolean task_queue_pop(struct task_queue *queue, struct task *task)
{
  if (queue->count == 0)
    return FALSE;
  *task = queue->task[queue->first];
  queue->first = (queue->first + 1) % queue->room;
  queue->count--;
  return TRUE;
}
