/* A cluster whose processes are started one by one; see cluster.h. */
#include "cluster.h"

#include <criterion/criterion.h>
#include <string.h>

static void write_text(const ClusterLab *lab, const char *name, const char *text)
{
  g_autofree char *path = lab_path(lab, name);
  cr_assert(g_file_set_contents(path, text, -1, NULL), "cannot write %s", path);
}

/* On loopback keys are not needed; with them: `run --local`. */
struct process *lab_controller(ClusterLab *lab)
{
  write_text(lab, "controller.ini", "[cluster]\ncontroller = 127.0.0.1:0\n");
  struct process *controller = lab_start(lab, "controller --cluster controller.ini --log info");
  cr_assert(process_says(controller, "listening on ", 1, 30), "the controller does not listen");
  g_autofree char *log = process_log(controller);
  g_auto(GStrv) words = g_strsplit_set(strstr(log, "listening on ") + strlen("listening on "), " \n", 2);
  g_autofree char *text = g_strdup_printf("[cluster]\ncontroller = %s\n", words[0]);
  write_text(lab, "cluster.ini", text);
  return controller;
}

struct process *lab_gpu_server(ClusterLab *lab, int index)
{
  return lab_start(lab, "gpu-server --cluster cluster.ini --index %d --log info", index);
}

struct process *lab_memory_server(ClusterLab *lab, int index)
{
  return lab_start(lab, "memory-server --cluster cluster.ini --index %d --address 127.0.0.1 --log info",
                   index);
}

struct process *lab_client(ClusterLab *lab, const char *name, const char *more)
{
  return lab_start(lab,
                   "client experiment.ini --cluster cluster.ini --device host --json --quiet --out %s.db%s%s",
                   name, *more ? " " : "", more);
}
