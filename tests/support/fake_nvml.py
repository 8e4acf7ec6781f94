"""A driver library for hosts without a GPU: the calls of NVML that Strata makes, compiled, so that an agent loads it
as it loads NVIDIA's. `FAKE_NVML_CARDS` says how many cards there are, `FAKE_NVML_LOST` which has fallen off its bus.
"""

import shutil
import subprocess
from pathlib import Path

import pytest

__all__ = ["build_fake_nvml"]

_SOURCE = r"""
#include <stdio.h>
#include <stdlib.h>
typedef struct { unsigned long long total, free, used; } memory_t;
typedef struct { unsigned gpu, memory; } rates_t;
enum { OK = 0, INVALID = 2, UNSUPPORTED = 3, LOST = 15 };
static int number(const char *name, int otherwise) { char *t = getenv(name); return t ? atoi(t) : otherwise; }
static int card(void *device) { return device ? (int)(size_t)device - 1 : -1; }
int nvmlInit_v2(void) { return OK; }
int nvmlDeviceGetCount_v2(unsigned *count) { *count = number("FAKE_NVML_CARDS", 4); return OK; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device) {
  if ((int)index == number("FAKE_NVML_LOST", -1)) return LOST;
  if ((int)index >= number("FAKE_NVML_CARDS", 4)) return INVALID;
  *device = (void *)(size_t)(index + 1);
  return OK;
}
int nvmlDeviceGetUUID(void *device, char *uuid, unsigned size) {
  if (!device) return INVALID;
  snprintf(uuid, size, "GPU-%d000-fake", card(device));
  return OK;
}
int nvmlDeviceGetMemoryInfo(void *device, memory_t *memory) {
  if (!device) return INVALID;
  memory->total = 80ULL << 30; memory->used = (unsigned long long)(card(device) + 1) << 30;
  memory->free = memory->total - memory->used;
  return OK;
}
int nvmlDeviceGetUtilizationRates(void *device, rates_t *rates) {
  if (!device) return INVALID;
  if (card(device) == 3) return UNSUPPORTED;
  rates->gpu = 10 * (card(device) + 1); rates->memory = 5;
  return OK;
}
int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *degrees) {
  if (!device || sensor) return INVALID;
  *degrees = 40 + card(device);
  return OK;
}
"""


def build_fake_nvml(folder: Path) -> dict[str, str]:
    """Compiles it; returns the environment in which a process finds it."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler is there to build a driver library")
    folder.mkdir(parents=True, exist_ok=True)
    command = [compiler, "-shared", "-fPIC", "-x", "c", "-", "-o", str(folder / "libnvidia-ml.so.1")]
    subprocess.run(command, input=_SOURCE, text=True, check=True)
    return {"LD_LIBRARY_PATH": str(folder)}
