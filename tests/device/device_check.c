/* Checks a device of this machine by its interface (device.h), and measures it: `device_check --device cuda`.
 *
 * Bytes first: what arrives, what is verified, what must be refused; who else may write there. Then speed:
 * copies by size, verifying, how late ends are told, groups piped through copy and compute against the flow
 * shop, several GPUs at once. Real GPUs are judged, the host device's figures are only shown. Exit status 0:
 * all is as it should be, 1: a check failed or something hung, 2: bad usage, or there is no such device here.
 * Every wait has a deadline.
 */
#include <stdio.h>
#include <string.h>

#include "backend_real/device_kinds.h"
#include "bench.h"
#include "harness/command.h"

struct arguments {
  char *device;
  gint gpus, mb;
  gboolean quick;
};

static const char usage[] =
    "usage: device_check [--device auto|cuda|host] [--gpus N] [--mb SIZE] [--quick]\n"
    "\n"
    "  --device D   which kind; auto (default): the best there is\n"
    "  --gpus N     how many to use, default 1\n"
    "  --mb SIZE    MiB of host arena and of each GPU's memory, default 1024 (16 to 65536)\n"
    "  --quick      few repetitions\n";

static int refuse(const char *message)
{
  fprintf(stderr, "device_check: %s\n", message);
  return 2;
}

static int check(struct bench *bench)
{
  int64_t open_ns;
  bench->cuda = strcmp(bench->ops->name, "cuda") == 0;
  bench_open(bench, &open_ns);
  printf("device %s, opened in %.1f ms\n", bench->ops->name, (double)open_ns / 1e6);
  for (uint32_t gpu = 0; gpu < bench->gpus; gpu++)
    printf("GPU %u: %s, %.2f GB\n", gpu, bench->ops->describe(bench->device, gpu),
           (double)bench->ops->memory(bench->device, gpu) / 1e9);
  printf("\n");
  check_bytes(bench);
  check_memory(bench);
  check_copy_speed(bench);
  check_verify_speed(bench);
  check_latency(bench);
  check_pipeline(bench);
  check_gpus_at_once(bench);
  bench_close(bench);
  printf("\n%s\n", bench->failures ? "FAILED" : "all checks passed");
  return bench->failures != 0;
}

static int run(const struct arguments *arguments)
{
  g_autoptr(GError) error = NULL;
  if (arguments->gpus < 1 || arguments->gpus > 64)
    return refuse("--gpus: expected 1 to 64");
  if (arguments->mb < 16 || arguments->mb > 65536)
    return refuse("--mb: expected 16 to 65536");
  struct bench bench = {
      .ops = device_by_name(arguments->device ? arguments->device : "auto", &error),
      .bytes = (uint64_t)arguments->mb << 20,
      .gpus = (uint32_t)arguments->gpus,
      .quick = arguments->quick,
  };
  return bench.ops ? check(&bench) : refuse(error->message);
}

int main(int argc, char **argv)
{
  struct arguments arguments = {.gpus = 1, .mb = 1024};
  const GOptionEntry entries[] = {
      {"device", 0, 0, G_OPTION_ARG_FILENAME, &arguments.device, NULL, NULL},
      {"gpus", 0, 0, G_OPTION_ARG_INT, &arguments.gpus, NULL, NULL},
      {"mb", 0, 0, G_OPTION_ARG_INT, &arguments.mb, NULL, NULL},
      {"quick", 0, 0, G_OPTION_ARG_NONE, &arguments.quick, NULL, NULL},
      {NULL, 0, 0, 0, NULL, NULL, NULL},
  };
  g_autoptr(GError) error = NULL;
  if (argc == 2 && strcmp(argv[1], "--help") == 0) {
    fputs(usage, stdout);
    return 0;
  }
  g_set_prgname("device_check");
  g_auto(GStrv) words = command_options(argc, argv, entries, &error);
  int status = !words     ? refuse(error->message)
               : words[0] ? refuse("expected no other argument")
                          : run(&arguments);
  g_free(arguments.device);
  return status;
}
